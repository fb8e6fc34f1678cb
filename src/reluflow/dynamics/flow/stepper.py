r"""One step of all neurons together, in compiled pieces; `adams` says what the method is, `arcs` has the neurons.

A step is a few sweeps of the neurons through it (predictor, corrector), and what is to be done between them: judge the
error, compare the events, take the step, begin the next. `perform` does both for many steps in a row, written on a
`Tape`; or it goes from sweep to sweep, which are then made outside, neurons shared among threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...problem.types import Ints, Signs
from ..compiled import kept, stamp_of
from ..early.state import Floats, add, dot, put
from .arcs import CANCELLED, NODES, THROUGH, Bench, Came, Step, sweep
from .desk import Desk, Fixed, Tape
from .passes import (
    combine,
    estimate,
    follow_log,
    handing,
    inner,
    interpolate,
    overdue,
    product,
    product_across,
    product_back,
    spread,
    sum_active,
    turn_history,
)
from .pulls import fall, log_loss, pull

_SHORT = 1e-3  # a step cut to less than this of its length leaves no node of its own
_UNSEEN = -40.0  # log of the size below which the bends of a neuron are not
#: Part of the tolerance that a step may use up: smooth errors add up, those of bends have all signs.
_LOCAL, _BENT = 0.02, 0.2
_SHY = 1.0  # part of the mean bend that counts as error: within the step it is where it does not belong
_GROW = 2.0
_CLOSE = 0.5  # a share of the error from which on bends are what makes a step too long: it ends soon after they begin
_HALVINGS = 30
#: After bends of this share of the error the past is continued right to first order only: few nodes of it are used.
_BENDS, _ANEW = 0.1, 3
_QUIET = 5  # steps without bends from which on both are done: where one event follows another steps are short anyway
_SAME = 0.01  # moments of bends that differ by less, in their effect as part of the tolerance, are the same
_MISSED = 0.1  # part of the tolerance by which events that the predictor did not foresee may change the forces
_FAINT = 1e-3  # bends whose effect is below this part of the tolerance are left out
_REFERENCE = 100_000  # neurons x faces x inputs from which paths without events go through a product of matrices
_ROUGH = 1e-6  # a sum of bends below this part of their sizes is rounding, in single precision
_SHORTEST = 1e-14  # a step of this part of the age of the phase moves nothing

#: What comes next: a sweep; or what ended the steps: as many steps as were wanted, the end of time, a trial that is
#: to be looked at (a goal or something to decide within it), nothing that moves, steps too short to be felt, numbers
#: beyond doubles.
SWEEP, MANY, ENDED, TRIAL, RESTS, FAILED, BEYOND = range(7)

#: Stages of a step, most with a sweep: paths without events, predictor, corrector, neurons that go again, a part of it.
BEGIN, REFERENCE, PREDICTOR, CORRECTOR, AGAIN, CUT, PART = range(7)

#: What `perform` is asked for.
ADVANCE, PROCEED, START, LOOK, TAKE, SHARE = range(6)

# -- outputs and forces ---------------------------------------------------------------------------------------


@inner
def _outputs(
    fixed: Fixed,
    part: Floats,
    scratch: Floats,
    A: Floats,
    W: Floats,
    Z: Floats,
    sides: Signs,
    own: Floats,
    out: Floats,
) -> None:
    """``f_i`` of rows W with output weights A; ``own`` is added to what the positive sides of the faces give."""
    sum_active(Z, A, sides, part)
    m, d = fixed.normals.shape
    for k in range(own.size):
        part[k] += own[k]
    if fixed.plain and fixed.slope == 0.0:
        for k in range(m):
            out[k] = fixed.norms[k] * part[k]
        return
    sums, total = scratch[:d], scratch[d:]
    for i in range(d):
        sums[i] = 0.0
    for j in range(A.size):
        add(A[j], W[j], sums)
    for k in range(m):
        total[k] = dot(fixed.normals[k], sums)
    for i in range(out.size):
        k = fixed.of[i]
        up, down = part[k], total[k] - part[k]
        v = up + fixed.slope * down if fixed.orient[i] > 0 else -(fixed.slope * up + down)
        out[i] = fixed.norms[i] * v


@inner
def _faces(fixed: Fixed, c: Floats, face: Floats) -> None:
    """Pull of each face along its normal on its positive and on its negative side, and the sizes of both.

    Samples that a side does not feel do not enter: beside a lost point all others may pull with e^-100.
    """
    for r in range(4):
        for k in range(face.shape[1]):
            face[r, k] = 0.0
    for i in range(c.size):
        k, v = fixed.of[i], c[i] * fixed.norms[i]
        if fixed.orient[i] > 0:
            up, down = v, fixed.slope * v
        else:
            up, down = -fixed.slope * v, -v
        face[0, k] += up
        face[1, k] += down
        face[2, k] += abs(up)
        face[3, k] += abs(down)


@inner
def _forces(
    fixed: Fixed, desk: Desk, c: Floats, sides: Signs, F: Floats, kinks: Floats, low: Floats, mass: Floats, rough: bool
) -> None:
    """Sum the forces on the neurons, held faces counted as negative; also the kinks, and the pulls on that side.

    ``rough``: to some digits only, where there are many. Bends are no larger than the tolerance of a step.
    """
    face, cancelled = desk.face, CANCELLED
    _faces(fixed, c, face)
    spread(sides, face[0], face[1], face[2], face[3], desk.room, mass)
    if rough and desk.wide.size > 0:
        product_back(desk.room, fixed.rounded, desk.wide, desk.rows, F)
        cancelled = _ROUGH
    else:
        product(desk.room, fixed.normals, F)
    for j in range(F.shape[0]):
        if dot(F[j], F[j]) <= (cancelled * mass[j]) ** 2:
            for i in range(F.shape[1]):
                F[j, i] = 0.0
    for k in range(kinks.size):
        kinks[k] = face[0, k] - face[1, k]
        low[k] = face[1, k]


@inner
def _pulls(fixed: Fixed, f: Floats, c: Floats) -> None:
    """``c_i = -r dl(y_i f_i)/df_i``."""
    for i in range(f.size):
        c[i] = fixed.weight * fixed.y[i] * pull(fixed.loss, fixed.y[i] * f[i])


@inner
def _start(fixed: Fixed, desk: Desk) -> None:
    """Find outputs and forces at the start of a phase."""
    product(desk.W, fixed.across, desk.Z)
    for j in range(desk.b.size):
        desk.ones[j] = desk.b[j] * math.exp(2 * desk.rho[j])
    _outputs(fixed, desk.part, desk.scratch, desk.ones, desk.W, desk.Z, desk.sides, desk.none, desk.f)
    _pulls(fixed, desk.f, desk.c)
    _renew(fixed, desk)
    desk.now.nodes, desk.now.order = 1, 1
    pace = desk.now.pace
    desk.now.h = 0.3 * math.sqrt(fixed.rtol) / pace if pace > 0.0 else math.inf


@inner
def _renew(fixed: Fixed, desk: Desk) -> None:
    """Find the forces of the pulls in ``desk.c`` at the newest node, and how fast a neuron can turn or grow."""
    _forces(fixed, desk, desk.c, desk.sides, desk.FA, desk.hist[1], desk.lows[1], desk.mass, False)
    fastest = 0.0
    for j in range(desk.b.size):
        for i in range(desk.W.shape[1]):
            desk.F[j, 1, i] = desk.FA[j, i]
        square = dot(desk.FA[j], desk.FA[j])
        if not square <= fastest:  # what is not a number is seen
            fastest = square
    desk.now.pace = math.sqrt(fastest)


@inner
def _look(fixed: Fixed, desk: Desk) -> None:
    """Find the outputs of rows ``came.W`` with output weights ``ones`` on the sides ``turned``, and the forces: FA."""
    W = desk.came.W
    product(W, fixed.across, desk.ends)
    _outputs(fixed, desk.part, desk.scratch, desk.ones, W, desk.ends, desk.turned, desk.none, desk.f_end)
    _pulls(fixed, desk.f_end, desk.c)
    _forces(fixed, desk, desk.c, desk.turned, desk.FA, desk.kinks[0], desk.kinks[1], desk.spare, False)


# -- the pieces of a step -------------------------------------------------------------------------------------


@handing
def _step(fixed: Fixed, desk: Desk, terms: int, first: int, upto: float, watch: bool, tiny: float) -> Step:
    watch = watch and fixed.slope < 1.0
    return Step(
        fixed.normals,
        desk.kink,
        desk.C,
        terms,
        first,
        desk.now.h,
        upto,
        max(1e-15, tiny * fixed.rtol),
        fixed.frozen,
        watch,
        fixed.bare,
    )


@inner
def _begin(desk: Desk, longest: float) -> None:
    """Begin a step of at most this length: polynomials through the old forces, and the neurons that move."""
    now = desk.now
    now.h = min(now.h, longest)
    now.K = K = min(now.order, now.nodes)
    for q in range(now.nodes):
        desk.s[q] = -desk.ages[q] / now.h
    interpolate(desk.s, K, desk.hist[1:], desk.C, desk.kink, desk.column)
    _still(desk.extra)
    for k in range(desk.constant.size):
        desk.constant[k] = 0.0
    n = 0
    for j in range(desk.b.size):
        moves = False
        for q in range(1, K + 1):
            for i in range(desk.W.shape[1]):
                moves = moves or desk.F[j, q, i] != 0.0
        if moves:
            desk.who[n] = j
            n += 1
        else:
            _rest(desk, desk.guess, j)
            _rest(desk, desk.came, j)
    now.movers = n


@inner
def _still(rows: Floats) -> None:
    for j in range(rows.shape[0]):
        for i in range(rows.shape[1]):
            rows[j, i] = 0.0


@inner
def _less(x: Floats, y: Floats) -> None:
    """``y = x - y``."""
    for j in range(x.shape[0]):
        for i in range(x.shape[1]):
            y[j, i] = x[j, i] - y[j, i]


@inner
def _rest(desk: Desk, came: Came, j: int) -> None:
    """Leave a neuron where it is."""
    for i in range(desk.W.shape[1]):
        came.W[j, i] = desk.W[j, i]
        for q in range(3):
            came.moments[j, q, i] = 0.0
    came.b[j], came.grow[j], came.status[j], came.n[j], came.end[j] = desk.b[j], 0.0, THROUGH, 0, 1.0


@inner
def _end(fixed: Fixed, desk: Desk, came: Came, known: bool) -> None:
    """``W . normals``, if not known, sides and outputs at the end of a sweep."""
    if not known:
        product(came.W, fixed.across, desk.ends)
    for j in range(desk.b.size):
        for k in range(desk.sides.shape[1]):
            desk.turned[j, k] = desk.sides[j, k]
        desk.ones[j] = came.b[j] * math.exp(2 * (desk.rho[j] + came.grow[j]))
    follow_log(desk.turned, came.face, came.side, came.n)
    _outputs(fixed, desk.part, desk.scratch, desk.ones, came.W, desk.ends, desk.turned, desk.none, desk.f_end)


@inner
def _moments(desk: Desk, came: Came, own: Floats, moments: Floats) -> int:
    """Moments of the bends, at their real scale, by neuron and by face; how many neurons bend."""
    _still(own)
    bent = 0
    for j in range(desk.b.size):
        seen = came.n[j] > 0 and desk.rho[j] + came.grow[j] > _UNSEEN
        size = math.exp(2 * (desk.rho[j] + came.grow[j])) if seen else 0.0
        bent += 1 if seen else 0
        for q in range(3):
            for i in range(desk.W.shape[1]):
                moments[q, j, i] = size * came.moments[j, q, i] if seen else 0.0
        if seen:
            for e in range(came.n[j]):
                k = came.face[j, e]
                if k >= 0:
                    for q in range(3):
                        own[q, k] += size * came.own[j, e, q]
    return bent


@inner
def _mean(x0: float, x1: float, x2: float) -> float:
    """Mean over the step of what bends of these moments do."""
    return 0.5 * (x0 - 2 * x1 + x2)


@inner
def _felt(fixed: Fixed, h: float, own: Floats, moments: Floats, f: Floats) -> float:
    """Bound of what bends do to a neuron in the step."""
    total, steep = 0.0, 0.0
    for j in range(moments.shape[1]):
        square = 0.0
        for i in range(moments.shape[2]):
            square += _mean(moments[0, j, i], moments[1, j, i], moments[2, j, i]) ** 2
        total += math.sqrt(square)
    bound = 0.0
    for i in range(f.size):
        k = fixed.of[i]
        slope = fixed.weight * fall(fixed.loss, fixed.y[i] * f[i]) * fixed.norms[i] ** 2
        steep += slope
        bound += slope * abs(_mean(own[0, k], own[1, k], own[2, k]))
    return h * (total * steep + bound)


@inner
def _spread_bends(fixed: Fixed, desk: Desk, came: Came, own: Floats, moments: Floats) -> None:
    """Moments of the bends of the pulls: ``c'`` jumps by d_e at sigma_e, and K_l = sum d_e sigma_e^l."""
    r = 0  # neurons that met something, packed
    for j in range(desk.b.size):
        desk.ones[j] = 1.0
        if came.n[j] > 0:
            desk.again[r] = j
            for k in range(desk.sides.shape[1]):
                desk.packed[r, k] = desk.turned[j, k]
            r += 1
    rows = desk.FA[:r]
    for q in range(3):
        for i in range(r):
            put(1.0, moments[q, desk.again[i]], rows[i])
        if desk.wide.size > 0:
            product_across(rows, fixed.rounded, desk.rows[:r], desk.wide[:r], desk.room[:r])
        else:
            product(rows, fixed.across, desk.room[:r])
        _outputs(
            fixed, desk.part, desk.scratch, desk.ones[:r], rows, desk.room[:r], desk.packed[:r], own[q], desk.bends[q]
        )
        for i in range(desk.f.size):
            desk.bends[q, i] *= -fixed.weight * fall(fixed.loss, fixed.y[i] * desk.f_end[i])


@inner
def _met(came: Came, j: int, kinks: Floats) -> float:
    """How much the kinks bend that a neuron meets: it feels them from then on only, not from the start of the step."""
    total = 0.0
    for e in range(came.n[j]):
        if came.face[j, e] >= 0:
            total += abs(kinks[came.face[j, e]])
    return total


@inner
def _all_calm(desk: Desk) -> bool:
    """Whether all neurons are where they came to without looking for events."""
    restless = 0
    for i in range(desk.now.movers):
        restless += 1 if desk.guess.bend[desk.who[i]] < 0.0 else 0
    return restless == 0


@inner
def _judge(fixed: Fixed, desk: Desk) -> bool:
    """Look at the end of the predictor: is the error within the tolerance? If so prepare the corrector."""
    now, h, K = desk.now, desk.now.h, desk.now.K
    _end(fixed, desk, desk.guess, now.seen != 0 and _all_calm(desk))
    _pulls(fixed, desk.f_end, desk.c)
    now.bent = _moments(desk, desk.guess, desk.before, desk.moments[0])
    if now.bent > 0 and _felt(fixed, h, desk.before, desk.moments[0], desk.f_end) < _FAINT * fixed.rtol:
        now.bent = 0
    error = 0.0
    if now.bent > 0:
        _spread_bends(fixed, desk, desk.guess, desk.before, desk.moments[0])
        for i in range(desk.c.size):
            desk.mean[i] = _mean(desk.bends[0, i], desk.bends[1, i], desk.bends[2, i])
            desk.c[i] -= desk.bends[0, i] - desk.bends[1, i]
        _forces(fixed, desk, desk.mean, desk.sides, desk.extra, desk.kinks[0], desk.constant, desk.spare, True)
        for j in range(desk.b.size):
            error = max(error, math.sqrt(dot(desk.extra[j], desk.extra[j])) + _met(desk.guess, j, desk.kinks[0]))
        error *= _SHY * h
    _forces(fixed, desk, desk.c, desk.sides, desk.FB, desk.hist[0], desk.lows[0], desk.mass, False)
    if not _good(fixed, desk, error):
        return False
    for j in range(desk.b.size):
        for i in range(desk.W.shape[1]):
            desk.F[j, 0, i] = desk.FB[j, i]
    for q in range(K, 0, -1):
        desk.nodes[q] = desk.s[q - 1]
    desk.nodes[0] = 1.0
    interpolate(desk.nodes, K + 1, desk.hist, desk.C, desk.kink, desk.column)
    if now.bent > 0:
        for k in range(desk.constant.size):
            desk.kink[0, k] += desk.kinks[0, k]
    now.terms, now.upto = K + 1, 1.0
    return True


@handing
def _plan(fixed: Fixed, desk: Desk) -> tuple[Step, Came, Ints, int]:
    """Return what `arcs.sweep` wants to know for the sweep of this stage."""
    stage = desk.now.stage
    who, came, mode = desk.who[: desk.now.movers], desk.came, 1
    if stage <= PREDICTOR:
        step = _step(fixed, desk, desk.now.K, 1, 1.0, stage == PREDICTOR, 1e-3)
    else:
        step = _step(fixed, desk, desk.now.terms, 0, desk.now.upto, True, 1e-4)
    if stage == AGAIN:
        who, mode = desk.again[: desk.now.again], 2
    elif stage == PART:
        mode = 0
    elif stage <= PREDICTOR:
        came, mode = desk.guess, 0 if desk.now.seen == 0 else (1 if stage == REFERENCE else 3)
    return step, came, who, mode


@inner
def _sweep(fixed: Fixed, desk: Desk, bench: Bench, part: int, parts: int) -> None:
    """Make the sweep of this stage, for one part of the neurons."""
    step, came, who, mode = _plan(fixed, desk)
    sweep(step, desk, came, bench, desk.ends, who[part * who.size // parts : (part + 1) * who.size // parts], mode)


@inner
def _clear(desk: Desk, bent: float) -> float:
    """Part of the step after which the bends of the predictor are half of what they may be: shortly after an event.

    Each neuron bends the forces from its first event on, as the square of what is left of the step.
    """
    came, total = desk.guess, 0.0
    for j in range(desk.b.size):
        left = 1.0 - came.when[j, 0] if came.n[j] > 0 else 0.0
        desk.spare[j] = math.sqrt(dot(desk.moments[0, 0, j], desk.moments[0, 0, j]))
        total += desk.spare[j] * left * left
    lo, hi = 0.0, 1.0
    for _ in range(_HALVINGS):
        part, now = 0.5 * (lo + hi), 0.0
        for j in range(desk.b.size):
            left = max(part - came.when[j, 0], 0.0) if came.n[j] > 0 else 0.0
            now += desk.spare[j] * left * left
        if now * bent > 0.5 * total:
            hi = part
        else:
            lo = part
    return hi


@inner
def _good(fixed: Fixed, desk: Desk, error: float) -> bool:
    """Whether the error is within the tolerance; choose order and length of what comes next."""
    now, K, d = desk.now, desk.now.K, desk.W.shape[1]
    bent = error / fixed.rtol
    events = 0
    for j in range(desk.b.size):
        events += desk.guess.n[j]
        desk.ones[j] = abs(desk.b[j]) if fixed.frozen else 1.0
    share = min(_BENT, _LOCAL * math.sqrt(1.0 + events))
    best, longest, smooth, here = K, 0.0, 0.0, 0.0
    for k in (K, K - 1, K + 1):
        if k < 1 or k > min(NODES - 1, now.nodes) or (now.failed != 0 and k > K):
            continue
        e = estimate(desk.FB, desk.F, desk.ones, desk.s, k, now.h, desk.nodal, desk.column, desk.scratch[:d])
        e /= share * fixed.rtol
        if k == K:
            here = e + bent if math.isfinite(e + bent) else 1e10
            e = here - bent
        if not math.isfinite(e):
            continue
        bias = 0.9 if k == K else 0.95 * 0.9
        factor = bias * (0.5 / max(e + bent, 1e-10)) ** (1.0 / (k + 1))
        smooth = max(smooth, bias * (0.5 / max(e, 1e-10)) ** (1.0 / (k + 1)))
        if factor > longest:
            best, longest = k, factor
    if here > 1.0:
        alone = bent > _CLOSE and now.quiet >= _QUIET
        now.h *= max(min(smooth, _clear(desk, bent)), 0.1) if alone else min(max(longest, 0.1), 0.7)
        now.order, now.failed = min(best, K), 1
        return False
    if bent > _BENDS and now.quiet >= _QUIET:
        best = min(best, _ANEW)
    now.next, now.factor = best, 1.0 if 0.95 < longest < 1.05 else min(max(longest, 0.3), _GROW)
    return True


@inner
def _agree(fixed: Fixed, desk: Desk) -> bool:
    """Whether predictor and corrector met the same events; the bends are then those of the corrector."""
    now, h = desk.now, desk.now.h
    bent = _moments(desk, desk.came, desk.own, desk.moments[1])
    if bent == 0 and now.bent == 0:
        return True
    if bent > 0 and now.bent > 0:
        _less(desk.own, desk.before)
        for q in range(3):
            _less(desk.moments[1, q], desk.moments[0, q])
        if _felt(fixed, h, desk.before, desk.moments[0], desk.f_end) < _SAME * fixed.rtol:
            return True
    _spread_bends(fixed, desk, desk.came, desk.own, desk.moments[1])
    miss = 0.0
    for i in range(desk.c.size):
        gap = _mean(desk.bends[0, i], desk.bends[1, i], desk.bends[2, i]) - (desk.mean[i] if now.bent > 0 else 0.0)
        desk.c[i] = gap
        miss += h * abs(gap) * fixed.norms[i]
    now.bent = 1
    if miss > _MISSED * fixed.rtol:
        _forces(fixed, desk, desk.c, desk.sides, desk.FA, desk.kinks[0], desk.kinks[1], desk.spare, True)
        miss = 0.0
        for j in range(desk.b.size):
            miss = max(miss, h * math.sqrt(dot(desk.FA[j], desk.FA[j])))
    return miss <= _MISSED * fixed.rtol


@inner
def _overdue(fixed: Fixed, desk: Desk) -> bool:
    """Look at the end of the corrector: is a neuron on the wrong side of a face? It has to go again."""
    _end(fixed, desk, desk.came, False)
    desk.now.again = 0
    if overdue(desk.ends, desk.turned, 1e-3 * fixed.rtol, desk.late) == 0:
        return False
    for j in range(desk.b.size):
        if desk.late[j] != 0:
            desk.again[desk.now.again] = j
            desk.now.again += 1
    return True


@inner
def _look_part(fixed: Fixed, desk: Desk) -> None:
    """Look at the end of a part of the step."""
    _end(fixed, desk, desk.came, False)
    desk.now.bent = _moments(desk, desk.came, desk.own, desk.moments[1])
    if desk.now.bent > 0:
        _spread_bends(fixed, desk, desk.came, desk.own, desk.moments[1])


# -- taking it ------------------------------------------------------------------------------------------------


@inner
def _bend(fixed: Fixed, desk: Desk, n: int) -> None:
    """Continue the past as if the slopes after the bends had always been."""
    strong = 0.0
    for i in range(desk.c.size):
        strong += abs(desk.bends[0, i]) * fixed.norms[i]
    if desk.now.h * strong <= _FAINT * fixed.rtol:
        return
    kinks = desk.kinks
    _forces(fixed, desk, desk.bends[0], desk.sides, desk.FA, kinks[0], kinks[1], desk.spare, True)
    _forces(fixed, desk, desk.bends[1], desk.sides, desk.FB, kinks[2], kinks[3], desk.spare, True)
    for q in range(n):
        s = desk.s[q]
        for j in range(desk.b.size):
            for i in range(desk.W.shape[1]):
                desk.F[j, q + 1, i] += s * desk.FA[j, i] - desk.FB[j, i]
        for k in range(desk.hist.shape[1]):
            desk.hist[q + 1, k] += s * kinks[0, k] - kinks[2, k]
            desk.lows[q + 1, k] += s * kinks[1, k] - kinks[3, k]


@inner
def _push(desk: Desk, n: int) -> None:
    """Make room for a new node in front of the n newest."""
    for q in range(n, 0, -1):
        for k in range(desk.hist.shape[1]):
            desk.hist[q + 1, k], desk.lows[q + 1, k] = desk.hist[q, k], desk.lows[q, k]
    for j in range(desk.b.size):
        for q in range(n, 0, -1):
            for i in range(desk.W.shape[1]):
                desk.F[j, q + 1, i] = desk.F[j, q, i]
    for q in range(n, 0, -1):
        desk.ages[q] = desk.ages[q - 1]
    desk.now.nodes = min(n + 1, NODES)


@inner
def _take(fixed: Fixed, desk: Desk) -> None:
    """Go to the end of the trial."""
    now, came = desk.now, desk.came
    n = min(now.nodes, NODES)
    now.last = now.upto * now.h
    turn_history(desk.sides, desk.F, n, desk.hist, fixed.normals, came.face, came.side, came.n, fixed.bare)
    if now.bent > 0:
        _bend(fixed, desk, n)
    now.t += now.last
    now.quiet = 0 if now.bent > 0 else now.quiet + 1
    for j in range(desk.b.size):
        if desk.excess[j] != 0.0:
            desk.excess[j] *= math.exp(min(-2 * came.grow[j], 700.0))
        desk.b[j] = came.b[j]
        desk.rho[j] += came.grow[j]
        for i in range(desk.W.shape[1]):
            desk.W[j, i] = came.W[j, i]
        for k in range(desk.Z.shape[1]):
            desk.Z[j, k] = desk.ends[j, k]
    for i in range(desk.f.size):
        desk.f[i] = desk.f_end[i]
    if now.upto > _SHORT:  # else too near to the newest: it takes its place
        _push(desk, n)
    for q in range(1, now.nodes):
        desk.ages[q] += now.last
    _pulls(fixed, desk.f, desk.c)
    _renew(fixed, desk)
    if now.upto == 1.0:
        now.failed, now.order = 0, now.next
        now.h *= now.factor


# -- many steps -----------------------------------------------------------------------------------------------


@inner
def _note_start(desk: Desk, tape: Tape, i: int) -> None:
    for j in range(desk.b.size):
        tape.b[i, j], tape.rho[i, j], tape.excess[i, j] = desk.b[j], desk.rho[j], desk.excess[j]
        for k in range(desk.W.shape[1]):
            tape.W[i, j, k] = desk.W[j, k]
        for k in range(desk.sides.shape[1]):
            tape.sides[i, j, k] = desk.sides[j, k]


@inner
def _note_step(desk: Desk, tape: Tape, i: int, events: int) -> None:
    """Write down the trial as step i."""
    now, came, terms = desk.now, desk.came, desk.now.terms
    for j in range(desk.b.size):
        tape.mass[i, j] = desk.mass[j]
    for q in range(terms):
        for k in range(tape.kink.shape[2]):
            tape.kink[i, q, k] = desk.kink[q, k]
        if tape.low.shape[2] > 0:
            combine(desk.C[q], desk.lows, terms, tape.low[i, q])
            if q == 0:
                add(1.0, desk.constant, tape.low[i, 0])
    tape.clock[i, 0], tape.clock[i, 1], tape.terms[i] = now.t, now.h, terms
    e = events
    for j in range(desk.b.size):
        for r in range(came.n[j]):
            tape.event[e, 0], tape.event[e, 1], tape.event[e, 2] = j, came.face[j, r], came.side[j, r]
            tape.when[e] = now.t + came.when[j, r] * now.h
            e += 1
    tape.upto[i + 1] = e


@inner
def _keep(fixed: Fixed, desk: Desk, tape: Tape, i: int, least_loss: float, most_margin: float) -> int:
    """Take the trial as step i of the tape, unless something is to be decided in it (TRIAL)."""
    came, events = desk.came, tape.upto[i]
    for j in range(desk.b.size):
        if came.status[j] != THROUGH:
            return TRIAL
        events += came.n[j]
    if events > tape.when.size:
        return TRIAL
    loss = log_loss(fixed.loss, fixed.weight, fixed.y, desk.f_end)
    margin = math.inf
    for k in range(desk.f.size):
        margin = min(margin, fixed.y[k] * desk.f_end[k])
    if loss <= least_loss or margin >= most_margin:
        return TRIAL
    _note_step(desk, tape, i, tape.upto[i])
    _take(fixed, desk)
    tape.clock[i, 2], tape.clock[i, 3] = desk.now.t, loss
    for k in range(desk.f.size):
        tape.f[i, k] = desk.f[k]
    _note_start(desk, tape, i + 1)
    return MANY


@inner
def _ready(fixed: Fixed, desk: Desk, tape: Tape, i: int, t_end: float) -> int:
    """Whether there is a next step: SWEEP, or why not."""
    if i == tape.terms.size:
        return MANY
    for j in range(desk.b.size):
        if i > 0 and desk.rho[j] < fixed.gone:  # from here on it is left out
            return MANY
    if i == 0:
        tape.upto[0] = 0
        _note_start(desk, tape, 0)
    if desk.now.pace == 0.0:
        return RESTS
    if desk.now.t >= t_end:
        return ENDED
    if not math.isfinite(desk.now.h) or not math.isfinite(desk.now.pace):
        return BEYOND
    return FAILED if desk.now.h <= _SHORTEST * desk.now.t else SWEEP


@inner
def _proceed(fixed: Fixed, desk: Desk, tape: Tape, t_end: float, least_loss: float, most_margin: float) -> int:
    """Go on to the next sweep, or to what ends the tape."""
    now = desk.now
    good = True
    if now.stage == CUT:
        now.stage = PART
        return SWEEP
    if now.stage == REFERENCE:
        product(desk.guess.W, fixed.across, desk.ends)  # what they may have met is seen from there
        now.stage = PREDICTOR
        return SWEEP
    if now.stage == PREDICTOR:
        good = _judge(fixed, desk)
        if good:
            now.stage = CORRECTOR
            return SWEEP
    elif now.stage == CORRECTOR and _overdue(fixed, desk):
        now.stage = AGAIN
        return SWEEP
    elif now.stage == PART:
        _look_part(fixed, desk)
        return TRIAL
    if now.stage == AGAIN:
        _end(fixed, desk, desk.came, False)
    if good and now.stage != BEGIN:
        good = _agree(fixed, desk)
        if not good:
            now.h, now.failed = 0.5 * now.h, 1
        elif _keep(fixed, desk, tape, now.steps, least_loss, most_margin) == TRIAL:
            return TRIAL
        else:
            now.steps += 1
    why = _ready(fixed, desk, tape, now.steps, t_end)
    if why == SWEEP:
        _begin(desk, t_end - now.t)
        now.stage = REFERENCE if desk.W.size * desk.Z.shape[1] >= _REFERENCE else PREDICTOR
        now.seen = 1 if now.stage == REFERENCE else 0
    return why


def _perform(
    task: int,
    fixed: Fixed,
    desk: Desk,
    tape: Tape,
    bench: Bench,
    t_end: float,
    least_loss: float,
    most_margin: float,
    part: int,
    parts: int,
) -> int:
    """Do one of the tasks: the one way in, so that everything is compiled once.

    Begin a phase (START), look at other rows (LOOK), take a trial (TAKE); sweep and proceed until something else is to
    be done (ADVANCE), or only up to the next sweep (PROCEED), which is made by calls for parts of the neurons (SHARE).
    """
    why = SWEEP
    if task == START:
        _start(fixed, desk)
    elif task == LOOK:
        _look(fixed, desk)
    elif task == TAKE:
        _take(fixed, desk)
    else:
        while why == SWEEP:
            if task != SHARE:
                why = _proceed(fixed, desk, tape, t_end, least_loss, most_margin)
                if task == PROCEED or why != SWEEP:
                    break
            _sweep(fixed, desk, bench, part, parts)  # in one place: it is most of what is to be compiled
            if task == SHARE:
                break
    return why


_STAMP = stamp_of(
    __file__, "desk.py", "pulls.py", "passes.py", "roots.py", "arcs.py", "../held.py", "../early/state.py"
)
#: `_perform`, compiled; the tuples as `held.Held`.
perform: Callable[..., int] = kept(_perform, stamp=_STAMP, slow="the integrator", nogil=True, error_model="numpy")
