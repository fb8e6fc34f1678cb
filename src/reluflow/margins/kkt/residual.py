"""Whether a network points in a KKT direction of the margin problem, with multipliers that show it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...problem import Dataset, Network, ProblemError, Undecided
from ...problem.checks import is_number
from ...problem.network import Train, check_train
from ...problem.types import Array, Flags, Index
from ..networks import check_pair, unit_weights
from .lp import Equations, solve

_ROUNDING = 32 * float(np.finfo(float).eps)  # of a sum, relative to the size of what is added up


@dataclass(frozen=True, eq=False, repr=False)
class KKT:
    r"""What `kkt` found.

    Attributes
    ----------
    residual : float
        Largest component of :math:`w_j - a_j \sum_i \lambda_i h_{ji} y_i x_i`, relative to the norm of the
        trained parameters, for the multipliers and slopes given here.
    balance : float or None
        Largest :math:`||a_j| - |w_j||` relative to the norm; None when the second layer is frozen.
    multipliers : ndarray of shape (n,)
        :math:`\lambda_i \ge 0` of the network scaled to :math:`q_{\min} = 1`; zero off the active set.
    slopes : ndarray of shape (p, k)
        :math:`h_{ji}` at the k active points: 1 or the slope of the activation off the kinks, chosen
        between them on the kinks (the slope of the activation where :math:`\lambda_i = 0`).
    active : ndarray of int, shape (k,)
        Points with :math:`q_i \le (1 + \text{active\_tol})\, q_{\min}`.
    kinks : ndarray of int, shape (m, 2)
        Pairs (neuron, active point) with :math:`|w_j \cdot x_i| \le \text{kink\_tol}\, |w_j| |x_i|`.
    slackness : float
        :math:`\sum_i \lambda_i (q_i / q_{\min} - 1) / \sum_i \lambda_i`; at most ``active_tol``.
    margin : float
        The normalised margin.
    """

    residual: float
    balance: float | None
    multipliers: Array
    slopes: Array
    active: Index
    kinks: Index
    slackness: float
    margin: float
    train: Train
    kink_tol: float
    active_tol: float

    def is_kkt(self, tol: float = 1e-9) -> bool:
        """Whether residual and balance are both within ``tol`` (LL-B.8, LL-B.9)."""
        check_relative("tol", tol)
        return self.residual <= tol and (self.balance is None or self.balance <= tol)

    def __repr__(self) -> str:
        balance = "" if self.balance is None else f", balance {self.balance:.1e}"
        verdict = "a KKT direction" if self.is_kkt() else "not a KKT direction"
        return (
            f"KKT: {verdict} to 1e-9: residual {self.residual:.1e}{balance}, slackness {self.slackness:.1e}\n"
            f"  margin {self.margin:.10g}; {self.active.size} of {self.multipliers.size} points active, "
            f"{(self.multipliers > 0).sum()} with a positive multiplier, {len(self.kinks)} on a kink"
        )


def kkt(
    data: Dataset,
    net: Network,
    train: Train = "both",
    *,
    kink_tol: float = 1e-9,
    active_tol: float = 1e-9,
) -> KKT:
    r"""Test the KKT conditions of :math:`\min |\theta|^2/2` subject to :math:`q_i(\theta) \ge 1`.

    With both layers trained the direction of the network is a KKT direction iff, for some
    :math:`\lambda_i \ge 0` on the points of smallest margin and slopes :math:`h_{ji}` of the activation,

    .. math:: w_j = a_j \sum_i \lambda_i h_{ji} y_i x_i \quad\text{and}\quad |a_j| = |w_j| \quad\text{for all } j.

    On a kink (:math:`w_j \cdot x_i = 0`) the slope may be anything between those of the two sides. The
    multipliers and free slopes are found by a linear program that minimises the largest component of the
    residual; where that nearly vanishes they are corrected by least squares to rounding. Neurons of equal
    sign and pattern share their free slopes, as they must in a KKT direction. The scale of the network and
    of the data do not matter. The residual reported is that of the multipliers returned; with hundreds of active
    points it may exceed the smallest possible one, by a factor of about two, unless that vanishes.

    Parameters
    ----------
    data : Dataset
    net : Network
        Must classify every point.
    train : {"both", "first"}
        ``"first"``: the second layer is frozen, and the balance condition falls away.
    kink_tol : float
        Which :math:`|w_j \cdot x_i|`, relative to the norms, count as zero.
    active_tol : float
        Which margins, relative to the smallest, count as equal to it. A network stopped at finite time
        has margins spread like 1/q_min: give a tolerance of that size.

    Returns
    -------
    KKT

    Raises
    ------
    ProblemError
        Some point is not classified: then no multiple of the network is feasible.
    Undecided
        The smallest margin is rounding only.

    Examples
    --------
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> net = Network.balanced([[1/3, 1/3], [-3/13, -4/13]], [1, -1])
    >>> kkt(data, net).is_kkt()     # directions right, relative size wrong
    False
    >>> root = np.sqrt(np.linalg.norm(net.W, axis=1))
    >>> certificate = kkt(data, Network(net.W / root[:, None], [root[0], -root[1]]))
    >>> certificate.is_kkt(1e-14), certificate.multipliers.round(10)
    (True, array([0.23570226, 0.23570226, 0.10769231, 0.27692308]))
    """
    check_pair(data, net)
    train = check_train(train)
    for name, tol in (("kink_tol", kink_tol), ("active_tol", active_tol)):
        check_relative(name, tol)
    W, a, _, log_a = unit_weights(net, train)
    q, terms, none = _margins(data, net.slope, W, a)
    lowest = _smallest(q, terms, none)
    active = np.flatnonzero(q - lowest <= active_tol * lowest + _ROUNDING * terms)
    equations, kink = _equations(data, net.slope, W, a, active, kink_tol)
    hat, s = solve(equations)
    off = equations.residual(hat, s)
    # A neuron without output cannot be moved by any multiplier, so it counts as it is.
    weights = equations.weights(hat, s)
    slopes = np.where(np.isnan(equations.slopes), net.slope, equations.slopes)
    positive = hat > 0
    slopes[:, positive] = weights[:, positive] / hat[positive]
    lam = np.zeros(data.n)
    with np.errstate(over="ignore"):
        # The equations were solved for |theta| = 1; for both layers that scale cancels (2-homogeneous).
        unit = 1.0 if train == "both" else np.exp(-2.0 * log_a) / lowest
        lam[active] = hat / data.norms[active] * unit
    share = hat / data.norms[active]
    return KKT(
        residual=float(np.abs(off).max(initial=0.0)),
        balance=float(np.abs(np.abs(a) - np.linalg.norm(W, axis=1)).max()) if train == "both" else None,
        multipliers=lam,
        slopes=slopes[equations.block],
        active=active,
        kinks=np.column_stack([kink[0], active[kink[1]]]),
        slackness=float(share @ (q[active] / lowest - 1.0) / share.sum()) if share.any() else 0.0,
        margin=net.normalized_margin(data, train),
        train=train,
        kink_tol=kink_tol,
        active_tol=active_tol,
    )


def check_relative(name: str, tol: float) -> None:
    """Refuse a tolerance that is no part of the whole."""
    if not is_number(tol) or not 0.0 <= tol < 1.0:  # nan is refused too
        raise ProblemError(f"{name} = {tol!r}: a number in [0, 1) is needed; it is relative.")


def _margins(data: Dataset, slope: float, W: Array, a: Array) -> tuple[Array, Array, Flags]:
    """Margins of all points, the size of what was added up for each, and where no neuron says anything."""
    z = data.X @ W.T
    out = np.where(z > 0, z, slope * z)
    sizes = np.linalg.norm(W, axis=1)
    silent = (a == 0) | (np.abs(data.X) @ np.abs(W).T == 0)
    if slope == 0:
        silent |= z < -_ROUNDING * np.outer(data.norms, sizes)
    return data.y * (out @ a), np.abs(out) @ np.abs(a) + data.norms * float(sizes @ np.abs(a)), silent.all(axis=1)


def _smallest(q: Array, terms: Array, none: Flags) -> float:
    """Return the smallest margin; a sum that cancels is neither positive nor not, whatever its last digits are."""
    i = int(np.argmin(np.where(none, 0.0, q)))
    rounding = _ROUNDING * terms[i]
    if q[i] > rounding and not none[i]:
        return float(q[i])
    if q[i] < -rounding or none[i]:
        raise ProblemError(
            f"the network does not classify point {i} ({int((q <= 0).sum())} of {q.size} in all): a KKT direction "
            "of the margin problem needs q_i > 0 for every i. Train further, or drop those points."
        )
    raise Undecided(f"the margin of point {i} is {q[i]:.1e}, which is rounding: it cannot be told from zero.", q)


def _equations(
    data: Dataset, slope: float, W: Array, a: Array, active: Index, kink_tol: float
) -> tuple[Equations, tuple[Index, Index]]:
    """Blocks of neurons of equal output sign and pattern on the active points."""
    z = W @ data.X[active].T
    kink = np.abs(z) <= kink_tol * np.linalg.norm(W, axis=1)[:, None] * data.norms[active]
    pattern = np.where(kink, 0, np.sign(z)).astype(np.int8)
    keys, block = np.unique(np.column_stack([np.sign(a).astype(np.int8), pattern]), axis=0, return_inverse=True)
    side = keys[:, 1:]
    slopes = np.where(side > 0, 1.0, np.where(side < 0, slope, np.nan if slope < 1.0 else 1.0))
    points = data.signed[active] / data.norms[active, None]
    where = np.nonzero(kink)
    return Equations(points, slopes, slope, W, a, block.ravel()), (where[0], where[1])
