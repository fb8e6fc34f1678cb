"""Agreement programs, critical margins and one-neuron programs, against worked examples and closed forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow import Dataset, NotSeparable, ProblemError, max_margin
from reluflow.margins import agreement_margin, beta_crit, class_margins, hard_margin, one_neuron

SETTINGS = settings(deadline=None, max_examples=50)
SEEDS = st.integers(0, 2**32 - 1)
SLOPES = st.floats(0.01, 0.99)


def dataset(positives, negatives):
    return Dataset([*positives, *negatives], [1] * len(positives) + [-1] * len(negatives))


D1 = Dataset([(0.8, 0.2), (0.3, 0.6), (0.5, -0.4)], [1, 1, 1]).symmetrized()
D2 = dataset([(1, 0.5), (0.8, -0.3), (0.6, 0.9)], [(-1, 0.3), (-0.9, -0.7)])
D3 = dataset(
    [(1, 0.2, 0.1), (0.7, 0.5, -0.3), (0.9, -0.4, 0.2)], [(-0.8, 0.1, 0.3), (-1, -0.3, -0.2), (-0.6, 0.4, -0.5)]
)
D5 = dataset([(0.5, 0.4), (0.45, -0.5), (1.5, 0.1), (1.4, -0.2)], [(-1.6, 0.3), (-1.5, -0.4)])
D7 = dataset([(t, s, 0.05) for t in (0.1, 4, 8, 12) for s in (1, -1)], [(-1, 0, 0.05), (-2, 0, 0.05)])
D8 = Dataset([(1, 0.5), (-5, 2.5), (20, 0)], [1, -1, 1])
PAIRS = [(2, 0.2), (2.2, -0.3), (1.8, 0.1), (2.1, 0.4)]
D9 = Dataset([*PAIRS, *(-np.array(PAIRS)).tolist(), (-0.5, 1)], [1] * 4 + [-1] * 4 + [1])


def hinted(H):
    """D6: a point far out along the separator and two near it, which hint at it (LL-D6.1)."""
    base = dataset([(1, 0.5), (0.8, -1)], [(-1, 0.3), (-0.9, -0.7)])
    star = max_margin(base).direction
    across = np.array([-star[1], star[0]])
    added = [H * star, 0.2 * star + across, 0.2 * star - across]
    return Dataset(np.vstack([added, base.X]), [1, 1, 1, *base.y])


def random_data(rng, n, d):
    X = rng.standard_normal((n, d))
    y = np.where(X @ rng.standard_normal(d) > 0, 1, -1)
    return Dataset(X, y)


# -- agreement ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "slope", "w", "u", "gamma_phi"),
    [
        (D1, 0.5, (1.587301587302, 0.317460317460), (-1.587301587302, -0.317460317460), 0.436826404527),
        (D1, 0.25, (1.904761904762, 0.380952380952), (-1.904761904762, -0.380952380952), 0.364022003773),
        (D2, 0.5, (1.066666666667, 0.177777777778), (-0.533333333333, -0.088888888889), 0.827116449856),
        (D2, 0.25, (1.147308132875, 0.209545628102), (-0.744100801833, -0.050706376480), 0.722349830722),
        (
            D3,
            0.5,
            (0.917608080150, 0.247852554545, -0.028670439740),
            (-0.908001000253, 0.166591433801, -0.340037046254),
            0.730861930470,
        ),
        (
            D3,
            0.3,
            (0.916555407634, 0.324561714037, -0.155371989541),
            (-1.048603894245, 0.287539693090, -0.306190033916),
            0.667325996732,
        ),
        (D9, 0.1, (0.586027833553, 1.301708407238), (-0.481185079108, -0.153647634932), None),
        (D9, 0.3, (0.515651571176, 1.217342291190), (-0.394982567624, -0.332436265138), 0.704584672918),
    ],
)
@pytest.mark.parametrize("kernel", [None, False, True])
def test_perfect_agreement_of_the_worked_examples(data, slope, w, u, gamma_phi, kernel):
    found = agreement_margin(data, slope, kernel=kernel)
    np.testing.assert_allclose(found.w, w, atol=1e-11)
    np.testing.assert_allclose(found.u, u, atol=1e-11)
    if gamma_phi is not None:
        assert found.gamma_phi == pytest.approx(gamma_phi, abs=1e-11)
    assert found.verified


def test_checks_before_training():
    found = agreement_margin(D2, 0.25)
    assert found.consistent is True
    assert found.beta == pytest.approx(0.659799876250, abs=1e-11)
    assert found.norm_ratio == pytest.approx(1.563751, abs=1e-6)
    assert found.slope * found.radius == pytest.approx(0.285043856275, abs=1e-11)
    assert found.wide_enough
    assert found.beta > max(beta_crit(D2))
    assert found.network_margin(5, 1 / np.sqrt(10)) == pytest.approx(0.510778463693, abs=1e-11)
    np.testing.assert_allclose(found.w / np.linalg.norm(found.w), (0.983727, 0.179669), atol=1e-6)
    np.testing.assert_allclose(found.u / np.linalg.norm(found.u), (-0.997686, -0.067987), atol=1e-6)
    np.testing.assert_allclose(found.direction, (found.w - found.u) / np.linalg.norm(found.w - found.u), atol=1e-15)

    found = agreement_margin(D3, 0.5)
    assert found.beta == pytest.approx(0.457713178800, abs=1e-11)
    assert found.slope * found.radius == pytest.approx(0.531507290637, abs=1e-11)
    assert found.wide_enough
    narrow = agreement_margin(D3, 0.9)
    assert narrow.gamma_phi < narrow.slope * narrow.radius
    assert not narrow.wide_enough

    found = agreement_margin(D9, 0.1)
    assert found.consistent is False
    assert found.worst == 8
    assert found.u @ D9.X[8] == pytest.approx(0.086944904622, abs=1e-11)
    assert found.beta < 0
    found = agreement_margin(D9, 0.3)
    assert found.consistent is True
    assert found.beta == pytest.approx(0.261389224817, abs=1e-11)
    assert found.slope * found.radius == pytest.approx(0.666108099335, abs=1e-11)


def test_prescribed_signs():
    # a limit that is not perfect agreement although the data are antipodal but for one point (SBG-R1)
    data = Dataset([(5, 0), (-5, 0), (-0.2, 0.3)], [1, -1, 1])
    found = agreement_margin(data, 0.5, (-1, 1, 1), (-1, 1, -1))
    np.testing.assert_allclose(found.w, (-0.2510638298, 2.7063829787), atol=1e-10)
    np.testing.assert_allclose(found.u, (-0.6510638298, -1.3531914894), atol=1e-10)
    assert found.gamma_phi == pytest.approx(0.3220356698, abs=1e-10)
    assert found.consistent is True
    explicit = agreement_margin(data, 0.5, data.y, -data.y)
    np.testing.assert_array_equal(explicit.w, agreement_margin(data, 0.5).w)


@SETTINGS
@given(SEEDS, st.integers(2, 40), st.integers(1, 12), SLOPES)
def test_kernel_and_features_agree(seed, n, d, slope):
    rng = np.random.default_rng(seed)
    data = random_data(rng, n, d)
    features, kernel = (agreement_margin(data, slope, kernel=k) for k in (False, True))
    np.testing.assert_allclose(kernel.w, features.w, rtol=0, atol=1e-12 * np.linalg.norm(features.w))
    np.testing.assert_allclose(kernel.u, features.u, rtol=0, atol=1e-12 * np.linalg.norm(features.w))
    # the dual solves the kernel program: 1 + slope^2 within a class, 2 slope across (SBG-T6.2)
    same = np.outer(data.y, data.y)
    K = np.where(same > 0, 1 + slope**2, 2 * slope) * same * (data.X @ data.X.T)
    reached = K @ features.dual
    assert reached.min() >= 1 - 1e-9
    np.testing.assert_allclose(reached[features.solution.active], 1, atol=1e-9)
    assert features.dual.sum() == pytest.approx(features.gamma_phi**-2, rel=1e-13)


@SETTINGS
@given(SEEDS, st.integers(2, 12), st.integers(1, 4), SLOPES)
def test_any_signs_against_the_constraints(seed, n, d, slope):
    rng = np.random.default_rng(seed)
    data = random_data(rng, n, d)
    c_w, c_u = rng.choice([-1, 1], (2, n))
    found = agreement_margin(data, slope, c_w, c_u)
    S_w, S_u = np.where(c_w > 0, 1, slope), np.where(c_u > 0, 1, slope)
    margins = data.y * (S_w * (data.X @ found.w) - S_u * (data.X @ found.u))
    assert margins.min() >= 1 - 1e-9
    # stationarity, written out: w and u are combinations of the samples
    np.testing.assert_allclose(found.w, (found.dual * data.y * S_w) @ data.X, atol=1e-9 * np.linalg.norm(found.w))
    np.testing.assert_allclose(found.u, -(found.dual * data.y * S_u) @ data.X, atol=1e-9 * np.linalg.norm(found.w))
    ahead = np.minimum(
        c_w * (data.X @ found.w) / np.linalg.norm(found.w), c_u * (data.X @ found.u) / np.linalg.norm(found.u)
    )
    assert found.beta == pytest.approx(ahead.min(), rel=1e-9, abs=1e-12)
    assert found.consistent is bool(ahead.min() > 0) or found.consistent is None


@SETTINGS
@given(SEEDS, st.integers(1, 15), st.integers(1, 5), SLOPES)
def test_antipodal_data_give_the_linear_separator(seed, n, d, slope):
    data = random_data(np.random.default_rng(seed), n, d).symmetrized()
    found, linear = agreement_margin(data, slope), max_margin(data)
    np.testing.assert_allclose(found.w, linear.w / (1 + slope), rtol=0, atol=1e-13 * np.linalg.norm(linear.w))
    np.testing.assert_allclose(found.u, -linear.w / (1 + slope), rtol=0, atol=1e-13 * np.linalg.norm(linear.w))
    assert found.gamma_phi == pytest.approx((1 + slope) * linear.margin / np.sqrt(2), rel=1e-13)
    assert beta_crit(data) == (0.0, 0.0)


def test_the_ends_of_the_slope():
    relu = agreement_margin(D3, 0.0)
    plus, minus = class_margins(D3)
    np.testing.assert_allclose(relu.w, plus.w, atol=1e-15)
    np.testing.assert_allclose(relu.u, minus.w, atol=1e-15)
    linear = agreement_margin(D3, 1.0)
    np.testing.assert_allclose(linear.w, max_margin(D3).w / 2, atol=1e-15)
    np.testing.assert_allclose(linear.u, -linear.w, atol=1e-15)
    # both are limits: nothing jumps
    for end, near in ((0.0, 1e-9), (1.0, 1 - 1e-9)):
        close = agreement_margin(D3, near)
        np.testing.assert_allclose(close.w, agreement_margin(D3, end).w, atol=1e-7)


def test_one_class_alone():
    data = Dataset([(1, 0.5), (0.8, -0.3)], [1, 1])
    found = agreement_margin(data, 0.5)
    np.testing.assert_allclose(found.u, -0.5 * found.w, atol=1e-15)
    assert found.consistent is True
    silent = agreement_margin(data, 0.0)
    assert not silent.u.any()
    assert silent.consistent is False
    assert silent.beta == 0
    assert silent.norm_ratio == np.inf


@SETTINGS
@given(SEEDS, st.integers(3, 25), st.integers(2, 5), SLOPES)
def test_exchanging_the_labels(seed, n, d, slope):
    data = random_data(np.random.default_rng(seed), n, d)
    before, after = agreement_margin(data, slope), agreement_margin(data.flipped(), slope)
    np.testing.assert_allclose(after.w, before.u, atol=1e-13 * np.linalg.norm(before.solution.w))
    np.testing.assert_allclose(after.u, before.w, atol=1e-13 * np.linalg.norm(before.solution.w))
    np.testing.assert_allclose(beta_crit(data.flipped()), beta_crit(data)[::-1], rtol=1e-12, atol=1e-14)
    for sign in (1, -1):
        one, other = one_neuron(data, slope, sign), one_neuron(data.flipped(), slope, -sign)
        np.testing.assert_allclose(other.w, -one.w, atol=1e-13)
        assert other.kappa == pytest.approx(one.kappa, abs=1e-13)
        np.testing.assert_array_equal(other.support, one.support)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.5, [1] * 5, None), "only signs_w is given"),
        ((0.5, None, [1] * 5), "only signs_u is given"),
        ((0.5, [1] * 4, [1] * 5), "signs_w must be 5 numbers"),
        ((0.5, [1] * 5, [1, 1, 0, 1, 1]), "signs_u must be 5 numbers"),
        ((1.5, None, None), "slope"),
        ((-0.1, None, None), "slope"),
        ((None, None, None), "slope"),
    ],
)
def test_refused_settings(arguments, message):
    with pytest.raises(ProblemError, match=message):
        agreement_margin(D2, *arguments)


def test_inactive_and_impossible_patterns():
    off = [-1, 1, 1, 1, 1]
    with pytest.raises(NotSeparable, match="sample 0 is inactive in both groups") as caught:
        agreement_margin(D2, 0.0, off, off)
    np.testing.assert_array_equal(caught.value.certificate, [1, 0, 0, 0, 0])
    assert agreement_margin(D2, 0.1, off, off).verified
    inseparable = Dataset([(1, 0), (2, 0), (1.5, 0)], [1, 1, -1])
    with pytest.raises(NotSeparable) as caught:
        agreement_margin(inseparable, 1.0)
    assert caught.value.residual <= 1e-15
    # two groups with different slopes can classify what no line can
    assert agreement_margin(inseparable, 0.1).verified


# -- critical margins ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "plus", "minus"),
    [
        (D1, 0, 0),
        (D2, 0, 0.177824693509),
        (D3, 0.201840642514, 0.256121707595),
        (D9, None, 1.081828998641),
    ],
)
def test_critical_margins_of_the_worked_examples(data, plus, minus):
    found = beta_crit(data)
    assert found[1] == pytest.approx(minus, abs=1e-11)
    if plus is not None:
        assert found[0] == pytest.approx(plus, abs=1e-11)


@SETTINGS
@given(SEEDS, st.integers(2, 30), st.integers(1, 5), st.booleans())
def test_critical_margins_one_hull_at_a_time(seed, n, d, shifted):
    rng = np.random.default_rng(seed)
    data = random_data(rng, n, d)
    if shifted:  # both classes in one half-space: large values
        data = Dataset(data.X + 2 * np.eye(d)[0] * np.sqrt(d), data.y)

    def largest(base, others):
        best = 0.0
        for x in others:
            try:
                best = max(best, hard_margin(np.vstack([base, x])).margin)
            except NotSeparable:
                continue
        return best

    plus, minus = data.X[data.positives], data.X[data.negatives]
    np.testing.assert_allclose(beta_crit(data), (largest(plus, minus), largest(minus, plus)), rtol=1e-13, atol=1e-14)


def test_critical_margins_of_one_class():
    data = Dataset([(3, 4), (1, 0)], [1, 1])
    assert beta_crit(data) == (0.0, 5.0)
    assert beta_crit(data.flipped()) == (5.0, 0.0)


# -- one neuron ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "slope", "w", "gamma", "support", "mean", "rival"),
    [
        (D1, 0.5, (0.980580675691, 0.196116135138), 0.205921941895, (5, 6), None, None),
        (D2, 0.5, (0.995037190210, 0.099503719021), 0.482593037252, (4, 5), 0.718679344353, 0.648459713475),
        (D2, 0.25, None, 0.241296518626, None, None, None),
        (
            D3,
            0.5,
            (0.938772007088, -0.325625714636, 0.112583358784),
            0.374902584750,
            (4, 6),
            0.635085296109,
            0.620315779798,
        ),
        (D3, 0.3, None, 0.224941550850, None, None, None),
        (D5, 0.5, (0.998460353205, -0.055470019623), 0.477042168754, (1, 2), 0.900347155268, 0.8375),
        (hinted(45), 0.5, (0.998274373175, -0.058722021951), 0.2, (2, 3), 6.880438403895, 3.641185166299),
        (hinted(12), 0.5, (0.998274373175, -0.058722021951), 0.2, (2, 3), 2.166214153083, 1.284549975004),
        (D7, 0.5, (0.894427191000, 0, 0.447213595500), 0.111803398875, (1, 2), 4.970123237909, 2.710018450122),
        (D8, 0.2, (1, 0), 1.0, (1, 2), 22 / 3, 3.169297153068),
    ],
)
def test_one_neuron_of_the_worked_examples(data, slope, w, gamma, support, mean, rival):
    found = one_neuron(data, slope)
    assert found.gamma == pytest.approx(gamma, abs=1e-11)
    if w is not None:
        np.testing.assert_allclose(found.w, w, atol=1e-11)
        assert (found.support + 1).tolist() == list(support)
    if mean is not None:
        assert np.linalg.norm(found.mean) == pytest.approx(mean, abs=1e-11)
        assert np.linalg.norm(one_neuron(data, slope, -1).mean) == pytest.approx(rival, abs=1e-11)
        assert found.kappa == pytest.approx(1 - rival / mean, abs=1e-11)
    combined = (found.weights * data.y) @ found.points
    np.testing.assert_allclose(combined, found.gamma * found.w, atol=1e-14)
    assert found.weights.sum() == pytest.approx(1, abs=1e-15)


def test_kappa_of_the_worked_examples():
    for data, slope, kappa in ((D2, 0.5, 0.097706482634), (D2, 0.25, 0.168795515472), (D5, 0.5, 0.069803247448)):
        assert one_neuron(data, slope).kappa == pytest.approx(kappa, abs=1e-11)
    assert one_neuron(hinted(12), 0.5).kappa == pytest.approx(0.407006932729, abs=1e-11)
    np.testing.assert_allclose(one_neuron(D8, 0.2).weights, (0.5, 0.5, 0), atol=1e-14)


@SETTINGS
@given(SEEDS, st.integers(1, 25), st.integers(1, 5), SLOPES)
def test_one_neuron_sees_its_points(seed, n, d, slope):
    data = random_data(np.random.default_rng(seed), n, d)
    for sign in (1, -1):
        found = one_neuron(data, slope, sign)
        # a neuron that classifies everything computes w.x^+ or (with the opposite pattern) w.x^-
        v = sign * found.w
        z = data.X @ v
        np.testing.assert_allclose(np.maximum(z, slope * z), sign * found.points @ found.w, atol=1e-12)
        assert (data.y * (found.points @ found.w)).min() == pytest.approx(found.gamma, rel=1e-12)


def test_one_neuron_at_the_ends_of_the_slope():
    np.testing.assert_array_equal(one_neuron(D2, 1.0).w, max_margin(D2).direction)
    for sign, silent in ((1, "2 samples with label -1"), (-1, r"3 samples with label \+1")):
        with pytest.raises(ProblemError, match=silent):
            one_neuron(D2, 0.0, sign)
    positives = D2.subset(D2.positives)
    np.testing.assert_array_equal(one_neuron(positives, 0.0).w, max_margin(positives).direction)
    assert one_neuron(positives, 0.0).kappa == 1.0
    with pytest.raises(ProblemError, match="3 samples"):
        one_neuron(positives, 0.0, -1)


def test_one_neuron_refusals():
    for sign in (0, 2, True, None, 0.5):
        with pytest.raises(ProblemError, match="sign must be"):
            one_neuron(D2, 0.5, sign)
    data = Dataset([(1, 0), (2, 0)], [1, -1])
    with pytest.raises(NotSeparable) as caught:
        one_neuron(data, 0.3)
    assert np.linalg.norm(caught.value.certificate @ data.signed) < 1e-15  # of the data, not of the scaled points
