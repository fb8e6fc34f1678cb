"""Classifiers for scikit-learn: the limit of the flow, descent as people run it, the widest linear separator.

scikit-learn is needed (the extra ``learn``), and is imported when one of them is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .classifiers import DescentClassifier, FlowLimitClassifier, MaxMarginClassifier
    from .errors import NoCertificate, NoSeparator

__all__ = ["DescentClassifier", "FlowLimitClassifier", "MaxMarginClassifier", "NoCertificate", "NoSeparator"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "errors" if name in ("NoCertificate", "NoSeparator") else "classifiers"
    return getattr(import_module(f".{home}", __name__), name)
