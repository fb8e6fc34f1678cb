"""The convolutional net of Phuong and Lampert on the digits 0 and 1: one training, two figures and a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...data import dataset
from ...deep import conv_net, features, inner_products, layer_weights, separability, train
from ...deep.head import place
from ...deep.need import as_doubles, torch_for
from ...problem import Dataset
from ...problem.types import Array
from ..core.experiment import Choice, Numbers, Tell
from .common import one_thread

PARAMETERS: dict[str, Any] = {
    "data": "mnist:digits=0/1",
    "test": "mnist:digits=0/1,part=test",
    "images": "all",  # how many of the data are trained on; test = "rest" then takes the others
    "method": "adam",
    "step": 1e-3,
    "batch": 128,
    "epochs": 50,
    "scale": 0.05,
    "seed": 0,
    "record": 2,
    "watched": 400,  # images whose features are compared in every layer
    "separated": 20000,  # most images whose layer-7 features are compared, with exact signs
}
QUICK = {
    "data": "digits:pair=0/1",
    "test": "rest",
    "images": 128,
    "batch": 16,
    "epochs": 6,
    "record": 3,
    "watched": 40,
}
UNSTATED = (
    Choice("step of Adam", "0.001, other constants of Adam as usual", "the usual default"),
    Choice("initial weights", "uniform in +-1/sqrt(inputs of a unit), biases too", "the default of PyTorch"),
    Choice("biases", "in every layer, not scaled by 0.05", "the paper speaks of biases as a possible disturbance"),
    Choice("activation", "ReLU after every layer but the last", "the paper gives only the linear maps"),
    Choice("images", "all training images, pixels in [0, 1]; label +1 for the digit 1", "the usual scaling"),
    Choice("runs", "one, seed 0", "the paper shows one"),
)

_LEVELS = np.concatenate([[0.0, 0.001, 0.005], np.linspace(0.01, 0.99, 35), [0.995, 0.999, 1.0]])
_BINS = 80


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Train the net and look at it before, while and after it is trained."""
    data, test = _pictures(parameters)
    some = np.sort(np.random.default_rng(parameters["seed"]).permutation(data.n)[: parameters["watched"]])
    watched = Dataset(data.X[some], data.y[some])
    net = conv_net(scale=parameters["scale"], seed=parameters["seed"])
    course: list[dict[str, Any]] = []

    def look(epoch: int, model: Any) -> None:
        outputs = _through(model, test.X).reshape(-1) * test.y
        seventh = _through(model[:-2], watched.X)
        agreed = separability(seventh, watched.y)
        course.append({
            "epoch": epoch,
            "test_loss": float(np.logaddexp(0.0, -outputs).mean()),
            "test_accuracy": float((outputs > 0).mean()),
            "same": agreed.same,
            "cross": agreed.cross,
            "singular_values": layer_weights(model[-3:])[0].singular_values[:12],
        })  # fmt: skip
        tell(0.02 + 0.93 * epoch / max(parameters["epochs"], 1))

    with one_thread() as torch:
        net.to(memory_format=torch.channels_last)  # the same net; a step takes a fifth less time on a processor
        table = _layers(net, data.d, torch)
        start = {"features": _stages(net, watched), "head": _head(net)}
        keys = ("step", "batch", "epochs", "seed", "record")
        chosen = {key: parameters[key] for key in keys}
        done = train(net, data, parameters["method"], **chosen, callback=look, progress=False)
        end = {"features": _stages(net, watched), "head": _head(net)}
        tell(0.97)
        whole = {
            "train": _agreement(net, data, parameters["separated"]),
            "test": _agreement(net, test, parameters["separated"]),
        }
    tell(1.0)
    return {
        "images": {"train": data.n, "test": test.n, "watched": watched.n, "name": data.name},
        "training": {
            "epochs": done.epochs, "loss": done.loss, "accuracy": done.accuracy,
            "steps": done.steps, "stopped": done.stopped, "course": course,
        },
        "layers": table, "levels": _LEVELS, "start": start, "end": end, "separability": whole,
    }  # fmt: skip


def _pictures(parameters: Mapping[str, Any]) -> tuple[Dataset, Dataset]:
    """Return training and test images, of 28 x 28 pixels."""
    data = enlarged(dataset(parameters["data"]))
    count = data.n if parameters["images"] == "all" else int(parameters["images"])
    first = Dataset(data.X[:count], data.y[:count], name=data.name)
    if parameters["test"] == "rest":
        return first, Dataset(data.X[count:], data.y[count:], name=data.name)
    return first, enlarged(dataset(parameters["test"]))


def enlarged(data: Dataset) -> Dataset:
    """Make 8 x 8 images 28 x 28: every pixel three wide and three high, and a margin of two."""
    if data.d == 784:
        return data
    large = np.kron(data.X.reshape(-1, 8, 8), np.ones((1, 3, 3)))
    return Dataset(np.pad(large, ((0, 0), (2, 2), (2, 2))).reshape(-1, 784), data.y, name=data.name)


def _through(layers: Any, X: Array) -> Array:
    """Send images through some layers, a batch at a time."""
    torch = torch_for("PL-F3")
    inputs = place(layers, X, torch)
    with torch.no_grad():
        return np.concatenate([as_doubles(layers(inputs[lo : lo + 256])) for lo in range(0, len(inputs), 256)])


def _layers(net: Any, d: int, torch: Any) -> list[dict[str, Any]]:
    """Describe every layer by what it is and does: an image is sent through, module by module."""
    found: list[dict[str, Any]] = []
    with torch.no_grad():
        x = torch.zeros(1, d)
        for module in net:
            x = module(x)
            if not hasattr(module, "weight"):
                if found:
                    found[-1]["then"] = [*found[-1]["then"], type(module).__name__]
                continue
            numbers = [p.numel() for p in module.parameters()]
            row = {"layer": len(found) + 1, "output": list(x.shape[1:]), "parameters": sum(numbers), "then": []}
            if isinstance(module, torch.nn.Conv2d):
                what = [module.out_channels, module.kernel_size[0], module.stride[0], module.padding[0]]
                row |= {"kind": "conv", "numbers": what}
            else:
                row |= {"kind": "fc", "numbers": [module.in_features, module.out_features]}
            found.append(row | {"bias": module.bias is not None})
    return found


def _head(net: Any) -> dict[str, Any]:
    """Return what there is to see of the two linear layers at the end."""
    seventh, eighth = layer_weights(net[-3:])
    return {
        "singular_values": seventh.singular_values,
        "projected": seventh.projected,
        "norms": np.linalg.norm(seventh.matrix, axis=1),
        "biases": as_doubles(net[-3].bias),
        "outs": eighth.matrix[0],
        "out_bias": float(as_doubles(net[-1].bias)[0]),
    }


def _stages(net: Any, watched: Dataset) -> list[dict[str, Any]]:
    """Compare the images as they are (layer 0) and as every hidden layer sees them."""
    found = [{"layer": 0, "before": _compared(watched.X, watched.y)}]
    for k, layer in enumerate(features(net, watched.X), start=1):
        before, after = (_compared(points, watched.y) for points in (layer.before, layer.after))
        found.append({"layer": k, "before": before, "after": after})
    return found


def _compared(points: Array, y: Array) -> dict[str, Any]:
    """Describe the inner products, and the cosines, between images of one class and of both."""
    norms = np.linalg.norm(points, axis=1)
    unit = points / np.where(norms > 0, norms, 1.0)[:, None]
    products, cosines = inner_products(points, y), inner_products(unit, y)
    parts = {"cross": products.cross, "zeros": products.minus, "ones": products.plus}
    turned = {"cross": cosines.cross, "zeros": cosines.minus, "ones": cosines.plus}
    ends = [np.quantile(part, (0.002, 0.998)) for part in parts.values()]
    edges = np.linspace(min(e[0] for e in ends), max(e[1] for e in ends), _BINS + 1)
    found: dict[str, Any] = {"vanishing": int((norms == 0).sum()), "span": edges[[0, -1]]}
    for name, part in parts.items():
        found[name] = {
            "pairs": part.size,
            "right": float((part <= 0).mean() if name == "cross" else (part > 0).mean()),
            "mean": float(part.mean()),
            "quantiles": np.quantile(part, _LEVELS),
            "cosines": np.quantile(turned[name], _LEVELS),
            "counts": np.histogram(part, edges)[0],
        }
    found["centred"] = _centred(points, y)
    found["above"] = share_above(np.concatenate([products.minus, products.plus]), products.cross)
    found["above_cosine"] = share_above(np.concatenate([cosines.minus, cosines.plus]), cosines.cross)
    return found


def _centred(points: Array, y: Array) -> dict[str, float]:
    """Return the shares of inner products of the right sign, once the mean of all features has been subtracted."""
    found = inner_products(points - points.mean(axis=0), y)
    return {
        "cross": float((found.cross <= 0).mean()),
        "zeros": float((found.minus > 0).mean()),
        "ones": float((found.plus > 0).mean()),
    }


def share_above(one: Array, other: Array) -> float:
    """Return the chance that a number of the first kind is larger than one of the second (a tie counts half)."""
    ordered = np.sort(other)
    below = np.searchsorted(ordered, one, "left") + np.searchsorted(ordered, one, "right")
    return float(below.mean() / (2 * other.size))


def _agreement(net: Any, data: Dataset, most: int) -> dict[str, Any]:
    """Hold the layer-7 features of all images against orthogonal separability."""
    found = separability(_through(net[:-2], data.X), data.y, most=most)
    return {"same": found.same, "cross": found.cross, "samples": found.samples, "complete": found.complete}
