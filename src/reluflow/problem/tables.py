"""Tables for a terminal, and texts that hold them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .types import Array

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Make a table that is readable without colour and at 80 columns; the last column wraps."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    made = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for k, column in enumerate(columns):
        made.add_column(column, no_wrap=k < len(columns) - 1, overflow="fold")
    for row in rows:
        made.add_row(*(Text(str(cell)) for cell in row))
    return made


def paper(width: int, color: bool) -> Console:
    """Make a console that writes into a string, with or without the codes for colour."""
    from rich.console import Console

    return Console(
        force_jupyter=False,  # or a notebook shows every line by itself
        file=io.StringIO(),
        width=width,
        color_system="standard" if color else None,
        force_terminal=color,
        no_color=not color,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )


def rendered(parts: Iterable[str | Table], width: int, color: bool = False) -> str:
    """Put lines and tables under each other; lines are left as long as they are.

    >>> lines = rendered(["Points", table(("name", "norm"), [("a", 1), ("b", 2)])], 40).splitlines()
    >>> [line.split() for line in lines if line.isascii()]
    [['Points'], ['name', 'norm'], ['a', '1'], ['b', '2']]
    """
    out = paper(width, color)
    for part in parts:
        out.print(part, soft_wrap=isinstance(part, str))
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue().rstrip("\n")


def number(value: Any, digits: int = 6) -> str:
    """Write a number of a document; a dash where there is none.

    >>> number(0.123456789, 4), number(None), number("nan"), number("-inf")
    ('0.1235', '-', '-', '-inf')
    """
    if isinstance(value, str):
        return "-" if value == "nan" else value
    return "-" if value is None else f"{value:.{digits}g}"


def vector(values: Sequence[float] | Array) -> str:
    """Write a vector, or its beginning.

    >>> vector([1.0, 0.5]), vector([1.0] * 9)
    ('(1, 0.5)', '(1, 1, 1, 1, ...)')
    """
    shown = ", ".join(f"{x:.4g}" for x in values[:4])
    return f"({shown}{', ...' if len(values) > 4 else ''})"


def sign_word(sign: int) -> str:
    """Say a sign in one character."""
    return "+" if sign > 0 else "-" if sign < 0 else "0"
