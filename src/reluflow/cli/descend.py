"""``reluflow descend``: training by gradient descent, stochastic gradient descent or Adam."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import Json, TimeLimit, fed_by, finish, or_built_in, read_problem, show
from .output import RUNS, check_target, write
from .theory import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..dynamics import Trajectory
    from ..problem import Problem, Undecided

_STEPS = 10_000  # where neither steps nor epochs are given


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

    check_target("--save", save, RUNS)
    check_target("--checkpoint", checkpoint, (".npz",))
    run, trouble = _followed(
        lambda: train(
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
    )
    write("--save", save, run.save)
    finish(json, {**run.to_dict(), "saved": save}, lambda out: show(out, run, {"Trajectory": save}), trouble)


def _followed(train: Callable[[], Trajectory]) -> tuple[Trajectory, Undecided | None]:
    """Return the run, and why it ended early, if it did."""
    from ..problem import Interrupted, Undecided

    try:
        run = train()
    except Undecided as error:
        return error.partial, error
    if not run.settings["interrupted"]:
        return run, None
    at = run.settings["iteration"][-1]
    return run, Interrupted(f"interrupted after iteration {at}; what was found so far is kept.")
