"""Where a printed statement needs a correction: what is wrong, what is right, which claims follow the corrected one.

Beside the claims, so that the pages on theory and the claims cannot drift apart: a test asks for every id.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Erratum(NamedTuple):
    """A correction of a paper.

    Attributes
    ----------
    id : str
    paper : str
    text : str
        What is printed and what it should be, in a sentence or two.
    claims : tuple of str
        Ids of the claims that it concerns; empty where only a remark or a step of a proof is meant.
    """

    id: str
    paper: str
    text: str
    claims: tuple[str, ...] = ()


@cache
def errata_of(paper: str | None = None) -> tuple[Erratum, ...]:
    """Return the corrections of a paper, or of all, in the order of the papers.

    >>> errata_of("LL")[2].claims
    ('LL-TA.7', 'LL-A.5', 'LL-A.5*')
    """
    text = files(__package__).joinpath("errata.toml").read_text(encoding="utf-8")
    found = (
        Erratum(e["id"], e["paper"], e["text"], tuple(e.get("claims", ()))) for e in tomllib.loads(text)["erratum"]
    )
    return tuple(one for one in found if paper in (None, one.paper))


def corrections(claim: str) -> tuple[Erratum, ...]:
    """Return the corrections that concern a claim.

    >>> [one.id for one in corrections("LL-TA.7")]
    ['E-L3', 'E-L4']
    """
    return tuple(one for one in errata_of() if claim in one.claims)
