"""Parameters of the runs behind SBG-F2, F6 and F7, and how their curves are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...report.panels import band
from ..core.experiment import Choice, Numbers
from .common import OUTPUT, SLOPE

PARAMETERS: dict[str, Any] = {
    "source": "mnist",
    "pairs": ["0/1", "3/5", "1/7", "2/3", "4/9", "6/8"],
    "main_pairs": ["0/1", "3/5"],
    "images": 2000,
    "test_images": 1500,
    "gaussian": {"n": 400, "d": 50, "mean": 3.0},
    "width": 100,
    "slope": 0.2,
    "seeds": 5,
    "cases": {
        "small": {"scale": 1e-6, "step": 1e-3, "epochs": 20},
        "paper": {"scale": 1e-3, "step": 1e-2, "epochs": 20},
        "large": {"scale": 30.0, "step": 0.1, "epochs": 10},
    },
    "records": 22,
}
QUICK: dict[str, Any] = {
    "source": "digits",
    "images": 200,
    "test_images": 100,
    "pairs": ["0/1", "3/5", "1/7"],
    "gaussian": {"n": 100, "d": 20, "mean": 3.0},
    "width": 20,
    "seeds": 1,
    "cases": {
        "small": {"scale": 1e-6, "step": 1e-3, "epochs": 60},
        "paper": {"scale": 1e-3, "step": 1e-2, "epochs": 60},
        "large": {"scale": 30.0, "step": 0.1, "epochs": 20},
    },
    "records": 12,
}
UNSTATED = (
    Choice(
        "standard deviation of the start",
        "small 1e-6, large 30; 0.001 (the small one of SBG-F1) shown beside them",
        "not given for these figures. In 784 dimensions weights of std 0.001 have length 0.028, and the mean neurons "
        "differ by about 1 after training: the linear region of 2 r = 0.05 still misses many images, whose cosine "
        "with the difference is small. 1e-6 makes the start small against the first step, so that r comes from SGD",
    ),
    Choice(
        "step",
        "1e-3 for the smallest start: first steps, taken while neurons disagree, leave r 0.6 to 6 times the step; "
        "0.01 for std 0.001; 0.1 for the large start, which would not learn in 10 epochs otherwise",
        "not given",
    ),
    Choice(
        "images and epochs",
        "2000 training and 1500 test images of a pair, pixels over 255; 20 epochs (large start: 10)",
        "not given; a step with one image costs 0.2 ms and there are 50 runs",
    ),
    Choice("pairs of digits", "0/1 and 3/5 (stated for SBG-F2); 1/7, 2/3, 4/9, 6/8 besides", "not listed in the text"),
    Choice(
        "Gaussian data",
        "400 points in R^50 around plus and minus 3 times a unit vector, std 1, as in SBG-F8; as many for testing",
        "not given",
    ),
    Choice("number of neurons", "100", "not given for these figures"),
    SLOPE,
    OUTPUT,
)


def label(name: str) -> str:
    """Name of a data set in figures and claims."""
    return "Gaussians" if name == "gaussian" else f"digits {name}"


def plot_curve(panel: Any, found: Numbers, key: str, kind: int, text: str, first: int = 1) -> None:
    """Draw mean and range of one quantity by epoch, from the first record given."""
    low, mean, high = (np.asarray(found[key][which], dtype=float)[first:] for which in ("low", "mean", "high"))
    band(panel, np.asarray(found["epochs"], dtype=float)[first:], low, mean, high, kind, text)
