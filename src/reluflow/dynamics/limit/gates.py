r"""The gates that a candidate for the limit must pass, each of which looks at one thing and can be tried alone.

A candidate is the best network with the present patterns. It is the limit if the flow has been in these patterns for
long (*quiet*), it is a KKT point (*KKT*), it lies inside the patterns it was computed from, or on a wall beyond which
nothing changes (*inside*), the margin of the flow closes up to its margin (*approach*) and the shares of its groups are
those of the flow (*shares*), no living neuron comes to see a point that none feels (*lost*), and the neurons that it
leaves out vanish for ever (*vanishing*).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...problem import Dataset
from ...problem.types import Array, Flags, Index
from ...problem.words import count
from ..trajectory import Trajectory
from .candidate import WALL, Candidate, LimitGroup, keeps_apart
from .future import Future

QUIET = 100.0  #: |theta|^2 must have grown by this factor since the last event
CLOSE = 1e-2  #: largest gap between the margin of the flow and that of the limit, as part of the latter
_FITTED = 3.0  # margins above this have been fitted
_KKT = 1e-9  # largest residual of a KKT point
_ABOVE = 10.0  # the margin of the flow may seem larger than that of its limit by so many times its tolerance
_THERE = 1e-8  # gaps below this have closed
_CLOSING = 0.9  # part of the gap that may be left when |theta|^2 has grown tenfold
_TURNS = 1e-8  # angles below this are rounding
SHARES = 0.2  #: shares that the margin problem determines may still be so far away: the margin is flat in them
_NEARER = 0.01  # part of its distance by which a neuron may have come nearer to a lost point while R grew so much
_STILL = 1e-2  # margins of points in balance may be so far from where they rest: they are held at infinity
_OPEN_SHARES = 5e-3  # those that it leaves open are taken from the flow, which must have settled


class Evidence(NamedTuple):
    """One thing that speaks for the limit: what, its number, whether it is as it must be, and in words."""

    name: str
    value: float
    holds: bool | None
    text: str


class Look(NamedTuple):
    """What the gates look at: the flow, the candidate, and what becomes of the neurons that it leaves out."""

    run: Trajectory
    found: Candidate
    future: Future | None = None
    since: tuple[float, int, Array] | None = None  # what `grown` says, once for all gates

    @property
    def quiet(self) -> tuple[float, int, Array]:
        """By how much R grew since the points were fitted and the last event of the living neurons; see `grown`."""
        return grown(self.run, self.found.live, self.found.living) if self.since is None else self.since

    @property
    def data(self) -> Dataset:
        """The points that are fitted."""
        whole = self.run.problem.data
        return whole.subset(self.found.live) if self.found.live.size < whole.n else whole

    @property
    def lost(self) -> Index:
        """The points that are not felt."""
        return self.found.lost(self.run.problem.data.n)


@dataclass(frozen=True)
class Gate:
    """One condition: its name, and what gives its number, whether it holds, and the words."""

    name: str
    test: Callable[[Look], tuple[float, bool, str]]

    def __call__(self, look: Look) -> Evidence:
        """Try it."""
        return Evidence(self.name, *self.test(look))


def grown(run: Trajectory, live: Index, neurons: Index | None = None) -> tuple[float, int, Array]:
    """By how much R grew since some points were fitted and the last event of some neurons, the record there, log R."""
    log_R = run.log_norm * (1 if run.problem.train == "first" else 2)
    events = run.events if neurons is None else run.events[np.isin(run.events["neuron"], neurons)]
    last = events["log_time"].max(initial=-np.inf)
    at = max(int(np.searchsorted(run.log_time, last, side="right")) - 1, _last_unfitted(run, live), 0)
    return float(np.exp(min(log_R[-1] - log_R[at], 700.0))), at, log_R


def _last_unfitted(run: Trajectory, live: Index) -> int:
    """Return the last record at which one of some points was not fitted; -1 if there is none.

    Where all points count the loss tells it for most records: one such point alone costs so much, and all together
    cannot cost more.
    """
    problem = run.problem
    if not live.size:
        return -1
    one = float(problem.loss.log_value(_FITTED)) + np.log(problem.weight)
    every = one + np.log(live.size) if live.size == problem.data.n else np.inf
    for k in reversed(range(len(run))):
        cost = run.log_loss[k]
        if cost > every or (cost >= one and run.network(k).margins(problem.data)[live].min(initial=np.inf) <= _FITTED):
            return k
    return -1


def _quiet(look: Look) -> tuple[float, bool, str]:
    by = look.quiet[0]
    return by, by >= QUIET, f"|theta|^2 grew by {by:.3g} since the data were fitted and the last event"


def _kkt(look: Look) -> tuple[float, bool, str]:
    certificate, pushes = look.found.certificate, ""
    if certificate is None:
        by = "lost points" if look.found.still is None else "points in balance"
        residual, pushes = look.found.residual, f", with the pushes of {by}"
    else:
        residual = max(certificate.residual, certificate.balance or 0.0)
    return residual, residual <= _KKT, f"residual {residual:.1e} in the sense of Clarke{pushes}"


def _inside(look: Look) -> tuple[float, bool, str]:
    walls, grazing = look.found.touching
    words = count(walls, "group touches", "groups touch") if walls else "no group touches"
    words += " a wall of its pattern"
    if grazing:
        words += f" beyond which another network is best ({count(grazing, 'ends', 'end')} on one where none is)"
    return float(walls), walls == 0, words


def _approach(look: Look) -> tuple[float, bool, str]:
    run, margin = look.run, look.found.margin
    _, at, log_R = look.quiet
    earlier = min(max(int(np.searchsorted(log_R, log_R[-1] - np.log(10.0))), at + 1), len(run) - 1)
    before, gap = (1 - run.network(k).normalized_margin(look.data, run.problem.train) / margin for k in (earlier, -1))
    step = log_R[-1] - log_R[earlier]
    exponent = float(np.log(abs(before) / max(abs(gap), 1e-300)) / step) if step > 0 and before else 0.0
    closes = gap < _THERE or gap < _CLOSING * before
    text = f"margin of the flow is {gap:.1e} below, closing like R^{-exponent:.2f}"
    if not closes and gap < before and (room := min(_room(run, g, gap) for g in look.found.living_groups)) > 1:
        closes, text = True, f"{text}, and walls are {room:.3g} times as far as it can turn until then"
    above = _ABOVE * float(run.settings.get("rtol", _KKT))
    if (still := look.found.still) is not None:
        # Margins z that are not 0 leave room by duality: R >= 2 sum_i lambda_i q_i, of which 2 lambda . z is theirs.
        above -= min(2 * float(look.found.multipliers[still.points] @ still.margins) * np.exp(-log_R[-1]), 0.0)
    return float(gap), bool(-above <= gap <= CLOSE and closes), text


def _room(run: Trajectory, group: LimitGroup, gap: float) -> float:
    r"""How much farther the nearest wall is from the limit of a group, in angles, than the group can ever be again.

    The margin only grows, so all that comes has a gap of at most :math:`\delta`. Against the dual vectors of the limit,
    unit vectors D along the groups, a network v of margin 1 has
    :math:`\sum |v_G| - D_G \cdot v_G \le \delta \sum |v_G|`: a group with a share s is at an angle with
    :math:`1 - \cos \le \delta/s` from its limit. With the first layer alone :math:`|w - w^*|^2 \le 2\delta|w^*|^2`.
    """
    data = run.problem.data
    to_wall = np.arcsin(np.minimum(np.abs(data.X @ group.direction) / data.norms, 1.0))[group.pattern != 0]
    off = max(gap, 0.0) / min(group.share, group.flow_share)
    turns = np.arccos(1 - off) if off < 1 else np.pi
    return float(to_wall.min(initial=np.pi / 2) / max(turns, _TURNS))


def _shares(look: Look) -> tuple[float, bool, str]:
    away = max((abs(g.share - g.flow_share) for g in look.found.groups), default=0.0)
    text = f"shares of the groups differ by {away:.1e} from the flow's"
    if look.found.unique:
        return away, away <= SHARES, text
    return away, away <= _OPEN_SHARES, f"{text}; the margin leaves them open, and they are the nearest to the flow's"


def _lost(look: Look) -> tuple[float, bool, str]:
    """No living group is on the side of a lost point, now or in the limit.

    One whose limit is on its hyperplane is held there if it leans on it and would unlearn the point; else it keeps its
    distance for ever if all samples that it feels are orthogonal to it.
    """
    data, lost, found = look.run.problem.data, look.lost, look.found
    cosines = np.array([data.X[lost] @ g.direction / data.norms[lost] for g in found.living_groups])
    held = np.zeros((len(found.groups), data.n), dtype=bool) if found.held is None else found.held
    apart, leaning = True, 0
    for g, row, holds in zip(
        found.living_groups, cosines, held[[g.share > 0 for g in found.groups]][:, lost], strict=True
    ):
        leaning += int(holds.any())
        edge = lost[(np.abs(row) <= WALL) & ~holds]
        if edge.size:
            now = look.run.directions[-1][g.neurons] @ data.X[edge].T / data.norms[edge]
            away = keeps_apart(data, g.pattern, edge) | _stays_away(look, g, edge)
            apart &= bool((now < -WALL).all() and away.all())
    beyond = float(cosines.max())
    words = "negative" if beyond < -WALL else "not positive"
    text = f"on the {count(lost.size, 'lost point')} every living group is {words}, cosine at most {beyond:.2e}"
    if leaning:
        text += f"; {count(leaning, 'group slides', 'groups slide')} there, pushed out"
    return beyond, apart and beyond <= WALL, text


def _stays_away(look: Look, group: LimitGroup, points: Index) -> Flags:
    """Which points the neurons of a group do not come nearer to, though their directions do: w . x stays as it is."""
    run, X = look.run, look.run.problem.data.X[points]
    _, at, log_R = look.quiet
    before = min(max(int(np.searchsorted(log_R, log_R[-1] - np.log(QUIET))), at + 1), len(run) - 1)
    then, now = (
        np.exp(run.log_norms[k][group.neurons] - run.log_norms[-1][group.neurons])[:, None]
        * (run.directions[k][group.neurons] @ X.T)
        for k in (before, -1)
    )
    return np.asarray((now < (1 - _NEARER) * then).all(axis=0))


def _balance(look: Look) -> tuple[float, bool, str]:
    """Look whether points in balance are still where their loss is least, after all that growth."""
    still = look.found.still
    if still is None:
        return np.nan, False, "no point is in balance"
    q = look.run.final.margins(look.run.problem.data)[still.points]
    off = float((np.abs(q - still.margins) / (1 + np.abs(still.margins))).max())
    text = (
        f"{count(still.points.size, 'point rests', 'points rest')} in balance, pulls cancel in every pattern: no "
        f"network with these has a loss below {still.floor:.6g}; margins there are within {off:.1e} of the best"
    )
    return off, off <= _STILL, text


def _vanishing(look: Look) -> tuple[float, bool, str]:
    future = look.future
    if future is None:
        return np.nan, False, "the neurons left out were not followed"
    if future.doubt:
        return future.fastest, False, future.doubt
    if future.arrival < np.inf:
        return future.fastest, False, f"neuron {future.first} counts when log|theta| has grown by {future.arrival:.4g}"
    return future.fastest, True, words_of(future)


def words_of(future: Future) -> str:
    """Say of neurons that vanish how fast they do."""
    if not future.neurons.size:
        return "every neuron carries the network"
    who = count(future.neurons.size, "neuron vanishes", "neurons vanish")
    rate = (future.fastest - 1) / 2
    if future.joins:
        return f"{who} for ever, or ends in a direction of the network with the share that it has"
    return f"{who} for ever, whatever hyperplanes come, the slowest like R^{rate:.3g}"


APPROACH = Gate("approach", _approach)
#: What is asked of every candidate, and of one that has passed everything else, because it is dear ...
GATES = (Gate("quiet", _quiet), Gate("KKT", _kkt), APPROACH, Gate("shares", _shares))
INSIDE = Gate("inside", _inside)
VANISHING = Gate("vanishing", _vanishing)  #: ... of the neurons that it leaves out, once they have been followed ...
LOST = Gate("lost", _lost)  #: ... where some points are felt by no neuron ...
BALANCE = Gate("balance", _balance)  #: ... and where some are, but never fitted.


def evidence(look: Look) -> tuple[Evidence, ...]:
    """Try every gate that can be asked; `INSIDE` only where no other gate but `APPROACH` fails."""
    asked = (*GATES, *((VANISHING,) if look.future is not None else ()), *((LOST,) if look.lost.size else ()))
    asked += (BALANCE,) if look.found.still is not None else ()
    look = look._replace(since=grown(look.run, look.found.live, look.found.living))
    found = tuple(gate(look) for gate in asked)
    if any(not item.holds for item in found if item.name != APPROACH.name):
        return found
    return (*found[:2], INSIDE(look), *found[2:])
