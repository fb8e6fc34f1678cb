"""``reluflow certify``: what can be proved of a network, or of the best one there is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ._common import Json, busy, emit, fed_by, print_table, read_data

if TYPE_CHECKING:
    from rich.console import Console

    from ..problem import Dataset, Network


@fed_by(read_data)
def certify(
    data: Dataset,
    network: Annotated[
        Path | None,
        typer.Option(help="NPZ file with W, a (and slope, log_scale). Without it: the network of largest margin."),
    ] = None,
    slope: Annotated[
        float | None, typer.Option(help="Slope of the activation (default: the network's own, else 0).")
    ] = None,
    train: Annotated[str, typer.Option(help="both (layers) or first (second layer frozen).")] = "both",
    tolerance: Annotated[float, typer.Option(help="Residual up to which the KKT conditions count as met.")] = 1e-9,
    json: Json = False,
) -> None:
    """Certify a network: margin, KKT residual, gap to the global optimum, whether it is linear."""
    from ..margins import global_max_margin, kkt
    from ..problem import Network, ProblemError

    net = None if network is None else Network.load(network)
    if net is not None and slope is not None and slope != net.slope:
        raise ProblemError(
            f"--slope {slope:g} contradicts the slope {net.slope:g} of {network}; leave --slope out, or save the "
            "network with the slope that is meant."
        )
    alpha = net.slope if net is not None else slope or 0.0
    with busy("looking for the largest margin of any network"):
        best = global_max_margin(data, alpha)
    with busy("certifying"):
        linear = _linear_margin(data)
        judged = net if net is not None else best.network
        report = _judge(data, judged, train, tolerance)
    document = {
        "data": {"name": data.name, "n": data.n, "d": data.d, "fingerprint": data.fingerprint()},
        "slope": alpha,
        "linear": linear,
        "global": {"lower": best.lower, "upper": best.upper, "exact": best.exact, "neurons": best.network.p},
        "network": {"source": network or "global optimum", **report},
    }
    emit(json, document, lambda out: _print(out, document))
