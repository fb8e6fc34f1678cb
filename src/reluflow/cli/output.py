"""Files that a verb writes: refused before the work begins, written also when the work ends early."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

PICTURES = (".png", ".svg", ".pdf")
RUNS = (".npz", ".csv", ".tsv")


def check_target(option: str, path: Path | None, endings: tuple[str, ...]) -> None:
    """Refuse a file that could not be written, before an hour is spent on what goes into it."""
    from ..problem import ProblemError
    from ..problem.files import write_to

    try:
        if path is not None:
            write_to(path, endings)
    except ProblemError as exc:
        raise ProblemError(f"{option} {exc}") from None


def write(option: str, path: Path | None, writer: Callable[[Path], object]) -> None:
    """Write a file, if one is wanted."""
    from ..problem import ProblemError

    try:
        if path is not None:
            writer(path)
    except ProblemError as exc:
        raise ProblemError(f"{option} {exc}") from None
