"""The data of the papers, drawn by name and seed."""

from __future__ import annotations

import math

import numpy as np

from ..problem import DataError, Dataset, check_size
from ..problem.types import Array
from .draw import beyond_margin, fair_signs, gaussian, half, labels, stream, teacher, two_gaussians
from .registry import (
    CONSTRUCTIONS,
    Base,
    Count,
    Drawn,
    Flag,
    LeakySlope,
    NotNegative,
    Number,
    Numbers,
    PolarAngle,
    Positive,
    Positives,
    Seed,
    Vector,
    construction,
    make,
    same_word,
    suggestion,
)

_MEANT = 1e-9  # how far from exact a length or a right angle may be given

# -- orthogonally separable data --------------------------------------------------------------------


@construction("PL-F1")
def phuong(n: Count = 500, d: Count = 20, seed: Seed = 0) -> Drawn:
    r"""Gaussian points in two opposite orthants, filtered by a halfspace.

    A point of N(0, I) is kept with label +1 if all its coordinates are positive, with label -1 if all
    are negative, and only if :math:`x \cdot z \ge 0` for z = (1, -1, 1, -1, ...). The data are
    orthogonally separable. For odd d the vector z has one +1 more, so positives are more frequent;
    for d = 1 no negative point passes the filter and all labels are +1.

    Parameters
    ----------
    n, d : int
        Samples and dimension.
    seed : int

    Examples
    --------
    >>> phuong(n=4, d=3)
    Dataset 'phuong': n=4 (3 positive, 1 negative), d=3
    """
    # The kept points have the law of s|g|, g normal, with the sign s for which s|g|.z >= 0: a fair sign
    # is the right one with probability 1/2 whatever |g| is, so conditioning on it leaves |g| as it was.
    orthant = np.abs(gaussian(stream(seed), n, d))
    y = _sign(orthant @ _alternating(d))
    return Drawn(y[:, None] * orthant, y)


@construction("benchmarks")
def orthsep(n: Count = 500, d: Count = 20, seed: Seed = 0) -> Drawn:
    """Gaussian points in two opposite orthants: x = y abs(N(0, I/d)) coordinatewise, fair labels.

    Parameters
    ----------
    n, d : int
        Samples and dimension.
    seed : int

    Examples
    --------
    >>> bool((orthsep(n=10, d=3).signed > 0).all())
    True
    """
    rng = stream(seed)
    y = fair_signs(rng, n)
    return Drawn(y[:, None] * np.abs(gaussian(rng, n, d)) / math.sqrt(d), y)


@construction("ML-F6")
def circle(plus: Numbers = (20.0, 45.0, 70.0), minus: Numbers = (165.0, 180.0)) -> Drawn:
    """Place unit vectors in the plane at given angles in degrees.

    Parameters
    ----------
    plus, minus : list of float
        Angles of the positive and of the negative points. Multiples of 90 degrees and antipodal
        angles give exact coordinates.

    Examples
    --------
    >>> circle(plus=[0], minus=[180]).X
    array([[ 1.,  0.],
           [-1.,  0.]])
    """
    if not plus and not minus:
        raise DataError("circle: plus and minus are both empty; at least one angle is needed.")
    return Drawn(np.array([_on_circle(angle) for angle in (*plus, *minus)]), labels(len(plus), len(minus)))


@construction("ML-F7, ML-F8, ML-F9")
def pair(delta: Number = 0.1) -> Drawn:
    """Two positive points (1, 0) and (sin delta, cos delta), nearly orthogonal for small delta.

    Parameters
    ----------
    delta : float
        Angle in radians by which the two points miss a right angle: 0.1 and 0.001 in the paper;
        0 makes them orthogonal, hence no longer orthogonally separable.

    Examples
    --------
    >>> pair(delta=0.0).X
    array([[1., 0.],
           [0., 1.]])
    """
    return Drawn(np.array([[1.0, 0.0], [math.sin(delta), math.cos(delta)]]), np.ones(2))


@construction("PL-E1")
def ring(n: Count = 5, polar: PolarAngle = 44.0) -> Drawn:
    """Positive unit vectors in space, evenly spaced on a circle about the third axis.

    With n = 5 and polar = 44 all inner products are positive, yet no rotation brings the points into
    one orthant: orthogonal separability must not be tested through orthants.

    Parameters
    ----------
    n : int
        Number of vectors.
    polar : float
        Angle to the axis in degrees.

    Examples
    --------
    >>> X = ring().X
    >>> print(f"{(X @ X.T).min():.10f}")
    0.1270583941
    """
    check_size("X", n, 3)
    height, radius = _on_circle(polar)
    azimuth = 2 * np.pi * np.arange(n) / n
    return Drawn(np.column_stack([radius * np.cos(azimuth), radius * np.sin(azimuth), np.full(n, height)]), np.ones(n))


# -- linearly separable data ------------------------------------------------------------------------


@construction("SBG-F1, SBG-F3, SBG-F8")
def antipodal_gaussians(
    n: Count = 100,
    d: Count = 2,
    mean: Number = 2.0,
    std: Positive = 1.0,
    margin: NotNegative = 0.5,
    mirrored: Flag = False,
    seed: Seed = 0,
) -> Drawn:
    r"""Two Gaussians around +mean e_1 (label +1) and -mean e_1 (label -1), with a linear margin.

    Points with :math:`y x_1 <` ``margin`` are drawn anew: each point has the Gaussian law conditioned on
    lying beyond the margin. The positives come first; with odd n there is one more of them.

    The defaults are the setting of SBG-F3; SBG-F1 is ``n=200, margin=0.3``, SBG-F8 is
    ``n=400, d=50, mean=3``.

    Parameters
    ----------
    n, d : int
        Samples (both classes together) and dimension.
    mean : float
        First coordinate of the positive centre.
    std : float
        Standard deviation of every coordinate.
    margin : float
        No point is nearer than this to the hyperplane :math:`x_1 = 0`, or on its wrong side.
    mirrored : bool
        Draw the positives only and take -x for every x as the negatives, so that the data are exactly
        symmetric; n must be even. Otherwise the two classes are drawn independently.
    seed : int

    Examples
    --------
    >>> data = antipodal_gaussians(n=6, mirrored=True)
    >>> data
    Dataset 'antipodal_gaussians': n=6 (3 positive, 3 negative), d=2
    >>> bool((data.X[:3] == -data.X[3:]).all())
    True
    """
    return Drawn(*two_gaussians("antipodal_gaussians", n, d, mean, std, margin, mirrored, seed))


@construction("SBG-F9")
def antipodal_outlier(
    n: Count = 40,
    mean: Number = 1.5,
    std: Positive = 0.3,
    margin: NotNegative = 0.0,
    outlier: Numbers = (-1.0, 2.0),
    mirrored: Flag = False,
    seed: Seed = 0,
) -> Drawn:
    """Two antipodal Gaussians and one positive outlier.

    The Gaussians are those of ``antipodal_gaussians`` in the dimension of the outlier, which is the
    last of the n + 1 points.

    Parameters
    ----------
    n : int
        Samples without the outlier.
    mean, std, margin, mirrored, seed
        As for ``antipodal_gaussians``. The margin says nothing about the outlier.
    outlier : list of float
        Where the extra positive point lies.

    Examples
    --------
    >>> antipodal_outlier().X[-1]
    array([-1.,  2.])
    """
    if not outlier:
        raise DataError("antipodal_outlier: outlier is empty; it needs at least one coordinate, e.g. (-1, 2).")
    X, y = two_gaussians("antipodal_outlier", n, len(outlier), mean, std, margin, mirrored, seed)
    return Drawn(np.vstack([X, outlier]), np.append(y, 1.0))


@construction("LL-Tab1")
def linear_teacher(
    n: Count = 100,
    d: Count = 50,
    tau: NotNegative = 0.4,
    bias: Number = 0.0,
    seed: Seed = 0,
    teacher_seed: Seed = 0,
) -> Drawn:
    r"""Gaussian points labelled by a linear teacher and shifted away from its boundary.

    x = g + tau y t with g ~ N(0, I), a unit teacher t through the origin, y = sign(t.g); the teacher
    separates the data with margin ``tau``. It depends on ``teacher_seed`` and d alone: test points for
    the same teacher are the same call with another ``seed``, here ``n=10000, seed=1``.

    Parameters
    ----------
    n, d : int
        Samples and dimension (before the bias).
    tau : float
        Shift of every point.
    bias : float
        If not zero, append a constant column of this value (0.1 in the paper).
    seed : int
        Draws the points.
    teacher_seed : int
        Draws the teacher.

    Examples
    --------
    >>> train, test = linear_teacher(n=20, bias=0.1), linear_teacher(n=10000, bias=0.1, seed=1)
    >>> train.d, test.n
    (51, 10000)
    """
    t = teacher(d, teacher_seed)
    X = gaussian(stream(seed), n, d)
    y = _sign(X @ t)
    X += tau * y[:, None] * t
    return Drawn(np.column_stack([X, np.full(n, bias)]) if bias else X, y)


@construction("benchmarks")
def linsep(n: Count = 500, d: Count = 20, margin: NotNegative = 0.1, seed: Seed = 0, teacher_seed: Seed = 0) -> Drawn:
    """Gaussian points N(0, I/d) labelled by a linear teacher, none nearer to its boundary than a margin.

    Parameters
    ----------
    n, d : int
        Samples and dimension.
    margin : float
        Points nearer than this are drawn anew.
    seed, teacher_seed : int
        Draw the points and the teacher, as in ``linear_teacher``.

    Examples
    --------
    >>> linsep(n=60, d=10)
    Dataset 'linsep': n=60 (30 positive, 30 negative), d=10
    """
    return Drawn(*beyond_margin(n, d, margin, seed, teacher_seed))


@construction("benchmarks")
def symsep(n: Count = 100, d: Count = 10, margin: NotNegative = 0.1, seed: Seed = 0, teacher_seed: Seed = 0) -> Drawn:
    """Half of the points as in linsep, the other half their mirror images: symmetric and separable.

    Parameters
    ----------
    n, d : int
        Samples (even: both halves together) and dimension.
    margin, seed, teacher_seed
        As for ``linsep``.

    Examples
    --------
    >>> data = symsep(n=6, d=2)
    >>> bool((data.X[:3] == -data.X[3:]).all() and (data.y[:3] == -data.y[3:]).all())
    True
    """
    both = Dataset(*beyond_margin(half("symsep", n), d, margin, seed, teacher_seed)).symmetrized()
    return Drawn(both.X, both.y)


@construction("benchmarks")
def randlab(n: Count = 40, d: Count = 20, seed: Seed = 0) -> Drawn:
    """Gaussian points N(0, I/d) with fair random labels; separable only when d is large against n.

    Parameters
    ----------
    n, d : int
        Samples and dimension.
    seed : int

    Examples
    --------
    >>> randlab()
    Dataset 'randlab': n=40 (13 positive, 27 negative), d=20
    """
    rng = stream(seed)
    return Drawn(gaussian(rng, n, d) / math.sqrt(d), fair_signs(rng, n))


# -- data made from other data, and the sets that separate two kinds of margin ----------------------


@construction("LL-A4.1")
def symmetric(base: Base = "linsep") -> Drawn:
    """Other data together with the mirror image (-x, -y) of every sample.

    Parameters
    ----------
    base : Dataset or str
        The data, or the name of an example or a construction (with its defaults).

    Examples
    --------
    >>> symmetric(base=Dataset([[2.0, 1.0]], [1])).X
    array([[ 2.,  1.],
           [-2., -1.]])
    """
    both = _resolve("symmetric", base).symmetrized()
    return Drawn(both.X, both.y)


@construction("LL-F1 left")
def lyu_left(slope: LeakySlope = 0.5) -> Drawn:
    r"""Six symmetric points on which a three-neuron network is a KKT point that is not optimal.

    (1, cot b), (1, 0), (1, -cot b) with label +1 and their mirror images, where b solves
    :math:`\alpha = \cos 2b / (2 \sin^2 b + \cos b)` for the slope :math:`\alpha`.

    Parameters
    ----------
    slope : float
        Activation slope in [0, 1); at 1 the two outer points would be at infinity.

    Examples
    --------
    >>> print(f"{lyu_left(slope=0.5).X[0, 1]:.12f}")
    2.115374584709
    """
    cot = 1 / math.tan(corner_angle(slope))
    right = np.array([[1.0, cot], [1.0, 0.0], [1.0, -cot]])
    return Drawn(np.vstack([right, -right]), labels(3, 3))


@construction("LL-F1 middle")
def lyu_middle(
    plus: Positives = (0.1, 4.0, 8.0, 12.0), minus: Positives = (1.0, 2.0), height: Positive = 0.05
) -> Drawn:
    """Pairs of positive points on two lines, negatives on a third one between them.

    The points are (t, 1, height) and (t, -1, height) with label +1 for t in ``plus``, and
    (-t, 0, height) with label -1 for t in ``minus``. When ``height`` is below the smallest t of
    ``plus``, that one is far below the slope times the smallest t of ``minus``, and the positives
    outweigh the negatives, small networks become linear classifiers far from the largest margin.

    Parameters
    ----------
    plus, minus : list of float
        First coordinates, without their sign.
    height : float
        Third coordinate of every point (a bias).

    Examples
    --------
    >>> lyu_middle(plus=[0.1], minus=[1]).X
    array([[ 0.1 ,  1.  ,  0.05],
           [ 0.1 , -1.  ,  0.05],
           [-1.  ,  0.  ,  0.05]])
    """
    rows = [(t, side, height) for t in plus for side in (1.0, -1.0)] + [(-t, 0.0, height) for t in minus]
    return Drawn(np.array(rows), labels(2 * len(plus), len(minus)))


@construction("LL-F1 right, LL-D6.1")
def hinted(
    base: Base = "D6-base",
    H: Positive = 12.0,
    K: Positive = 1.0,
    eps: Positive = 0.2,
    w_perp: Vector = None,
    w_star: Vector = None,
) -> Drawn:
    r"""Separable data with three added positive points that lead small networks to a small margin.

    The hints :math:`H w_*`, :math:`\epsilon w_* + K w_\perp` and :math:`\epsilon w_* - K w_\perp` come
    first, then the base.

    Parameters
    ----------
    base : Dataset or str
        The data, or the name of an example or a construction (with its defaults).
    H, K, eps : float
        Lengths of the hints. The statement LL-T6.2 about slope alpha needs
        ``eps < alpha * margin`` of the base and H large.
    w_perp : list of float, optional
        Unit vector orthogonal to ``w_star``. Default: the part orthogonal to ``w_star`` of the
        coordinate axis on which ``w_star`` is smallest (the first such axis), normalised.
    w_star : list of float, optional
        Unit vector that separates the base. Default: its max-margin direction.

    Examples
    --------
    >>> base = Dataset([[1.0, 0.0], [-1.0, 0.0]], [1, -1])
    >>> hinted(base=base, H=12, K=1, eps=0.2, w_star=[1, 0]).X
    array([[12. ,  0. ],
           [ 0.2,  1. ],
           [ 0.2, -1. ],
           [ 1. ,  0. ],
           [-1. ,  0. ]])
    """
    data = _resolve("hinted", base)
    if w_star is None:
        from ..margins import max_margin

        star: Array = np.asarray(max_margin(data).direction)
    else:
        star = _unit_vector("w_star", w_star, data.d)
    worst = int(np.argmin(data.signed @ star))
    if not data.signed[worst] @ star > 0:
        raise DataError(
            f"hinted: w_star does not separate the base: y_i w_star.x_i = {data.signed[worst] @ star:.6g} for sample "
            f"{worst}. Leave w_star out to take the max-margin direction."
        )
    perp = _some_orthogonal(star) if w_perp is None else _unit_vector("w_perp", w_perp, data.d)
    if not abs(star @ perp) <= _MEANT:
        raise DataError(
            f"hinted: w_perp must be orthogonal to w_star, but w_perp.w_star = {star @ perp:.6g}. Leave w_perp out to "
            "have one chosen."
        )
    hints = np.array([H * star, eps * star + K * perp, eps * star - K * perp])
    found = {"w_perp": tuple(perp.tolist()), "w_star": tuple(star.tolist())}
    return Drawn(np.vstack([hints, data.X]), np.concatenate([np.ones(3), data.y]), found)


def corner_angle(slope: float) -> float:
    """Return the angle b in (0, pi/4] of the data of LL-F1 left, in radians."""
    # cos b = (s + r)/(4(1+s)), r = sqrt(17 s^2 + 24 s + 8); 1 - cos b without its cancellation near s = 1.
    r = math.sqrt(17 * slope**2 + 24 * slope + 8)
    versine = 2 * (1 - slope) / (4 + 3 * slope + r)
    return 2 * math.asin(math.sqrt(versine / 2))


# -- small helpers ----------------------------------------------------------------------------------


def _sign(values: Array) -> Array:
    return np.where(values >= 0, 1.0, -1.0)


def _alternating(d: int) -> Array:
    return np.where(np.arange(d) % 2, -1.0, 1.0)


def _on_circle(degrees: float) -> tuple[float, float]:
    # Cosine and sine from within 45 degrees of an axis, so that axes and mirror images are exact.
    quarters = round(degrees / 90)
    small = math.radians(degrees - 90 * quarters)
    c, s = math.cos(small), math.sin(small)
    return ((c, s), (0.0 - s, c), (-c, 0.0 - s), (s, -c))[quarters % 4]


def _unit_vector(name: str, value: tuple[float, ...], d: int) -> Array:
    vector = np.array(value)
    if vector.size != d:
        raise DataError(f"hinted: {name} has {vector.size} coordinates, but the base has {d}.")
    norm = float(np.linalg.norm(vector))
    if not abs(norm - 1) <= _MEANT:
        raise DataError(f"hinted: {name} must be a unit vector, but its norm is {norm:.6g}; divide it by that.")
    return vector


def _some_orthogonal(star: Array) -> Array:
    if star.size < 2:
        raise DataError("hinted: the base has one dimension, where nothing is orthogonal to w_star; use d >= 2.")
    axis = np.zeros(star.size)
    axis[np.argmin(np.abs(star))] = 1.0
    perp = axis - (axis @ star) * star
    perp -= (perp @ star) * star
    return np.asarray(perp / float(np.linalg.norm(perp)))


def _resolve(name: str, base: Dataset | str) -> Dataset:
    if isinstance(base, Dataset):
        return base
    from .zoo import example, examples  # the zoo is built from constructions

    if same_word(base, examples()):
        return example(base).data
    if same_word(base, CONSTRUCTIONS):
        return make(base)
    near = suggestion(base, [*examples(), *CONSTRUCTIONS])
    raise DataError(
        f"{name}: base = {base!r} is neither an example nor a construction{near or '.'} Pass a Dataset, one of the "
        f"examples ({', '.join(examples())}) or one of the constructions ({', '.join(CONSTRUCTIONS)})."
    )
