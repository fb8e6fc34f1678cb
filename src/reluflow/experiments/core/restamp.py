"""Taking stored results over into a changed code, after some of them were computed again and came out the same."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...problem import ProblemError
from ...problem.plain import plain
from . import store
from .pages import write_pages
from .registry import IDS, choose, experiment
from .runner import run_all

#: Computed again when none is named: what ran for no more than so many seconds and reaches code the others do not.
CHEAP = 40.0
#: Numbers agree if they differ by no more than this, relative to the largest one of their list, or by `ROUNDING`.
TOLERANCE = 1e-6
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Comparison:
    """Numbers computed again beside the stored ones: how many, how far apart, and the first that disagree."""

    values: int
    largest: float
    differ: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Restamped:
    """What became of the stored results of a folder.

    Parameters
    ----------
    recomputed : dict of str to Comparison
        Computed again, with what was found.
    failed : dict of str to str
        Could not be computed here, with the reason.
    carried : dict of str to float
        Not computed again: the share of the definitions they reach that a recomputed one reaches too.
    outdated : tuple of str
        Stored from other parameters: only a new run helps.
    agree : bool
        Whether all that was computed again came out the same; if not, nothing was written.
    """

    recomputed: dict[str, Comparison]
    failed: dict[str, str]
    carried: dict[str, float]
    outdated: tuple[str, ...]
    agree: bool


def restamp(folder: str | Path, ids: Sequence[str] = (), *, jobs: int = 1) -> Restamped:
    """Mark stored results as those of the present code, if the ones that are computed again come out the same.

    Each file then says whether its numbers were recomputed or carried over, and with which others.

    Parameters
    ----------
    folder : path
        Holds the full run.
    ids : sequence of str
        Which to compute again; by default those that ran for no more than 40 s and reach code the others do not.
    jobs : int
        How many to run at a time.

    Returns
    -------
    Restamped

    Examples
    --------
    >>> restamp("docs/reproduction", ["SBG-F4"]).agree  # doctest: +SKIP
    True
    """
    folder = Path(folder)
    stored = {one: kept for one in IDS if (kept := store.read(folder, one)) is not None and not kept.quick}
    asked = _asked(folder, stored, ids)
    outdated = tuple(one for one in stored if stored[one].parameters != plain(experiment(one).settings()))
    with tempfile.TemporaryDirectory() as again:
        outcomes = run_all(asked, again, jobs=jobs)
        failed = {o.id: o.error for o in outcomes if o.state == "failed"}
        found = {one: _compared(one, folder, Path(again)) for one in asked if one not in failed}
    shares = _covered(list(found), [one for one in stored if one not in found and one not in outdated])
    wrong = any(one.differ for one in found.values()) or not found or (ids and failed)
    result = Restamped(found, failed, shares, outdated, not wrong)
    if result.agree:
        for one in stored:
            if one not in outdated:
                _stamp(folder, one, stored[one], result)
        write_pages(folder)
    return result


def _asked(folder: Path, stored: dict[str, store.Stored], ids: Sequence[str]) -> list[str]:
    """Return what is to be computed again, or say why it cannot be compared."""
    if not stored:
        raise ProblemError(f"{folder} holds no full run; make one first: reluflow reproduce --all --out {folder}.")
    asked = choose(ids) if ids else _cheap(stored)
    missing = [one for one in asked if one not in stored]
    if missing or not asked:
        raise ProblemError(
            f"{folder} holds nothing of {', '.join(missing) or 'what is cheap'}; name others to compute."
        )
    return asked


def _cheap(stored: dict[str, store.Stored]) -> list[str]:
    """Take the cheapest first, and only what reaches a definition that none before it reaches."""
    taken, seen = set[str](), set[object]()
    for one in sorted(stored, key=lambda name: stored[name].seconds):
        met = set(store.reached(experiment(one)))
        if stored[one].seconds <= CHEAP and not met <= seen:
            taken.add(one)
            seen |= met
    return [one for one in IDS if one in taken]


def _compared(name: str, folder: Path, again: Path) -> Comparison:
    one, old, new = experiment(name), store.read(folder, name), store.read(again, name)
    assert old is not None
    assert new is not None
    found = compare(old.numbers, new.numbers)
    verdicts = [[(e.key, e.verdict) for e in one.judge(stored.numbers)] for stored in (old, new)]
    return found if verdicts[0] == verdicts[1] else replace(found, differ=("the verdicts", *found.differ))


def compare(old: Any, new: Any, at: str = "") -> Comparison:
    """Hold numbers against others.

    >>> compare({"a": [1.0, 2.0], "n": 3}, {"a": [1.0, 2.0 + 1e-9], "n": 3}).differ
    ()
    >>> compare({"a": [1.0, 2.0]}, {"a": [1.0, 2.1]}).differ
    ('a.1: 2.0, now 2.1',)
    """
    scale = max((abs(x) for x in old if _is_float(x)), default=0.0) if isinstance(old, list) else 0.0
    return _compare(old, new, at, scale)


def _compare(old: Any, new: Any, at: str, scale: float) -> Comparison:
    if isinstance(old, dict) and isinstance(new, dict) and set(old) == set(new):
        return _together([compare(old[key], new[key], f"{at}.{key}".lstrip(".")) for key in old])
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return _together(
            [_compare(a, b, f"{at}.{k}", scale) if _is_float(a) else compare(a, b, f"{at}.{k}") for k, (a, b) in pairs]
        )
    if _is_float(old) and _is_float(new) and math.isfinite(old) and math.isfinite(new):
        return _compare_floats(old, new, at, scale)
    same = type(old) is type(new) and old == new  # nan is a text here
    return Comparison(1, 0.0, () if same else (f"{at}: {str(old)[:40]}, now {str(new)[:40]}",))


def _compare_floats(old: float, new: float, at: str, scale: float) -> Comparison:
    apart = abs(old - new)
    relative = apart / max(abs(old), scale) if apart > ROUNDING else 0.0
    return Comparison(1, relative, () if relative <= TOLERANCE else (f"{at}: {old}, now {new}",))


def _is_float(value: Any) -> bool:
    return isinstance(value, float)


def _together(parts: Sequence[Comparison]) -> Comparison:
    differ = tuple(text for part in parts for text in part.differ)
    return Comparison(sum(p.values for p in parts), max((p.largest for p in parts), default=0.0), differ)


def _covered(recomputed: Sequence[str], others: Sequence[str]) -> dict[str, float]:
    seen = {one for name in recomputed for one in store.reached(experiment(name))}
    own = {name: store.reached(experiment(name)) for name in others}
    return {name: round(len(seen.intersection(met)) / len(met), 3) for name, met in own.items()}


def _stamp(folder: Path, name: str, stored: store.Stored, result: Restamped) -> None:
    one = experiment(name)
    code = store.code_version(one)
    if name in result.recomputed:
        found = result.recomputed[name]
        stamp = {"how": "recomputed", "values": found.values, "largest_difference": found.largest}
    elif stored.code == code:
        return
    else:
        stamp = {"how": "carried over", "with": list(result.recomputed), "shared": result.carried[name]}
    stamps = [*stored.origin.get("stamps", ()), {"code": code, **stamp}]
    kept = replace(stored, code=code, origin={**stored.origin, "stamps": stamps})
    store.save(folder, one, kept, one.judge(kept.numbers))
