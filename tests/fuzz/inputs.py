"""Hundreds of bad inputs, generated: each must be refused with a sentence, fast, and nothing else.

``python tests/fuzz/inputs.py [--count 300] [--seed 0] [--verbose]``. Four kinds are drawn in turn: files, options,
arrays and networks (with PyTorch also its files). Every one of them is bad by construction. Each is run in a process
of its own (a fork, so that nothing is imported twice) and must

* exit with 2, as bad input does everywhere,
* say why in a sentence, on stderr or with ``--json`` as one document on stdout with ``error``, ``kind``, ``remedy``,
* show no traceback and no warning,
* end within ten seconds,
* leave the files it was given as they were, and write no other.

It is a program, not a test of the suite: it takes a minute.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SECONDS = 10
NOT_NUMBERS = ["nan", "inf", "abc", "", "1e999", "1,5", "--", "0x10"]
GOOD = [[1.0, 2.0, 1.0], [2.0, 1.0, 1.0], [-1.0, -2.0, -1.0], [-2.0, -1.5, -1.0]]


class Case(NamedTuple):
    """One bad input: what it is, and how to give it; ``call`` returns what a program exits with."""

    what: str
    call: Callable[[Path], int]
    as_json: bool


class Result(NamedTuple):
    """What came of one."""

    code: int | None
    out: str
    err: str
    seconds: float


def command(*words: str) -> int:
    """Run the command line in this process."""
    from reluflow.cli.app import run

    sys.argv = ["reluflow", *words]
    try:
        run()
    except SystemExit as end:
        return int(end.code or 0) if not isinstance(end.code, str) else 1
    return 0


# -- files -----------------------------------------------------------------------------------------------


def table(rows: list[list[object]], comma: str = ",") -> str:
    return "\n".join(comma.join(str(cell) for cell in row) for row in rows) + "\n"


CELLS = ("word", "empty", "nan", "inf", "huge", "tiny")
ROWS = ("ragged-short", "ragged-long", "label", "third-label", "no-label-value", "zero", "both-labels")
TEXTS = {
    "nothing": "",
    "comments": "# a\n\n",
    "header": "a,b,y\n",
    "one-column": "1\n-1\n",
    "quote": 'a,b,y\n1,"2,1\n3,4,-1\n',
}
OTHERS = ("npz-name", "json", "xlsx", "parquet", "random")
ARCHIVES = ("truncated-npz", "objects", "complex", "shapes")
KINDS = (*CELLS, *ROWS, "bytes", "utf16", *TEXTS, *OTHERS, *ARCHIVES)


def spoiled(draw: random.Random) -> tuple[str, bytes | str, str]:
    """Spoil a good table in one way: a name for it, the content, the ending."""
    rows: list[list[object]] = [list(row) for row in GOOD]
    i, j = draw.randrange(len(rows)), draw.randrange(2)
    kind = draw.choice(KINDS)
    words = {
        "word": draw.choice(["abc", "1..2", "1e", "--3", "NULL?", "½", "1 2", "$5", "12%"]),
        "empty": "",
        "nan": draw.choice(["nan", "NaN"]),
        "inf": draw.choice(["inf", "-Infinity", "1e999"]),
        "huge": f"{draw.choice([-1, 1])}e{draw.randint(155, 300)}",
        "tiny": f"1e-{draw.randint(330, 900)}",
    }
    if kind in words:
        rows[i][j] = words[kind]
    elif kind in ROWS:
        spoil_rows(kind, rows, i, draw)
    elif kind in OTHERS:
        return (kind, *other_file(kind, table(rows), draw))
    elif kind in ARCHIVES:
        return kind, spoiled_archive(kind, draw), ".npz"
    text: bytes | str = TEXTS.get(kind, table(rows))
    if kind == "bytes":
        text = table(rows).encode()[:10] + bytes([0, 255, 254]) + table(rows).encode()[10:]
    elif kind == "utf16":
        text = table(rows).encode("utf-16")
    return kind, text, ".csv"


def spoil_rows(kind: str, rows: list[list[object]], i: int, draw: random.Random) -> None:
    """Make row i too short or too long, or labels what they cannot be."""
    if kind == "ragged-short":
        rows[1 + i % 3].pop()
    elif kind == "ragged-long":
        rows[i].append(1)
    elif kind == "label":
        for k, row in enumerate(rows):
            row[2] = (2, 7)[k % 2]
    elif kind == "third-label":
        rows[i][2] = draw.choice([2, 0, 3, "x", 0.5, -1.0000001])
    elif kind == "no-label-value":
        rows[i][2] = ""
    elif kind == "zero":
        rows[i][:2] = [0.0, "-0"]
    else:
        rows.append([rows[i][0], rows[i][1], -float(str(rows[i][2]))])


def other_file(kind: str, text: str, draw: random.Random) -> tuple[bytes | str, str]:
    """Return content and ending of a file that is no table, or not by its name."""
    if kind == "npz-name":
        return text, ".npz"
    if kind == "json":
        return json.dumps(GOOD), ".json"
    if kind == "xlsx":
        return b"PK\x03\x04" + draw.randbytes(300), ".xlsx"
    if kind == "parquet":
        return b"PAR1" + draw.randbytes(300) + b"PAR1", ".parquet"
    return draw.randbytes(draw.randint(1, 2000)) + b"\xff\0", draw.choice([".csv", ".npz", ".npy", ".tsv"])


def spoiled_archive(kind: str, draw: random.Random) -> bytes:
    X, y = np.array([row[:2] for row in GOOD]), np.array([row[2] for row in GOOD])
    out = io.BytesIO()
    if kind == "objects":
        np.savez(out, X=np.array([[{}, 1], [2, 3]], dtype=object), y=y[:2])
    elif kind == "complex":
        np.savez(out, X=X + 1j, y=y)
    elif kind == "shapes":
        np.savez(out, X=X[: draw.randint(1, 3)], y=y)
    else:
        np.savez(out, X=X, y=y)
        return out.getvalue()[: draw.randint(1, len(out.getvalue()) - 30)]
    return out.getvalue()


def bad_file(draw: random.Random) -> Case:
    kind, content, ending = spoiled(draw)
    verb = draw.choice([["explain"], ["check"], ["predict"], ["flow"], ["limit"], ["certify"], ["data", "show"]])
    as_json = draw.random() < 0.4

    def call(folder: Path) -> int:
        path = folder / f"given{ending}"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return command(*verb, str(path), *(["--json"] if as_json else []))

    return Case(f"{' '.join(verb)} on a file: {kind}{ending}", call, as_json)


# -- options ---------------------------------------------------------------------------------------------

FLOW = ["explain", "check", "predict", "flow", "limit", "align"]
BAD_OPTIONS: list[tuple[list[str], str, list[str]]] = [
    (FLOW, "--width", ["0", "-3", "2.5", "1e3", "99999999999999", *NOT_NUMBERS]),
    (FLOW, "--slope", ["-0.1", "1.5", *NOT_NUMBERS]),
    (FLOW, "--scale", ["0", "-1", "1e300", *NOT_NUMBERS]),
    (FLOW, "--log-scale", ["-1e308", "1e9", "-2e8", *NOT_NUMBERS]),
    (FLOW, "--seed", ["-1", "1.5", *NOT_NUMBERS]),
    (FLOW, "--scheme", ["", "balance", "xavier", "3"]),
    (FLOW, "--loss", ["", "hinge", "log"]),
    (FLOW, "--reduction", ["", "max", "average"]),
    (FLOW, "--train", ["", "second", "none"]),
    (["explain", "flow", "limit"], "--rtol", ["0", "-1", "0.5", "1e-16", *NOT_NUMBERS]),
    (["explain", "flow", "limit"], "--max-steps", ["0", "-1", "1.5", *NOT_NUMBERS]),
    (["explain", "limit"], "--max-log-time", ["0", "-5", "1e11", *NOT_NUMBERS]),
    (["explain", "flow", "limit", "certify"], "--time-limit", ["0", "-5", "nan", "abc", "", "1,5"]),
    (
        ["flow"],
        "--until",
        ["", "time", "loss=0", "loss=-1", "time=-1", "aligned=1", "speed=3", "margin=nan", "time=1,time=2"],
    ),
    (["certify"], "--tolerance", ["-1", *NOT_NUMBERS]),
    (["certify"], "--budget", ["0", "-4", "1.5", *NOT_NUMBERS]),
    (["flow", "limit"], "--save", ["no/such/folder/x.npz", "x.csv", "x.png", ".", "x"]),
    (["flow", "limit"], "--plot", ["no/such/folder/x.png", "x.npz", "x.txt", ".", "x"]),
    (["explain"], "--out", ["no/such/folder/x.html", "x.png", ".", "x"]),
    (["explain", "certify"], "--network", ["missing.npz", ".", "given.csv", "missing.pt"]),
    ([*FLOW, "certify"], "--label", ["price", "17", "-9", "0.5"]),
    ([*FLOW, "certify"], "--negative", ["1", "0"]),
    ([*FLOW, "certify"], "--drop-columns", ["price", "17", ","]),
    ([*FLOW, "certify"], "--delimiter", ["ab", "1"]),
    (FLOW, "--wdith", ["3"]),
    (FLOW, "--no-such-option", []),
]


def bad_option(draw: random.Random) -> Case:
    verbs, option, values = draw.choice(BAD_OPTIONS)
    verb, as_json = draw.choice(verbs), draw.random() < 0.4
    words = [option, *([draw.choice(values)] if values else [])]

    def call(folder: Path) -> int:
        os.chdir(folder)
        Path("given.csv").write_text(table(GOOD))
        json_words = ["--json"] if as_json else []
        return command(verb, "given.csv", *(words + json_words if draw.random() < 0.5 else json_words + words))

    return Case(f"{verb} given.csv {' '.join(repr(w) for w in words)}", call, as_json)


def bad_words(draw: random.Random) -> Case:
    words = draw.choice(
        [
            ["explian", "EX1"],
            ["explain", "no-such-file.csv"],
            ["explain", "EX999"],
            ["explain", "phuong:sede=3"],
            ["explain", "phuong:n=-4"],
            ["explain", "phuong:n=abc"],
            ["explain", "EX1", "EX2"],
            ["explain", "."],
            ["explain", ""],
            ["explain", "digits:pair=3/3"],
            ["explain", "digits:pair=3/12"],
            ["check", "EX1", "--width"],
            ["descend", "EX1", "--step", "0"],
            ["descend", "EX1", "--step", "-1"],
            ["descend", "EX1", "--step", "nan"],
            ["descend", "EX1", "--step", "0.1", "--steps", "-1"],
            ["descend", "EX1", "--step", "0.1", "--steps", "5", "--epochs", "3"],
            ["descend", "EX1", "--step", "0.1", "--steps", "5", "--method", "lbfgs"],
            ["descend", "EX1", "--step", "0.1", "--steps", "5", "--batch", "0"],
            ["descend", "EX1", "--step", "0.1", "--steps", "5", "--dtype", "int8"],
            ["data", "make", "nosuch"],
            ["data", "make", "phuong", "--out", "no/such/folder.csv"],
            ["data", "show"],
            ["data", "shwo", "EX1"],
            ["reproduce", "PL-F99"],
            ["reproduce", "--paper", "XX"],
            ["reproduce", "PL-F1", "--jobs", "0"],
            ["compare", "missing.pt", "EX1"],
            ["compare"],
            ["certify", "EX1", "--limit"],
            ["flow", "EX1", "--scale", "1e-3", "--log-scale", "-3"],
        ]
    )
    as_json = draw.random() < 0.4

    def call(folder: Path) -> int:
        os.chdir(folder)
        return command(*words, *(["--json"] if as_json else []))

    return Case(" ".join(repr(w) for w in words), call, as_json)


# -- arrays ----------------------------------------------------------------------------------------------


def refused(work: Callable[[], Any]) -> int:
    """Do something in Python that must be refused by an error of the family; as an exit code."""
    from reluflow import ReluflowError

    try:
        found = work()
    except ReluflowError as error:
        print(f"reluflow: {error}", file=sys.stderr)
        return error.exit_code
    print(f"accepted: {type(found).__name__}", file=sys.stderr)
    return 0


def bad_array(draw: random.Random) -> Case:
    X, y = np.array([row[:2] for row in GOOD]), np.array([row[2] for row in GOOD])
    i = draw.randrange(len(X))

    def put(value: float) -> np.ndarray:
        out = X.copy()
        out[i, draw.randrange(2)] = value
        return out

    arrays: dict[str, tuple[Any, Any]] = {
        "nan": (put(np.nan), y),
        "inf": (put(-np.inf), y),
        "huge": (put(1e200), y),
        "a zero row": (np.where(np.arange(len(X))[:, None] == i, 0.0, X), y),
        "complex": (X + 0j, y),
        "strings": (X.astype(str), y),
        "objects": ([*X.astype(object).tolist()[:-1], [None, 1]], y),
        "ragged": ([[1, 2], [3]], [1, -1]),
        "one dimension": (X[:, 0], y),
        "three dimensions": (X[None], y),
        "no rows": (X[:0], y[:0]),
        "no columns": (X[:, :0], y),
        "too few labels": (X, y[:-1]),
        "labels 0 and 1": (X, (y > 0).astype(int)),
        "three labels": (X, np.array([1, -1, 2, 1])),
        "nearly a label": (X, y * 1.0000001),
        "nan label": (X, np.where(np.arange(len(y)) == i, np.nan, y)),
        "booleans": (X, y > 0),
        "label column": (X, y[:, None]),
        "no labels": (X, None),
        "a number": (3.0, y),
        "a dictionary": ({"x": [1, 2]}, y),
        "None": (None, y),
        "bytes": (b"1,2,1", None),
        "one point twice": (np.vstack([X, X[i]]), np.append(y, -y[i])),
        "dates": (np.array([["2020-01-01"] * 2] * 4, dtype="datetime64[D]"), y),
        "too wide an integer": (np.array([[2**60 + 1, 1]] * 4), y),
    }
    what = draw.choice(sorted(arrays))
    given = arrays[what]
    verb = draw.choice(["explain", "check", "predict", "flow", "limit", "Dataset"])

    def call(folder: Path) -> int:
        import reluflow as rf

        before = [np.array(part, dtype=object, copy=True) if isinstance(part, np.ndarray) else None for part in given]
        code = refused(lambda: getattr(rf, verb)(*given))
        for part, copy in zip(given, before, strict=True):
            if copy is not None and not all(
                a is b or a == b or a != a for a, b in zip(part.flat, copy.flat, strict=True)
            ):
                print("Traceback: the array was changed", file=sys.stderr)
        return code

    return Case(f"rf.{verb}: {what}", call, False)


def bad_setting(draw: random.Random) -> Case:
    bad: list[tuple[str, dict[str, Any]]] = [
        ("width", {"width": draw.choice([0, -1, 2.5, "ten", True, 10**15, np.nan])}),
        ("slope", {"slope": draw.choice([-0.5, 1.1, np.nan, "0", [0.1], 1j])}),
        ("scale", {"scale": draw.choice([0, -1, np.nan, np.inf, "1", [1]])}),
        ("log_scale", {"log_scale": draw.choice([np.nan, np.inf, -np.inf, -1e308, 1e9, "x"])}),
        ("both scales", {"scale": 0.1, "log_scale": -1}),
        ("scheme", {"scheme": draw.choice(["", "he ", 3, "xavier"])}),
        ("seed", {"seed": draw.choice([-1, 1.5, "x", np.nan])}),
        ("loss", {"loss": draw.choice(["", "hinge", 3])}),
        ("reduction", {"reduction": draw.choice(["", "max", 3])}),
        ("train", {"train": draw.choice(["", "second", 3])}),
        ("unknown", {"widht": 3}),
        ("standardize", {"standardize": "yes"}),
        ("drop_columns", {"drop_columns": draw.choice([["nope"], [17], 3.5])}),
        ("time_limit", {"time_limit": draw.choice([0, -1, np.nan, "x"])}),
        ("rtol", {"rtol": draw.choice([0, -1, 0.5, np.nan, "x"])}),
    ]
    _, options = draw.choice(bad)
    verb = draw.choice(["explain", "flow", "limit"])
    X, y = np.array([row[:2] for row in GOOD]), np.array([row[2] for row in GOOD])

    def call(folder: Path) -> int:
        import reluflow as rf

        return refused(lambda: getattr(rf, verb)(X, y, **options))

    return Case(f"rf.{verb}(X, y, {options})", call, False)


# -- networks --------------------------------------------------------------------------------------------


def bad_network(draw: random.Random) -> Case:
    W, a = np.array([[1.0, 0.5], [-1.0, 0.3], [0.2, -1.0]]), np.array([1.0, -1.0, 1.0])
    arrays: dict[str, dict[str, Any]] = {
        "no a": {"W": W},
        "no W": {"a": a},
        "shapes": {"W": W, "a": a[:2]},
        "nan": {"W": np.where(W == 0.5, np.nan, W), "a": a},
        "inf": {"W": W, "a": a * np.inf},
        "slope": {"W": W, "a": a, "slope": draw.choice([-1.0, 2.0, np.nan])},
        "log scale": {"W": W, "a": a, "log_scale": draw.choice([np.nan, np.inf, -1e300])},
        "text": {"W": W.astype(str), "a": a},
        "objects": {"W": np.array([{}, {}, {}], dtype=object), "a": a},
        "complex": {"W": W * 1j, "a": a},
        "flat": {"W": W.ravel(), "a": a},
        "no neurons": {"W": W[:0], "a": a[:0]},
        "another dimension": {"W": np.ones((3, 5)), "a": a},
        "vector slope": {"W": W, "a": a, "slope": np.array([0.1, 0.2])},
    }
    what = draw.choice(sorted([*arrays, "truncated", "contradicting"]))
    words = draw.choice([["explain"], ["flow"], ["limit"], ["certify"]])
    as_json = draw.random() < 0.4

    def call(folder: Path) -> int:
        os.chdir(folder)
        Path("given.csv").write_text(table(GOOD))
        more: list[str] = []
        np.savez("net.npz", **arrays.get(what, {"W": W, "a": a}))
        if what == "truncated":
            Path("net.npz").write_bytes(Path("net.npz").read_bytes()[:150])
        if what == "contradicting":
            more = (
                ["--slope", "0.3"]
                if words == ["certify"]
                else draw.choice(
                    [["--width", "7"], ["--scale", "0.1"], ["--seed", "3"], ["--slope", "0.3"], ["--log-scale", "-5"]]
                )
            )
        return command(*words, "given.csv", "--network", "net.npz", *more, *(["--json"] if as_json else []))

    return Case(f"{' '.join(words)} with a network: {what}", call, as_json)


def bad_torch(draw: random.Random) -> Case:
    kinds = [
        "tanh",
        "three-layers",
        "words",
        "truncated",
        "pickle",
        "list",
        "half",
        "wrong-width",
        "three-outputs",
        "conv",
        "nan",
        "empty",
        "gelu",
    ]
    what = draw.choice(kinds)
    verb, as_json = draw.choice(["certify", "compare", "explain"]), draw.random() < 0.4

    def call(folder: Path) -> int:
        import pickle

        import torch
        from torch import nn

        os.chdir(folder)
        Path("given.csv").write_text(table(GOOD))
        good = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)).state_dict()
        made: dict[str, Callable[[], Any]] = {
            "tanh": lambda: nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)),
            "gelu": lambda: nn.Sequential(nn.Linear(2, 3), nn.GELU(), nn.Linear(3, 1)),
            "three-layers": lambda: nn.Sequential(
                nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1)
            ).state_dict(),
            "list": lambda: [1, 2, 3],
            "half": lambda: {"0.weight": torch.ones(3, 2)},
            "wrong-width": lambda: {**good, "2.weight": torch.ones(1, 4)},
            "three-outputs": lambda: nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 3)).state_dict(),
            "conv": lambda: nn.Conv2d(1, 2, 3).state_dict(),
            "nan": lambda: {**good, "0.weight": torch.full((3, 2), float("nan"))},
            "empty": dict,
        }
        path = Path("model.pt")
        if what == "words":
            path.write_text("weights")
        elif what == "pickle":
            path.write_bytes(pickle.dumps({"a": os.getcwd}))
        else:
            torch.save(made.get(what, lambda: good)(), path)
            if what == "truncated":
                path.write_bytes(path.read_bytes()[:400])
        words = (
            ["compare", "model.pt", "given.csv"] if verb == "compare" else [verb, "given.csv", "--network", "model.pt"]
        )
        return command(*words, "--slope", "0", *(["--json"] if as_json else []))

    return Case(f"{verb} with a PyTorch file: {what}", call, as_json)


# -- running and judging ---------------------------------------------------------------------------------


def cases(count: int, seed: int, with_torch: bool) -> Iterator[Case]:
    kinds = [bad_file, bad_option, bad_array, bad_words, bad_setting, bad_network, *([bad_torch] if with_torch else [])]
    weights = {bad_file: 3, bad_option: 3}
    turns = [kind for kind in kinds for _ in range(weights.get(kind, 1))]
    for k in range(count):
        yield turns[k % len(turns)](random.Random(f"{seed} {k}"))


def run(case: Case) -> Result:
    """Give the input in a child of this process, which it cannot harm."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "work"
        folder.mkdir()
        out, err = Path(name) / "out", Path(name) / "err"
        begun, child = time.monotonic(), os.fork()
        if child == 0:
            code = 1
            try:
                for path, number in ((out, 1), (err, 2)):
                    os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
                sys.stdout, sys.stderr = (io.TextIOWrapper(os.fdopen(k, "wb"), write_through=True) for k in (1, 2))
                code = case.call(folder)
            except BaseException:
                traceback.print_exc()
            finally:
                with contextlib.suppress(Exception):
                    sys.stdout.flush()
                    sys.stderr.flush()
                os._exit(code if 0 <= code < 256 else 1)
        code = wait(child, begun + 3 * SECONDS)
        written = sorted(p.name for p in folder.iterdir() if p.name not in ("given.csv", "net.npz", "model.pt"))
        left = [p for p in written if not p.startswith("given")]
        text = err.read_text(errors="replace") + (f"\nTraceback: it wrote {left}" if left else "")
        return Result(code, out.read_text(errors="replace"), text, time.monotonic() - begun)


def wait(child: int, until: float) -> int | None:
    """Return the exit code of a child; None if it had to be ended."""
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def fault(case: Case, result: Result) -> str:
    """Say what is wrong with the answer to a bad input; nothing if it is as it should be."""
    if result.code is None or result.seconds > SECONDS:
        return f"took {result.seconds:.1f} s"
    if "Traceback" in result.err or "Traceback" in result.out:
        return "traceback"
    if "Warning" in result.err:
        return "warning"
    if result.code != 2:
        return f"exit code {result.code}"
    if not case.as_json:
        return "" if len(result.err.strip()) > 20 else "no sentence"
    try:
        document = json.loads(result.out)
    except json.JSONDecodeError:
        return "no JSON document on stdout"
    missing = [key for key in ("error", "kind", "remedy") if not document.get(key)]
    return f"without {missing}" if missing else ""


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ask.add_argument("--count", type=int, default=300)
    ask.add_argument("--seed", type=int, default=0)
    ask.add_argument("--verbose", action="store_true", help="print every answer")
    given = ask.parse_args()
    from importlib import import_module
    from importlib.util import find_spec

    import_module("reluflow.cli.app")  # once, for all children
    faults, slowest = 0, 0.0
    with_torch = find_spec("torch") is not None
    for k, case in enumerate(cases(given.count, given.seed, with_torch)):
        result = run(case)
        slowest = max(slowest, result.seconds)
        wrong = fault(case, result)
        faults += bool(wrong)
        if wrong or given.verbose:
            said = (result.out if case.as_json else result.err).strip()
            print(f"{k} {'FAULT ' + wrong if wrong else 'ok'}: {case.what}\n    {said[:600]}", flush=True)
    print(f"{given.count} bad inputs, {faults} answered badly, the slowest after {slowest:.1f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
