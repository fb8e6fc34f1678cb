r"""Limits in one dimension, by hand.

With v = |w| a neuron obeys v' = a D, a' = v D, where D depends only on the side of w:

.. math:: D_> = y_+ p_+ m_+ - \alpha y_- p_- m_-, \qquad D_< = y_- p_- m_- - \alpha y_+ p_+ m_+

(m: the size of a ray's points, p: their force). If the two rays have opposite labels, or one ray has no points, the
signs of both D never change. A neuron with a D > 0 grows for ever. One with a D < 0 shrinks: if |a| > v until w changes
sides, if v > |a| until a changes sign, and if they are equal for ever. So it is known from the start which neurons come
to grow on either side; and in the limit only the smallest m of each ray counts, with forces p that sum to one. A side
whose neurons grow carries the network if its |D| is the largest, and |D| is twice the margin.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

import reluflow as rf

POINTS = (-2, -1, 1, 2)
SIZES = (0.0, -4.0, -30.0)
SLOPES = (0.0, 0.01, 0.1, 0.5, 1.0)


class Line(NamedTuple):
    """Points, the labels of the left and the right ray, and neurons (side of w, sign of a, log size, what is larger).

    The last is 1 if |a| is larger than |w|, -1 if it is smaller, 0 if they are equal.
    """

    x: tuple[int, ...]
    labels: tuple[int, int]
    neurons: tuple[tuple[int, int, float, int], ...]
    slope: float


def line_problem(case: Line, by: float = 1e-6) -> rf.Problem:
    """The problem of a case; neurons that are unbalanced are so by a factor of 1 + by."""
    data = rf.Dataset(np.array(case.x, float)[:, None], [case.labels[x > 0] for x in case.x])
    logs = np.array([n[2] for n in case.neurons])
    W = [[float(side) * (1 + by if larger < 0 else 1.0)] for side, _, _, larger in case.neurons]
    a = [float(sign) * (1 + by if larger > 0 else 1.0) for _, sign, _, larger in case.neurons]
    return rf.Problem(data, rf.Network(W, a, case.slope, logs, logs))


def all_lines(most=2, sizes=SIZES[:2]):
    """Every case of the grid whose answer is known by hand, with at most so many neurons of these sizes.

    Of cases that are mirror images of each other, or have all labels and outputs turned over, the first alone. The
    whole grid, ``all_lines(3, SIZES)``, has more than a million cases.
    """
    neurons = list(itertools.product((1, -1), (1, -1), sizes, (0, 1, -1)))
    for n, labels, slope in itertools.product((1, 2, 3), ((1, -1), (-1, 1), (1, 1), (-1, -1)), SLOPES):
        for x in itertools.combinations(POINTS, n):
            if min(x) > 0 and labels[0] < 0:  # a ray without points needs no label
                continue
            if max(x) < 0 and labels[1] < 0:
                continue
            for p in range(1, most + 1):
                for chosen in itertools.combinations_with_replacement(neurons, p):
                    case = Line(x, labels, chosen, slope)
                    if (
                        case._replace(neurons=tuple(sorted(chosen))) == min(_images(case))
                        and line_limit(case) is not None
                    ):
                        yield case


def _images(case: Line):
    """The case, its mirror image, and both with all signs of the outputs turned over; neurons in order."""
    for mirror, turn in itertools.product((1, -1), (1, -1)):
        x = tuple(sorted(mirror * v for v in case.x))
        labels = tuple(turn * v for v in case.labels[::mirror])
        one_ray = 0 if min(x) > 0 else 1 if max(x) < 0 else None
        if one_ray is not None:  # a ray without points has label 1 by convention
            labels = tuple(1 if side == one_ray else v for side, v in enumerate(labels))
        neurons = tuple(sorted((mirror * s, turn * a, size, larger) for s, a, size, larger in case.neurons))
        yield Line(x, labels, neurons, case.slope)


def line_cases(count: int, seed: int) -> list[Line]:
    """Some cases of the grid, drawn."""
    rng = np.random.default_rng(seed)
    neurons = list(itertools.product((1, -1), (1, -1), SIZES, (0, 1, -1)))
    found: list[Line] = []
    while len(found) < count:
        x = tuple(sorted(int(v) for v in rng.choice(POINTS, rng.integers(1, 4), replace=False)))
        labels = (int(rng.choice([-1, 1])), int(rng.choice([-1, 1])))
        chosen = tuple(neurons[int(k)] for k in rng.integers(0, len(neurons), rng.integers(1, 4)))
        case = Line(x, labels, chosen, float(rng.choice(SLOPES)))
        if line_limit(case) is not None:
            found.append(case)
    return found


def line_limit(case: Line) -> tuple[str, float] | None:
    """Kind and margin of the limit; None where this is not known by hand."""
    left, right = ([abs(x) for x in case.x if x * side > 0] for side in (-1, 1))
    if not left or not right:
        return _one_ray(case, bool(right))
    m, k = float(min(right)), float(min(left))
    if case.labels[0] != case.labels[1]:
        return _opposite(case, m, k)
    return _same(case, m, k)


def _ends(case: Line, signs: dict[int, int]) -> set[int]:
    """Sides on which neurons come to grow; ``signs``: of D on either side, 0 where no point is felt."""
    out = set()
    for side, sign, _, larger in case.neurons:
        for _ in range(3):
            if signs[side] == 0:
                break
            if sign * signs[side] > 0:
                out.add(side)
                break
            if larger == 0:
                break
            if larger > 0:
                side = -side
            else:
                sign = -sign
    return out


def _one_ray(case: Line, right: bool) -> tuple[str, float]:
    here, y = (1, case.labels[1]) if right else (-1, case.labels[0])
    m = float(min(abs(x) for x in case.x))
    ends = _ends(case, {here: y, -here: -y if case.slope > 0 else 0})
    if here in ends:
        return "margin", m / 2
    if -here in ends:
        return "margin", case.slope * m / 2
    return "rest", np.nan


def _opposite(case: Line, m: float, k: float) -> tuple[str, float]:
    # D_> = y (p m + slope p' k), D_< = -y (p' k + slope p m).
    y, slope = case.labels[1], case.slope
    ends = _ends(case, {1: y, -1: -y})
    if ends == {1, -1}:
        if slope * max(m, k) >= min(m, k):  # the side of the nearer points fits the others better than those
            return "margin", min(m, k) / 2
        return "margin", (1 + slope) * m * k / (m + k) / 2
    if not ends:
        return "rest", np.nan
    here, there = (m, k) if ends == {1} else (k, m)
    if slope == 0:
        return "stall", here / 2
    return "margin", min(here, slope * there) / 2


def _same(case: Line, m: float, k: float) -> tuple[str, float] | None:
    # A fit needs growing neurons on both sides, and then D_> = D_<: p m = p' k.
    y, slope = case.labels[1], case.slope
    if slope == 0:
        # Sides do not feel each other. One that changes sides shrinks there too, and ends at w = 0.
        ends = {s for s, sign, _, larger in case.neurons if sign == y or larger < 0}
        if not ends:
            return "rest", np.nan
        if len(ends) == 1:
            return "stall", (m if ends == {1} else k) / 2
        return "margin", m * k / (m + k) / 2
    if any(larger for *_, larger in case.neurons):
        return None  # who changes sides depends on the order of events
    if slope < 1 and {s for s, sign, _, _ in case.neurons if sign == y} == {1, -1}:
        return "margin", (1 - slope) * m * k / (m + k) / 2
    return "rest", np.nan
