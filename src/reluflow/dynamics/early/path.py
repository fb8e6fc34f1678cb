"""Where the neurons are at a given time, from the pieces that the kernel wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...problem.types import Array, Ints, Signs
from ...sectors.hyperplanes import Surfaces
from ..clock import Moved, move, move_frozen
from .run import Starts, Written

#: What an event is.
EVENT = np.dtype([("time", np.float64), ("sample", np.int32), ("kind", "U10")])
_BLOCK = 128  # pieces whose coefficients are formed at once
# States in the log, 0: held, 1: active, 2 and 3: ON_INACTIVE and ON_ACTIVE of the kernel, -1: inactive, as indices:
_ON_INACTIVE = np.int8(2)
_MIRROR = np.array([0, -1, 3, 2, 1], dtype=np.int8)  # the state of a sample opposite to its normal
_LEVEL = np.array([0, 1, -1, 1, -1], dtype=np.int8)  # active, inactive or sliding
_TOUCH = 2  # it comes to lie on the hyperplane, and is as active as before
_KINDS = np.array(["slide", "activate", "touch", "deactivate"])  # by level, -1 is the last


class Snapshot(NamedTuple):
    """All neurons at some times: arrays of shape (times, p)."""

    piece: Ints
    moved: Moved
    log_norm: Array
    log_out: Array
    sign: npt.NDArray[np.int8]


@dataclass(frozen=True)
class Paths:
    """The exact paths of all neurons."""

    faces: Surfaces
    start: Starts
    written: Written
    slope: float
    frozen: bool  # the second layer is

    @property
    def last(self) -> Ints:
        """Last piece of each neuron."""
        return self.written.first[1:] - 1

    def snapshot(self, times: Array) -> Snapshot:
        """Sizes and signs at the given times (of the problem)."""
        run, start = self.written, self.start
        tau = times[:, None] * start.rate
        piece = np.empty(tau.shape, dtype=np.int64)
        for j, (lo, hi) in enumerate(zip(run.first[:-1], run.first[1:], strict=True)):
            piece[:, j] = lo + np.searchsorted(run.tau[lo:hi], tau[:, j], side="right") - 1
        force, out, along, perp = (column[piece] for column in (run.force, run.out, run.along, run.perp))
        since = np.maximum(tau - run.tau[piece], 0.0)
        if self.frozen:
            moved = move_frozen(force, out, along, perp, since)
        else:
            moved = move(force, out, along, perp, np.broadcast_to(start.excess, out.shape), since)
        with np.errstate(divide="ignore"):
            log_norm = np.log(np.hypot(moved.along, moved.perp)) + moved.log_factor
            log_out = np.log(np.maximum(moved.out, 0.0)) + moved.log_factor  # a sign changes only at events
        # Against the force and on its ray: both shrink like e^-theta, of which nothing is left after e^-2theta.
        ray = (perp == 0) & (along < 0) & (start.excess == 0) & (not self.frozen)
        with np.errstate(divide="ignore"):
            log_norm = np.where(ray, np.log(np.abs(along)) - moved.log_factor, log_norm)
        log_out = np.where(ray, log_norm, log_out)
        return Snapshot(
            piece, moved, log_norm + start.log_unit, log_out + start.log_unit, run.sign[piece].astype(np.int8)
        )

    def directions(self, shot: Snapshot) -> Array:
        """Return the unit vectors, shape (times, p, d); zero where w is."""
        run = self.written
        needed, where = np.unique(shot.piece, return_inverse=True)
        result = np.empty((*shot.piece.shape, self.start.w.shape[1]))
        for lo in range(0, needed.size, _BLOCK):
            w, c = self.corners(needed[lo : lo + _BLOCK])
            rows = np.nonzero((where >= lo) & (where < lo + _BLOCK))
            at, row = shot.piece[rows], where[rows] - lo
            still = (run.force[at] == 0) | ((run.perp[at] == 0) & (run.along[at] < 0) & (not self.frozen))
            fade = np.where(still, 1.0, np.exp(-shot.moved.log_factor[rows]))
            step = np.where(still, 0.0, run.sign[at] * shot.moved.step[rows])
            ahead = w[row] * fade[:, None] + c[row] * step[:, None]
            # Against the force the two cancel but for e^-2theta: what is left along it is known without that.
            against = ~still & (run.along[at] < 0) & (not self.frozen)
            ray = c[row[against]] * (run.sign[at][against] / run.force[at][against])[:, None]
            aside = w[row[against]] - run.along[at][against, None] * ray
            ahead[against] = aside * fade[against, None] + shot.moved.along[rows][against, None] * ray
            top = np.abs(ahead).max(axis=1)
            ahead = ahead / np.where(top > 1e150, top, 1.0)[:, None]  # which has no square
            size = np.linalg.norm(ahead, axis=1)
            result[rows] = ahead / np.where(size > 0, size, 1.0)[:, None]
        return result

    def corners(self, pieces: Ints) -> tuple[Array, Array]:
        """Start of the given pieces (ascending), and the force on them over the sign of the output."""
        run, faces = self.written, self.faces
        neuron = np.searchsorted(run.first, pieces, side="right") - 1
        late = pieces == self.last[neuron]  # the ends are kept
        w, c = run.w[neuron], run.c[neuron] * run.sign[pieces][:, None]
        early = np.flatnonzero(~late)
        if early.size:
            coefficient = np.empty((2, early.size, faces.m))
            for j in np.unique(neuron[early]):
                rows = neuron[early] == j
                coefficient[:, rows] = self._coefficients(int(j), pieces[early][rows])
            path = run.path[pieces[early]][:, None]
            w[early] = self.start.w[neuron[early]] + path * faces.fixed + coefficient[0] @ faces.normals
            c[early] = faces.fixed + coefficient[1] @ faces.normals
        return w, c

    def _coefficients(self, j: int, pieces: Ints) -> Array:
        """Multiples of the normals that w has moved by until each piece, and that the force is made of there."""
        run, faces = self.written, self.faces
        g = np.where(self.start.sides[j] > 0, 1.0, self.slope) * faces.weights
        way = np.zeros_like(g)  # w = start + path * fixed + (path * g - way) @ normals
        result = np.empty((2, len(pieces), faces.m))
        begin = done = int(run.entry[run.first[j]])
        mine = slice(run.first[j], run.first[j + 1])
        path = np.repeat(run.path[mine], np.diff(run.entry[mine.start : mine.stop + 1]))
        for row, piece in enumerate(pieces):
            end = int(run.entry[piece + 1])
            which, change = run.surface[done:end], run.change[done:end]
            g += np.bincount(which, weights=change, minlength=faces.m)
            way += np.bincount(which, weights=change * path[done - begin : end - begin], minlength=faces.m)
            result[0, row], result[1, row] = run.path[piece] * g - way, g
            done = end
        return result

    def events(self, j: int) -> npt.NDArray[np.void]:
        """Everything that happens to the samples of neuron j, and the changes of its sign."""
        run, faces = self.written, self.faces
        pieces = np.arange(run.first[j], run.first[j + 1])
        at = np.arange(run.entry[pieces[0]], run.entry[pieces[-1] + 1])
        piece = np.repeat(pieces, np.diff(run.entry[pieces[0] : pieces[-1] + 2]))
        many = np.diff(faces.start)[run.surface[at]]
        at, piece = np.repeat(at, many), np.repeat(piece, many)
        member = np.arange(at.size) - np.repeat(np.cumsum(many) - many, many)
        sample = faces.samples[faces.start[run.surface[at]] + member]
        before, after = run.before[at], run.after[at]
        turned = faces.orient[sample] < 0
        before, after = np.where(turned, _MIRROR[before], before), np.where(turned, _MIRROR[after], after)
        was, told = _LEVEL[before], _LEVEL[after]
        told[(told == was) & (np.abs(before) == 1) & (np.abs(after) != 1)] = _TOUCH
        if (np.abs(before) > 1).any():
            # Where a neuron leaves a hyperplane to the active side it counts as active already if it crossed, but not
            # if it only touched, or started there (as inactive): an event is what was not told of its sample before.
            start = faces.pattern(self.start.sides[j])
            start[start == 0] = -1
            turn = np.argsort(sample, kind="stable")
            first = np.diff(sample[turn], prepend=-1) > 0
            was[turn] = np.where(first, start[sample[turn]], np.roll(told[turn], 1))
        real = told != was
        flips = pieces[1:][run.sign[pieces[1:]] != run.sign[pieces[:-1]]]
        found = np.empty(int(real.sum()) + flips.size, dtype=EVENT)
        found["sample"] = np.concatenate([np.full(flips.size, -1), sample[real]])
        found["kind"] = np.concatenate([np.full(flips.size, "flip"), _KINDS[told[real]]])
        order = np.concatenate([flips, piece[real]])
        found["time"] = run.tau[order] / self.start.rate[j]
        return np.asarray(found[np.lexsort([found["sample"], order])])

    def lying(self, t: float) -> Signs:
        """Sides, (p, m), that neurons count for on hyperplanes that they lie on at a time and that do not hold them."""
        run = self.written
        owner = np.repeat(np.arange(self.start.rate.size), np.diff(run.first))
        since = np.repeat(run.tau / self.start.rate[owner], np.diff(run.entry))
        state = np.where(self.start.sides == 0, _ON_INACTIVE, self.start.sides)
        past, owner = since <= t, np.repeat(owner, np.diff(run.entry))
        state[owner[past], run.surface[past]] = run.after[past]  # the last one counts
        return np.asarray(np.where(np.abs(state) > 1, _LEVEL[state], 0), dtype=np.int8)

    def stays(self, j: int) -> Iterator[tuple[float, int, float]]:
        """Time, sample and slope for every hyperplane that neuron j lies on for a while."""
        run, faces = self.written, self.faces
        g = np.where(self.start.sides[j] > 0, 1.0, self.slope) * faces.weights
        on = self.start.sides[j] == 0
        lo, hi = run.first[j], run.first[j + 1]
        for piece in range(lo, hi):
            at = slice(run.entry[piece], run.entry[piece + 1])
            np.add.at(g, run.surface[at], run.change[at])
            on[run.surface[at]] = np.abs(run.after[at]) != 1
            if piece + 1 == hi or run.tau[piece + 1] > run.tau[piece]:
                for k in np.flatnonzero(on & (faces.weights != 0)):
                    sample = int(faces.samples[faces.start[k]])
                    yield float(run.tau[piece] / self.start.rate[j]), sample, float(g[k] / faces.weights[k])
