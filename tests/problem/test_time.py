"""One limit for everything that is done inside it."""

import threading

import numpy as np
import pytest

from reluflow.problem import (
    DataError,
    Interrupted,
    NotSeparable,
    OutOfTime,
    ProblemError,
    ReluflowError,
    Undecided,
    check_time,
    part_of_time,
    time_left,
    time_limit,
)


def test_without_a_limit_nothing_ends():
    assert time_left() == np.inf
    check_time("resting")


def test_a_limit_that_has_passed_ends_the_work_and_keeps_what_there_is():
    with time_limit(1e-9), pytest.raises(OutOfTime, match="while counting") as caught:
        check_time("counting", [1, 2])
    assert caught.value.partial == [1, 2]
    assert caught.value.exit_code == 3
    assert isinstance(caught.value, Undecided)
    check_time("afterwards there is no limit")


def test_an_inner_limit_only_shortens():
    with time_limit(1e-9), time_limit(1e9):
        assert time_left() <= 0
    with time_limit(1e9):
        with time_limit(None):
            assert 0 < time_left() < np.inf
        with time_limit(5):
            assert time_left() <= 5
        assert time_left() > 5


def test_the_limit_of_one_thread_is_not_that_of_another():
    seen = []
    with time_limit(1e-9):
        other = threading.Thread(target=lambda: seen.append(time_left()))
        other.start()
        other.join()
    assert seen == [np.inf]


@pytest.mark.parametrize("seconds", [0, -1, np.nan, "5", True, [1]])
def test_what_is_no_limit(seconds):
    with pytest.raises(ProblemError, match="positive number of seconds"), time_limit(seconds):
        pass


def test_interrupted_exits_like_every_interrupted_program():
    assert Interrupted("interrupted").exit_code == 130


def test_what_there_is_may_be_made_when_it_is_needed():
    made = []
    check_time("resting", lambda: made.append(1))
    assert not made
    with time_limit(1e-9), pytest.raises(OutOfTime) as caught:
        check_time("counting", lambda: [1, 2])
    assert caught.value.partial == [1, 2]


def test_a_part_of_the_time_leaves_the_rest():
    with part_of_time(0.5):
        assert time_left() == np.inf
    with time_limit(100):
        with part_of_time(0.25):
            assert time_left() <= 25
        assert time_left() > 25
    with time_limit(1e-9), part_of_time(0.5):
        assert time_left() <= 0


def test_every_error_says_how_to_get_there():
    assert ProblemError("0 was given, but 1 is needed; give more.").remedy == "give more."
    assert ProblemError("this is so. Try that.").remedy == "Try that."
    errors = [
        ReluflowError("no"),
        DataError("no"),
        ProblemError("no"),
        NotSeparable("no", np.ones(1), 0.0),
        Undecided("no"),
        OutOfTime("no"),
        Interrupted("no"),
    ]
    assert all(len(error.remedy) > 10 for error in errors)
