"""ML-F5: the digits 0 and 1 learned from tiny weights."""

from __future__ import annotations

from ..core.experiment import Choice, Experiment
from .choices import BOTH_LAYERS
from .mnist import check_reported, plot, run

EXPERIMENT = Experiment(
    id="ML-F5",
    title="MNIST digits 0 and 1: neurons align with the class sums, then grow",
    caption="First: inner products of 60 centred images of each class. Second: cosine of the mean neuron of either "
    "output sign with its class sum, the band from the least to the best aligned neuron. Third: loss, stable rank, "
    "squared spectral norm of the first layer. Dotted: the exact flow from the same start on the same images, an "
    "iteration being as much time as the step. Fourth: centres of the classes and mean neurons (scaled to their "
    "length), also with the mean image added back.",
    run=run,
    check=check_reported,
    plot=plot,
    parameters={
        "data": "mnist:digits=0/1",
        "width": 50,
        "scale": 1e-6,
        "step": 2e-3,
        "steps": 15000,
        "records": 151,
        "seed": 0,
        "dtype": "float32",
        "flow_rtol": 1e-4,
    },
    quick={
        "data": "digits:pair=0/1",
        "step": 6e-3,
        "steps": 7000,
        "records": 71,
        "dtype": "float64",
    },
    implied=("clock",),
    ours=("rank", "flow-*"),
    unstated=(
        *BOTH_LAYERS,
        Choice("pixels", "divided by 255", "the usual scaling; with it the reported iterations come out"),
        Choice("which digit is positive", "the larger one", "the paper lists 1 before 0; for the other pairs not said"),
        Choice("images", "the training part of MNIST", "not said"),
        Choice("precision", "float32 for descent, float64 for the flow", "the default of common frameworks"),
        Choice("relative tolerance of the flow", "1e-4", "far below the difference that a step of descent makes"),
    ),
    minutes=7.0,
)
