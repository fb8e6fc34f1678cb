"""Pictures."""

from ._alignment import plot_alignment

__all__ = ["plot_alignment"]
