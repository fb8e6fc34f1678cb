"""How the zoo is asked."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import reluflow as rf


def test_examples_are_immutable_and_named() -> None:
    for name, note in rf.examples().items():
        ex = rf.example(name)
        assert (ex.name, ex.note, ex.data.name) == (name, note, name)
        assert ex.data.parameters["example"] == name
        assert name in repr(ex)
    ex = rf.example("EX1")
    with pytest.raises(ValueError, match="read-only"):
        ex.answers["w_plus"][0] = 5
    with pytest.raises(TypeError):
        ex.answers["mu"] = 5  # type: ignore[index]
    assert rf.example("EX1") is ex
    assert pickle.loads(pickle.dumps(ex)) is ex


def test_agrees_looks_at_the_last_digit() -> None:
    ex = rf.example("EX1")
    assert ex.agrees("mu", 0.64594224154999)
    assert not ex.agrees("mu", 0.64594224156)
    assert ex.agrees("gamma_minus", 2.6 + 1e-13)  # exact, up to rounding
    assert not ex.agrees("gamma_minus", 2.6 + 1e-10)
    assert not ex.agrees("w_plus", [1 / 3])
    assert not ex.agrees("mu", math.nan)
    assert ex.agrees("bounds.dwell", [5.334463816, 2.667231908, 1.778154605, 1.333615954])
    assert ex.agrees("early.0.log_gain", 0.1919420204)
    assert rf.example("D2").agrees("w_star", [0.986393923832, 0.164398987305], slope=0.5)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: rf.example("EX99"), "no example 'EX99'; did you mean .*There are EX1, EX2"),
        (lambda: rf.example(3), "no example 3"),  # type: ignore[arg-type]
        (lambda: rf.example("EX1").at(0.5), "at slope 0.5; slopes: none"),
        (lambda: rf.example("D2").at(0.1), "slopes: 0.5, 0.25"),
        (lambda: rf.example("EX1").agrees("muh", 1.0), "no answer 'muh'; did you mean 'mu'"),
        (lambda: rf.example("EX1").agrees("bounds", 1.0), "made of several"),
        (lambda: rf.example("EX1").agrees("early.9.times", 1.0), "no answer 'early.9.times'"),
        (lambda: rf.example("D2").agrees("par_w", 1.0), r"need slope=, one of \(0.5, 0.25\)"),
        (lambda: rf.make("EX1"), r"'EX1' is a worked example, .*example\('EX1'\).data"),
    ],
)
def test_mistakes_are_explained(ask: Callable[[], Any], message: str) -> None:
    with pytest.raises(rf.DataError, match=message):
        ask()
