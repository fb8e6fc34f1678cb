"""What a notebook shows of a result, and its picture."""

from __future__ import annotations

import sys
from typing import Any


class Shown:
    """A result with a picture and a view for notebooks.

    Both are made on the floor of reports, which lies above all results: it is found at run time, through the package,
    and nothing here depends on it.
    """

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the main picture of this into Matplotlib axes, and return them.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; default: new axes, which a notebook shows.
        **options
            Of a run: ``what="margin"``, ``"loss"``, ``"rank"``, ``"norms"`` or, in the plane, ``"directions"``.

        Returns
        -------
        matplotlib.axes.Axes
        """
        return _reports().draw(self, ax, **options)

    def _repr_html_(self) -> str:
        text: str = _reports().fragment(self)
        return text


def _reports() -> Any:
    return sys.modules[__name__.partition(".")[0]].report
