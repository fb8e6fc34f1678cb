"""``reluflow flow``: gradient flow to any time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .align import _vector
from .common import Json, TimeLimit, emit, fed_by, finish, or_built_in, print_table, read_problem
from .output import PICTURES, RUNS, check_target, write
from .theory import BUILT_IN

if TYPE_CHECKING:
    from rich.console import Console

    from ..dynamics import Trajectory, Until
    from ..problem import Network, Problem
    from ..problem.errors import Undecided

_MOMENTS = 8
_MOST_GROUPS = 20
_ON_WALL = 1e-9  # |cos| below which a neuron counts as lying on the hyperplane of a sample


@fed_by(or_built_in(read_problem, BUILT_IN))
def flow(
    problem: Problem,
    until: Annotated[
        list[str] | None,
        typer.Option(
            help="When to stop, at the first of: time=, log_time=, loss=, log_loss=, margin=, aligned; "
            "e.g. log_time=1e6,loss=1e-3. May be repeated. Default: log_time=100.",
            metavar="CONDITIONS",
            show_default=False,
        ),
    ] = None,
    rtol: Annotated[float, typer.Option(help="Tolerance of a step.")] = 1e-9,
    max_steps: Annotated[int, typer.Option(help="Most steps of integration.")] = 100_000,
    save: Annotated[
        Path | None, typer.Option(help="Write the run: .npz (all of it), .csv or .tsv (its curves).")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a picture of the run: .png, .svg or .pdf.")] = None,
    time_limit: TimeLimit = None,
    json: Json = False,
) -> None:
    """Follow the gradient flow through every kink to any time."""
    from ..dynamics import flow as integrate
    from ..problem import Undecided

    stop = parse_until(until or [])
    check_target("--save", save, RUNS)
    check_target("--plot", plot, PICTURES)
    try:
        run = integrate(problem, stop, rtol=rtol, max_steps=max_steps, time_limit=time_limit)
    except Undecided as exc:
        keep_partial(exc, save, plot, json)
        raise
    document = _keep(run, save, plot)
    emit(json, document, lambda out: _print(out, run, document))


def parse_until(texts: list[str]) -> Until | None:
    """Read conditions such as ``log_time=1e6,loss=1e-3`` or ``aligned``; None where nothing was said."""
    from dataclasses import fields

    from ..dynamics import Until
    from ..problem import ProblemError

    known = [f.name for f in fields(Until)]
    words = ", ".join(f"{name}=NUMBER" for name in known if name != "aligned") + " and the bare word aligned"
    found: dict[str, Any] = {}
    for part in (part.strip() for text in texts for part in text.split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in known:
            what = f"{part!r} is" if part else "an empty condition is"
            raise ProblemError(f"--until: {what} not known; it knows {words}, separated by commas.")
        if name in found:
            raise ProblemError(f"--until: {name} is given twice ({part!r} the second time); give it once.")
        if (name == "aligned") == bool(equals):
            need = "takes no value; write it alone" if name == "aligned" else f"needs a value, as in {name}=NUMBER"
            raise ProblemError(f"--until: {part!r} was given, but {name} {need}. It knows {words}.")
        try:
            found[name] = True if name == "aligned" else float(value)
        except ValueError:
            raise ProblemError(f"--until: {part!r} was given, but {value!r} is not a number.") from None
    return Until(**found) if found else None


def keep_partial(exc: Undecided, save: Path | None, plot: Path | None, json: bool) -> None:
    """Save, draw and show what there is of a run that ended early."""
    from ..dynamics import Trajectory

    run = exc.partial
    if isinstance(run, Trajectory):
        document = _keep(run, save, plot)
        finish(json, document, lambda out: _print(out, run, document), exc)


def _keep(run: Trajectory, save: Path | None, plot: Path | None) -> dict[str, Any]:
    from ..report import plot_flow

    write("--save", save, run.save)
    write("--plot", plot, lambda path: plot_flow(run, path))
    return {**_document(run), "saved": save, "plot": plot}


def _document(run: Trajectory) -> dict[str, Any]:
    problem = run.problem
    kinds, counts = _count(run.events["kind"])
    return {
        "problem": {"fingerprint": problem.fingerprint(), "n": problem.data.n, "d": problem.data.d, "p": run.p},
        "settings": dict(run.settings),
        "records": len(run),
        "phases": [phase._asdict() for phase in run.phases],
        "events": dict(zip(kinds, counts, strict=True)),
        "moments": [_moment(run, k) for k in _moments(run)],
        "groups": _groups(run.problem, run.final),
        "final": {
            "log_time": run.log_time[-1],
            "log_loss": run.log_loss[-1],
            "accuracy": float((run.final.scaled_outputs(problem.data.X)[0] * problem.data.y > 0).mean()),
            "balance_drift": run.balance_drift().max(),
        },
    }


def _count(kinds: Any) -> tuple[list[str], list[int]]:
    import numpy as np

    names, counts = np.unique(kinds, return_counts=True)
    return [str(name) for name in names], [int(n) for n in counts]


def _moments(run: Trajectory) -> list[int]:
    """Choose records that are evenly spread on the axis of time of the picture, the first and the last among them."""
    import numpy as np

    from ..report import axis_place

    finite = np.flatnonzero(np.isfinite(run.log_time))
    if finite.size == 0:
        return [len(run) - 1]
    places = axis_place(run.log_time[finite])
    wanted = np.linspace(places[0], places[-1], _MOMENTS)
    near = np.abs(places[None, :] - wanted[:, None]).argmin(axis=1)
    return sorted({0, len(run) - 1, *(int(finite[k]) for k in near[1:])})


def _moment(run: Trajectory, k: int) -> dict[str, Any]:
    """Evaluate one record; None for what a zero network does not have."""
    import numpy as np

    from ..margins import stable_rank

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
    import numpy as np

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


def _state(net: Network, neuron: int, side: Any) -> str:
    """Say whether a neuron is zero, feels no sample, or lives."""
    if not net.W[neuron].any():
        return "zero"
    return "dead" if net.slope == 0 and not (side >= 0).any() else "live"


def _print(out: Console, run: Trajectory, document: dict[str, Any]) -> None:
    from ..problem.words import count

    out.print(repr(run.problem))
    out.print(repr(run).split("\n")[0])
    out.print()
    print_table(
        out,
        ("phase", "log t from", "to", "steps"),
        [(f.name, f"{f.log_start:.6g}", f"{f.log_end:.6g}", f.steps) for f in run.phases],
    )
    events = ", ".join(f"{n} {kind}" for kind, n in document["events"].items())
    out.print(f"\n{count(run.events.size, 'event')}{': ' + events if events else ''}\n")
    names = ("log_time", "log_loss", "min_margin", "normalized_margin", "stable_rank")
    print_table(
        out,
        ("log t", "log loss", "min margin", "normalised", "stable rank"),
        [tuple("-" if row[n] is None else f"{row[n]:.6g}" for n in names) for row in document["moments"]],
    )
    out.print()
    groups, final = document["groups"], document["final"]
    print_table(
        out,
        ("neurons", "a", "share", "active", "on walls", "direction"),
        [
            (
                len(row["neurons"]),
                sign_word(row["sign"]),
                "-" if row["share"] is None else f"{row['share']:.4g}",
                f"{row['active']} of {run.problem.data.n}" if row["state"] == "live" else row["state"],
                row["on_hyperplane"],
                _vector(row["direction"]),
            )
            for row in groups[:_MOST_GROUPS]
        ],
        title="At the end (neurons of one sign that see every sample from the same side)",
    )
    if len(groups) > _MOST_GROUPS:
        out.print(f"... and {count(len(groups) - _MOST_GROUPS, 'more group')} (--json prints all)")
    out.print(
        f"\n{100 * final['accuracy']:.4g} % of the samples are classified correctly; "
        f"drift of the conserved quantity {final['balance_drift']:.1e}."
    )
    for word, name in (("Trajectory", "saved"), ("Picture", "plot")):
        if document[name]:
            out.print(f"{word} written to {document[name]}")


def sign_word(sign: int) -> str:
    """Say a sign in one character."""
    return "+" if sign > 0 else "-" if sign < 0 else "0"
