"""Worked examples, the form of the answer, degeneracy, and refusals."""

import pickle
from fractions import Fraction

import numpy as np
import pytest

from reluflow import DataError, Dataset, NotSeparable, Undecided, max_margin
from reluflow.margins import MarginSolution, class_margins, hard_margin

T = 1e-10  # the worked values are printed to ten digits (twelve in the second group)


def dataset(positives, negatives):
    points = [*positives, *negatives]
    return Dataset(points, [1] * len(positives) + [-1] * len(negatives))


EX1 = dataset([(2, 1), (1, 2)], [(-3, -1), (-1, -2.5)])
EX2 = dataset([(1, 0), (2, 1)], [(-1, 1)])
EX3 = dataset([(3, 1, 0), (0, 2, 1), (1, 0, 2)], [(-2, 0, -1), (-1, -3, 0), (0, -1, -2)])
EX4 = dataset([(1, 0, 0), (1, 1, 0)], [(0, 0, 1), (-1, 0, 1)])
EX5 = dataset([(1, 0)], [(0, 1)])
EX6 = dataset([(1, 0), (np.sin(0.1), np.cos(0.1))], [])
EX7 = dataset([(2, 1), (1, 2)], [(-3, -1), (-1, -2)])
EX8 = dataset([(2, 1), (1, 2)], [(-3, -1), (-1, -1)])
EX10 = dataset([(1, 0)], [(-1, 1)])

D1 = Dataset([(0.8, 0.2), (0.3, 0.6), (0.5, -0.4)], [1, 1, 1]).symmetrized()
D2 = dataset([(1, 0.5), (0.8, -0.3), (0.6, 0.9)], [(-1, 0.3), (-0.9, -0.7)])
D3 = dataset(
    [(1, 0.2, 0.1), (0.7, 0.5, -0.3), (0.9, -0.4, 0.2)], [(-0.8, 0.1, 0.3), (-1, -0.3, -0.2), (-0.6, 0.4, -0.5)]
)
D4 = Dataset([(1, 2.115374584709), (1, 0), (1, -2.115374584709)], [1, 1, 1]).symmetrized()
D5 = dataset([(0.5, 0.4), (0.45, -0.5), (1.5, 0.1), (1.4, -0.2)], [(-1.6, 0.3), (-1.5, -0.4)])
D6 = dataset([(1, 0.5), (0.8, -1)], [(-1, 0.3), (-0.9, -0.7)])
D7 = dataset([(t, s, 0.05) for t in (0.1, 4, 8, 12) for s in (1, -1)], [(-1, 0, 0.05), (-2, 0, 0.05)])
D9 = dataset(
    [(2, 0.2), (2.2, -0.3), (1.8, 0.1), (2.1, 0.4)],
    [(-2, -0.2), (-2.2, 0.3), (-1.8, -0.1), (-2.1, -0.4)],
)
D9 = Dataset(np.vstack([D9.X, [(-0.5, 1)]]), [*D9.y, 1])


@pytest.mark.parametrize(
    ("data", "plus", "minus"),
    [
        (EX1, (1 / 3, 1 / 3), (-0.2307692308, -0.3076923077)),
        (EX2, (1, 0), (-0.5, 0.5)),
        (EX3, (3 / 13, 4 / 13, 5 / 13), (-4 / 13, -3 / 13, -5 / 13)),
        (EX4, (1, 0, 0), (0, 0, 1)),
        (EX5, (1, 0), (0, 1)),
        (EX7, (1 / 3, 1 / 3), (-0.2, -0.4)),
        (EX8, (1 / 3, 1 / 3), (-0.5, -0.5)),
        (EX10, (1, 0), (-0.5, 0.5)),
    ],
)
def test_class_margins_of_the_worked_examples(data, plus, minus):
    for found, expected, members in zip(
        class_margins(data), (plus, minus), (data.positives, data.negatives), strict=True
    ):
        np.testing.assert_allclose(found.w, expected, atol=T)
        np.testing.assert_allclose(found.dual @ data.X, found.w, atol=1e-15)
        assert found.dual.shape == (data.n,)
        assert set(found.support) <= set(members)
        assert found.verified


def test_multipliers_and_ties_of_the_worked_examples():
    plus, minus = class_margins(EX1)
    np.testing.assert_allclose(plus.dual, (1 / 9, 1 / 9, 0, 0), atol=T)
    np.testing.assert_allclose(minus.dual, (0, 0, 0.0414201183, 0.1065088757), atol=T)
    np.testing.assert_allclose([plus.margin, minus.margin], [2.1213203436, 2.6], atol=T)
    assert plus.degenerate == minus.degenerate == ()
    assert (plus.rank, minus.rank) == (2, 2)

    plus, minus = class_margins(EX3)
    np.testing.assert_allclose(plus.dual[:3], (0.0355029586, 0.1360946746, 0.1242603550), atol=T)
    np.testing.assert_allclose(minus.dual[3:], (0.1360946746, 0.0355029586, 0.1242603550), atol=T)
    assert np.linalg.norm(plus.w) == pytest.approx(0.5439282932, abs=T)

    for found in class_margins(EX4):  # both points of each class are tight, one of them with multiplier 0
        assert found.support.size == 2
        assert found.active.size == 1
        assert found.rank == 2
        assert found.degenerate == ("zero multipliers",)

    _, minus = class_margins(EX7)
    np.testing.assert_allclose(minus.dual, (0, 0, 0, 0.2), atol=T)
    assert minus.support.tolist() == [2, 3]
    assert minus.active.tolist() == [3]
    assert minus.degenerate == ("zero multipliers",)

    plus, minus = class_margins(EX8)
    assert minus.support.tolist() == [3]
    assert minus.rank == 1

    alone = max_margin(EX6)
    np.testing.assert_allclose(alone.w, (1, 0.9046862463), atol=T)
    np.testing.assert_allclose(alone.dual, 0.9092286021, atol=T)
    assert np.linalg.norm(alone.w) == pytest.approx(1.3485018370, abs=T)


@pytest.mark.parametrize(
    ("data", "direction", "margin", "support"),
    [
        (D1, (0.980580675691, 0.196116135138), 0.411843883790, (2, 3, 5, 6)),
        (D2, (0.986393923832, 0.164398987305), 0.739795442874, (2, 3)),
        (D3, (0.983108813784, 0.047804445491, 0.176668602900), 0.659077811524, (2, 6)),
        (D4, (1, 0), 1, (1, 2, 3, 4, 5, 6)),
        (D5, (0.998460353205, -0.055470019623), 0.477042168754, (1, 2)),
        (D6, (0.998274373175, -0.058722021951), 0.857341520491, None),
        (D7, (0.894427191000, 0, 0.447213595500), 0.111803398875, (1, 2)),
        (D9, (0.433815618773, 0.901001669759), 0.684093860373, None),
    ],
)
def test_max_margin_of_the_worked_examples(data, direction, margin, support):
    found = max_margin(data)
    np.testing.assert_allclose(found.direction, direction, atol=1e-11)
    assert found.margin == pytest.approx(margin, abs=1e-11)
    assert found.verified
    if support is not None:
        assert (found.support + 1).tolist() == list(support)


def test_dependent_support_is_reported():
    found = max_margin(D4)  # six tight points in the plane
    assert found.rank == 2
    assert found.degenerate == ("zero multipliers", "dependent support")
    square = hard_margin([[1, 1, 1], [1, -1, 1], [-1, 1, 1], [-1, -1, 1], [1, 1, 1]])
    np.testing.assert_allclose(square.w, (0, 0, 1), atol=1e-16)
    assert square.support.size == 5
    assert square.rank == 3
    assert "dependent support" in square.degenerate


def test_form_of_the_answer():
    found = max_margin(EX1)
    assert isinstance(found, MarginSolution)
    assert not any(a.flags.writeable for a in (found.w, found.direction, found.dual, found.support, found.active))
    assert np.linalg.norm(found.direction) == pytest.approx(1, abs=1e-15)
    assert found.margin * np.linalg.norm(found.w) == pytest.approx(1, abs=1e-15)
    assert found.dual.sum() == pytest.approx(found.w @ found.w, rel=1e-15)
    assert found.residuals.worst < 1e-15
    with pytest.raises(AttributeError):
        found.margin = 2.0
    assert "margin=2.121" in repr(found)


@pytest.mark.parametrize("rows", [[[3.0]], [[3.0, 4.0]], [[2.0], [5.0]], [[0.0, -2.0, 0.0]]])
def test_single_points_and_single_dimensions(rows):
    found = hard_margin(rows)
    shortest = min(rows, key=np.linalg.norm)
    np.testing.assert_allclose(found.w, np.array(shortest) / np.dot(shortest, shortest), rtol=1e-15)
    assert found.verified


@pytest.mark.parametrize(
    ("rows", "weights"),
    [
        ([[1.0], [-1.0]], (0.5, 0.5)),
        ([[1.0, 2.0], [-3.0, -6.0]], (0.75, 0.25)),
        ([[1, 0], [0, 1], [-1, -1], [5, 5]], (1 / 3, 1 / 3, 1 / 3, 0)),
        ([[1e-6, 0], [-1e6, 0], [0, 1]], (1e12 / (1e12 + 1), 1 / (1e12 + 1), 0)),
        ([[1, 0, 0], [0, 1, 0], [-2, -3, 0]], (2 / 6, 3 / 6, 1 / 6)),
        ([[1.0, 1.0], [0.0, 0.0]], (0, 1)),
    ],
)
def test_not_separable_with_certificate(rows, weights):
    with pytest.raises(NotSeparable) as caught:
        hard_margin(rows)
    np.testing.assert_allclose(caught.value.certificate, weights, rtol=1e-14, atol=1e-17)
    assert caught.value.residual <= 1e-16
    assert "exactly" in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).residual == caught.value.residual


def test_weakly_separable_is_not_separable():
    # 0 on the boundary of the hull: some vector is >= 0 on all points, none is > 0
    with pytest.raises(NotSeparable):
        hard_margin([[1, 0], [-1, 0], [0, 1]])
    with pytest.raises(NotSeparable):
        hard_margin([[1, 0, 1], [-1, 0, 1], [0, 1, 0], [0, -1, 0]])


def test_a_class_that_surrounds_the_origin():
    data = dataset([(1, 0), (-1, 0.1), (0, -1)], [(5, 5)])
    with pytest.raises(NotSeparable, match="positive class") as caught:
        class_margins(data)
    assert caught.value.certificate.shape == (4,)
    assert np.linalg.norm(caught.value.certificate @ data.X) < 1e-16


@pytest.mark.parametrize("labels", [[1, 1], [-1, -1]])
def test_class_margins_need_both_classes(labels):
    with pytest.raises(DataError, match="both classes"):
        class_margins(Dataset([[1, 2], [3, 4]], labels))
    assert max_margin(Dataset([[1, 2], [3, 4]], labels)).verified


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((0, 2)), "at least one point"),
        (np.zeros((3, 0)), "at least one point"),
        ([1.0, 2.0], "two-dimensional"),
        ([[1.0, np.nan]], "non-finite"),
        (np.array([[1.0, np.inf]]), "finite"),
        ([["a", "b"]], "not a real number"),
        (np.array([[1e200, 1.0]]), "between 1e-150 and 1e\\+150"),
    ],
)
def test_bad_points(rows, message):
    with pytest.raises(DataError, match=message):
        hard_margin(rows)


@pytest.mark.parametrize("size", [1e-140, 1e-6, 1.0, 1e6, 1e140])
def test_any_scale(size):
    found = hard_margin(EX1.signed * size)
    np.testing.assert_allclose(found.direction, max_margin(EX1).direction, atol=1e-15)
    assert found.margin == pytest.approx(max_margin(EX1).margin * size, rel=1e-14)
    assert found.verified


def test_norms_over_twelve_orders():
    rng = np.random.default_rng(4)
    Z = rng.standard_normal((300, 8))
    Z *= np.sign(Z[:, :1]) * 10 ** rng.uniform(-6, 6, (300, 1))
    found = hard_margin(Z)
    assert found.verified
    reach = np.linalg.norm(Z, axis=1) * np.linalg.norm(found.w)
    assert ((Z @ found.w - 1) / reach).min() >= -1e-15
    # the shortest w is orthogonal to the changes that keep all tight constraints
    free = np.linalg.svd(Z[found.active] / np.linalg.norm(Z[found.active], axis=1)[:, None])[2][found.active.size :]
    assert np.abs(free @ found.direction).max(initial=0) < 1e-13


def test_what_cannot_be_told_apart_is_undecided():
    # 2.75 times the first point, rounded: as exact numbers not opposite, yet no double vector separates them
    Z = np.array([[0.105, -0.536], [-0.28875, 1.4740000000000002]])
    assert Fraction(0.105) * Fraction(1.4740000000000002) != Fraction(0.28875) * Fraction(0.536)
    with pytest.raises(Undecided, match="are separable, but only by a margin") as caught:
        hard_margin(Z)
    assert caught.value.partial.margin < 1e-16
    assert not caught.value.partial.verified
    assert "NOT verified" in repr(caught.value.partial)


def test_large_margins_of_a_needle():
    # two nearly opposite points: margin 1e-8 of the norms, direction known in closed form
    for tilt in (1e-6, 1e-8, 1e-10, 1e-12, 1e-15, 1e-18, 1e-100):
        found = hard_margin([[1, tilt], [-1, tilt]])
        np.testing.assert_allclose(found.direction, (0, 1), atol=1e-16)
        assert found.margin == pytest.approx(tilt, rel=1e-15)
    with pytest.raises(Undecided, match="exceed the largest double"):
        hard_margin([[1, 1e-200], [-1, 1e-200]])
