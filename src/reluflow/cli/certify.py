"""``reluflow certify``: what can be proved of a network, or of the best one there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import NETWORK_HELP, Json, emit, fed_by, noted, print_table, with_table

if TYPE_CHECKING:
    from rich.console import Console

    from ..problem import Dataset, Network, Problem


@with_table
def _read(
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="A file or a name, as for the other verbs.", show_default=False),
    ] = None,
    *,
    table: dict[str, Any],
    features: Annotated[
        Path | None, typer.Option(help="The data as a file of features (NPZ with X and y), in place of DATA.")
    ] = None,
) -> Dataset:
    """Find the data, under either name."""
    from ..data import as_dataset
    from ..problem import DataError

    if (data is None) == (features is None):
        given = "both were given" if data is not None else "neither was given"
        raise DataError(f"the data are either DATA or --features FILE, and {given}.")
    return noted(as_dataset(str(features) if data is None else data, **table))


@fed_by(_read)
def certify(
    data: Dataset,
    network: Annotated[
        Path | None, typer.Option(help=f"What to certify: {NETWORK_HELP} Without it: the network of largest margin.")
    ] = None,
    slope: Annotated[
        float | None, typer.Option(help="Slope of the activation.", show_default="that of the NPZ file; else 0, ReLU")
    ] = None,
    limit: Annotated[
        bool, typer.Option("--limit", help="Follow the flow from the network to its limit too (may take long).")
    ] = False,
    no_optimum: Annotated[
        bool, typer.Option("--no-optimum", help="Do not bracket the largest margin of any network (may take long).")
    ] = False,
    train: Annotated[str, typer.Option(help="both (layers) or first (second layer frozen).")] = "both",
    tolerance: Annotated[float, typer.Option(help="Residual up to which the KKT conditions count as met.")] = 1e-9,
    budget: Annotated[
        int | None,
        typer.Option(help="Most activation patterns to look at for the largest margin.", show_default="1000000"),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Stop then, and print what was found (exit code 3).")
    ] = None,
    json: Json = False,
) -> None:
    """Certify a network: margin, KKT residual, gap to the global optimum, whether it is linear."""
    from ..problem import time_limit as within
    from ..problem.network import check_slope

    optimum = not no_optimum
    _check_options(network, limit, optimum, train, tolerance, budget)
    net = None
    if network is not None:
        from ..deep import problem_from_file

        problem = problem_from_file(network, data, slope=slope)
        data, net = problem.data, problem.net
    alpha = net.slope if net is not None else check_slope(slope or 0.0)
    document: dict[str, Any] = {
        "data": {"name": data.name, "n": data.n, "d": data.d, "fingerprint": data.fingerprint()},
        "slope": alpha,
        **dict.fromkeys(("separator", "best", "network", "unfinished")),
    }
    steps = _steps(document, data, net, alpha, str(network), limit, optimum, train, tolerance, budget)
    with within(time_limit):
        code = _collect(document, steps)
    if train == "both" and document["network"] is not None:
        document["network"]["gap"] = _gap(document)
    emit(json, document, lambda out: _print(out, document))
    if code:
        raise typer.Exit(code)


def _check_options(
    network: Path | None, limit: bool, optimum: bool, train: str, tolerance: float, budget: int | None
) -> None:
    """Refuse what cannot be meant, before anything takes long."""
    from ..margins.global_ import check_effort
    from ..margins.kkt import check_relative
    from ..problem import ProblemError
    from ..problem.network import check_train

    check_train(train)
    check_relative("--tolerance", tolerance)
    check_effort(budget=1 if budget is None else budget)
    if limit and network is None:
        raise ProblemError("--limit follows the flow from a network, and none was given; give one with --network.")
    if not optimum and network is None:
        raise ProblemError(
            "--no-optimum leaves out the network of largest margin, and no other was given; give one with --network."
        )
    if not optimum and budget is not None:
        raise ProblemError("--budget is for the largest margin, which --no-optimum leaves out; give one of them.")


def _steps(
    document: dict[str, Any],
    data: Dataset,
    net: Network | None,
    slope: float,
    source: str,
    limit: bool,
    optimum: bool,
    train: str,
    tolerance: float,
    budget: int | None,
) -> Iterator[tuple[str, Callable[[], None]]]:
    """List what is to be done, what takes longest last; each step fills in its part of the document."""
    from ..deep import is_torch_file
    from ..problem import Problem, time_left

    def judge(what: Network, name: str) -> None:
        document["network"] = {"source": name, "neurons": what.p, "gap": None}
        _judge(document["network"], data, what, train, tolerance)

    yield "looking for the linear separator", lambda: document.update(separator=_separator(data))
    if net is not None:
        yield "certifying the network", lambda: judge(net, source)
        if is_torch_file(source):
            yield "looking at the features", lambda: document.update(orthogonal=_orthogonal(data))
        if limit:
            share = 0.5 if optimum else 1.0
            problem = Problem(data, net, train=train)  # type: ignore[arg-type]
            yield "following the flow to its limit", lambda: _limit(document, problem, share * time_left())
    if optimum:
        best: list[Network] = []
        yield (
            "bracketing the largest margin of any network",
            lambda: best.append(_bracket(document, data, slope, budget)),
        )
        if net is None and best:
            yield "certifying the network", lambda: judge(best[0], "attains the largest margin")


def _collect(document: dict[str, Any], steps: Iterable[tuple[str, Callable[[], None]]]) -> int:
    """Do one step after the other until the time is up or Ctrl-C is pressed; returns the exit code."""
    from ..problem import Interrupted, OutOfTime
    from ..problem.progress import busy

    for what, work in steps:
        try:
            with busy(what):
                work()
        except OutOfTime as error:
            document["unfinished"] = document["unfinished"] or str(error)
        except (Interrupted, KeyboardInterrupt):
            document["unfinished"] = f"interrupted while {what}; what was found before is kept."
            return 130
    return 3 if document["unfinished"] else 0


def _bracket(document: dict[str, Any], data: Dataset, slope: float, budget: int | None) -> Network:
    """Fill in the bounds on the largest margin, also where the time is up, and return the network that attains it."""
    from ..margins import global_max_margin
    from ..problem import Interrupted

    best, interrupted = None, None
    try:
        best = global_max_margin(data, slope, **({} if budget is None else {"budget": budget}))
    except Interrupted as error:
        best, interrupted = error.partial, error
    document["best"] = {
        "lower": best.lower,
        "upper": best.upper,
        "exact": best.exact,
        "method": best.method,
        "stopped": best.stopped,
    }
    if interrupted is not None:
        raise interrupted
    if best.stopped == "time":
        document["unfinished"] = (
            "the time limit ended while bracketing the largest margin of any network; the bounds hold, and a larger "
            "time limit brings them closer."
        )
    return best.network


def _gap(document: dict[str, Any]) -> dict[str, float] | None:
    best, margin = document["best"], document["network"]["margin"]
    if best is None:
        return None
    return {name: max(best[bound] - margin, 0.0) for name, bound in (("at_least", "lower"), ("at_most", "upper"))}


def _orthogonal(data: Dataset) -> dict[str, Any]:
    """How nearly the features are orthogonally separable."""
    from dataclasses import asdict

    from ..deep import separability

    found = separability(data.X, data.y)
    return {"separable": found.separable, **asdict(found)}


def _limit(document: dict[str, Any], problem: Problem, seconds: float) -> None:
    """Fill in how far a network is from where the flow takes it."""
    from ..dynamics import limit
    from ..problem import Interrupted, Undecided, time_limit
    from ..report import function_distance

    try:
        with time_limit(max(seconds, 0.01)):
            end = limit(problem)
    except Interrupted:
        raise
    except Undecided as error:
        document["limit"] = {"found": False, "why": str(error)}
        document["unfinished"] = "the limit of the flow was not confirmed."
        return
    distance, angle = function_distance(problem, end.network)
    document["limit"] = {
        "found": True,
        "kind": end.kind,
        "margin": end.margin,
        "distance": distance,
        "angle": angle,
        "why": end.reason,
    }


def _separator(data: Dataset) -> dict[str, Any]:
    """Describe the linear max-margin separator, or what proves that there is none."""
    from ..margins import max_margin
    from ..problem import NotSeparable, OutOfTime, Undecided

    try:
        solution = max_margin(data)
    except NotSeparable as error:
        used = error.certificate.nonzero()[0]
        return {
            "separable": False,
            "certificate": {"samples": used, "weights": error.certificate[used], "residual": error.residual},
        }
    except OutOfTime:
        raise
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


def _judge(found: dict[str, Any], data: Dataset, net: Network, train: str, tolerance: float) -> None:
    """Collect what is certified of one network."""
    from ..margins import kkt, linearity

    margin = net.normalized_margin(data, train) if net.W.any() else 0.0  # type: ignore[arg-type]
    found["margin"] = margin
    if margin <= 0:
        found["kkt"] = None
    else:
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
    if (net.a[:, None] * net.W).any():  # else the function is zero
        line = linearity(net)
        found["linear"] = {
            "holds": line.linear,
            "evidence": line.evidence,
            "direction": line.direction,
            "why": line.why,
        }


def _print(out: Console, document: dict[str, Any]) -> None:
    data, best, net = document["data"], document["best"], document["network"]
    out.print(f"{data['name'] or 'data'}: n={data['n']}, d={data['d']}; networks of slope {document['slope']:g}")
    out.print()
    rows: list[tuple[str, str]] = []
    if document["separator"] is not None:
        rows.append(("linear separator", _separator_words(document["separator"])))
    if best is not None:
        rows.append(("largest margin of any network", _best_words(best)))
    if net is not None:
        rows += _network_rows(net)
    if "orthogonal" in document:
        rows.append(("orthogonally separable", _orthogonal_words(document["orthogonal"])))
    if "limit" in document:
        rows.append(("limit of the flow from here", _limit_words(document["limit"])))
    print_table(out, ("what", "certified"), rows)
    if document["unfinished"]:
        out.print(f"\nUnfinished: {document['unfinished']}")


def _best_words(best: dict[str, Any]) -> str:
    if best["exact"]:
        return f"{best['lower']:.12g} (exact, {best['method']})"
    return f"between {best['lower']:.12g} and {best['upper']:.12g} (not closed, {best['method']})"


def _network_rows(net: dict[str, Any]) -> list[tuple[str, str]]:
    from ..problem.words import count

    rows = [
        ("network", f"{count(net['neurons'], 'neuron')}, {net['source']}"),
        ("its normalised margin", f"{net['margin']:.12g}"),
    ]
    if "kkt" in net and net["kkt"] is None:
        rows.append(("KKT conditions", "not defined: some point is not classified"))
    elif "kkt" in net:
        word = "hold" if net["kkt"]["holds"] else "violated"
        balance = "" if net["kkt"]["balance"] is None else f", balance {net['kkt']['balance']:.1e}"
        kinks = f", {count(len(net['kkt']['kinks']), 'kink')}" if len(net["kkt"]["kinks"]) else ""
        where = f"{count(len(net['kkt']['active']), 'active point')}{kinks}"
        rows.append(("KKT conditions", f"{word}: residual {net['kkt']['residual']:.1e}{balance} ({where})"))
    if net["gap"] is not None:
        least, most = net["gap"]["at_least"], net["gap"]["at_most"]
        words = f"{most:.3g} at most" if least < 1e-12 else f"{least:.3g} to {most:.3g}"
        rows.append(("gap to the largest margin", words))
    if "linear" in net:
        answer = {True: "yes", False: "no", None: "undecided"}[net["linear"]["holds"]]
        rows.append(("linear classifier", f"{answer} ({net['linear']['evidence']}): {net['linear']['why']}"))
    return rows


def _limit_words(end: dict[str, Any]) -> str:
    if not end["found"]:
        return f"undecided: {end['why']}"
    return f"margin {end['margin']:.12g} ({end['kind']}); outputs at the points are off by {end['distance']:.3g}"


def _orthogonal_words(found: dict[str, Any]) -> str:
    cross = "no pair across" if found["cross"] is None else f"{found['cross']:.6g} across (x_i.x_j <= 0)"
    part = "" if found["complete"] else f" ({found['samples']} samples drawn)"
    answer = {True: "yes", False: "no", None: "undecided"}[found["separable"]]
    return f"{answer}: share of pairs as needed {found['same']:.6g} within classes (x_i.x_j > 0), {cross}{part}"


def _separator_words(found: dict[str, Any]) -> str:
    from ..problem.words import count

    if found["separable"] is None:
        return f"undecided: {found['why']}"
    if not found["separable"]:
        proof = found["certificate"]
        return (
            f"none: a convex combination of {len(proof['samples'])} signed points vanishes to {proof['residual']:.1e}"
        )
    ties = f", {', '.join(found['degenerate'])}" if found["degenerate"] else ""
    tight = count(len(found["support"]), "tight point")
    return f"margin {found['margin']:.12g}, {tight}{ties}, residual {found['residual']:.1e}"
