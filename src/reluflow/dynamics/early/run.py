"""Starting the neurons, running the compiled kernel on them, and collecting what it wrote."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import TIMEOUT_MAX
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ...problem import Problem, ProblemError, time_left
from ...problem.types import Array, Ints, Signs
from ...sectors import exact_signs
from ...sectors.hyperplanes import Surfaces

if TYPE_CHECKING:
    from .state import Log, Neuron, World


#: Hyperplanes up to which their Gram matrix is formed (32 MB); above, candidates are looked at one by one.
GRAM_LIMIT = 2048
#: Work (neurons x hyperplanes x inputs) from which threads are worth starting.
_THREADS_FROM = 200_000
#: |a| and |w| of one neuron may differ by this factor (as a logarithm) when both are trained.
_LOG_RATIO = 150.0
#: exp of this is still far from the ends of the range of doubles.
_LOG_RANGE = 600.0

FATES = ("aligned", "sliding", "shrinking", "dead", "stuck", "unfinished")


@dataclass(frozen=True)
class Starts:
    """The neurons in units of their own: w is a unit vector, one unit of the problem's time is ``rate`` of theirs."""

    w: Array  # (p, d), zero where w = 0
    out: Array  # (p,) |a| in the same units
    excess: Array  # (p,) a^2 - |w|^2; 0 for a balanced neuron, whatever its rounding
    sign: Signs  # (p,) sign of a, or the sign it takes at once; 0 if nothing ever moves
    log_unit: Array  # (p,)
    rate: Array  # (p,)
    sides: Signs  # (p, m)
    rest: npt.NDArray[np.bool_]  # (p,) no active sample at slope 0


@dataclass(frozen=True)
class Written:
    """Straight pieces of all neurons one after the other, what changed at the start of each, and how it ended."""

    first: Ints  # (p + 1,) pieces of neuron j: first[j] .. first[j + 1]
    tau: Array
    path: Array  # signed: minus sigma while a < 0
    force: Array
    out: Array
    along: Array
    perp: Array
    sign: Array
    entry: Ints  # (pieces + 1,) changes of piece e: entry[e] .. entry[e + 1]
    surface: npt.NDArray[np.int32]
    before: Signs
    after: Signs
    change: Array
    fate: Signs  # (p,) index into FATES
    nonunique: npt.NDArray[np.bool_]
    sides: Signs  # (p, m) at the end
    w: Array  # (p, d) at the start of the last piece
    c: Array
    lies: Ints  # (p + 1,) hyperplanes that neuron j lies on at the end: lies[j] .. lies[j + 1]
    lies_on: npt.NDArray[np.int32]
    lies_g: Array


def starts(problem: Problem, faces: Surfaces) -> Starts:
    """Put every neuron into units of its own size."""
    net, data = problem.net, problem.data
    norm, size = np.linalg.norm(net.W, axis=1), np.abs(net.a)
    zero_w, zero_a = norm == 0, size == 0
    log_w, log_a = net.log_norms, net.log_outs
    speed = problem.speed * faces.unit
    signs = exact_signs(net.W, data.X)
    sign = np.sign(net.a).astype(np.int8)
    if problem.train == "first":
        log_unit = np.where(zero_w, 0.0, log_w)
        log_rate = np.where(zero_a, 0.0, np.where(zero_a, 0.0, log_a) - log_unit) + np.log(speed)
        _check_clock(log_rate)
        rate, out, excess = np.exp(log_rate), np.ones(net.p), np.zeros(net.p)
    else:
        lw, la = net.log_scales
        with np.errstate(divide="ignore", invalid="ignore"):
            log_ratio = np.where(zero_w | zero_a, 0.0, np.log(size / norm) + (la - lw))
            _check_ratio(log_ratio)
            ratio = np.where(zero_w | zero_a, 0.0, size / norm * np.exp(np.where(zero_w | zero_a, 0.0, la - lw)))
        excess = np.where(zero_w, 1.0, ratio**2 - 1.0)
        even = np.abs(excess) <= 2.0**-48  # |a| = |w| as far as a rounded norm can tell
        out = np.where(zero_w | (even & ~zero_a), 1.0, ratio)
        excess = np.where(even, 0.0, excess)
        log_unit = np.where(zero_w, np.where(zero_a, 0.0, log_a), log_w)
        rate = np.full(net.p, speed)
        if zero_a.any():  # a' = G(w): the sign that a takes at once, none where G vanishes
            z = net.preactivations(data.X)
            terms = data.y[:, None] * net.activate(z)
            pull = terms.sum(axis=0)
            sure = np.abs(pull) > 2.0**-43 * np.abs(terms).sum(axis=0)
            sign = np.where(zero_a, np.where(sure, np.sign(pull), 0.0), sign).astype(np.int8)
    rest = np.asarray((signs <= 0).all(axis=1) & (net.slope == 0), dtype=np.bool_)
    return Starts(net.directions, out, excess, sign, log_unit, rate, faces.sides(signs), rest)


class Halt:
    """Why the rest of the neurons is left as it is: the time limit, or Ctrl-C; once said, all threads heed it."""

    def __init__(self) -> None:
        self.why: Literal["", "time", "interrupt"] = ""

    def check(self) -> bool:
        """Whether to stop; asked by the thread that has the time limit."""
        if not self.why and time_left() <= 0:
            self.why = "time"
        return bool(self.why)


def run(problem: Problem, faces: Surfaces, start: Starts, leave: bool, limit: int, halt: Halt) -> Written:
    """Follow every neuron; after a halt the others are left where they start, unfinished."""
    from numba import get_num_threads

    from . import state as types

    slope = problem.net.slope
    gram = faces.normals @ faces.normals.T if faces.m <= GRAM_LIMIT else np.empty((0, 0))
    normals, weights, fixed = (np.ascontiguousarray(x) for x in (faces.normals, faces.weights, faces.fixed))
    world = types.World(normals, weights, fixed, gram, float(slope), problem.train == "first", bool(leave))
    p = problem.net.p
    workers = min(get_num_threads(), p)
    if workers == 1 or p * faces.m * (problem.data.d + 8) < _THREADS_FROM:
        return _join(_follow(world, start, range(p), limit, halt))
    # The first neuron alone: it may have to compile the kernel, which is no work for several threads.
    results: list[Any] = [*_follow(world, start, range(1), limit, halt), *([None] * (p - 1))]
    with ThreadPoolExecutor(workers) as pool:
        jobs = [pool.submit(_follow, world, start, range(k, p, workers), limit, halt) for k in range(1, workers + 1)]
        try:
            if wait(jobs, timeout=max(min(time_left(), TIMEOUT_MAX), 0.0)).not_done and not halt.why:
                halt.why = "time"  # threads end with their current neuron
        except KeyboardInterrupt:
            halt.why = "interrupt"
        for k, job in enumerate(jobs, start=1):
            results[k::workers] = job.result()
    return _join(results)


def _follow(world: World, start: Starts, neurons: range, limit: int, halt: Halt) -> list[Any]:
    from ..held import Held
    from . import kernel
    from . import state as t

    m, d = world.normals.shape
    me, log = t.new_neuron(m, d), t.new_log(m + 16, 3 * m + 16)
    everybody, self, paper = Held(world), Held(me), Held(log)
    found = []

    def one(j: int, limit: int) -> tuple[Any, ...]:
        nonlocal log, paper
        me.w[:] = start.w[j]
        me.side[:] = start.sides[j]
        me.now.sign, me.now.out = start.sign[j], start.out[j]
        row, fate = 0, t.FULL
        if start.sign[j] == 0:  # neither w nor a ever moves
            me.c[:], me.g[:], me.tally.many = 0.0, 0.0, 0
            log.segment[0], log.end[0] = 0.0, 0
            row, fate = 1, t.STUCK
        while fate == t.FULL:
            if row:
                log = _longer(log, 2 * row, 2 * int(me.tally.entries) + 2 * m + 16)
                paper = Held(log)
            row, fate = kernel.align_one(everybody, self, paper, start.excess[j], start.rest[j], row, limit)
        return _copy(me, log, row, fate)

    for j in neurons:
        try:
            found.append(one(j, 0 if halt.check() else limit))
        except KeyboardInterrupt:
            if halt.why == "interrupt":  # the second one
                raise
            halt.why = "interrupt"
            found.append(one(j, 0))
    return found


def _longer(log: Log, rows: int, entries: int) -> Log:
    from .state import new_log

    more = new_log(max(rows, len(log.end)), max(entries, len(log.change)))
    for new, old in zip(more, log, strict=True):
        new[: len(old)] = old
    return more


def _copy(me: Neuron, log: Log, row: int, fate: int) -> tuple[Any, ...]:
    """Everything to keep of one neuron."""
    entries = log.end[row - 1]
    return (
        log.segment[:row].copy(),
        log.end[:row].copy(),
        log.surface[:entries].astype(np.int32),
        log.change[:entries].copy(),
        fate,
        bool(me.tally.many),
        me.side.astype(np.int8),
        me.w.copy(),
        me.c.copy(),
        me.g[me.side == 0],
    )


def _join(parts: list[Any]) -> Written:
    segment, end, surface, change, fate, many, side, w, c, g = zip(*parts, strict=True)
    tau, path, force, out, along, perp, sign = (np.ascontiguousarray(column) for column in np.concatenate(segment).T)
    entries = _offsets(surface)
    which, before, after = np.concatenate(surface).T
    sides = np.array(side)
    return Written(
        _offsets(segment),
        tau,
        path,
        force,
        out,
        along,
        perp,
        sign,
        np.concatenate([[0], *(e + k for e, k in zip(end, entries, strict=False))]),
        np.ascontiguousarray(which),
        before.astype(np.int8),
        after.astype(np.int8),
        np.concatenate(change),
        np.array(fate, dtype=np.int8),
        np.array(many, dtype=bool),
        sides,
        np.array(w),
        np.array(c),
        _offsets(g),
        np.nonzero(sides == 0)[1].astype(np.int32),
        np.concatenate(g),
    )


def _offsets(parts: tuple[npt.NDArray[Any], ...]) -> Ints:
    return np.cumsum([0, *(len(part) for part in parts)])


def _check_ratio(log_ratio: Array) -> None:
    worst = int(np.argmax(np.abs(log_ratio)))
    if abs(log_ratio[worst]) > _LOG_RATIO:
        raise ProblemError(
            f"neuron {worst} has |a|/|w| = e^{log_ratio[worst]:.6g}; when both layers are trained align needs "
            f"the two within e^{_LOG_RATIO:g} of each other. Give both layers the same log_scale, or freeze the second "
            'layer with train="first".'
        )


def _check_clock(log_rate: Array) -> None:
    worst = int(np.argmax(np.abs(log_rate)))
    if abs(log_rate[worst]) > _LOG_RANGE:
        raise ProblemError(
            f'with train="first" a neuron turns within a time of order |w|/|a|, for neuron {worst} about '
            f"e^{-log_rate[worst]:.6g}, which no double can tell from 0 or infinity. The path does not depend on the "
            f"scale: use a log_scale above {-_LOG_RANGE:g}."
        )
