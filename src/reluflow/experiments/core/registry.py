"""Which experiments there are; a module is imported when its experiment is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from ...data.registry import suggestion
from ...problem import ProblemError
from ...theory import references
from .experiment import Experiment

PAPERS = {**references.PAPERS, "C": "in none of the papers"}

IDS = (
    *("PL-F1", "PL-F2", "PL-F3", "PL-F4", "PL-TAB1", "PL-X1"),
    *("ML-F1", "ML-F2", "ML-F3", "ML-F4", "ML-F5", "ML-F6", "ML-F7", "ML-F8", "ML-F9", "ML-F10", "ML-F11", "ML-F12"),
    *("ML-F13", "ML-F14-F17", "ML-F18-F21", "ML-X1"),
    *("SBG-F1", "SBG-F2", "SBG-F3", "SBG-F4", "SBG-F5", "SBG-F6", "SBG-F7", "SBG-F8", "SBG-F9"),
    *("LL-F1-left", "LL-F1-middle", "LL-F1-right", "LL-F2", "LL-F3", "LL-TAB1", "LL-F4", "LL-X1", "LL-X2"),
    "C-X1",
)


def experiment(id: str) -> Experiment:  # noqa: A002
    """Find an experiment by its id; upper and lower case are the same.

    Parameters
    ----------
    id : str
        One of the ids of the registry, for example ``"PL-F1"``.

    Returns
    -------
    Experiment

    Examples
    --------
    >>> experiment("sbg-f4").title
    'Two neurons: the boundary of a leaky ReLU net is linear, that of a ReLU net is not'
    """
    known = {name.lower(): name for name in IDS}
    if id.lower() not in known:
        near = suggestion(id, IDS)
        raise ProblemError(f"there is no experiment {id!r}{near or ';'} `reluflow reproduce --list` shows all.")
    name = known[id.lower()]
    paper, _, rest = name.lower().partition("-")
    module = import_module(f"..{paper}.{rest.replace('-', '_')}", __package__)
    found: Experiment = module.EXPERIMENT
    return found


def choose(ids: Iterable[str] = (), paper: str | None = None, everything: bool = False) -> list[str]:
    """Turn what was asked for into ids, in the order of the registry and without repetition.

    >>> choose(paper="sbg")[:2], choose(["ll-f3", "PL-F1", "ll-f3"])
    (['SBG-F1', 'SBG-F2'], ['PL-F1', 'LL-F3'])
    """
    wanted = {experiment(one).id for one in ids}
    if paper is not None:
        if paper.upper() not in PAPERS:
            raise ProblemError(f"there is no paper {paper!r}; there are {', '.join(PAPERS)}.")
        wanted |= {one for one in IDS if one.split("-")[0] == paper.upper()}
    if everything:
        wanted = set(IDS)
    if not wanted:
        raise ProblemError(f"nothing was asked for: name experiments ({IDS[0]}, ...), a paper, or all of them.")
    return [one for one in IDS if one in wanted]
