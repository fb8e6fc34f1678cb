"""reluflow: what a two-layer ReLU network is going to learn, seen learning it, and proved.

Start with `explain`: ``reluflow.explain(problem)``. The names below are all that most people need; each has its own
help, for example ``help(reluflow.flow)``. They are imported when they are first used, so ``import reluflow`` costs
nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.2.0"

# The one list of public names: the package each comes from, and its line of help. Type checkers read __init__.pyi,
# which a test holds against it.
_NAMES = {
    "Data and problems": {
        "dataset": ("data", "the data a short text stands for: an example, a construction, a file"),
        "load": ("data", "a dataset from a file"),
        "save": ("data", "a dataset into a file"),
        "make": ("data", "data by the name of its construction"),
        "example": ("data", "a small dataset with known answers"),
        "examples": ("data", "the names of all of them"),
        "Dataset": ("problem", "points with labels -1 and +1"),
        "Network": ("problem", "a two-layer (leaky) ReLU network, down to weights of e^-3000"),
        "Loss": ("problem", "logistic or exponential"),
        "Problem": ("problem", "data, the network the flow starts from, and the loss"),
        "as_problem": (
            "data",
            "a problem of data and a network to draw: what every verb makes of (X, y, width=50)",
        ),
        "initialize": ("problem", "a network drawn in one of the ways of the papers"),
        "from_torch": ("deep", "a PyTorch model as a `Network`"),
        "from_arrays": ("deep", "the weights of any two-layer model, JAX or Keras say, as a `Network`"),
        "head": ("deep", "the last two layers of a PyTorch classifier, with the features that enter them"),
    },
    "What theory says": {
        "explain": ("report", "theory and flow of a problem side by side: the main job"),
        "compare": ("report", "a trained network, the limit of the flow from it, and the best there is"),
        "check": ("theory", "which claims apply, condition by condition"),
        "predict": ("theory", "what those that apply promise"),
        "monitor": ("theory", "whether a run kept the promises"),
        "citation": ("theory", "BibTeX of the papers behind a result"),
    },
    "Training": {
        "align": ("dynamics", "the early phase, exactly: where every neuron turns while the network is tiny"),
        "flow": ("dynamics", "the gradient flow, through every kink, as long as you like"),
        "limit": ("dynamics", "where the direction of the flow goes, with evidence"),
        "descend": ("dynamics", "training in steps: GD, SGD, Adam"),
        "ladder": ("dynamics", "one draw at several scales of initialisation"),
        "watch": ("deep", "a PyTorch model watched while your own loop trains it"),
        "Trajectory": ("dynamics", "what `flow` and `descend` return"),
        "plot": ("report", "a picture of any of these results"),
        "Studio": ("studio", "the playground in a notebook: draw points, watch the neurons"),
    },
    "Margins": {
        "max_margin": ("margins", "the widest linear separator"),
        "class_margins": ("margins", "the same for each class alone"),
        "agreement_margin": ("margins", "two groups of neurons that agree"),
        "beta_crit": ("margins", "the largest margins at which a vector takes in the other class"),
        "one_neuron": ("margins", "the best single neuron"),
        "grouped_margin": ("margins", "groups with given patterns"),
        "global_max_margin": ("margins", "bounds on the largest margin of any network"),
        "kkt": ("margins", "whether a network is a KKT direction"),
        "linearity": ("margins", "whether a network classifies like a linear function"),
    },
    "Sectors": {
        "sector": ("sectors", "on which side of every sample a vector lies, exactly"),
        "cones_of": ("sectors", "membership in S+, S- and the dead cone"),
        "dead_cone": ("sectors", "whether the dead cone is only the origin"),
        "extremal_directions": ("sectors", "the directions in which neurons align"),
        "alignment_constants": ("sectors", "constants and time bounds of the early phase"),
    },
    "Many problems": {
        "Sweep": ("sweep", "problems over ranges of parameters, and what is measured of each"),
        "open_sweep": ("sweep", "the rows, tables and pictures that a sweep has left in its folder"),
    },
    "Time": {
        "time_limit": ("problem", "how long what is done inside may take: ``with time_limit(60): ...``"),
    },
    "Errors": {
        "ReluflowError": ("problem", "everything raised on purpose"),
        "DataError": ("problem", "the data cannot be used as given"),
        "ProblemError": ("problem", "a network or a setting cannot be used as given"),
        "NotSeparable": ("problem", "no vector classifies every point"),
        "Undecided": ("problem", "neither answer could be verified; ``partial`` has what was found"),
        "BudgetExceeded": ("problem", "undecided: the allowed work was used up first"),
        "OutOfTime": ("problem", "undecided: the time limit ended first"),
        "Interrupted": ("problem", "undecided: Ctrl-C"),
    },
}

# What is not above is an attribute of these, reluflow.margins.hard_margin for example.
_PARTS = {
    "problem": "parts of a problem and how they are checked",
    "sectors": "activation patterns by exact signs, cones, extremal directions, constants of the early phase",
    "margins": "the other convex programs, and what all of them return",
    "data": "constructions, worked examples and files",
    "dynamics": "what can be measured in a run, and what the verbs of training return",
    "theory": "claims as objects, and what `check`, `predict` and `monitor` return",
    "deep": "deeper PyTorch models, trained and looked at layer by layer",
    "learn": "classifiers for scikit-learn: the limit of the flow, descent, the widest separator",
    "report": "single plots, and what `explain` and `compare` return",
    "experiments": "every figure and table of the papers, made again and judged",
    "studio": "the playground in the browser, and the states it shows",
    "sweep": "many problems on all cores or a cluster, and what their rows become",
}

_HOME_OF = {name: home for names in _NAMES.values() for name, (home, _) in names.items()}

__all__ = [*_HOME_OF]


def _listing(title: str, lines: dict[str, str]) -> str:
    return "\n".join([f"\n{title}", *(f"    {name:<22}{line}" for name, line in lines.items())])


__doc__ = "\n".join(
    [
        *(__doc__ or "").splitlines(),
        *(_listing(title, {name: line for name, (_, line) in names.items()}) for title, names in _NAMES.items()),
        _listing("Packages with the rest", _PARTS),
    ]
)


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
        globals()[name] = value
        return value
    if name in _PARTS:
        return import_module(f".{name}", __name__)
    text = f"module {__name__!r} has no attribute {name!r}"
    homes = [] if name.startswith("_") else _parts_with(name)
    raise AttributeError(f"{text}; it lives at {' and '.join(homes)}" if homes else text)


def _parts_with(name: str) -> list[str]:
    """Say where a name is that is not for everybody."""
    return [f"{__name__}.{part}.{name}" for part in _PARTS if name in import_module(f".{part}", __name__).__all__]


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF, *_PARTS})
