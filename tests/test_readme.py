"""What the pages say `make explain` prints is what it prints; the README names commands and pages that exist."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

import reluflow as rf
from helpers.cli import run

ROOT = Path(__file__).parents[1]
README, START = ROOT / "README.md", ROOT / "docs" / "start.md"
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
ROUNDING = 1e-9  # numbers below it are errors of rounding, which differ from machine to machine

pytestmark = pytest.mark.skipif(not START.exists(), reason="the pages are not part of this installation")


def pasted():
    """Return the block of the page that shows the output of `make explain`, line by line."""
    (block,) = re.findall(r"`make explain` prints.*?\n```\n(.*?)```", START.read_text(encoding="utf-8"), re.DOTALL)
    return block.splitlines()


def last_digit(number):
    """Return one unit of the last digit that is printed."""
    mantissa, _, power = number.partition("e")
    return 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))


def same(shown, printed):
    """Whether two lines agree in their words, and in their numbers up to one unit of the last digit."""
    if NUMBER.sub("#", shown) != NUMBER.sub("#", printed):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(
        abs(float(a) - float(b)) <= 1.001 * last_digit(a) or max(abs(float(a)), abs(float(b))) < ROUNDING
        for a, b in pairs
    )


def left_out(shown, printed):
    """Return the first line shown that is not printed where it should be; None if all are.

    A line of the page that reads ``...`` stands for any number of lines.
    """
    at = 0
    for before, line in pairwise(["", *shown]):
        if line == "...":
            continue
        places = range(at, len(printed)) if before == "..." else range(at, min(at + 1, len(printed)))
        found = next((k for k in places if same(line, printed[k])), None)
        if found is None:
            return line
        at = found + 1
    return None if at == len(printed) or shown[-1] == "..." else printed[at]


def test_the_page_shows_what_is_printed():
    result = run("explain")
    assert result.exit_code == 0, result.output
    shown, printed = pasted(), result.stdout.splitlines()
    wrong = left_out(shown, printed)
    assert wrong is None, f"not printed there: {wrong!r}; paste this into docs/start.md:\n{result.stdout}"
    assert shown[0] == printed[0]


def test_the_names_of_the_table_are_there():
    rows = re.findall(r"^\| ([\w ]+?)(?: \(optional\))? \| (.*?) \|", START.read_text(encoding="utf-8"), re.MULTILINE)
    table = {title: names for title, names in rows if title in ("data", "the problem", "PyTorch") or title in rf._PARTS}
    assert len(table) == 9, rows
    seen = 0
    for title, names in table.items():
        plain, _, special = names.partition("in `rf.")
        for name in re.findall(r"`(\w+)`", plain):
            assert name in rf.__all__, (title, name)
            seen += 1
        part, _, rest = special.partition("`: ")
        for name in re.findall(r"`(\w+)`", rest):
            assert name in getattr(rf, part).__all__, (title, name)
            seen += 1
    assert seen > 30


def test_the_readme_leads_to_what_is_there():
    text = README.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#:]+)\)", text)
    assert len(targets) > 8
    for target in targets:
        assert (ROOT / target).exists(), target
    commands = re.findall(r"^make (\w+)", text, re.MULTILINE)
    assert {"explain", "test", "docs"} <= set(commands)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name in commands:
        assert re.search(rf"^{name}:", makefile, re.MULTILINE), name


def test_the_readme_shows_the_problem_first():
    screen = "\n".join(README.read_text(encoding="utf-8").splitlines()[:27])
    parts = ("trained by gradient descent", "![", "pip install reluflow", ">>> import", "The network learns")
    places = [screen.index(part) for part in parts]
    assert places == sorted(places)


def test_the_comparison_can_fail():
    printed = ["margin 0.2367, residual 1.1e-16", "", "phases to t = 12.87", "end"]
    fine = ["margin 0.2368, residual 4.2e-17", "...", "phases to t = 12.87", "end"]
    assert left_out(fine, printed) is None
    assert left_out([*fine[:2], "end"], printed) is None
    assert left_out([*fine[:3], "..."], printed) is None
    assert left_out(["margin 0.2467, residual 1.1e-16", *fine[1:]], printed) is not None  # another number
    assert left_out(["Margin 0.2367, residual 1.1e-16", *fine[1:]], printed) is not None  # another word
    assert left_out([fine[0], "phases to t = 12.87", "end"], printed) is not None  # a line left out unmarked
    assert left_out([fine[0], "...", "end", "phases to t = 12.87"], printed) is not None  # another order
    assert left_out(fine[:3], printed) is not None  # the rest left out unmarked
    assert left_out([*fine, "more"], printed) is not None
