"""For developers: ``python -m reluflow.experiments restamp FOLDER [ID]... [--jobs N]``.

Computes the named experiments again (those that take seconds, if none is named), and if they come out as stored marks
all of the folder as results of the present code. Exit code 3: they differ, or cannot be run; nothing is written then.
"""

from __future__ import annotations

import argparse
import sys

from ..problem import ReluflowError
from .core.restamp import ROUNDING, TOLERANCE, restamp


def main() -> int:
    """Read the command line and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m reluflow.experiments", description=__doc__)
    parser.add_argument("verb", choices=["restamp"])
    parser.add_argument("folder")
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    try:
        result = restamp(given.folder, given.ids, jobs=given.jobs)
    except ReluflowError as exc:
        print(exc, file=sys.stderr)
        return exc.exit_code
    print(f"Numbers agree up to {TOLERANCE:g} of the largest in their list, or {ROUNDING:g}; everything else exactly.")
    for name, one in result.recomputed.items():
        verdict = "differs" if one.differ else "same"
        print(f"{name}: {verdict}; {one.values} values, largest relative difference {one.largest:.3g}")
        for line in one.differ[:5]:
            print(f"    {line}")
    for name, why in result.failed.items():
        print(f"{name}: not computed: {why}")
    for name, share in result.carried.items():
        print(f"{name}: carried over; {share:.1%} of the definitions it reaches were recomputed with")
    for name in result.outdated:
        print(f"{name}: stored from other parameters; run it again")
    print("written." if result.agree else "nothing was written: run anew what differs (reluflow reproduce).")
    return 0 if result.agree else 3


if __name__ == "__main__":
    sys.exit(main())
