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
_TOUCH, _FLIP = 2, 3  # it comes to lie on the hyperplane, and is as active as before; its output weight changes sign
_KINDS = np.array(["deactivate", "slide", "activate", "touch", "flip"])  # by level, from -1 on; and those two


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
            moved, force = self._coefficients(neuron[early], pieces[early])
            path = run.path[pieces[early]][:, None]
            w[early] = self.start.w[neuron[early]] + path * faces.fixed + moved @ faces.normals
            c[early] = faces.fixed + force @ faces.normals
        return w, c

    def _coefficients(self, neuron: Ints, pieces: Ints) -> tuple[Array, Array]:
        """Multiples of the normals that w has moved by until each piece, and that the force is made of there."""
        run, faces = self.written, self.faces
        starts = np.flatnonzero(np.diff(neuron, prepend=-1))  # the first piece of each neuron
        ends = run.entry[pieces + 1]
        begins = np.concatenate([[0], ends[:-1]])
        begins[starts] = run.entry[run.first[neuron[starts]]]
        row, at = _ranges(begins, ends)
        place, cells = row * faces.m + run.surface[at], pieces.size * faces.m
        path = run.path[np.searchsorted(run.entry, at, side="right") - 1]
        g, way = (  # w = start + path * fixed + (path * g - way) @ normals
            np.asarray(np.bincount(place, weights=x, minlength=cells), np.float64).reshape(-1, faces.m)
            for x in (run.change[at], run.change[at] * path)
        )
        g[starts] += np.where(self.start.sides[neuron[starts]] > 0, 1.0, self.slope) * faces.weights
        for k in np.flatnonzero(np.diff(neuron) == 0) + 1:
            g[k] += g[k - 1]
            way[k] += way[k - 1]
        return run.path[pieces][:, None] * g - way, g

    def events(self, lo: int, hi: int) -> tuple[npt.NDArray[np.void], Ints]:
        """Everything that happens to the samples of neurons lo to hi - 1, the changes of their signs; and to whom."""
        run, faces = self.written, self.faces
        pieces = np.arange(run.first[lo], run.first[hi])
        owner = np.repeat(np.arange(lo, hi), np.diff(run.first[lo : hi + 1]))
        at = np.arange(run.entry[pieces[0]], run.entry[pieces[-1] + 1])
        piece = np.repeat(pieces, np.diff(run.entry[pieces[0] : pieces[-1] + 2]))
        surface = run.surface[at]
        which, member = _ranges(faces.start[surface], faces.start[surface + 1])
        at, piece, sample = at[which], piece[which], faces.samples[member]
        before, after = run.before[at], run.after[at]
        turned = faces.orient[sample] < 0
        before, after = np.where(turned, _MIRROR[before], before), np.where(turned, _MIRROR[after], after)
        was, told = _LEVEL[before], _LEVEL[after]
        told[(told == was) & (np.abs(before) == 1) & (np.abs(after) != 1)] = _TOUCH
        if (np.abs(before) > 1).any():
            # Where a neuron leaves a hyperplane to the active side it counts as active already if it crossed, but not
            # if it only touched, or started there (as inactive): an event is what was not told of its sample before.
            start = faces.pattern(self.start.sides[lo:hi])
            start[start == 0] = -1
            pair = (owner[piece - pieces[0]] - lo) * start.shape[1] + sample
            turn = np.argsort(pair, kind="stable")
            first = np.diff(pair[turn], prepend=-1) > 0
            was[turn] = np.where(first, start.ravel()[pair[turn]], np.roll(told[turn], 1))
        real = told != was
        flips = pieces[1:][(run.sign[pieces[1:]] != run.sign[pieces[:-1]]) & (owner[1:] == owner[:-1])]
        piece, sample = np.concatenate([flips, piece[real]]), np.concatenate([np.full(flips.size, -1), sample[real]])
        kind, order = np.concatenate([np.full(flips.size, _FLIP), told[real]]), np.lexsort([sample, piece])
        found, neuron = np.empty(order.size, dtype=EVENT), owner[piece[order] - pieces[0]]
        found["time"] = run.tau[piece[order]] / self.start.rate[neuron]
        found["sample"], found["kind"] = sample[order], _KINDS[kind[order] + 1]
        return found, neuron

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


def _ranges(begins: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Write out ranges one after the other: which one, and the number."""
    many = ends - begins
    which = np.repeat(np.arange(many.size), many)
    return which, np.arange(which.size) + (begins - np.cumsum(many) + many)[which]
