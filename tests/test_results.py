"""What every result can do, whatever it is: be pickled and copied, and be printed in a few lines."""

import copy
import dataclasses
import inspect
import pickle

import numpy as np
import pytest

import reluflow as rf
from helpers.public import PUBLIC
from reluflow import dynamics, margins, sectors


@pytest.fixture(scope="module")
def results():
    """One of each public result, and some with options."""
    data = rf.Dataset([[2.0, 1.0], [1.0, 2.0], [-3.0, -1.0], [-1.0, -2.5]], [1, 1, -1, -1], "four", {"seed": 3})
    net = rf.Network.balanced([[1.0, 0.1], [-1.0, 1.2]], [1, -1], log_scale=-9)
    problem = rf.Problem(data, net)
    told = rf.explain(problem, progress=False)
    assert told.limit is not None
    end = told.limit.network
    leaky = rf.Network([[1.0, 0.1], [-1.0, 0.0]], [1.0, -1.0], slope=0.5)
    return [
        *(data, net, problem, problem.loss, rf.make("linsep", n=6, seed=1), rf.example("EX1")),
        dynamics.Until(time=3.0),
        *(told, told.trajectory, told.limit, *told.findings[:3], told.findings[0].conditions[0]),
        *(rf.check(problem), rf.predict(problem), rf.monitor(problem, told.trajectory), *told.predictions),
        *(told.observations[0], rf.align(problem), rf.descend(problem, step=0.1, steps=5, progress=False)),
        rf.ladder(problem, log_scales=[-9.0, -12.0]),
        *(rf.max_margin(data), margins.class_margins(data), rf.global_max_margin(data, 0.0)),
        *(margins.one_neuron(data, 0.5), margins.one_signed_margins(data, 0.5), rf.kkt(data, end), rf.linearity(end)),
        *(margins.agreement_margin(data, 0.5), margins.clusters(leaky)),
        margins.grouped_margin(data, np.sign(end.W @ data.X.T), np.sign(end.a)),
        *(sectors.extremal_directions(data, 0.0), sectors.alignment_constants(data, net), sectors.dead_cone(data)),
        *(sectors.cones_of(data, net.W), rf.compare(end, data, progress=False)),
        rf.Sweep(data={"source": "EX1"}, network={"width": [2, 3]}, measures=["align"]),
    ]


def same(one, other):
    """Whether two results hold the same, all the way down."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "keys"):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if dataclasses.is_dataclass(one):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one) if f.compare)
    if hasattr(one, "__dict__") or hasattr(one, "__slots__"):
        names = [*getattr(one, "__dict__", ()), *getattr(one, "__slots__", ())]
        return all(same(getattr(one, name), getattr(other, name)) for name in names)
    return one == other or (one != one and other != other)


def test_same_tells_results_apart(results):
    run = next(one for one in results if isinstance(one, rf.Trajectory))
    for change in ({"log_loss": run.log_loss + 1e-9}, {"settings": {}}, {"phases": ()}):
        assert not same(run, dataclasses.replace(run, **change))


def test_every_public_class_is_tried(results):
    public = {one for one in PUBLIC.values() if inspect.isclass(one)}
    tried = {type(part) for one in results for part in (one if isinstance(one, (list, tuple)) else (one,))}
    assert {one for one in public if not issubclass(one, Exception)} <= tried


@pytest.mark.parametrize("again", [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy, copy.copy])
def test_results_survive_pickling_and_copying(results, again):
    for one in results:
        assert same(again(one), one), type(one)


def test_what_comes_back_still_works(results):
    by_type = {type(one): one for one in pickle.loads(pickle.dumps(results))}
    run, early = by_type[rf.Trajectory], by_type[dynamics.Alignment]
    assert not run.log_time.flags.writeable
    with pytest.raises(TypeError):
        run.settings["step"] = 1
    assert run.at(time=run.time[2]) == run.network(2)
    assert early.directions([0.0]).shape == (1, 2, 2)
    told = by_type[rf.report.Explanation]
    assert told.text()
    [function] = {id(p.function): p.function for p in told.predictions if p.claim == "PL-T1'"}.values()
    assert function([[1.0, 1.0]]).shape == (1,)


def test_results_are_printed_in_a_few_lines(results):
    for one in results:
        lines = repr(one).splitlines()
        if isinstance(one, list):
            assert len(lines) == len(one)
            assert max(map(len, lines)) <= 160
        else:
            assert len(lines) <= 12, one
            assert len(repr(one)) <= 1000, one
    assert repr(rf.theory.Finding("X", "PL", "", None, ())) == "Finding X: undecided"


@pytest.mark.parametrize("error", [rf.DataError, rf.ProblemError, rf.ReluflowError])
def test_plain_errors_pickle(error):
    again = pickle.loads(pickle.dumps(error("no")))
    assert (type(again), str(again)) == (error, "no")


@pytest.mark.parametrize("error", [rf.Undecided, rf.BudgetExceeded, rf.OutOfTime, rf.Interrupted])
def test_errors_pickle_with_what_was_found(error, results):
    run = next(one for one in results if isinstance(one, rf.Trajectory))
    again = pickle.loads(pickle.dumps(error("too long", partial=run)))
    assert (type(again), str(again), again.exit_code) == (error, "too long", error.exit_code)
    assert same(again.partial, run)


def test_not_separable_pickles():
    again = pickle.loads(pickle.dumps(rf.NotSeparable("no", np.ones(2) / 2, 0.0)))
    assert (str(again), again.certificate.tolist(), again.residual) == ("no", [0.5, 0.5], 0.0)
