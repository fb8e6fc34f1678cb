"""A named tuple behind one address: compiled functions read what Python has in it, and write into its arrays."""

import gc
from typing import Any, NamedTuple

import numpy as np
import pytest

from reluflow.dynamics.compiled import kept, linked
from reluflow.dynamics.held import Held


class Inside(NamedTuple):
    row: Any
    scale: float


class Things(NamedTuple):
    block: Any
    signs: Any
    count: int
    part: float
    yes: bool
    inside: Inside
    now: Any


def things(rows: int, columns: int) -> Things:
    now = np.zeros(1, [("t", np.float64), ("n", np.int64)]).view(np.recarray)[0]
    block = np.arange(2.0 * rows * columns).reshape(2, rows, columns)
    return Things(block, -np.ones((rows, columns), np.int8), -3, 0.1, True, Inside(np.arange(columns) + 0.5, 2.0), now)


@linked
def _scaled(inside):
    total = 0.0
    for x in inside.row:
        total += inside.scale * x
    return total


@kept
def _work(held):
    for i in range(held.block.shape[1]):
        for j in range(held.block.shape[2]):
            held.block[1, i, j] += held.part * held.signs[i, j]
            held.signs[i, j] = 1
    held.now.t += _scaled(held.inside)
    held.now.n += held.count if held.yes else 0
    return held.block.shape[2], held.block[1].sum()


@pytest.mark.parametrize("shape", [(3, 4), (1, 1), (5, 1), (0, 2)])
def test_everything_is_read_and_arrays_are_written(shape):
    one, two = things(*shape), things(*shape)
    held = Held(one)
    for _ in range(2):  # what is written stays
        columns, total = _work(held)
        two.block[1] += two.part * two.signs
        two.signs[:] = 1
    assert columns == shape[1]
    assert total == pytest.approx(two.block[1].sum(), abs=1e-12)
    np.testing.assert_array_equal(one.block, two.block)
    np.testing.assert_array_equal(one.signs, two.signs)
    assert one.now.t == 2 * 2.0 * one.inside.row.sum()
    assert one.now.n == 2 * -3


def test_one_version_serves_all_sizes():
    before = len(_work.signatures)
    _work(Held(things(2, 3)))
    _work(Held(things(7, 1)))
    assert len(_work.signatures) == max(before, 1)
    assert Held(things(2, 3))._numba_type_ is Held(things(4, 5))._numba_type_
    other = things(2, 3)._replace(block=np.zeros((2, 2)))
    assert Held(other)._numba_type_ != Held(things(2, 3))._numba_type_


def test_arrays_live_as_long_as_they_are_held():
    held = Held(things(50, 60))
    gc.collect()
    rubbish = [np.full(6000, np.nan) for _ in range(50)]  # would take the place of arrays that were freed
    assert np.isfinite(_work(held)[1])
    assert len(rubbish) == 50
