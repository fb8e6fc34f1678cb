"""Runs, limits and early phases as plain JSON values: what their ``to_dict`` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..margins import stable_rank
from ..problem.axis import axis_place
from ..problem.plain import plain

if TYPE_CHECKING:
    from ..problem import Network, Problem
    from ..problem.types import Signs
    from ..sectors import ExtremalDirections
    from .early.alignment import Alignment
    from .limit.limit import Limit
    from .trajectory import Trajectory

_MOMENTS = 8
_ON_WALL = 1e-9  # |cos| below which a neuron counts as lying on the hyperplane of a sample
_SAME = 1e-9  # 1 - cos below which a neuron has reached an extremal direction


def describe_problem(problem: Problem) -> dict[str, Any]:
    """Say which problem it is, and how large."""
    return {"fingerprint": problem.fingerprint(), "n": problem.data.n, "d": problem.data.d, "p": problem.net.p}


# -- a run -----------------------------------------------------------------------------------------------


def describe_course(run: Trajectory) -> dict[str, Any]:
    """Say how a flow was followed: settings, phases, events."""
    kinds, counts = np.unique(run.events["kind"], return_counts=True)
    return {
        "settings": dict(run.settings),
        "records": len(run),
        "phases": [phase._asdict() for phase in run.phases],
        "events": dict(zip(kinds.tolist(), counts.tolist(), strict=True)),
    }


def describe_run(run: Trajectory) -> dict[str, Any]:
    """Say what a run did: of a flow some moments and its neurons at the end, of a discrete run the curves."""
    data = run.problem.data
    final = {
        "log_loss": run.log_loss[-1],
        "accuracy": float((run.final.scaled_outputs(data.X)[0] * data.y > 0).mean()),
    }
    found: dict[str, Any] = {"problem": describe_problem(run.problem)}
    if run.method == "flow":
        found |= describe_course(run)
        found["moments"] = [_moment(run, k) for k in _moments(run)]
        found["groups"] = _groups(run.problem, run.final)
        final |= {"log_time": run.log_time[-1], "balance_drift": run.balance_drift().max()}
    else:
        settings = dict(run.settings)
        found["records"] = {
            "iteration": settings.pop("iteration", list(range(len(run)))),
            "log_time": run.log_time,
            "log_loss": run.log_loss,
            "log_norm": run.log_norm,
            "normalized_margin": run.normalized_margin(),
            "stable_rank": run.stable_rank(),
        }
        found["settings"] = settings
        final["balance_drift"] = run.balance_drift()[-1]
    return plain({**found, "final": final})  # type: ignore[no-any-return]


def _moments(run: Trajectory) -> list[int]:
    """Choose records that are evenly spread on the axis of time of the picture, the first and the last among them."""
    finite = np.flatnonzero(np.isfinite(run.log_time))
    if finite.size == 0:
        return [len(run) - 1]
    places = axis_place(run.log_time[finite])
    wanted = np.linspace(places[0], places[-1], _MOMENTS)
    near = np.abs(places[None, :] - wanted[:, None]).argmin(axis=1)
    return sorted({0, len(run) - 1, *(int(finite[k]) for k in near[1:])})


def _moment(run: Trajectory, k: int) -> dict[str, Any]:
    """Evaluate one record; None for what a zero network does not have."""
    problem, net = run.problem, run.network(k)
    live = bool(np.isfinite(net.log_norm(problem.train)))
    return {
        "log_time": run.log_time[k],
        "log_loss": run.log_loss[k],
        "min_margin": float(net.margins(problem.data).min()),
        "normalized_margin": net.normalized_margin(problem.data, problem.train) if live else None,
        "stable_rank": stable_rank(net) if net.W.any() else None,
    }


def _groups(problem: Problem, net: Network) -> list[dict[str, Any]]:
    """Collect neurons of one output sign that see every sample from the same side."""
    data = problem.data
    cosines = net.directions @ (data.X / np.where(data.norms > 0, data.norms, 1.0)[:, None]).T
    sides = np.where(np.abs(cosines) <= _ON_WALL, 0, np.sign(cosines)).astype(np.int8)
    signs = np.sign(net.a).astype(int)
    found: dict[tuple[int, bytes], list[int]] = {}
    for j in range(net.p):
        found.setdefault((int(signs[j]), sides[j].tobytes()), []).append(j)
    weight = 2 * net.log_norms if problem.train == "first" else np.logaddexp(2 * net.log_norms, 2 * net.log_outs)
    total = float(np.logaddexp.reduce(weight))
    rows = []
    for (sign, _), members in found.items():
        side, share = sides[members[0]], np.logaddexp.reduce(weight[members])
        mean = net.directions[members].mean(axis=0)
        size = float(np.linalg.norm(mean))
        rows.append(
            {
                "neurons": members,
                "sign": sign,
                "active": int((side > 0).sum()),
                "on_hyperplane": int((side == 0).sum()),
                "state": _state(net, members[0], side),
                "share": float(np.exp(share - total)) if np.isfinite(total) else None,
                "direction": mean / size if size else mean,
            }
        )
    return sorted(rows, key=lambda row: (-(row["share"] or 0.0), row["neurons"][0]))


def _state(net: Network, neuron: int, side: Signs) -> str:
    """Say whether a neuron is zero, feels no sample, or lives."""
    if not net.W[neuron].any():
        return "zero"
    return "dead" if net.slope == 0 and not (side >= 0).any() else "live"


# -- a limit ---------------------------------------------------------------------------------------------


def describe_limit(end: Limit) -> dict[str, Any]:
    """Say where a flow ends, and what supports it; the largest groups first."""
    best, kkt, run = end.optimum, end.kkt, end.trajectory
    return plain(  # type: ignore[no-any-return]
        {
            "problem": describe_problem(end.problem),
            "kind": end.kind,
            "reason": end.reason,
            "margin": end.margin,
            "loss_floor": end.loss_floor,
            "balanced": end.balanced.tolist(),
            "evidence": [item._asdict() for item in end.evidence],
            "groups": [
                {
                    "neurons": group.neurons,
                    "sign": group.sign,
                    "share": group.share,
                    "flow_share": group.flow_share,
                    "rate": group.rate,
                    "active": int((group.pattern > 0).sum()),
                    "on_hyperplane": int((group.pattern == 0).sum()),
                    "direction": group.direction,
                }
                for group in sorted(end.groups, key=lambda group: (-group.share, -group.flow_share))
            ],
            "kkt": None if kkt is None else {"residual": kkt.residual, "balance": kkt.balance},
            "optimum": None if best is None else {"lower": best.lower, "upper": best.upper, "exact": best.exact},
            "network": {"neurons": end.network.p, "log_norm": end.network.log_norm(end.problem.train)},
            "trajectory": {"log_time": run.log_time[-1], "events": int(run.events.size)},
            "plateaus": [plateau.to_dict() for plateau in end.plateaus],
        }
    )


# -- an early phase --------------------------------------------------------------------------------------


def describe_alignment(early: Alignment, ends: ExtremalDirections | None = None) -> dict[str, Any]:
    """Say where the neurons go; with the extremal directions also which of them they reach."""
    found = {
        "problem": describe_problem(early.problem),
        "fates": {fate: early.fates.count(fate) for fate in sorted(set(early.fates))},
        "groups": _destinations(early, ends),
        "last_event": early.last_event.max(),
        "events": int(early.n_events.sum()),
        "nonunique": early.nonunique.nonzero()[0],
        "neurons": [
            {
                "fate": early.fates[j],
                "sign": int(early.signs[j]),
                "direction": early.direction[j],
                "log_gain": early.log_gain[j],
                "growth": early.growth[j],
                "last_event": early.last_event[j],
                "events": int(early.n_events[j]),
            }
            for j in range(early.p)
        ],
    }
    if ends is not None:
        directions = [{"kind": e.kind, "value": e.value, "direction": e.direction} for e in ends]
        found["extremal_directions"] = {"complete": ends.complete, "directions": directions}
    return plain(found)  # type: ignore[no-any-return]


def _destinations(early: Alignment, ends: ExtremalDirections | None) -> list[dict[str, Any]]:
    """Collect neurons of the same fate, sign and final sector, and which extremal direction they reach."""
    rows = []
    for group in early.groups:
        for fate in dict.fromkeys(early.fates[j] for j in group.neurons):
            members = [int(j) for j in group.neurons if early.fates[j] == fate]
            direction = early.direction[members[0]]
            kind = "max" if group.sign > 0 else "min"
            cosines = [float(e.direction @ direction) if e.kind == kind else -2.0 for e in ends or ()]
            best = int(np.argmax(cosines)) if cosines else -1
            turned = fate in ("aligned", "sliding", "shrinking")
            rows.append(
                {
                    "fate": fate,
                    "sign": int(group.sign),
                    "neurons": members,
                    "direction": direction if turned else None,
                    "extremal": best if turned and best >= 0 and cosines[best] > 1 - _SAME else None,
                    "growth": early.growth[members[0]],
                    "last_event": float(early.last_event[members].max()),
                }
            )
    return sorted(rows, key=lambda row: (-len(row["neurons"]), row["fate"]))
