"""``reluflow compare``: a trained network, the limit of the flow from it, and the best there is."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import NETWORK_HELP, Json, emit, fed_by, parameters, read_data

if TYPE_CHECKING:
    from ..problem import Dataset

_MODEL = Annotated[Path, typer.Argument(metavar="MODEL", help=f"The network: {NETWORK_HELP}", show_default=False)]


def _read(model: Path, **arguments: Any) -> tuple[Path, Dataset]:
    """Find the data, of which the file of the network stands first."""
    return model, read_data(**arguments)


_read.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [inspect.Parameter("model", inspect.Parameter.KEYWORD_ONLY, annotation=_MODEL), *parameters(read_data).values()]
)


@fed_by(_read)
def compare(
    given: Any,
    slope: Annotated[
        float | None, typer.Option(help="Slope of the activation, which a state dict does not tell.")
    ] = None,
    loss: Annotated[str, typer.Option(help="logistic or exponential.")] = "logistic",
    reduction: Annotated[str, typer.Option(help="mean or sum.")] = "mean",
    train: Annotated[str, typer.Option(help="both (layers) or first (second layer frozen).")] = "both",
    no_limit: Annotated[bool, typer.Option("--no-limit", help="Do not follow the flow to its limit.")] = False,
    no_optimum: Annotated[
        bool, typer.Option("--no-optimum", help="Do not bracket the largest margin of any network.")
    ] = False,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="Stop then, and print what was found (exit code 3).")
    ] = 60.0,
    json: Json = False,
) -> None:
    """Hold a trained network against the limit of the flow from it and the best there is."""
    from ..report import compare as hold

    model, data = given
    found = hold(
        model,
        data,
        slope=slope,
        limit=not no_limit,
        optimum=not no_optimum,
        time_limit=time_limit,
        loss=loss,
        reduction=reduction,
        train=train,
    )
    emit(json, found.to_dict(), lambda out: out.print(found.text(out.width if out.is_terminal else 100)))
    if found.exit_code:
        raise typer.Exit(found.exit_code)
