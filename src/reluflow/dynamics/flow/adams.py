r"""The coupled flow: steps of variable length and order in the forces, every neuron on arcs of its own.

All that couples the neurons is the forces :math:`c_i(t) = r\,y_i\,g(q_i(t))`, n functions of time. They are continued
as polynomials through their last values (Adams), every neuron follows its arcs under them through all its events
(`arcs`), the outputs at the end give the forces there, and with those the step is repeated (corrector). So an event
costs one neuron something, and the step nothing: but an event bends the forces. The jump of :math:`(a w)'` at an event
is known, so the bends are taken out of the forces before they are compared with a polynomial, put back as their mean
over the step, and the old values are continued as if the new slopes had always been: steps stay long.

The history belongs to the faces (kinks at the old times), and with it each neuron has the forces at the old times with
its present sides: changed by one row an event, so that no product is needed to make its polynomial.

A loss enters by two functions only: the pull of a sample as a function of the output, and its derivative.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...problem import check_time
from ...problem.types import Array, Flags, Index, Ints, Signs
from .arcs import CANCELLED, FLIP, HARD, NODES, THROUGH, Came, Crowd, Step, new_bench, through
from .dense import Leg, Rows, new_came
from .field import Geometry
from .passes import (
    bend_history,
    estimate,
    follow_log,
    interpolate,
    overdue,
    push_history,
    spread,
    sum_active,
    turn_history,
)
from .state import State, ties

_SHORT = 1e-3  # a step cut to less than this of its length leaves no node of its own
_UNSEEN = -40.0  # log of the size below which the bends of a neuron are not
#: Part of the tolerance that a step may use up: smooth errors add up, those of bends have all signs.
_LOCAL, _BENT = 0.05, 0.5
_SHY = 0.1  # part of the mean bend that counts as error
_GROW = 2.0
_SAME = 0.01  # moments of bends that differ by less, in their effect as part of the tolerance, are the same
#: Neurons x faces x inputs from which their passes are shared among threads.
_THREADS = 2_000_000
_REFERENCE = 100_000  # neurons x faces x inputs from which paths without events go through a product of matrices


def threads() -> int:
    """Return how many threads numba may use: the cores, or what ``NUMBA_NUM_THREADS`` says."""
    import numba

    return int(numba.get_num_threads())


class Source:
    """The loss as the integrator sees it: pulls of the samples as functions of the outputs, and their slopes."""

    def __init__(self, geometry: Geometry) -> None:
        problem = geometry.problem
        self.y, self.loss, self.weight = problem.data.y, problem.loss, problem.weight

    def pulls(self, f: Array) -> Array:
        """``c_i = -r dl(y_i f_i)/df_i``."""
        return np.asarray(self.weight * self.y * self.loss.force(self.y * f))

    def slopes(self, f: Array) -> Array:
        """``dc_i/df_i``."""
        return np.asarray(-self.weight * self.loss.curvature(self.y * f))


class Events(NamedTuple):
    """What happened in a step, in order of time: neuron (of the stepper), face or `arcs.FLIP`, side after it, time."""

    neuron: Ints
    face: Ints
    side: Ints
    clock: Array


@dataclass(frozen=True)
class Trial:
    """A step that was found good enough, not yet taken: it can be looked at anywhere."""

    step: Step
    came: Came
    sides: Signs
    f: Array  # outputs at the end
    bends: tuple[Array, Array] | tuple[()]  # moments of the bends of the pulls


class Adams:
    """The moving neurons of a state, and the last few values of the forces."""

    def __init__(self, geometry: Geometry, state: State, who: Flags, rtol: float) -> None:
        faces, data = geometry.faces, geometry.problem.data
        self.geometry, self.base_state, self.rtol = geometry, state, rtol
        self.source = Source(geometry)
        self.normals = np.ascontiguousarray(faces.normals)
        self.across = np.ascontiguousarray(faces.normals.T)
        self.norms, self.slope = data.norms, geometry.slope
        self.plain = faces.m == data.n and bool((faces.of == np.arange(data.n)).all())
        self.bare = self.slope == 0.0 and bool((faces.orient > 0).all())
        self.squares = self.norms**2
        p, (m, d) = int(who.sum()), self.normals.shape
        unit = np.maximum(state.log_w, state.log_a)[who]
        with np.errstate(under="ignore", over="ignore"):
            W = np.exp(state.log_w[who] - unit)[:, None] * state.U[who]
            b = state.sign[who] * np.exp(state.log_a[who] - unit)
        size = np.sqrt(np.einsum("jd,jd->j", W, W) + b * b)
        tied, excess = ties(geometry, state, who, unit)
        self.rows = Rows(
            np.ascontiguousarray(W / size[:, None]),
            b / size,
            unit + np.log(size),
            np.ascontiguousarray(state.sides[who]),
            excess / size**2,
            state.balanced[who] & (not geometry.frozen),
            tied,
            np.flatnonzero(who),
        )
        self.Z = self.rows.W @ self.across
        self.F = np.zeros((p, NODES + 2, d))
        self.hist, self.lows = np.zeros((NODES + 2, m)), np.zeros((NODES + 2, m))
        self.extra, self.mass = np.zeros((p, d)), np.zeros(p)
        self.ages = np.zeros(1)  # of the nodes; the newest is now
        self.order, self.t, self.last, self.failed = 1, 0.0, 0.0, False
        self._room, self._part = np.empty((p, m)), np.empty(m)
        self._kink, self._C = np.empty((NODES + 1, m)), np.empty((NODES + 1, NODES + 1))
        self._came = [new_came(p, m, d) for _ in range(2)]
        self._late = np.zeros(p, np.int8)
        self._bench = [new_bench(m, d)]
        self.f = self._now()
        self.F[:, 1], self.hist[1], self.lows[1] = self.forces(self.source.pulls(self.f), self.rows.sides)
        self.h = 0.3 * float(np.sqrt(rtol)) / self.pace if self.pace > 0 else np.inf

    @property
    def pace(self) -> float:
        """Largest force on a neuron: how fast it can turn or grow."""
        return float(np.sqrt(np.einsum("jd,jd->j", self.F[:, 1], self.F[:, 1]).max(initial=0.0)))

    @property
    def resting(self) -> bool:
        """Whether nothing pulls."""
        return not self.F[:, 1].any()

    @property
    def live(self) -> Flags:
        """Which samples some neuron feels."""
        faces = self.geometry.faces
        if self.slope > 0.0:
            return np.ones(faces.of.size, dtype=bool)
        up, down = np.asarray((self.rows.sides > 0).any(axis=0)), np.asarray((self.rows.sides <= 0).any(axis=0))
        return np.asarray(np.where(faces.orient > 0, up[faces.of], down[faces.of]))

    def present(self, j: int) -> Array:
        """Force on a neuron now, tangent to the faces that hold it."""
        force, held = np.asarray(self.F[j, 1]), self.rows.sides[j] == 0
        if not held.any():
            return force
        normals = self.normals[held]
        return np.asarray(force - np.linalg.lstsq(normals, normals @ force, rcond=None)[0])

    def state(self) -> State:
        """Return to directions and sizes."""
        return self.rows.state(self.base_state, self.geometry.frozen)

    # -- outputs and forces ---------------------------------------------------------------------------

    def outputs(self, A: Array, W: Array, Z: Array, sides: Signs) -> Array:
        """``f_i`` of neurons with first-layer rows W, ``Z = W . normals``, and output weights A."""
        sum_active(Z, A, sides, self._part)
        total = self.normals @ (A @ W) if self.slope > 0 or not self.plain else 0.0
        if self.plain:
            return np.asarray(self.norms * ((1 - self.slope) * self._part + self.slope * total))
        faces = self.geometry.faces
        up, down = self._part[faces.of], (total - self._part)[faces.of]
        return np.asarray(self.norms * np.where(faces.orient > 0, up + self.slope * down, -(self.slope * up + down)))

    def _now(self) -> Array:
        rows = self.rows
        with np.errstate(over="ignore"):
            return self.outputs(rows.b * np.exp(2 * rows.rho), rows.W, self.Z, rows.sides)

    def faces(self, c: Array) -> tuple[Array, Array, Array]:
        """Pull of each face along its normal on its positive and on its negative side, and the sizes of both.

        Samples that a side does not feel do not enter: beside a lost point all others may pull with e^-100.
        """
        pull = c * self.norms
        if self.plain:
            down = self.slope * pull
            return pull, down, np.abs(np.stack([pull, down]))
        faces, found = self.geometry.faces, []
        for size in (pull, np.abs(pull)):
            for orient in (1, -1):
                part = np.where(faces.orient == orient, size, 0.0)
                found.append(np.bincount(faces.of, weights=part, minlength=faces.m))
        P, M, P1, M1 = found
        sizes = np.stack([P1 + self.slope * M1, self.slope * P1 + M1])
        return np.asarray(P - self.slope * M), np.asarray(self.slope * P - M), sizes

    def forces(self, c: Array, sides: Signs) -> tuple[Array, Array, Array]:
        """Sum the forces on the neurons, held faces counted as negative; also the kinks, and the pulls on that side."""
        up, down, sizes = self.faces(c)
        spread(sides, up, down, sizes, self._room, self.mass)
        F = self._room @ self.normals
        F[np.einsum("jd,jd->j", F, F) <= (CANCELLED * self.mass) ** 2] = 0.0
        return np.asarray(F), np.asarray(up - down), down

    # -- one step -------------------------------------------------------------------------------------

    @property
    def nodes(self) -> int:
        """How many old values there are."""
        return int(self.ages.size)

    def try_step(self, longest: float) -> Trial | None:
        """Look for a step of at most this length; None: it has to be tried again with the shorter ``h``."""
        check_time("following the flow")
        h = self.h = min(self.h, longest)
        K = min(self.order, self.nodes)
        s = -self.ages / h
        crowd = self._crowd()
        interpolate(s, K, self.hist[1:], self._C, self._kink)
        step = self._step(K, 1, h)
        self.extra[:] = 0.0
        self._constant = np.zeros(self.normals.shape[0])
        who = self._movers(K)
        came = self._sweep(step, crowd, self._came[0], self._reference(step, crowd, who), who)
        Z, sides, f = self._end(came)
        c, slopes = self.source.pulls(f), self.source.slopes(f)
        bends = self._bends(came, sides, slopes, h)
        error, smooth = 0.0, c
        if bends is not None:
            mean = 0.5 * (bends[0] - 2 * bends[1] + bends[2])
            smooth = c - (bends[0] - bends[1])
            self.extra[:], kink_mean, self._constant = self.forces(mean, self.rows.sides)
            error = _SHY * h * float(np.sqrt(np.einsum("jd,jd->j", self.extra, self.extra).max(initial=0.0)))
        F, kinks, self.lows[0] = self.forces(smooth, self.rows.sides)
        if not self._good(F, s, K, h, error, self._share(came)):
            return None
        self.F[:, 0], self.hist[0] = F, kinks
        nodes = np.concatenate([[1.0], s[:K]])
        interpolate(nodes, K + 1, self.hist, self._C, self._kink)
        if bends is not None:
            self._kink[0] += kink_mean
        step = self._step(K + 1, 0, h)
        final = self._sweep(step, crowd, self._came[1], Z, who)
        Z, sides, f = self._end(final)
        if overdue(Z, sides, 1e-3 * self.rtol, self._late):
            again = np.flatnonzero(self._late)
            through(step, crowd, final, self._bench[0], Z, again, 2)
            Z, sides, f = self._end(final)
        agreed = self._agree(came, final, bends, sides, f, h)
        if agreed is None:
            self.h, self.failed = 0.5 * h, True
            return None
        return Trial(step, final, sides, f, agreed)

    def _crowd(self) -> Crowd:
        return self.rows.crowd(self.F, self.extra, self.Z, self.mass)

    def _step(self, terms: int, first: int, h: float, upto: float = 1.0, watch: bool = True) -> Step:
        tiny = max(1e-15, 1e-4 * self.rtol)
        watch = watch and self.slope < 1.0
        return Step(
            self.normals, self._kink, self._C, terms, first, h, upto, tiny, self.geometry.frozen, watch, self.bare
        )

    def _movers(self, K: int) -> Index:
        return np.flatnonzero(self.F[:, 1 : K + 1].any(axis=(1, 2)))

    def _sweep(self, step: Step, crowd: Crowd, came: Came, Z1: Array | None, who: Index) -> Came:
        if who.size < self.rows.b.size:
            came.W[:], came.b[:] = self.rows.W, self.rows.b
            came.grow[:], came.status[:], came.n[:], came.end[:] = 0.0, THROUGH, 0, step.upto
            came.moments[:] = 0.0
        ends, mode = (self.Z, 0) if Z1 is None else (Z1, 1)
        if who.size * self.normals.size < _THREADS or threads() == 1:
            through(step, crowd, came, self._bench[0], ends, who, mode)
            return came
        while len(self._bench) < threads():
            self._bench.append(new_bench(*self.normals.shape))
        parts = zip(np.array_split(who, threads()), self._bench, strict=True)
        with ThreadPoolExecutor(threads()) as pool:
            list(pool.map(lambda part: through(step, crowd, came, part[1], ends, part[0], mode), parts))
        return came

    def _reference(self, step: Step, crowd: Crowd, who: Index) -> Array | None:
        """Where neurons would be without events; None for few, whose own pass does it."""
        if self.rows.W.size * self.normals.shape[0] < _REFERENCE:
            return None
        came = self._sweep(step._replace(watch=False), crowd, self._came[1], self.Z, who)
        return np.asarray((came.W * np.exp(came.grow)[:, None]) @ self.across)

    def _end(self, came: Came) -> tuple[Array, Signs, Array]:
        """``W . normals``, sides and outputs at the end of a sweep."""
        Z, sides = came.W @ self.across, self.rows.sides.copy()
        follow_log(sides, came.face, came.side, came.n)
        with np.errstate(over="ignore"):
            A = came.b * np.exp(2 * (self.rows.rho + came.grow))
        return Z, sides, self.outputs(A, came.W, Z, sides)

    def _bends(self, came: Came, sides: Signs, slopes: Array, h: float) -> list[Array] | None:
        """Moments of the bends of the pulls in a step: ``c'`` jumps by d_e at sigma_e, and K_l = sum d_e sigma_e^l."""
        moments = self._moments(came)
        if moments is None or self._felt(moments, slopes, h) < 1e-3 * self.rtol:
            return None
        return self._spread_bends(moments, sides, slopes)

    def _moments(self, came: Came) -> tuple[Index, Array] | None:
        E = np.flatnonzero((came.n > 0) & (self.rows.rho + came.grow > _UNSEEN))
        if E.size == 0 or (self.geometry.frozen and E.size == 0):
            return None
        return E, came.moments[E] * np.exp(2 * (self.rows.rho + came.grow)[E])[:, None, None]

    def _felt(self, moments: tuple[Index, Array], slopes: Array, h: float) -> float:
        """Bound of what the bends do to a neuron in the step."""
        M = moments[1]
        mean = 0.5 * (M[:, 0] - 2 * M[:, 1] + M[:, 2])
        return h * float(np.sqrt(np.einsum("jd,jd->j", mean, mean)).sum() * (np.abs(slopes) @ self.squares))

    def _spread_bends(self, moments: tuple[Index, Array], sides: Signs, slopes: Array) -> list[Array]:
        E, M = moments
        one, S = np.ones(E.size), np.ascontiguousarray(sides[E])
        rows = np.ascontiguousarray(M.transpose(1, 0, 2))
        Z = rows.reshape(-1, rows.shape[2]) @ self.across
        Z = Z.reshape(3, E.size, -1)
        return [slopes * self.outputs(one, rows[k], Z[k], S) for k in range(3)]

    @staticmethod
    def _share(came: Came) -> float:
        return min(_BENT, _LOCAL * float(np.sqrt(1.0 + came.n.sum())))

    def _good(self, F: Array, s: Array, K: int, h: float, error: float, part: float) -> bool:
        """Whether the error is within the tolerance; choose order and length of what comes next."""
        weight = np.abs(self.rows.b) if self.geometry.frozen else np.ones(self.rows.b.size)
        found = {}
        for k in (K - 1, K, K + 1):
            if 1 <= k <= min(NODES - 1, self.nodes):
                found[k] = estimate(F, self.F, weight, s, k, h) / (part * self.rtol) + error / self.rtol
        if not np.isfinite(found[K]):
            found = {K: 1e10}
        longest = {
            k: 0.9 * (0.5 / max(e, 1e-10)) ** (1.0 / (k + 1)) * (1.0 if k == K else 0.95)
            for k, e in found.items()
            if not (self.failed and k > K)
        }
        best = max(longest, key=longest.__getitem__)
        if found[K] > 1.0:
            self.h *= min(max(longest[best], 0.1), 0.7)
            self.order, self.failed = min(best, K), True
            return False
        self._next = (best, 1.0 if 0.95 < longest[best] < 1.05 else min(max(longest[best], 0.3), _GROW))
        return True

    def _agree(
        self, guess: Came, came: Came, bends: list[Array] | None, sides: Signs, f: Array, h: float
    ) -> tuple[Array, Array] | tuple[()] | None:
        """Whether predictor and corrector met the same events; the first two moments of the bends, or None."""
        moments = self._moments(came)
        if moments is None and bends is None:
            return ()
        slopes = self.source.slopes(f)
        if (
            moments is not None
            and bends is not None
            and self._felt(self._change(guess, moments), slopes, h) < _SAME * self.rtol
        ):
            return bends[0], bends[1]
        now = [np.zeros_like(f)] * 3 if moments is None else self._spread_bends(moments, sides, slopes)
        mean = 0.5 * (now[0] - 2 * now[1] + now[2])
        gap = mean if bends is None else mean - 0.5 * (bends[0] - 2 * bends[1] + bends[2])
        miss = h * float(np.abs(gap) @ self.norms)
        if miss > self.rtol:
            F = self.forces(gap, self.rows.sides)[0]
            miss = h * float(np.sqrt(np.einsum("jd,jd->j", F, F).max(initial=0.0)))
        return None if miss > self.rtol else (now[0], now[1])

    def _change(self, guess: Came, moments: tuple[Index, Array]) -> tuple[Index, Array]:
        """Difference of the moments to those of the predictor."""
        before, (E, M) = self._moments(guess), moments
        rows = np.zeros((self.rows.b.size, *M.shape[1:]))
        rows[E] = M
        if before is not None:
            rows[before[0]] -= before[1]
        return E, rows

    # -- taking it ------------------------------------------------------------------------------------

    def look(self, trial: Trial, part: float) -> Trial:
        """Return the same step up to a part of it."""
        came = new_came(self.rows.b.size, *self.normals.shape)
        who = self._movers(trial.step.terms - 1)
        step = trial.step._replace(upto=part)
        self._sweep(step, self._crowd(), came, None, who)
        _, sides, f = self._end(came)
        return Trial(step, came, sides, f, self._partial_bends(came, sides, f))

    def _partial_bends(self, came: Came, sides: Signs, f: Array) -> tuple[Array, Array] | tuple[()]:
        moments = self._moments(came)
        if moments is None:
            return ()
        now = self._spread_bends(moments, sides, self.source.slopes(f))
        return now[0], now[1]

    def events(self, trial: Trial) -> Events:
        """List what happens in a step."""
        came = trial.came
        n = came.n - ((came.status == HARD) & (came.n > 0) & (came.face[np.arange(came.n.size), came.n - 1] == FLIP))
        rows = np.repeat(np.arange(n.size), n)
        place = np.arange(rows.size) - np.repeat(np.cumsum(n) - n, n)
        when = came.when[rows, place]
        order = np.argsort(when, kind="stable")
        rows, place = rows[order], place[order]
        return Events(rows, came.face[rows, place], came.side[rows, place].astype(np.int64), when[order] * trial.step.h)

    def leg(self, trial: Trial) -> Leg:
        """Return what is needed to look at a trial again."""
        terms = trial.step.terms
        low = np.zeros((terms, 0))
        if not self.bare:
            low = self._C[:terms, :terms] @ self.lows[:terms]
            low[0] += self._constant
        kink = self._kink[:terms].copy()
        return Leg(self.base_state, self.rows, self.mass.copy(), kink, low, trial.step, -np.inf, self.t, 0.0)

    def take(self, trial: Trial) -> None:
        """Go to the end of a trial."""
        step, came = trial.step, trial.came
        h, n = step.h, min(self.nodes, NODES)
        self.last = step.upto * h
        s = -self.ages / h
        sides = self.rows.sides.copy()
        turn_history(sides, self.F, n, self.hist, self.normals, came.face, came.side, came.n, self.bare)
        if trial.bends and h * float(np.abs(trial.bends[0]) @ self.norms) > 1e-3 * self.rtol:
            FA, ka, ca = self.forces(trial.bends[0], sides)
            FB, kb, cb = self.forces(trial.bends[1], sides)
            bend_history(self.F, s, n, FA, FB)
            self.hist[1 : n + 1] += s[:n, None] * ka - kb
            self.lows[1 : n + 1] += s[:n, None] * ca - cb
        self.t += self.last
        self.rows = self.rows.moved(came, sides)
        self.Z = self.rows.W @ self.across
        self.f = self._now()
        F, kinks, low = self.forces(self.source.pulls(self.f), sides)
        if step.upto > _SHORT:
            push_history(self.F, n, F)
            self.hist[2 : n + 2], self.lows[2 : n + 2] = self.hist[1 : n + 1].copy(), self.lows[1 : n + 1].copy()
            self.ages = np.concatenate([[0.0], self.ages[: NODES - 1] + self.last])
        else:  # too near to the newest: it takes its place
            self.F[:, 1] = F
            self.ages = np.concatenate([[0.0], self.ages[1:] + self.last])
        self.hist[1], self.lows[1] = kinks, low
        if step.upto == 1.0:
            self.failed = False
            self.order, factor = self._next
            self.h *= factor

    def settle(self, j: int, sides: Signs, w: Array, b: float) -> None:
        """Give a neuron new sides, and the forces of the past with them."""
        rows = self.rows._replace(W=self.rows.W.copy(), b=self.rows.b.copy(), sides=self.rows.sides.copy())
        rows.W[j], rows.b[j], rows.sides[j] = w, b, sides
        self.rows = rows
        self.Z[j] = w @ self.across
        n = self.nodes
        self.F[j, 1 : n + 1] = (self.lows[1 : n + 1] + np.where(sides > 0, self.hist[1 : n + 1], 0.0)) @ self.normals
