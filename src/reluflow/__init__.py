"""reluflow: what a two-layer ReLU network is going to learn, seen learning it, and proved.

Start with `explain`: ``reluflow.explain(problem)``. The names below are all there is to know; each has its own help,
for example ``help(reluflow.flow)``. They are imported when they are first used, so ``import reluflow`` costs nothing.

Data and problems
    dataset               the data a short text stands for: an example, a construction, a file
    load                  a dataset from a file
    save                  a dataset into a file
    make                  data by the name of its construction
    example               a small dataset with known answers
    examples              the names of all of them
    Example               what `example` returns
    Dataset               points with labels -1 and +1
    Network               a two-layer (leaky) ReLU network, down to weights of e^-3000
    Loss                  logistic or exponential
    Problem               data, the network the flow starts from, and the loss
    as_problem            a problem of data and how to draw a network: what every verb makes of (X, y, width=50)
    initialize            a network drawn in one of the ways of the papers
    from_torch            a PyTorch model as a `Network`
    problem_from_torch    the same with data, which get the constant feature that biases need
    head                  the last two layers of a PyTorch classifier, with the features that enter them

What theory says
    explain               theory and flow of a problem side by side: the main job
    compare               a trained network, the limit of the flow from it, and the best there is
    check                 which claims apply, condition by condition
    predict               what those that apply promise
    monitor               whether a run kept the promises
    citation              BibTeX of the papers behind a result
    Explanation           what `explain` returns
    Comparison            what `compare` returns
    Finding               whether a claim applies
    Condition             one requirement of a claim
    Prediction            what a claim promises
    Observation           what a run says about a claim

Training
    align                 the early phase, exactly: where every neuron turns while the network is tiny
    flow                  the gradient flow, through every kink, as long as you like
    limit                 where the direction of the flow goes, with evidence
    descend               training in steps: GD, SGD, Adam
    ladder                one draw at several scales of initialisation
    perturb               starts near a network, followed to their limits
    change_measures       how fast norms and directions change
    plot                  a picture of any of these results
    plot_alignment        of the early phase
    plot_flow             of a run over time
    plot_limit            of a limit
    Alignment             what `align` returns
    Trajectory            what `flow` and `descend` return
    Limit                 what `limit` returns
    Ladder                what `ladder` returns
    Until                 when a flow stops

Margins
    max_margin            the widest linear separator
    hard_margin           the same for signed points
    class_margins         of each class alone
    one_neuron            the best single neuron
    one_signed_margins    whether neurons of the other sign stay out
    agreement_margin      two groups of neurons that agree
    grouped_margin        groups with given patterns
    global_max_margin     bounds on the largest margin of any network
    kkt                   whether a network is a KKT direction
    linearity             whether a network classifies like a linear function
    clusters              how tightly the neurons of a sign stand together
    beta_crit             the largest margins at which a vector takes in the other class
    smoothed_margin       the margin in terms of the loss
    stable_rank           of the first layer
    embed                 a two-neuron network in a wider one
    symmetrized_network   two neurons that compute the odd part
    MarginSolution        what `max_margin` and `hard_margin` return
    OneNeuron             what `one_neuron` returns
    OneSignedMargins      what `one_signed_margins` returns
    AgreementMargin       what `agreement_margin` returns
    GroupedMargin         what `grouped_margin` returns
    GlobalMargin          what `global_max_margin` returns
    KKT                   what `kkt` returns
    Linearity             what `linearity` returns
    Clusters              what `clusters` returns

Sectors
    sector                on which side of every sample a vector lies, exactly
    cones_of              membership in S+, S- and the dead cone
    dead_cone             whether the dead cone is only the origin
    extremal_directions   the directions in which neurons align
    alignment_constants   constants and time bounds of the early phase
    ExtremalDirections    what `extremal_directions` returns

Time
    time_limit            how long what is done inside may take: ``with time_limit(60): ...``

Errors
    ReluflowError         everything raised on purpose
    DataError             the data cannot be used as given
    ProblemError          a network or a setting cannot be used as given
    NotSeparable          no vector classifies every point
    Undecided             neither answer could be verified; ``partial`` has what was found
    BudgetExceeded        the allowed work was used up first
    OutOfTime             the time limit ended first
    Interrupted           Ctrl-C
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Each public name again twice: here for type checkers, below for the interpreter (a test compares all three).
if TYPE_CHECKING:
    from .data import Example as Example
    from .data import as_problem as as_problem
    from .data import dataset as dataset
    from .data import example as example
    from .data import examples as examples
    from .data import load as load
    from .data import make as make
    from .data import save as save
    from .deep import from_torch as from_torch
    from .deep import head as head
    from .deep import problem_from_torch as problem_from_torch
    from .dynamics import Alignment as Alignment
    from .dynamics import Ladder as Ladder
    from .dynamics import Limit as Limit
    from .dynamics import Trajectory as Trajectory
    from .dynamics import Until as Until
    from .dynamics import align as align
    from .dynamics import change_measures as change_measures
    from .dynamics import descend as descend
    from .dynamics import flow as flow
    from .dynamics import ladder as ladder
    from .dynamics import limit as limit
    from .dynamics import perturb as perturb
    from .margins import KKT as KKT
    from .margins import AgreementMargin as AgreementMargin
    from .margins import Clusters as Clusters
    from .margins import GlobalMargin as GlobalMargin
    from .margins import GroupedMargin as GroupedMargin
    from .margins import Linearity as Linearity
    from .margins import MarginSolution as MarginSolution
    from .margins import OneNeuron as OneNeuron
    from .margins import OneSignedMargins as OneSignedMargins
    from .margins import agreement_margin as agreement_margin
    from .margins import beta_crit as beta_crit
    from .margins import class_margins as class_margins
    from .margins import clusters as clusters
    from .margins import embed as embed
    from .margins import global_max_margin as global_max_margin
    from .margins import grouped_margin as grouped_margin
    from .margins import hard_margin as hard_margin
    from .margins import kkt as kkt
    from .margins import linearity as linearity
    from .margins import max_margin as max_margin
    from .margins import one_neuron as one_neuron
    from .margins import one_signed_margins as one_signed_margins
    from .margins import smoothed_margin as smoothed_margin
    from .margins import stable_rank as stable_rank
    from .margins import symmetrized_network as symmetrized_network
    from .problem import BudgetExceeded as BudgetExceeded
    from .problem import DataError as DataError
    from .problem import Dataset as Dataset
    from .problem import Interrupted as Interrupted
    from .problem import Loss as Loss
    from .problem import Network as Network
    from .problem import NotSeparable as NotSeparable
    from .problem import OutOfTime as OutOfTime
    from .problem import Problem as Problem
    from .problem import ProblemError as ProblemError
    from .problem import ReluflowError as ReluflowError
    from .problem import Undecided as Undecided
    from .problem import initialize as initialize
    from .problem import time_limit as time_limit
    from .report import Comparison as Comparison
    from .report import Explanation as Explanation
    from .report import compare as compare
    from .report import explain as explain
    from .report import plot as plot
    from .report import plot_alignment as plot_alignment
    from .report import plot_flow as plot_flow
    from .report import plot_limit as plot_limit
    from .sectors import ExtremalDirections as ExtremalDirections
    from .sectors import alignment_constants as alignment_constants
    from .sectors import cones_of as cones_of
    from .sectors import dead_cone as dead_cone
    from .sectors import extremal_directions as extremal_directions
    from .sectors import sector as sector
    from .theory import Condition as Condition
    from .theory import Finding as Finding
    from .theory import Observation as Observation
    from .theory import Prediction as Prediction
    from .theory import check as check
    from .theory import citation as citation
    from .theory import monitor as monitor
    from .theory import predict as predict

_HOME_OF = {
    "AgreementMargin": "margins",
    "Alignment": "dynamics",
    "BudgetExceeded": "problem",
    "Clusters": "margins",
    "Comparison": "report",
    "Condition": "theory",
    "DataError": "problem",
    "Dataset": "problem",
    "Example": "data",
    "Explanation": "report",
    "ExtremalDirections": "sectors",
    "Finding": "theory",
    "GlobalMargin": "margins",
    "GroupedMargin": "margins",
    "Interrupted": "problem",
    "KKT": "margins",
    "Ladder": "dynamics",
    "Limit": "dynamics",
    "Linearity": "margins",
    "Loss": "problem",
    "MarginSolution": "margins",
    "Network": "problem",
    "NotSeparable": "problem",
    "Observation": "theory",
    "OneNeuron": "margins",
    "OneSignedMargins": "margins",
    "OutOfTime": "problem",
    "Prediction": "theory",
    "Problem": "problem",
    "ProblemError": "problem",
    "ReluflowError": "problem",
    "Trajectory": "dynamics",
    "Undecided": "problem",
    "Until": "dynamics",
    "agreement_margin": "margins",
    "align": "dynamics",
    "alignment_constants": "sectors",
    "as_problem": "data",
    "beta_crit": "margins",
    "change_measures": "dynamics",
    "check": "theory",
    "citation": "theory",
    "class_margins": "margins",
    "clusters": "margins",
    "compare": "report",
    "cones_of": "sectors",
    "dataset": "data",
    "dead_cone": "sectors",
    "descend": "dynamics",
    "embed": "margins",
    "example": "data",
    "examples": "data",
    "explain": "report",
    "extremal_directions": "sectors",
    "flow": "dynamics",
    "from_torch": "deep",
    "global_max_margin": "margins",
    "grouped_margin": "margins",
    "hard_margin": "margins",
    "head": "deep",
    "initialize": "problem",
    "kkt": "margins",
    "ladder": "dynamics",
    "limit": "dynamics",
    "linearity": "margins",
    "load": "data",
    "make": "data",
    "max_margin": "margins",
    "monitor": "theory",
    "one_neuron": "margins",
    "one_signed_margins": "margins",
    "perturb": "dynamics",
    "plot": "report",
    "plot_alignment": "report",
    "plot_flow": "report",
    "plot_limit": "report",
    "predict": "theory",
    "problem_from_torch": "deep",
    "save": "data",
    "sector": "sectors",
    "smoothed_margin": "margins",
    "stable_rank": "margins",
    "symmetrized_network": "margins",
    "time_limit": "problem",
}

_PARTS = ("data", "deep", "dynamics", "experiments", "margins", "problem", "report", "sectors", "theory")

__all__ = [*_HOME_OF]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
        globals()[name] = value
        return value
    if name in _PARTS:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF, *_PARTS})
