"""Words of the reports."""

from __future__ import annotations

_PHASES = {"early": "exact", "coupled": "step by step", "late": "in log time", "rest": "nothing moves"}


def phase_words(name: str) -> str:
    """Say how a phase of the computation goes about it."""
    return _PHASES.get(name, name)
