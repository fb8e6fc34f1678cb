"""Two-layer leaky nets on separable data: the statements of LL, in the order of the paper."""

from __future__ import annotations

from ..base import Claim
from . import assumptions, general, separable, symmetric

CLAIMS: tuple[Claim, ...] = (
    *assumptions.CLAIMS,
    *general.CLAIMS,
    *symmetric.CLAIMS,
    *separable.CLAIMS,
)

#: Statements that cannot be put to the test, with the reason.
NOT_COMPUTABLE: dict[str, str] = {
    "LL-T5.6": "its radius and norm near a local maximum of the margin are existential; perturbations can be tried.",
    "LL-G.3": "its constants A, B and T_0 are existential; the pattern it leads to is watched as LL-G.4.",
    "LL-F.4": "desingularising functions (LL-F.4 to LL-F.11) exist without a formula.",
    "LL-T4.3 (sigma_max)": "existential, as in LL-TA.7 and LL-T6.2; a run at one scale cannot refute them.",
}
