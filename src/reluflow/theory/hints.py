"""What would make a theorem apply: preparations of the data, each tried out and none guessed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import takes_data
from ..problem import DataError, Dataset, Network, Problem
from .base import Answer
from .facts import Facts
from .verdicts import claims, finding_of

#: Conditions on the data alone. Others (activation, scale, draw) are not what a preparation is for.
_ON_DATA = re.compile(
    r"orthogonally separable|linearly separable|symmetric data|samples in general position|support examples of each"
    r"|positive multipliers on the support|every driving direction|one direction dominates"
    r"|the other sign gains|no sample orthogonal to the mean"
)
_CHEAP = 3e7  # multiplications for all pairs of samples: a few tenths of a second for each preparation
_SHOWN = 4  # claims named in a hint


@dataclass(frozen=True, eq=False)
class Hint(Answer):
    """A preparation of the data after which claims apply that do not apply now.

    Attributes
    ----------
    preparation : mapping
        What to say to `load`, `as_problem` or a verb, for example ``{"center": True}``; empty where it is a subset.
    options : str
        The same on the command line; empty where there is no option for it.
    claims : tuple of str
        Claims that fail now, by conditions on the data alone, and apply then.
    text : str
        One sentence.
    """

    preparation: dict[str, Any]
    options: str
    claims: tuple[str, ...]
    text: str


@takes_data(Facts)
def hints(problem: Problem | Facts) -> tuple[Hint, ...]:
    """Say which preparation of the data would make more claims apply (arguments as for `check`).

    Centring, a bias, standardising, these together, and leaving out repeated points are carried out, and the claims
    that only the data stand in the way of are checked again on the result. A bias needs one more weight a neuron; it
    is drawn of the size of the others, and the neurons keep their norms. Each claim is listed once, with
    the simplest preparation that helps. Nothing is tried on data with very many pairs of points.

    Examples
    --------
    >>> found = hints([[5, 6], [6, 5], [1, 0], [0, 1]], [1, 1, -1, -1], width=20, log_scale=-9)
    >>> found[0].options, "PL-D1" in found[0].claims
    ('--center', True)
    >>> hints([[5, 6], [-5, -6]], [1, -1], width=20, log_scale=-9)
    ()
    """
    facts = Facts.of(problem)
    data = facts.data
    if float(data.n) ** 2 * data.d > _CHEAP:
        return ()
    open_ = [one for one in claims() if _only_data(finding_of(one, facts))]
    found = []
    for words, preparation, changed in _changes(data):
        if not open_:
            break
        net = facts.net if changed.d == data.d else _with_input(facts.net)
        after = Facts(facts.problem.replace(data=changed, net=net), verdicts_only=True)
        helped = [one for one in open_ if finding_of(one, after).applies is True]
        open_ = [one for one in open_ if one not in helped]
        if helped:
            found.append(_hint(words, preparation, [one.id for one in helped]))
    return tuple(found)


def _only_data(finding: Any) -> bool:
    return finding.applies is False and all(_ON_DATA.match(condition.name) for condition in finding.failing)


def _changes(data: Dataset) -> Iterator[tuple[str, dict[str, Any], Dataset]]:
    """Prepare the data in one way after the other, the simple ones first; what cannot be done is left out."""
    first = np.sort(np.unique(data.X + 0.0, axis=0, return_index=True)[1])
    if first.size < data.n:
        again = np.setdiff1d(np.arange(data.n), first)
        count = f"{again.size} repeated point{'s' if again.size > 1 else ''}"
        yield f"without the {count} (the first is sample {again[0]})", {}, data.subset(first)
    for words, preparation in (
        ("after centring", {"center": True}),
        ("with a bias", {"bias": True}),
        ("after centring and with a bias", {"center": True, "bias": True}),
        ("after standardising", {"standardize": True}),
        ("after standardising and with a bias", {"standardize": True, "bias": True}),
    ):
        try:
            yield words, preparation, data.prepared(**preparation)
        except DataError:  # a point that is the mean, for one
            continue


def _with_input(net: Network) -> Network:
    """Give every neuron one more weight of the size of its others, keeping its norm."""
    size = np.linalg.norm(net.W, axis=1)
    more = np.random.default_rng(0).standard_normal(net.p) * size / np.sqrt(net.d)
    W = np.column_stack([net.W, more])
    W *= (size / np.maximum(np.linalg.norm(W, axis=1), np.finfo(float).tiny))[:, None]
    return Network(W, net.a, net.slope, net.log_scale, net.log_scale_out)


def _hint(words: str, preparation: dict[str, Any], names: list[str]) -> Hint:
    names.sort(key=lambda name: "-T" not in name)  # theorems first
    options = " ".join(f"--{option}" for option in preparation)
    shown = ", ".join(names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return Hint(
        preparation, options, tuple(names), f"{shown}{more} would apply {words}{f' ({options})' if options else ''}."
    )
