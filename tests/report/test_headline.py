"""The two sentences at the head of an explanation: true, plain, and first."""

import inspect
import json
import re
from dataclasses import replace

import numpy as np
import pytest

import reluflow as rf
from reluflow.problem.words import count
from reluflow.theory import claims
from reluflow.theory.naming import endings

CROSS = [[1.0, 0.3], [-0.4, 1.0], [-1.0, 0.2], [0.3, -1.0]]
MIRRORED = rf.Dataset([[2, 1], [1, 2], [-2, -1], [-1, -2]], [1, 1, -1, -1])


def explained(data, net=None, train="both", **options):
    data = rf.dataset(data) if isinstance(data, str) else data
    effort = {key: options.pop(key) for key in ("max_steps", "max_log_time") if key in options}
    net = net or rf.initialize(data.d, options.pop("width", 4), seed=0, **options)
    return rf.explain(rf.Problem(data, net, train=train), **effort)


@pytest.fixture(scope="module")
def ex1():
    return explained("EX1", width=6)


def test_the_numbers_are_those_of_the_limit(ex1):
    what, why = ex1.headline
    found = re.fullmatch(
        r"The network learns a boundary that is not linear: (\d+) effective neurons of (\d+), normalised margin "
        r"([\d.]+), the largest any network can have\.",
        what,
    )
    net = ex1.limit.network
    assert int(found[1]) == len({tuple(np.round(u, 6)) for u in net.directions[net.W.any(axis=1)]})
    assert int(found[2]) == 6
    assert float(found[3]) == pytest.approx(rf.global_max_margin(rf.dataset("EX1"), 0.0).lower, rel=1e-3)
    # Not linear: somewhere f(x) and f(-x) do not have opposite signs.
    X = np.random.default_rng(0).normal(size=(2000, 2))
    assert not (net.outputs(X) * net.outputs(-X) < 0).all()
    assert "Phuong and Lampert" in why
    assert "orthogonally separable data" in why
    assert why.endswith("and the run kept the promise.")


def test_a_linear_boundary_and_whose_theorem_it_is():
    found = explained(MIRRORED, rf.Network.balanced(CROSS, [1, -1, 1, -1], 0.2, log_scale=-9))
    what, why = found.headline
    assert what.startswith("The network learns a linear boundary: 2 effective neurons of 4, ")
    X, net = np.random.default_rng(0).normal(size=(2000, 2)), found.limit.network
    assert (net.outputs(X) * net.outputs(-X) < 0).all()
    assert "Lyu, Li, Wang and Arora promises for symmetric data" in why


def test_a_limit_that_no_theorem_covers_says_what_is_missing():
    found = explained("D7", slope=0.2)
    what, why = found.headline
    share = float(re.search(r"([\d.]+) % of the largest any network can have", what)[1])
    assert share == pytest.approx(100 * found.limit.margin / found.limit.optimum.lower, abs=0.01)
    assert why.startswith("No theorem covered here says where this flow ends, only that it is a stationary (KKT) point")
    assert "does not apply: sample 0 has no mirror image" in why


def test_what_is_known_of_the_optimum_and_no_more(ex1):
    def said(lower, upper):
        best = replace(ex1.limit.optimum, lower=lower, upper=upper)
        return replace(ex1, limit=replace(ex1.limit, optimum=best)).headline[0]

    margin = ex1.limit.margin
    assert ", the largest any network can have." in said(margin, margin)
    assert ", 50 % of the largest any" in said(2 * margin, 2 * margin)
    assert ", at most 50 % of the largest any" in said(2 * margin, 3 * margin)
    assert ", at least 50 % of the largest any" in said(margin, 2 * margin)
    unknown = replace(ex1.limit, optimum=None)
    # PL-LC1' knows it for such data; nobody does where no claim applies.
    assert "the largest any network can have" in replace(ex1, limit=unknown).headline[0]
    assert "largest" not in replace(ex1, limit=unknown, findings=()).headline[0]


def test_one_class_one_dimension_and_a_frozen_layer():
    one = explained("EX6", rf.Network.balanced(CROSS[:3], [1, -1, 1], log_scale=-9)).headline[0]
    assert one.startswith("The data have one class only, and the network learns to answer it: 1 effective neuron of 3")
    line = rf.Dataset([[1.0], [2.0], [-1.0]], [1, 1, -1])
    pair = rf.Network.balanced([[1.0], [-1.0]], [1, -1], log_scale=-9)
    assert explained(line, pair).headline[0].startswith("The network learns a threshold at 0: 2 effective neurons of 2")
    frozen = explained("D2", slope=0.25, scheme="two-sign", train="first").headline
    assert "effective neurons of 4" in frozen[0]
    assert "largest" not in frozen[0]
    assert "frozen second layer" in frozen[1]


def test_stalls_and_rests_say_what_helps():
    pair = rf.Dataset([[1.0, 0.0], [-1.0, 0.0]], [1, 1])
    what, why = explained(pair, rf.Network([[0.1, 0.0]], [0.1])).headline
    assert what.startswith("The network does not learn every point: 1 of 2 points is felt by no neuron any more, and")
    assert f"stays above {np.log(2) / 2:.4g};" in what
    assert "a slope above 0" in why
    what, why = explained(rf.Dataset([[1.0, 0.0], [2.0, 0.5]], [1, 1]), rf.Network([[-0.1, 0.0]], [0.1])).headline
    assert (
        what == "The network stops learning: the flow comes to rest at loss 0.6931 with 2 of 2 points not classified."
    )
    assert why.startswith("No neuron is active on any point")
    found = explained("EX1", rf.Network(np.zeros((2, 2)), [0.0, 0.0]))
    assert found.headline[1].startswith("Every weight is zero")
    assert found.summary.contradicted == ()
    assert "e^-inf" in found.text()


def test_without_a_limit_that_comes_first():
    found = explained("EX1", width=6, max_steps=30)
    what, why = found.headline
    assert what.startswith("No limit was confirmed: ")
    run = found.trajectory
    assert f"the loss is {run.loss[-1]:.4g}, " in what
    assert f"normalised margin so far is {run.normalized_margin()[-1] + 0.0:.4g}." in what
    assert why.startswith("It ended there: max_steps = 30 were used up")
    assert "a larger max_steps goes on" in why
    assert "seen" not in what + why
    assert found.text().startswith("No limit was confirmed")
    assert found.to_dict()["headline"] == [what, why]


def test_the_advice_fits_what_can_still_be_done():
    found = explained("EX1", width=6, slope=0.5, max_log_time=3.0)
    assert found.limit is None
    assert "following it beyond log t = 3 may settle it" in found.headline[1]
    assert "a larger max_log_time goes on" in found.troubles[0]
    at_the_end = replace(found, settings={**found.settings, "max_log_time": 1e10})
    assert "following it" not in at_the_end.headline[1]
    assert "as far as it goes" in at_the_end.headline[1]


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        ("interrupted; what was found so far is kept.", "It ended there: interrupted."),
        ("rtol is too small; what was found so far is kept, and a larger rtol goes on.",
         "It ended there: rtol is too small; a larger rtol goes on."),
        ("it chatters. The flow so far is used here.", "It ended there: it chatters."),
        ("it chatters", "It ended there: it chatters."),
    ],
)  # fmt: skip
def test_why_a_run_ended(ex1, trouble, told):
    assert replace(ex1, limit=None, troubles=(trouble,)).headline[1] == told


def test_nothing_at_all_is_said_too(ex1):
    what, why = replace(ex1, limit=None, trajectory=None, troubles=()).headline
    assert what == "No limit was confirmed, and nothing of the flow could be followed."
    assert why


def test_a_contradiction_is_never_hidden(ex1):
    one = next(o for o in ex1.observations if o.claim == "ML-L14")
    wrong = replace(one, consistent=False, needs=())
    for found in (ex1, replace(ex1, limit=None)):
        told = replace(found, observations=(*found.observations, wrong)).headline[1]
        assert told.startswith("But ML-L14 applied, and the run contradicts it")


def test_a_promise_that_was_not_kept(ex1):
    other = replace(ex1.limit, margin=0.5 * ex1.limit.margin, optimum=None)
    told = replace(ex1, limit=other).headline[1]
    assert f"promises margin {ex1.limit.margin:.4g}" in told
    assert "the run went elsewhere" in told
    assert "start small enough" in told


def test_every_theorem_on_the_limit_has_words():
    telling = {
        one.id
        for one in claims()
        if "function=" in inspect.getsource(one.prediction) and "margin=" in inspect.getsource(one.prediction)
    }
    assert telling == set(endings())


def test_they_stand_first_everywhere(ex1, tmp_path):
    what, why = ex1.headline
    assert " ".join(ex1.text().split()).startswith(f"{what} {why} EX1:")
    assert next(iter(json.loads(json.dumps(ex1.to_dict())))) == "headline"
    ex1.html(tmp_path / "page.html")
    body = (tmp_path / "page.html").read_text(encoding="utf-8").partition("<body")[2]
    assert 0 < body.index(what) < body.index(why) < body.index("<h1>")


def test_things_are_counted_as_in_speech(ex1):
    assert [count(n, "group") for n in (0, 1, 2)] == ["0 groups", "1 group", "2 groups"]
    one = explained("EX6", rf.Network.balanced([[1.0, 0.2]], [1], log_scale=-9))
    for found in (ex1, one):
        words = "\n".join([found.text(), repr(found.trajectory), repr(found.limit), *map(str, found.observations)])
        assert not re.search(r"(?<![\d.])1 (groups|points|neurons|events|steps|records|changes|dimensions)\b", words)
    assert "0 groups" not in repr(one.limit)
    assert "every neuron carries the network" in repr(one.limit)
