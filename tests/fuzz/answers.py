"""Whether a change of the code changed a number: what `explain` says of 200 random problems, before and after.

``python tests/fuzz/answers.py record FILE [--count 200] [--seed 0] [--cap 20]`` writes what it says of each problem;
``python tests/fuzz/answers.py compare FILE`` computes them again and prints every entry that differs: other words, or
numbers by more than ``--rtol`` (default 0: to the last bit, on one machine). Problems that take longer than the cap are
left out of both.

It is a program, not a test of the suite: it takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import reluflow as rf

sys.path.insert(0, str(Path(__file__).parent))

from limits import TooLong, capped, draw, source

_ASIDE = ("versions", "command")  # what may differ although no number does


def problem(seed: int, k: int) -> rf.Problem | None:
    """Draw problem k: small ones of the judge's kind, and every third a named dataset from a small start."""
    if k % 3:
        return draw(seed, k)
    rng = np.random.default_rng([seed, k, 1])
    names = [name for name in rf.examples() if rf.example(name).data is not None]
    data = rf.example(str(rng.choice(names))).data
    slope = float(rng.choice([0.0, 0.1, 0.5]))
    size = {"scale": 10.0 ** rng.uniform(-4, -1)} if rng.random() < 0.5 else {"log_scale": rng.uniform(-300, -10)}
    net = rf.initialize(data.d, int(rng.integers(2, 12)), "balanced", seed=int(rng.integers(1000)), slope=slope, **size)
    return rf.Problem(data, net)


def said(one: rf.Problem, cap: float) -> Any:
    """Return what `explain` says of it, or how it ended."""
    try:
        found = capped(cap, rf.explain, one, progress=False)
    except TooLong:
        return "too long"
    except rf.ReluflowError as error:
        return str(error)
    document = found.to_dict()
    return json.loads(json.dumps({key: value for key, value in document.items() if key not in _ASIDE}))


def differences(old: Any, new: Any, rtol: float, place: str = "") -> Iterator[str]:
    """Say where two documents differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            yield from differences(old.get(key), new.get(key), rtol, f"{place}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for k, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from differences(a, b, rtol, f"{place}[{k}]")
    elif isinstance(old, float) and isinstance(new, float):
        if old != new and not (math.isnan(old) and math.isnan(new)) and abs(new - old) > rtol * abs(old):
            yield f"{place}: {old!r} was, {new!r} is"
    elif old != new:
        yield f"{place}: {str(old)[:90]} was, {str(new)[:90]} is"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cap", type=float, default=20, help="seconds for one problem")
    parser.add_argument("--rtol", type=float, default=0.0)
    args = parser.parse_args(argv)
    before = json.loads(args.file.read_text()) if args.what == "compare" else {}
    after, changed, slow = {}, 0, 0
    for k in range(args.count):
        if (one := problem(args.seed, k)) is None:
            continue
        after[str(k)] = now = said(one, args.cap)
        then = before.get(str(k), now)
        if "too long" in (then, now):
            slow += 1
            continue
        found = list(differences(then, now, args.rtol))
        changed += bool(found)
        if found:
            print(f"{args.seed}/{k}: {len(found)} entries differ\n    {source(one)}")
            print("".join(f"    {line}\n" for line in found[:5]), end="", flush=True)
    if args.what == "record":
        args.file.write_text(json.dumps(after))
        print(f"{len(after)} problems written to {args.file}, {slow} too long")
        return 0
    print(f"{len(after)} problems: {changed} differ, {slow} too long to compare")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
