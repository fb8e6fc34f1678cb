"""PL-TAB1: the layers of the convolutional net, found by what they do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...deep import conv_net
from ..core.experiment import Expectation, Experiment, Numbers, Tell, equals, is_so
from .common import one_thread
from .conv import UNSTATED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The table of the paper.
_STATED = (
    "conv(32, 3, 1, 1)",
    "conv(32, 3, 1, 1)",
    "conv(32, 5, 2, 2)",
    "conv(64, 3, 1, 1)",
    "conv(64, 3, 1, 1)",
    "conv(64, 5, 2, 2)",
    "fc(3136, 128)",
    "fc(128, 1)",
)


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Send an image through the net of PL-F3, and ask of every layer on which numbers each of its outputs depends."""
    with one_thread() as torch:
        torch.manual_seed(0)
        net = conv_net(scale=parameters["scale"], seed=parameters["seed"])
        x, found = torch.rand(1, parameters["pixels"]), list[dict[str, Any]]()
        for k, module in enumerate(net):
            before, x = x, module(x)
            if hasattr(module, "weight"):
                probe = _convolution if x.dim() == 4 else _linear
                found.append({**probe(module, before.detach(), torch.autograd.grad), "then": "none"})
            elif found and found[-1]["then"] == "none":
                found[-1]["then"] = _deed(before, x)
            tell((k + 1) / len(net))
        learned = [sum(p.numel() for p in m.parameters()) for m in net if hasattr(m, "weight")]
    return {"layers": found, "learned": learned, "output": list(x.shape[1:])}


def _deed(before: Any, after: Any) -> str:
    """Say what a module without weights does to numbers: nothing, or it sets the negative ones to 0, or else."""
    old, new = before.reshape(-1), after.reshape(-1)
    if bool((old == new).all()):
        return "none"
    return "ReLU" if bool((old.clamp(min=0) == new).all()) else "other"


def _convolution(module: Any, x: Any, grad: Any) -> dict[str, Any]:
    """Find kernels, size, stride and padding of a layer from which pixels its outputs feel."""
    inputs = x.clone().requires_grad_(True)
    out = module(inputs)
    middle = out.shape[-1] // 2

    def felt(row: int) -> Any:
        (gradient,) = grad(out[0, 0, row, middle], inputs, retain_graph=True)
        return np.flatnonzero(gradient[0].abs().sum(dim=(0, 2)).numpy() > 0)

    here, next_one, edge = felt(middle), felt(middle + 1), felt(0)
    size = int(here[-1] - here[0] + 1)
    numbers = [int(out.shape[1]), size, int(next_one[0] - here[0]), size - len(edge)]
    return {"kind": "conv", "numbers": numbers, "channels": int(x.shape[1]), "output": list(out.shape[1:])}


def _linear(module: Any, x: Any, grad: Any) -> dict[str, Any]:
    """Find how many numbers enter and leave a layer."""
    inputs = x.clone().requires_grad_(True)
    out = module(inputs)
    (gradient,) = grad(out.sum(), inputs)
    numbers = [int((gradient != 0).sum()), int(out.shape[1])]
    return {"kind": "fc", "numbers": numbers, "channels": 0, "output": list(out.shape[1:])}


def check(numbers: Numbers) -> list[Expectation]:
    """Compare what the layers do with the table, and count what they learn by the table alone."""
    layers = numbers["layers"]
    names = [_check_name(layer) for layer in layers]
    wrong = [f"{k}: {name}" for k, (name, stated) in enumerate(zip(names, _STATED, strict=False), 1) if name != stated]
    return [
        is_so(
            "layers",
            "the eight layers are those of the table, by what they do: on which numbers their outputs depend",
            tuple(names) == _STATED,
            expected=", ".join(_STATED),
            measured="the same" if tuple(names) == _STATED else f"{len(names)} layers, differing in {wrong}",
        ),
        equals(
            "parameters",
            "the net learns as many numbers as the table implies, with a bias a unit",
            float(sum(numbers["learned"])),
            float(_check_implied()),
            0.0,
            why="counted from the table, with the channels that one layer hands to the next",
        ),
        is_so(
            "activations",
            "a ReLU follows every layer but the last",
            [layer["then"] for layer in layers] == ["ReLU"] * (len(layers) - 1) + ["none"],
            measured=", ".join(str(layer["then"]) for layer in layers),
            why="the table is silent about activations; seen from what happens to negative numbers",
        ),
    ]


def _check_implied() -> int:
    """Count the parameters of the table: kernels times (inputs of a kernel + 1)."""
    total, channels = 0, 1
    for stated in _STATED:
        kind, rest = stated.split("(")
        numbers = [int(word) for word in rest.rstrip(")").split(",")]
        if kind == "conv":
            total += numbers[0] * (channels * numbers[1] ** 2 + 1)
            channels = numbers[0]
        else:
            total += numbers[1] * (numbers[0] + 1)
    return total


def _check_name(layer: Any) -> str:
    return f"{layer['kind']}({', '.join(map(str, layer['numbers']))})"


def plot(numbers: Numbers) -> Figure:
    """Draw the table, with the shapes and numbers of parameters that follow from it."""
    from ...report.panels import sheet, table

    figure, axes = sheet(1, 1, "Layers of the convolutional net", size=(7.0, 2.6))
    rows: list[tuple[object, ...]] = [
        (k, _check_name(layer), layer["then"], " x ".join(map(str, layer["output"])), f"{learned:,}")
        for k, (layer, learned) in enumerate(zip(numbers["layers"], numbers["learned"], strict=True), start=1)
    ]
    rows.append(("", "all", "", "", f"{sum(numbers['learned']):,}"))
    table(axes[0, 0], ("layer", "type", "activation", "output", "parameters"), rows)
    return figure


EXPERIMENT = Experiment(
    id="PL-TAB1",
    title="Layers of the convolutional net",
    caption=(
        "conv(n, k, s, p): n kernels of k x k, stride s, padding p; fc(i, o): i inputs, o outputs. The first two "
        "columns are the table of the paper, as found from the net that PL-F3 trains by asking on which numbers the "
        "outputs of each layer depend; the others follow or are choices."
    ),
    run=run,
    check=check,
    plot=plot,
    parameters={"pixels": 784, "scale": 0.05, "seed": 0},
    ours=("parameters", "activations"),
    unstated=UNSTATED,
    minutes=0.05,
)
