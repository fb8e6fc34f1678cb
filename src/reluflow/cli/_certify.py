"""``reluflow certify``: what can be proved of a network, or of the best one there is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ._common import Json, Label, Negative, Positive, busy, emit, fed_by, print_table, read_data

if TYPE_CHECKING:
    from rich.console import Console

    from ..problem import Dataset, Network, Problem


def _read(
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="A file or a name, as for the other verbs.", show_default=False),
    ] = None,
    label: Label = None,
    negative: Negative = None,
    positive: Positive = None,
    features: Annotated[
        Path | None, typer.Option(help="The data as a file of features (NPZ with X and y), in place of DATA.")
    ] = None,
) -> Dataset:
    """Find the data, under either name."""
    from ..problem import DataError

    if (data is None) == (features is None):
        given = "both were given" if data is not None else "neither was given"
        raise DataError(f"the data are either DATA or --features FILE, and {given}.")
    return read_data(str(features) if data is None else data, label, negative, positive)


@fed_by(_read)
def certify(
    data: Dataset,
    network: Annotated[
        Path | None,
        typer.Option(help="NPZ file with W, a (and slope, log_scale). Without it: the network of largest margin."),
    ] = None,
    torch: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL.PT",
            help="State dict of Linear, (leaky) ReLU, Linear, by torch.save(model.state_dict(), ...).",
        ),
    ] = None,
    slope: Annotated[
        float | None,
        typer.Option(
            help="Slope of the activation (default: the network's own, else 0; a state dict does not know it)."
        ),
    ] = None,
    drop_bias: Annotated[bool, typer.Option("--drop-bias", help="With --torch: leave out the last bias.")] = False,
    limit: Annotated[
        bool, typer.Option("--limit", help="Follow the flow from the network to its limit too (may take long).")
    ] = False,
    train: Annotated[str, typer.Option(help="both (layers) or first (second layer frozen).")] = "both",
    tolerance: Annotated[float, typer.Option(help="Residual up to which the KKT conditions count as met.")] = 1e-9,
    budget: Annotated[int, typer.Option(help="Most activation patterns to list for the global optimum.")] = 100_000,
    json: Json = False,
) -> None:
    """Certify a network: margin, KKT residual, gap to the global optimum, whether it is linear."""
    from ..margins import global_max_margin
    from ..problem import Network, Problem, ProblemError

    net: Network | None
    if torch is not None:
        data, net = _import(torch, network, data, slope, drop_bias)
    elif drop_bias:
        raise ProblemError("--drop-bias belongs to --torch MODEL.PT, which was not given.")
    else:
        net = None if network is None else Network.load(network)
    if limit and net is None:
        raise ProblemError("--limit follows the flow from a network; give one with --network or --torch.")
    if net is not None and slope is not None and slope != net.slope:
        raise ProblemError(
            f"--slope {slope:g} contradicts the slope {net.slope:g} of {network}; leave --slope out, or save the "
            "network with the slope that is meant."
        )
    alpha = net.slope if net is not None else 0.0 if slope is None else slope
    with busy("bracketing the largest margin of any network"):
        best = global_max_margin(data, alpha, budget=budget)
    with busy("certifying"):
        document: dict[str, Any] = {
            "data": {"name": data.name, "n": data.n, "d": data.d, "fingerprint": data.fingerprint()},
            "slope": alpha,
            "separator": _separator(data),
            "best": {"lower": best.lower, "upper": best.upper, "exact": best.exact, "method": best.method},
            "network": {
                "source": network or torch or "attains the largest margin",
                "neurons": (net or best.network).p,
                **_judge(data, net or best.network, train, tolerance, best.lower, best.upper),
            },
        }
        if torch is not None:
            document["network"]["slope_assumed"] = slope is None
            document["orthogonal"] = _orthogonal(data)
    if limit and net is not None:
        with busy("following the flow to its limit"):
            document["limit"] = _limit(Problem(data, net, train=train))  # type: ignore[arg-type]
    emit(json, document, lambda out: _print(out, document))


def _import(
    torch: Path, network: Path | None, data: Dataset, slope: float | None, drop_bias: bool
) -> tuple[Dataset, Network]:
    """Read a checkpoint, and give the data the constant feature that its bias needs."""
    from ..deep import problem_from_torch
    from ..problem import ProblemError

    if network is not None:
        raise ProblemError("--network and --torch both name the network to certify; give one of them.")
    problem = problem_from_torch(torch, data, drop_bias, slope=slope)
    return problem.data, problem.net


def _orthogonal(data: Dataset) -> dict[str, Any]:
    """How nearly the features are orthogonally separable."""
    from dataclasses import asdict

    from ..deep import separability

    found = separability(data.X, data.y)
    return {"separable": found.separable, **asdict(found)}


def _limit(problem: Problem) -> dict[str, Any]:
    """How far a network is from where the flow takes it."""
    import numpy as np

    from ..dynamics import limit
    from ..problem import Undecided

    try:
        end = limit(problem)
    except Undecided as error:
        return {"found": False, "why": str(error)}
    # Compared as functions on the points: neurons that only differ in how they share their work are one.
    here, there = (net.normalized(problem.train).outputs(problem.data.X) for net in (problem.net, end.network))
    distance = float(np.linalg.norm(here - there) / np.linalg.norm(there))
    return {"found": True, "kind": end.kind, "margin": end.margin, "distance": distance, "why": end.reason}


def _separator(data: Dataset) -> dict[str, Any]:
    """Describe the linear max-margin separator, or what proves that there is none."""
    from ..margins import max_margin
    from ..problem import NotSeparable, Undecided

    try:
        solution = max_margin(data)
    except NotSeparable as error:
        used = error.certificate.nonzero()[0]
        return {
            "separable": False,
            "certificate": {"samples": used, "weights": error.certificate[used], "residual": error.residual},
        }
    except Undecided as error:
        return {"separable": None, "why": str(error)}
    return {
        "separable": True,
        "margin": solution.margin,
        "direction": solution.direction,
        "support": solution.support,
        "degenerate": solution.degenerate,
        "residual": solution.residuals.worst,
    }


def _judge(data: Dataset, net: Network, train: str, tolerance: float, lower: float, upper: float) -> dict[str, Any]:
    """Collect what is certified of one network."""
    from ..margins import kkt, linearity

    margin = net.normalized_margin(data, train) if net.W.any() else 0.0  # type: ignore[arg-type]
    found: dict[str, Any] = {"margin": margin, "kkt": None, "gap": None}
    if margin > 0:
        answer = kkt(data, net, train)  # type: ignore[arg-type]
        found["kkt"] = {
            "holds": answer.is_kkt(tolerance),
            "residual": answer.residual,
            "balance": answer.balance,
            "active": answer.active,
            "multipliers": answer.multipliers[answer.active],
            "kinks": answer.kinks,
            "kink_tolerance": answer.kink_tol,
        }
    if train == "both":
        found["gap"] = {"at_least": max(lower - margin, 0.0), "at_most": max(upper - margin, 0.0)}
    if (net.a[:, None] * net.W).any():  # else the function is zero
        line = linearity(net)
        found["linear"] = {
            "holds": line.linear,
            "evidence": line.evidence,
            "direction": line.direction,
            "why": line.why,
        }
    return found


def _print(out: Console, document: dict[str, Any]) -> None:
    from ..problem._words import count

    data, best, net = document["data"], document["best"], document["network"]
    out.print(f"{data['name'] or 'data'}: n={data['n']}, d={data['d']}; networks of slope {document['slope']:g}")
    out.print()
    bounds = f"{best['lower']:.12g}" if best["exact"] else f"between {best['lower']:.12g} and {best['upper']:.12g}"
    assumed = ", taken as ReLU (a state dict does not tell; --slope does)" if net.get("slope_assumed") else ""
    rows: list[tuple[str, str]] = [
        ("linear separator", _separator_words(document["separator"])),
        ("largest margin of any network", f"{bounds} ({'exact' if best['exact'] else 'not closed'}, {best['method']})"),
        ("network", f"{count(net['neurons'], 'neuron')}, {net['source']}{assumed}"),
        ("its normalised margin", f"{net['margin']:.12g}"),
    ]
    if net["kkt"] is None:
        rows.append(("KKT conditions", "not defined: some point is not classified"))
    else:
        word = "hold" if net["kkt"]["holds"] else "violated"
        balance = "" if net["kkt"]["balance"] is None else f", balance {net['kkt']['balance']:.1e}"
        kinks = f", {count(len(net['kkt']['kinks']), 'kink')}" if len(net["kkt"]["kinks"]) else ""
        where = f"{count(len(net['kkt']['active']), 'active point')}{kinks}"
        rows.append(("KKT conditions", f"{word}: residual {net['kkt']['residual']:.1e}{balance} ({where})"))
    if net["gap"] is not None:
        least, most = net["gap"]["at_least"], net["gap"]["at_most"]
        words = f"{most:.3g} at most" if least < 1e-12 else f"{least:.3g} to {most:.3g}"
        rows.append(("gap to the largest margin", words))
    if "orthogonal" in document:
        rows.append(("orthogonally separable", _orthogonal_words(document["orthogonal"])))
    if "limit" in document:
        end = document["limit"]
        words = f"undecided: {end['why']}"
        if end["found"]:
            words = (
                f"margin {end['margin']:.12g} ({end['kind']}); outputs at the points are off by {end['distance']:.3g}"
            )
        rows.append(("limit of the flow from here", words))
    if "linear" in net:
        answer = {True: "yes", False: "no", None: "undecided"}[net["linear"]["holds"]]
        rows.append(("linear classifier", f"{answer} ({net['linear']['evidence']}): {net['linear']['why']}"))
    print_table(out, ("what", "certified"), rows)


def _orthogonal_words(found: dict[str, Any]) -> str:
    cross = "no pair across" if found["cross"] is None else f"{found['cross']:.6g} across (x_i.x_j <= 0)"
    part = "" if found["complete"] else f" ({found['samples']} samples drawn)"
    answer = {True: "yes", False: "no", None: "undecided"}[found["separable"]]
    return f"{answer}: share of pairs as needed {found['same']:.6g} within classes (x_i.x_j > 0), {cross}{part}"


def _separator_words(found: dict[str, Any]) -> str:
    if found["separable"] is None:
        return f"undecided: {found['why']}"
    if not found["separable"]:
        proof = found["certificate"]
        return (
            f"none: a convex combination of {len(proof['samples'])} signed points vanishes to {proof['residual']:.1e}"
        )
    from ..problem._words import count

    ties = f", {', '.join(found['degenerate'])}" if found["degenerate"] else ""
    tight = count(len(found["support"]), "tight point")
    return f"margin {found['margin']:.12g}, {tight}{ties}, residual {found['residual']:.1e}"
