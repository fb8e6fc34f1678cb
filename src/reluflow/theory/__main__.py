"""``python -m reluflow.theory [FILE]``: write the table of covered statements, to a file or to the screen."""

from __future__ import annotations

import sys
from pathlib import Path

from .verdicts import coverage

if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(coverage(), encoding="utf-8")
    else:
        sys.stdout.write(coverage())
