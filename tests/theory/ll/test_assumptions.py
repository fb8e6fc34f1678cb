"""The assumptions as predicates: exact where they can be, with witnesses, and in both readings."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf
from helpers import integrate as runs
from helpers.claims import finding
from reluflow.theory import Facts, claims, conditions
from reluflow.theory.ll import numbers
from reluflow.theory.verdicts import finding_of

QUICK = settings(deadline=None, max_examples=40)


def facts(data, slope=0.5, **more):
    more = {"width": 4, "scale": 1e-6, **more}
    return Facts(rf.Problem(data, rf.initialize(data.d, slope=slope, **more)))


@st.composite
def separable(draw, d=None, least=3, most=8):
    seed = draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    d, n = d or int(rng.integers(2, 5)), int(rng.integers(least, most + 1))
    w = rng.standard_normal(d)
    X = rng.standard_normal((n, d))
    y = np.where(X @ w > 0, 1.0, -1.0)
    X += rng.uniform(0, 3) * y[:, None] * w / (w @ w)
    return rf.Dataset(X, y)


def test_separable_verdict_has_its_witness():
    good = conditions.separable(facts(rf.example("D2").data))
    assert good.holds
    assert (rf.example("D2").data.signed @ good.witness > 0).all()
    data = rf.Dataset([[1, 0], [2, 0.5], [-1, 1], [-3, -1]], [1, -1, 1, 1])
    bad = conditions.separable(facts(data))
    assert bad.holds is False
    with pytest.raises(rf.NotSeparable) as error:
        rf.max_margin(data)
    assert np.abs(error.value.certificate @ data.signed).max() < 1e-12
    assert finding("LL-A3.2", facts(data)).applies is False


@QUICK
@given(separable())
def test_symmetry_is_exact(data):
    both = data.symmetrized()
    assert finding("LL-A4.1", facts(both)).applies is True
    X = both.X.copy()
    X[0, 0] = np.nextafter(X[0, 0], np.inf)
    near = finding("LL-A4.1", facts(rf.Dataset(X, both.y)))
    assert near.applies is None  # by one unit in the last place: not symmetric, but that may be the input's rounding
    X[0, 0] += 0.01
    moved = finding("LL-A4.1", facts(rf.Dataset(X, both.y)))
    assert moved.applies is False
    assert moved.failing[0].witness in (0, data.n)


def test_symmetry_counts_copies():
    data = rf.Dataset([[1, 2], [1, 2], [-1, -2]], [1, 1, -1])
    assert finding("LL-A4.1", facts(data)).applies is not True


def test_orthogonal_to_the_mean_is_decided_exactly():
    # mu is along (1, 0): the third pair is orthogonal to it
    X = [[1, 1], [1, -1], [0, 1], [-1, -1], [-1, 1], [0, 1]]
    data = rf.Dataset(X[:5], [1, 1, 1, -1, -1])
    assert conditions.off_mean(facts(data)).holds is True
    flat = rf.Dataset([[0.1, 0.3], [0.1, -0.3], [-0.7, 0.0], [0.1, 0.1]], [1, 1, -1, 1]).subset([0, 1, 2])
    with_zero = rf.Dataset(np.vstack([flat.X, [[0.0, 0.5], [0.0, -0.5]]]), [1, 1, -1, 1, 1])
    found = conditions.off_mean(facts(with_zero))
    assert (found.holds, found.evidence, found.witness) == (False, "proved", 3)
    tiny = with_zero.X.copy()
    tiny[3:, 0] = 1e-140
    assert conditions.off_mean(facts(rf.Dataset(tiny, with_zero.y))).holds is True


def test_order_of_the_means_is_exact():
    data = rf.Dataset([[0.1, 0.2], [0.3, 0.1], [-0.4, -0.3]], [1, 1, -1])
    exact = [
        sum(sum((Fraction(v) for v in column), Fraction(0)) ** 2 for column in part.T.tolist())
        for part in (data.X[:2], data.X[2:])
    ]
    assert abs(float(exact[0] - exact[1])) < 1e-15  # nothing but the rounding of 0.1, 0.2, ...
    assert numbers.longer_mean(data) == (exact[0] > exact[1]) - (exact[0] < exact[1])
    assert numbers.longer_mean(rf.example("D1").data) == 0


@QUICK
@given(separable(), st.floats(0.05, 0.95))
def test_order_of_the_means_does_not_depend_on_the_slope(data, slope):
    found = numbers.means(data, slope)
    gap = np.linalg.norm(found.plus) - np.linalg.norm(found.minus)
    if abs(gap) > 1e-9:
        assert numbers.longer_mean(data) == np.sign(gap)
    assert numbers.longer_mean(data.flipped()) == -numbers.longer_mean(data)


@QUICK
@given(separable(), st.floats(0.1, 0.9), st.integers(0, 1000))
def test_a2_is_the_cone_inclusion(data, slope, seed):
    """LL-G.2: positive slack iff every sum of a_i z_i with a_i in [slope, 1] separates; corners decide."""
    cone = numbers.cone(data, slope)
    inner = data.signed @ data.signed.T
    # the corner that is worst for sample i: slope where z_j helps, 1 where it hurts
    worst = np.where(inner > 0, slope * inner, inner).sum(axis=1)
    assert np.allclose(slope * data.n * cone.slack, worst, atol=1e-9 * np.abs(inner).sum())
    if cone.holds:
        weights = np.random.default_rng(seed).uniform(slope, 1, (50, data.n))
        assert ((weights @ data.signed) @ data.signed.T > 0).all()


@QUICK
@given(separable(), st.floats(0.2, 0.95))
def test_a1_implies_a2(data, slope):
    known = facts(data, slope)
    if conditions.funnel(known).holds:
        assert conditions.spread(known).holds is not False


def test_search_finds_a_vector_for_a1_where_the_named_ones_fail():
    found = conditions.funnel(facts(rf.example("D3").data, 0.5))
    w = found.witness
    left, right = numbers.a1_sides(rf.example("D3").data, 0.5, w)
    assert found.holds
    assert left < right


@pytest.mark.parametrize("far", [10.0, 100.0])
@pytest.mark.parametrize("bias", [3.1e-17, 4.9e-17, 7.7e-17])
def test_points_separable_only_to_rounding_leave_the_game_open(far, bias, monkeypatch):
    # Opposed points of one class, which the last coordinate alone tells apart. Scaled by the slope they may not be.
    data = rf.Dataset([[1.0, -3.0, bias], [-far, 3 * far, bias]], [-1, -1])
    for sign in (1, -1):
        conditions.outside(facts(data, 0.01), sign, False)

    def refuse(*_):
        raise rf.NotSeparable("to rounding", np.array([0.5, 0.5]), 0.0)

    monkeypatch.setattr(conditions, "one_neuron", refuse)
    monkeypatch.setattr(conditions, "separator", lambda _: "there is one")
    assert conditions.outside(facts(data, 0.02), 1, False).holds is None


@settings(deadline=None, max_examples=15)
@given(separable(d=2, most=6), st.floats(0.1, 0.9), st.sampled_from([1, -1]), st.integers(0, 1000))
def test_one_signed_nets_stay_below_the_value(data, slope, sign, seed):
    """LL-G.10: no net of the other sign does better on the support, by random nets and by the one-class shortcut."""
    found = conditions.game(facts(data, slope), sign)
    sub = data.subset(found.neuron.support)
    rng = np.random.default_rng(seed)
    for _ in range(50):
        net = rf.Network.balanced(rng.standard_normal((3, 2)), [-sign] * 3, slope)
        assert net.normalized_margin(sub) <= found.value.upper + 1e-12
    assert found.star.upper >= found.value.upper - 1e-9
    if (data.y[found.neuron.support] == sign).all():
        assert found.holds_star
        assert found.star.upper == pytest.approx(slope * found.neuron.gamma / 2, rel=1e-12)


def test_printed_and_corrected_assumptions_differ_on_D8():
    known = facts(rf.example("D8").data, 0.2)
    printed, corrected = finding("LL-A.5", known), finding("LL-A.5*", known)
    assert (printed.applies, corrected.applies) == (True, False)
    assert rf.example("D8").agrees("V_minus", printed.conditions[-1].value, 0.2)
    assert rf.example("D8").agrees("V_minus_star", corrected.conditions[-1].value, 0.2, slack=1e-9)
    assert corrected.conditions[-1].threshold == pytest.approx(0.5, rel=1e-12)


def test_sign_in_a9_as_printed_fails():
    """On D5 with the labels exchanged: with a <= 0 the supremum is gamma-/2 itself, with a >= 0 half of that."""
    flipped = rf.example("D5").data.flipped()
    found = finding("LL-A.9", facts(flipped))
    printed, corrected = found.conditions[1:]
    assert (printed.holds, printed.decides) == (False, False)
    assert (corrected.holds, corrected.decides, found.applies) == (True, True, True)
    assert printed.value == pytest.approx(0.2385210844, abs=5e-11)
    assert corrected.value == pytest.approx(0.1192605422, abs=5e-11)
    support = flipped.subset(conditions.game(facts(flipped), -1).neuron.support)
    assert rf.global_max_margin(support, 0.5, signs=-1).upper == pytest.approx(printed.value, rel=1e-9)


def test_embedding_keeps_function_norm_and_flow():
    """LL-Emb exactly, LL-L5.3 to the accuracy of the integrator."""
    data = rf.example("D1").data
    two = rf.Network([[0.5, 0.2], [-0.3, -0.2]], [0.6, -0.4], slope=0.5)
    b = np.array([3.0, -1.0, 4.0, -2.0])
    wide = rf.margins.embed(b, two)
    assert np.allclose(wide.outputs(data.X), two.outputs(data.X), rtol=1e-14)
    assert wide.log_norm() == pytest.approx(two.log_norm(), abs=1e-14)
    small, large = (runs.integrate(rf.Problem(data, net), q_end=20.0) for net in (two, wide))
    assert np.allclose(small.log_time[1:], large.log_time[1:], rtol=1e-12)
    again = rf.margins.embed(b, rf.Network(small.W[-1], small.a[-1], 0.5))
    assert np.allclose(again.W, large.W[-1], rtol=1e-10)
    assert np.allclose(again.a, large.a[-1], rtol=1e-10)


def test_non_branching_is_proved_only_by_the_sufficient_test():
    assert conditions.no_branching(facts(rf.example("D8").data)).evidence == "proved"
    assumed = conditions.no_branching(facts(rf.example("D6").data))
    i, j = assumed.witness
    signed = rf.example("D6").data.signed
    assert (assumed.evidence, assumed.holds) == ("assumed", None)
    assert signed[i] @ signed[j] < 0


@settings(deadline=None, max_examples=12)
@given(separable(d=2, most=6), st.floats(0.1, 0.9), st.integers(0, 1000))
def test_verdicts_are_invariant_under_permutation_and_rotation(data, slope, seed):
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((2, 2)))[0]
    order = rng.permutation(data.n)
    images = [data, data.subset(order), rf.Dataset(data.X @ turn, data.y)]
    verdicts = [
        [c.applies for c in (finding_of(one, facts(image, slope)) for one in claims("LL")[:12])] for image in images
    ]
    for image in verdicts[1:]:
        for one, first, other in zip(claims("LL")[:12], verdicts[0], image, strict=True):
            if None not in (first, other):
                assert first == other, one.id


@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_the_ends_of_the_slopes_are_refused_not_crashed(slope):
    known = facts(rf.example("D5").data, slope)
    for one in claims("LL"):
        found = finding_of(one, known)
        assert found.applies in (True, False, None)
    assert finding("LL-TA.7", known).applies is False
    assert finding("LL-A.2", known).applies is False


@pytest.mark.parametrize(
    "data",
    [
        rf.Dataset([[2.0]], [1]),
        rf.Dataset([[2.0], [-1.0]], [1, -1]),
        rf.Dataset([[1e100, 1e99], [-1e-100, -2e-100]], [1, -1]),
        rf.Dataset([[1, 2], [1, 2], [3, 1]], [1, 1, 1]),
        rf.Dataset([[1, 0], [-1, 0]], [1, 1]),
    ],
    ids=["one sample", "one dimension", "huge and tiny", "one class", "not separable"],
)
def test_degenerate_data_get_a_verdict(data):
    for slope in (0.0, 0.3, 1.0):
        known = facts(data, slope, width=2)
        for one in (*claims("LL"), *claims("SBG")):
            assert finding_of(one, known).applies in (True, False, None)
