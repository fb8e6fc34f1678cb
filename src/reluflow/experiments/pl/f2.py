"""PL-F2: a residual net of four layers on orthogonally separable data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...deep import layer_weights, residual_net, train
from ..core.experiment import Choice, Expectation, Experiment, Numbers, Tell, at_least, at_most, equals, is_so
from .common import SIGNS, UNSTATED, check_rays, one_thread, orthogonal_data, plot_legend, portrait

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Train the residual net from every start."""
    found, seeds = [], parameters["seeds"]
    for k, seed in enumerate(seeds):
        data, facts = orthogonal_data(parameters["n"], parameters["d"], seed)
        net = residual_net(data.d, parameters["width"], parameters["depth"], scale=parameters["scale"], seed=seed)
        chosen = {key: parameters[key] for key in ("step", "batch", "epochs")}
        every = max(1, parameters["epochs"] // 50)

        def look(epoch: int, _model: Any, k: int = k) -> None:
            tell((k + epoch / max(parameters["epochs"], 1)) / len(seeds))

        with one_thread():
            done = train(net, data, "sgd", **chosen, seed=seed, record=every, callback=look, progress=False)
        *inner, last = layer_weights(net)
        found.append({
            "seed": seed,
            "data": facts,
            "layers": [{"singular_values": w.singular_values[:10], "projected": w.projected} for w in inner],
            "first": portrait(inner[0].matrix, data),
            "outs": last.matrix[0],
            "epochs": done.epochs,
            "loss": done.loss,
            "accuracy": float(done.accuracy[-1]),
        })  # fmt: skip
    tell(1.0)
    return {"runs": found}


def check(numbers: Numbers) -> list[Expectation]:
    """Two singular values in every layer, first-layer rows near the max-margin directions."""
    runs = numbers["runs"]
    many = f"worst of {len(runs)} seeds"
    values = [[layer["singular_values"] for layer in one["layers"]] for one in runs]
    found = [
        at_most(
            "rank-1",
            f"the first layer is as good as of rank two: third over first singular value ({many})",
            max(v[0][2] / v[0][0] for v in values),
            0.08,
            "against the first: the two max-margin directions are nearly opposite, which makes the second small",
        )
    ]
    found += [
        at_most(
            f"rank-{k + 1}",
            f"layer {k + 1} is as good as of rank two: third over second singular value ({many})",
            max(v[k][2] / v[k][1] for v in values),
            0.15,
        )
        for k in range(1, len(values[0]))
    ]
    found += [
        at_least(
            f"rays-{k + 1}",
            f"the rows of layer {k + 1}, projected, lie on two rays, one a sign: share of their squares there ({many})",
            min(check_rays(one["layers"][k]["projected"], one["outs"]) for one in runs),
            0.95,
            "a measure and a cut-off of ours; the paper shows the projections and says two main directions",
        )
        for k in range(len(values[0]))
    ]
    found += [
        at_least(
            "median",
            f"rows of the first layer are near the max-margin directions: median cosine with the nearer one ({many})",
            min(one["first"]["median"] for one in runs),
            0.88,
        ),
        equals("accuracy", f"every point is classified ({many})", min(o["accuracy"] for o in runs), 1.0, 0.0),
        is_so("separable", "the data are orthogonally separable", all(one["data"]["separable"] for one in runs)),
    ]
    return found


def plot(numbers: Numbers) -> Figure:
    """Draw singular values above, rows below, cosines at the right, for the first seed."""
    from ...report.panels import histogram, row_plane, sheet, singular_values

    one = numbers["runs"][0]
    count = len(one["layers"])
    figure, axes = sheet(2, count + 1, "Residual net of four layers: every matrix has rank two", size=(3.1, 2.9))
    for k, layer in enumerate(one["layers"]):
        singular_values(axes[0, k], layer["singular_values"], name=f"$W_{k + 1}$")
        row_plane(axes[1, k], layer["projected"], one["outs"], name=f"$W_{k + 1}$", colours=SIGNS)
        plot_legend(axes[1, k], f"$W_{count + 1}[j]$")
    for row, runs, title in ((0, numbers["runs"][:1], "seed 0"), (1, numbers["runs"], "all seeds")):
        pooled = np.concatenate([np.asarray(r["first"]["correlations"], dtype=np.float64) for r in runs])
        ax = axes[row, count]
        histogram(ax, pooled, (min(0.0, float(np.nanmin(pooled))), 1.0), bins=25)
        ax.axvline(float(np.nanmedian(pooled)), color="black", ls=":", lw=1.2, label="median")
        ax.set(xlabel="cosine with the nearer of $w_+$, $w_-$", title=f"rows of $W_1$, {title}")
        ax.legend(fontsize=8, loc="upper left")
    return figure


EXPERIMENT = Experiment(
    id="PL-F2",
    title="A residual net of four layers: weight matrices of rank two",
    caption=(
        "Above: the ten largest singular values of the three inner weight matrices after training (seed 0). Below: "
        "their rows in the plane of the two first singular directions, told apart by the sign of the output weight of "
        "the unit (orange if positive; the axes have different scales). Right: cosine of every row of the first layer "
        "with the nearer class max-margin direction, for seed 0 and for all seeds. There is no exact flow beside it: "
        "the net is not a two-layer net, and the theorem does not speak of it."
    ),
    run=run,
    check=check,
    plot=plot,
    parameters={
        "n": 500,
        "d": 20,
        "width": 100,
        "depth": 4,
        "scale": 0.05,
        "step": 0.1,
        "batch": 50,
        "epochs": 500,
        "seeds": [0, 1, 2, 3, 4],
    },
    quick={"n": 100, "width": 40, "batch": 20, "epochs": 300, "seeds": [0]},
    ours=("accuracy",),
    unstated=(*UNSTATED, Choice("biases", "none", "as in the formula of the net")),
    minutes=2.0,
)
