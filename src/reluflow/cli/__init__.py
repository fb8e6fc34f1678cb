"""The command line: one verb a module, no logic. ``common.py`` says how a verb is added."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command ``reluflow``."""
    try:
        from .app import run

        run()
    except KeyboardInterrupt:  # so early that no command has taken over yet
        raise SystemExit(130) from None
