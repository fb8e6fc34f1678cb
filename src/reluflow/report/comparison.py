"""A trained network held against where the flow from it leads, and against the best there is."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..data import as_dataset
from ..dynamics import Limit, Trajectory
from ..dynamics import limit as find_limit
from ..margins import KKT, GlobalMargin, Linearity, global_max_margin, kkt, linearity
from ..problem import Interrupted, Network, Problem, ProblemError, Undecided, time_left
from ..problem import time_limit as within
from ..problem.plain import plain
from ..problem.progress import busy
from ..problem.words import count
from ..theory import Facts, Finding, Prediction, check, predict
from ..theory.naming import endings

_BIAS = (
    "biases are weights of a constant feature 1 appended to the data; a last bias is a neuron that sees it alone, so "
    "the flow trains it as two factors where PyTorch trains one number."
)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """What `compare` found.

    Attributes
    ----------
    problem : Problem
        The data, with the constant feature that biases need, and the network.
    margin : float
        The normalised margin of the network.
    wrong : ndarray of int
        Points it does not classify.
    groups : int
        Different neurons at work: those of one output sign that are active on the same points act as one there.
    dead : int
        Neurons without effect on any of the points.
    kkt : KKT or None
        How nearly it is a stationary point of the margin; None where some point is not classified.
    linear : Linearity or None
    limit : Limit or None
        Where the flow from the network goes.
    run : Trajectory or None
        The flow as far as it was followed, where no limit was confirmed.
    optimum : GlobalMargin or None
        Bounds on the largest margin of any network; None for a frozen second layer, to which they do not apply.
    findings : tuple of Finding
        Which theorems apply to the flow from the network.
    promises : tuple of Prediction
        What those that apply say about where it ends.
    troubles : mapping of str to str
        What was not decided, and why.
    stopped : {"", "time", "interrupted"}
    notes : tuple of str
    """

    problem: Problem
    margin: float
    wrong: np.ndarray[Any, np.dtype[np.intp]]
    groups: int
    dead: int
    kkt: KKT | None
    linear: Linearity | None
    limit: Limit | None
    run: Trajectory | None
    optimum: GlobalMargin | None
    findings: tuple[Finding, ...]
    promises: tuple[Prediction, ...]
    troubles: dict[str, str]
    stopped: Literal["", "time", "interrupted"]
    notes: tuple[str, ...]

    @property
    def accuracy(self) -> float:
        """Share of the points that are classified."""
        return 1.0 - self.wrong.size / self.problem.data.n

    @property
    def share_of_limit(self) -> float | None:
        """The margin as part of that of the limit, where there is one."""
        end = self.limit
        return self.margin / end.margin if end is not None and end.kind == "margin" else None

    @property
    def share_of_optimum(self) -> tuple[float, float] | None:
        """Bounds on the margin as part of the largest any network has."""
        best = self.optimum
        if best is None or best.upper <= 0:
            return None
        # The network itself shows that the largest margin is no smaller than its own.
        shares = self.margin / best.upper, self.margin / max(best.lower, self.margin, 1e-300)
        return min(shares), max(shares)

    @property
    def distance(self) -> tuple[float, float] | None:
        """How far the outputs at the points are from the limit's: relative distance, and angle in degrees."""
        return None if self.limit is None else function_distance(self.problem, self.limit.network)

    @property
    def applying(self) -> tuple[Finding, ...]:
        """The theorems that apply."""
        return tuple(f for f in self.findings if f.applies is True)

    @property
    def nearest(self) -> Finding | None:
        """Of the theorems on where a flow ends that do not apply, the one with the fewest conditions in the way."""
        failed = [f for f in self.findings if f.claim in endings() and f.failing]
        return min(failed, key=lambda f: len(f.failing), default=None)

    @property
    def exit_code(self) -> int:
        """130 if it was interrupted, 3 if something asked for is open, else 0."""
        if self.stopped == "interrupted":
            return 130
        return 3 if self.stopped or self.troubles else 0

    @property
    def sentences(self) -> tuple[str, str]:
        """What the network is, and where it goes."""
        return _first(self), _second(self)

    def text(self, width: int = 100) -> str:
        """Render for a terminal."""
        lines = [*textwrap.wrap(" ".join(self.sentences), width), "", repr(self.problem), ""]
        for name, value in _rows(self):
            lines += textwrap.wrap(f"{name:<26}{value}", width, subsequent_indent=" " * 26)
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Everything that fits into a JSON document."""
        return _to_dict(self)

    def __repr__(self) -> str:
        return "Comparison: " + " ".join(self.sentences)


def compare(
    model: Any,
    data: Any,
    y: Any = None,
    *,
    slope: float | None = None,
    limit: bool = True,
    optimum: bool = True,
    time_limit: float | None = 60.0,
    progress: bool | None = None,
    **settings: Any,
) -> Comparison:
    """Hold a trained network against the limit of the flow from it, and against the largest margin there is.

    Parameters
    ----------
    model : Network, torch.nn.Module, state dict or path
        A path: an NPZ file, or what ``torch.save(model.state_dict(), path)`` wrote. See `from_torch` for what is read,
        and how biases become weights of a constant feature.
    data : Dataset, array_like of shape (n, d), or str
        What the model sees; a text names data or a file, as for `dataset`.
    y : array_like of shape (n,), optional
        Labels, -1 or +1, where ``data`` are points.
    slope : float, optional
        Slope of the activation, which a state dict does not tell.
    limit, optimum : bool
        Whether to follow the flow to its limit, and to bracket the largest margin of any network.
    time_limit : float, optional
        Most seconds for everything; None for no limit. What is open then is said, and the rest is kept.
    progress : bool, optional
        Show on stderr what is being done; default: if that is a terminal.
    **settings
        ``loss``, ``reduction``, ``train`` of the `Problem`.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from reluflow import Dataset
    >>> points = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> found = compare(Network([[1.0, 0.5], [-1.0, -0.4]], [1.0, -1.0]), points)
    >>> round(found.margin, 4), round(found.share_of_limit, 4), found.exit_code
    (0.4535, 0.7764, 0)
    """
    problem, notes = _problem(model, data, y, slope, settings)
    found: dict[str, Any] = {}
    troubles: dict[str, str] = {}
    stopped: Literal["", "time", "interrupted"] = ""
    with within(time_limit):
        for name, what, work in _steps(problem, limit, optimum, progress):
            try:
                with busy(what, False if name == "limit" else progress):  # the flow has a bar of its own
                    found[name] = work()
            except (KeyboardInterrupt, Interrupted) as error:
                stopped, troubles[name] = "interrupted", f"interrupted while {what}."
                _keep(found, name, getattr(error, "partial", None))
                break
            except Undecided as error:
                troubles[name] = str(error).replace("is in .partial", "is used here")
                _keep(found, name, error.partial)
        best = found.get("optimum")
        if not stopped and (time_left() <= 0 or (best is not None and best.stopped == "time")):
            stopped = "time"
    q = problem.net.scaled_outputs(problem.data.X)[0] * problem.data.y
    groups, dead = _at_work(problem)
    findings, promises = found.get("theorems", ((), ()))
    return Comparison(
        problem,
        problem.net.normalized_margin(problem.data, problem.train) + 0.0,  # no minus zero
        np.flatnonzero(q <= 0),
        groups,
        dead,
        found.get("kkt"),
        found.get("linear"),
        found.get("limit"),
        found.get("run"),
        best,
        findings,
        promises,
        troubles,
        stopped,
        notes,
    )


def function_distance(problem: Problem, other: Network) -> tuple[float, float]:
    """How far two networks of unit norm are apart at the points: relative distance, and angle in degrees.

    Compared as functions: neurons that only differ in how they share their work are one.
    """
    here, there = (net.normalized(problem.train).outputs(problem.data.X) for net in (problem.net, other))
    sizes = float(np.linalg.norm(here)), float(np.linalg.norm(there))
    if min(sizes) == 0:
        return float("inf"), 90.0
    # Not by the arc cosine, which loses half the digits of small angles.
    u, v = here / sizes[0], there / sizes[1]
    angle = 2 * np.arctan2(np.linalg.norm(u - v), np.linalg.norm(u + v))
    return float(np.linalg.norm(here - there) / sizes[1]), float(np.degrees(angle))


def _problem(
    model: Any, data: Any, y: Any, slope: float | None, settings: dict[str, Any]
) -> tuple[Problem, tuple[str, ...]]:
    points = as_dataset(data, y)
    if isinstance(model, Network):
        if slope is not None and slope != model.slope:
            raise ProblemError(f"slope={slope:g} contradicts the slope {model.slope:g} of the network; leave it out.")
        return Problem(points, model, **settings), ()
    from ..deep import problem_from_file, problem_from_torch

    read = problem_from_file if isinstance(model, (str, Path)) else problem_from_torch
    problem = read(model, points, slope=slope, **settings)
    return problem, (_BIAS,) if problem.data.d > points.d else ()


def _steps(
    problem: Problem, limit: bool, optimum: bool, progress: bool | None
) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """List what is to be done, the cheap things first: a name, in words, and how."""
    data, net, train = problem.data, problem.net, problem.train
    optimum = optimum and train == "both"
    if net.normalized_margin(data, train) > 0:
        yield "kkt", "testing the KKT conditions", lambda: kkt(data, net, train)
    if (net.a[:, None] * net.W).any():  # else the function is zero
        yield "linear", "deciding whether the network is linear", lambda: linearity(net)
    yield "theorems", "asking the theorems", lambda: _ask(problem)
    if limit:

        def follow() -> Limit:
            with within(max(time_left(), 0.01) * (0.5 if optimum else 1.0)):
                return find_limit(problem, optimum=False, progress=progress)

        yield "limit", "following the flow to its limit", follow
    if optimum:
        yield "optimum", "bracketing the largest margin", lambda: global_max_margin(data, net.slope)


def _ask(problem: Problem) -> tuple[tuple[Finding, ...], tuple[Prediction, ...]]:
    """Return which theorems apply, and what they say about the end of the flow."""
    facts = Facts(problem)
    told = predict(facts)
    return tuple(check(facts)), tuple(p for p in told if p.function is not None and p.margin is not None)


def _keep(found: dict[str, Any], name: str, partial: Any) -> None:
    """Keep what an unfinished step has."""
    if isinstance(partial, Trajectory):
        found["run"] = partial
    elif isinstance(partial, GlobalMargin):
        found[name] = partial


def _at_work(problem: Problem) -> tuple[int, int]:
    """Count the different neurons at work on the points, and those without effect."""
    net = problem.net
    z = net.preactivations(problem.data.X).T
    live = (net.a != 0) & (net.activate(z) != 0).any(axis=1)
    keys = np.column_stack([np.sign(net.a[live]), np.sign(z[live])]).astype(np.int8)
    return len(np.unique(keys, axis=0)), int((~live).sum())


# -- in words --------------------------------------------------------------------------------------------


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _of_optimum(found: Comparison) -> str:
    """Say what part of the largest margin it has, as far as that is known."""
    best, share = found.optimum, found.share_of_optimum
    if best is None or share is None or found.margin <= 0:
        return ""
    if found.margin >= best.upper * (1 - 1e-7):
        return "the largest any network can have"
    if best.exact:
        word = _percent(share[0])
    elif best.lower > found.margin:
        word = f"between {_percent(share[0])} and {_percent(share[1])}"
    else:
        word = f"at least {_percent(share[0])}"
    return f"{word} of the largest any network can have"


def _first(found: Comparison) -> str:
    n = found.problem.data.n
    parts = [_of_optimum(found)]
    if found.share_of_limit is not None and found.margin > 0:
        parts.insert(0, f"{_percent(found.share_of_limit)} of what the flow from its weights tends to")
    shares = " and ".join(part for part in parts if part)
    return (
        f"Your network classifies {n - found.wrong.size} of {count(n, 'point')}, with normalised margin "
        f"{found.margin:.4g}{f', {shares}' if shares else ''}."
    )


def _second(found: Comparison) -> str:
    end = found.limit
    if end is None:
        return f"Where the flow from here ends is not known{_why_open(found)}; {_theorem(found)}."
    if end.kind != "margin":
        return f"Trained on by gradient flow it does not learn every point: {end.reason}; {_theorem(found)}."
    line = {True: "linear", False: "not linear", None: "linear or not, which was not decided"}
    boundary, neurons = line[linearity(end.network).linear], count(len(end.living), "effective neuron")
    return (
        f"Trained on by gradient flow it ends at margin {end.margin:.4g} with {neurons} and a boundary that is "
        f"{boundary}; {_theorem(found)}."
    )


def _why_open(found: Comparison) -> str:
    why = found.troubles.get("limit")
    return f" ({why.split(';')[0].rstrip('.')})" if why else " (it was not followed)"


def _theorem(found: Comparison) -> str:
    if not found.findings:
        return "the theorems were not asked"
    if found.promises:
        claims = ", ".join(dict.fromkeys(p.claim for p in found.promises))
        return f"{claims} {'speaks' if len(found.promises) == 1 else 'speak'} about where it ends"
    return "no theorem that applies says where it ends"


def _rows(found: Comparison) -> Iterator[tuple[str, str]]:
    net, q = found.problem.net, found.wrong
    yield "points classified", f"{_percent(found.accuracy)}" + (f", all but {_list(q.tolist())}" if q.size else "")
    yield "normalised margin", f"{found.margin:.10g}"
    dead = f", {found.dead} without effect on any point" if found.dead else ""
    yield "neurons", f"{net.p}, {found.groups} different ones at work on these points{dead}"
    yield "linear", _linear(found)
    yield "KKT point", _kkt(found)
    yield "limit of the flow", _limit(found)
    if found.distance is not None:
        yield (
            "way to the limit",
            f"outputs off by {found.distance[0]:.3g}, at an angle of {found.distance[1]:.3g} degrees",
        )
    yield "largest margin there is", _best(found)
    for one in found.promises:
        needs = f", assuming {', '.join(one.needs)}" if one.needs else ""
        yield "theorem on the end", f"{one.claim} promises margin {one.margin:.10g}{needs}"
    yield "statements that apply", _list([f.claim for f in found.applying]) or "none"
    if found.nearest is not None:
        first = found.nearest.failing[0]
        why = f": {first.why}" if first.why else ""
        yield "nearest that does not", f"{found.nearest.claim}, for want of: {first.name}{why}"
    for note in found.notes:
        yield "note", note


def _list(items: list[Any]) -> str:
    shown = ", ".join(str(item) for item in items[:12])
    return shown + (f" and {len(items) - 12} more" if len(items) > 12 else "")


def _linear(found: Comparison) -> str:
    if found.linear is None:
        return f"undecided: {found.troubles.get('linear', 'the network is zero')}"
    answer = {True: "yes", False: "no", None: "undecided"}[found.linear.linear]
    return f"{answer} ({found.linear.evidence}): {found.linear.why}"


def _kkt(found: Comparison) -> str:
    if found.kkt is None:
        return found.troubles.get("kkt", "no: some point is not classified")
    balance = "" if found.kkt.balance is None else f", balance {found.kkt.balance:.2g}"
    return f"{'yes' if found.kkt.is_kkt() else 'no'}: residual {found.kkt.residual:.2g}{balance} (1e-9 counts as met)"


def _limit(found: Comparison) -> str:
    if found.limit is not None:
        return f"{found.limit.kind}: {found.limit.reason}"
    why = found.troubles.get("limit", "not followed")
    if found.run is None:
        return why
    run = found.run
    margin = run.final.normalized_margin(found.problem.data, found.problem.train)
    return f"{why} So far, at log t = {float(run.log_time[-1]):.6g}: normalised margin {margin:.10g}"


def _best(found: Comparison) -> str:
    best = found.optimum
    if best is None:
        known = "not asked for" if found.problem.train == "both" else "not known for a frozen second layer"
        return found.troubles.get("optimum", known)
    if best.exact:
        return f"{best.lower:.10g}"
    cut = {"time": ", when the time was up", "interrupted": ", when interrupted"}.get(best.stopped, "")
    return f"between {best.lower:.10g} and {best.upper:.10g}{cut}"


def _to_dict(found: Comparison) -> dict[str, Any]:
    data, net, end, best = found.problem.data, found.problem.net, found.limit, found.optimum
    distance, nearest = found.distance, found.nearest
    document = {
        "sentences": list(found.sentences),
        "data": {"name": data.name, "n": data.n, "d": data.d, "fingerprint": data.fingerprint()},
        "network": {
            "neurons": net.p,
            "different": found.groups,
            "without_effect": found.dead,
            "slope": net.slope,
            "margin": found.margin,
            "accuracy": found.accuracy,
            "wrong": found.wrong,
            "kkt": None
            if found.kkt is None
            else {"holds": found.kkt.is_kkt(), "residual": found.kkt.residual, "balance": found.kkt.balance},
            "linear": None
            if found.linear is None
            else {"holds": found.linear.linear, "evidence": found.linear.evidence, "why": found.linear.why},
        },
        "limit": None
        if end is None
        else {
            "kind": end.kind,
            "reason": end.reason,
            "margin": end.margin,
            "neurons": len(end.living),
            "loss_floor": end.loss_floor,
        },
        "distance": None if distance is None else {"outputs": distance[0], "degrees": distance[1]},
        "optimum": None
        if best is None
        else {"lower": best.lower, "upper": best.upper, "exact": best.exact, "stopped": best.stopped},
        "share_of_limit": found.share_of_limit,
        "share_of_optimum": found.share_of_optimum,
        "theorems": {
            "promise": [{"claim": p.claim, "margin": p.margin, "needs": p.needs} for p in found.promises],
            "apply": [f.claim for f in found.applying],
            "nearest": None if nearest is None else nearest.claim,
            "failing": None if nearest is None else nearest.failing[0].to_dict(),
        },
        "troubles": found.troubles,
        "stopped": found.stopped,
        "notes": list(found.notes),
    }
    return plain(document)  # type: ignore[no-any-return]
