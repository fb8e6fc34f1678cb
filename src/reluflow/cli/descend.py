"""``reluflow descend``: training by gradient descent, stochastic gradient descent or Adam."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import Json, TimeLimit, fed_by, finish, or_built_in, print_table, read_problem
from .output import RUNS, check_target, write
from .theory import BUILT_IN

if TYPE_CHECKING:
    from rich.console import Console

    from ..dynamics import Trajectory
    from ..problem import Problem

_STEPS = 10_000  # where neither steps nor epochs are given
_ROWS = 12  # records shown; --json and --save hold all


@fed_by(or_built_in(read_problem, BUILT_IN))
def descend(
    problem: Problem,
    step: Annotated[
        float | None, typer.Option(help="The step (default: 0.001 for adam, else a tenth of the fastest growth time).")
    ] = None,
    method: Annotated[str, typer.Option(help="gd, sgd or adam.")] = "gd",
    steps: Annotated[int | None, typer.Option(help=f"Number of iterations (default {_STEPS}).")] = None,
    epochs: Annotated[int | None, typer.Option(help="Number of passes over the data, instead of --steps.")] = None,
    batch: Annotated[int | None, typer.Option(help="Batch size (sgd, adam).")] = None,
    order_seed: Annotated[int, typer.Option(help="Seed of the order of the samples.")] = 0,
    schedule: Annotated[
        str, typer.Option(help="fixed, loss-scaled (step/loss) or loss-log-scaled (step/(loss (1 + log 1/loss))).")
    ] = "fixed",
    until_loss: Annotated[float | None, typer.Option(help="Stop when the loss is not larger.")] = None,
    subgradient: Annotated[
        float | None, typer.Option(help="Derivative of the activation at 0 (default: its slope).")
    ] = None,
    dtype: Annotated[str, typer.Option(help="float64 or float32.")] = "float64",
    records: Annotated[int, typer.Option(help="How many iterates to record, geometrically spread.")] = 200,
    fast_forward: Annotated[
        bool, typer.Option("--fast-forward", help="Jump through the tiny phase along its exact solution (gd).")
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Keep the run here (.npz) every few minutes; the same command goes on from it."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write the run: .npz (all of it), .csv or .tsv (its curves).")
    ] = None,
    time_limit: TimeLimit = None,
    json: Json = False,
) -> None:
    """Train as people do, in steps, and look at the run as at a flow."""
    from ..dynamics import descend as train
    from ..problem import Interrupted, Undecided

    check_target("--save", save, RUNS)
    check_target("--checkpoint", checkpoint, (".npz",))
    trouble: Undecided | None = None
    try:
        run = train(
            problem,
            method,
            step=step,
            steps=_STEPS if steps is None and epochs is None else steps,
            epochs=epochs,
            batch=batch,
            seed=order_seed,
            schedule=schedule,
            until_loss=until_loss,
            subgradient=subgradient,
            dtype=dtype,
            record=records,
            fast_forward=fast_forward,
            checkpoint=checkpoint,
            time_limit=time_limit,
        )
        if run.settings["interrupted"]:
            at = run.settings["iteration"][-1]
            trouble = Interrupted(f"interrupted after iteration {at}; what was found so far is kept.")
    except Undecided as error:
        run, trouble = error.partial, error
    write("--save", save, run.save)
    document = _document(run, save)
    finish(json, document, lambda out: _print(out, run, document), trouble)


def _document(run: Trajectory, save: Path | None) -> dict[str, Any]:
    """Collect what is worth seeing of every record, and the end."""
    problem = run.problem
    settings = dict(run.settings)
    iteration = settings.pop("iteration")
    return {
        "problem": {
            "fingerprint": problem.fingerprint(),
            "n": problem.data.n,
            "d": problem.data.d,
            "p": run.p,
        },
        "settings": settings,
        "records": {
            "iteration": iteration,
            "log_time": run.log_time,
            "log_loss": run.log_loss,
            "log_norm": run.log_norm,
            "normalized_margin": run.normalized_margin(),
            "stable_rank": run.stable_rank(),
        },
        "final": {
            "log_loss": run.log_loss[-1],
            "accuracy": float((run.final.scaled_outputs(problem.data.X)[0] * problem.data.y > 0).mean()),
            "balance_drift": run.balance_drift()[-1],
        },
        "saved": save,
    }


def _print(out: Console, run: Trajectory, document: dict[str, Any]) -> None:
    import numpy as np

    out.print(repr(run.problem))
    out.print(repr(run))
    out.print()
    shown = np.unique(np.round(np.linspace(0, len(run) - 1, min(len(run), _ROWS))).astype(int))
    records = document["records"]
    print_table(
        out,
        ("iteration", "log t", "log loss", "log norm", "margin", "stable rank"),
        [(records["iteration"][k], *(f"{records[name][k]:.6g}" for name in list(records)[1:])) for k in shown],
    )
    out.print()
    final, settings = document["final"], document["settings"]
    if settings["fast_forward"]:
        out.print(f"The first {settings['fast_forward']} iterations were jumped along the exact solution.")
    why = {
        "steps": "All steps were taken",
        "loss": "The loss was reached",
        "interrupted": "Interrupted",
        "time": "The time limit ended",
        "diverged": "The weights overflowed",
        "callback": "Stopped",
    }
    out.print(f"{why[settings['stopped']]}: {100 * final['accuracy']:.4g} % of the samples are classified correctly.")
    if document["saved"]:
        out.print(f"Trajectory written to {document['saved']}")
