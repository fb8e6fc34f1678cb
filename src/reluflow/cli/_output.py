"""Files that a verb writes: refused before the work begins, written also when the work ends early."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

PICTURES = (".png", ".svg", ".pdf")


def check_target(option: str, path: Path | None, endings: tuple[str, ...] = ()) -> None:
    """Refuse a file that could not be written, before an hour is spent on what goes into it."""
    from ..problem import ProblemError

    if path is None:
        return
    if not path.parent.is_dir():
        raise ProblemError(f"{option} {path} cannot be written: there is no folder {path.parent}; make it first.")
    if path.is_dir():
        raise ProblemError(f"{option} {path} cannot be written: it is a folder; name a file in it.")
    if endings and path.suffix.lower() not in endings:
        raise ProblemError(f"{option} {path} cannot be written: the ending must be one of {', '.join(endings)}.")


def write(option: str, path: Path | None, writer: Callable[[Path], object]) -> None:
    """Write a file, if one is wanted."""
    from ..problem import ProblemError

    if path is None:
        return
    try:
        writer(path)
    except OSError as exc:
        raise ProblemError(f"{option} {path} cannot be written: {exc.strerror or exc}.") from None
