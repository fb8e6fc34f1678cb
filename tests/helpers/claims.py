"""One claim, asked about one problem or one run."""

from dataclasses import replace

import numpy as np

from reluflow.theory import Facts, claims
from reluflow.theory.verdicts import _observations, _predictions, finding_of


def get(name):
    """Return the claim with an id, its own or one it covers too."""
    return next(c for c in claims() if name in (c.id, *c.also))


def finding(name, problem):
    """Say whether a claim applies."""
    return finding_of(get(name), Facts.of(problem))


def promise(name, problem):
    """Return what a claim promises."""
    known = Facts.of(problem)
    (found,) = _predictions(get(name), finding(name, known), known)
    return found


def watch(name, run):
    """Verdicts of one claim on a run, in the order of its observations."""
    return [found.consistent for found in _observations(get(name), Facts(run.problem), run)]


def doctored(run, record, **changes):
    """Copy of a run with some rows of its arrays replaced."""
    arrays = {}
    for name, value in changes.items():
        array = np.array(getattr(run, name))
        array[record] = value
        arrays[name] = array
    return replace(run, **arrays)
