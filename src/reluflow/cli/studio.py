"""``reluflow studio``: the playground in the browser."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from .common import Json, emit, fed_by, or_built_in, read_data
from .theory import BUILT_IN

if TYPE_CHECKING:
    from ..problem import Dataset


@fed_by(or_built_in(read_data, BUILT_IN))
def studio(
    data: Dataset,
    ctx: typer.Context,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 takes a free one.")] = 8797,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
    json: Json = False,
) -> None:
    """Open a playground in the browser: draw points, watch the neurons, see what the theorems say.

    It listens to this machine only and asks nobody else. Without DATA it opens with an example.
    """
    from ..studio import serve, state_of

    chosen = getattr(ctx.get_parameter_source("data"), "name", "") == "COMMANDLINE"

    def tell(address: str) -> None:
        emit(json, {"address": address}, lambda out: out.print(f"The studio is open at {address} (Ctrl-C closes it)"))
        sys.stdout.flush()  # nobody waits for the end

    serve(state_of(data) if chosen else None, port, not no_browser, tell)
