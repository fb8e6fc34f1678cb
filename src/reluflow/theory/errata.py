"""Where a printed statement needs a correction: what is wrong, what is right, and which claims follow the corrected one.

Beside the claims, so that the pages on theory and the claims themselves cannot drift apart: every id in ``claims`` is the
id of a claim (a test asks each of them).
"""

from __future__ import annotations

from typing import NamedTuple


class Erratum(NamedTuple):
    """A correction of a paper.

    Attributes
    ----------
    id : str
    paper : str
    text : str
        What is printed and what it should be, in one or two sentences.
    claims : tuple of str
        Ids of the claims that it concerns; empty where only a remark or a step of a proof is meant.

    Examples
    --------
    >>> ERRATA[0].id, ERRATA[0].claims
    ('PL-E1', ('PL-D1',))
    """

    id: str
    paper: str
    text: str
    claims: tuple[str, ...] = ()


def _of(paper: str, *items: tuple[str, str, str]) -> tuple[Erratum, ...]:
    return tuple(Erratum(name, paper, text, tuple(claims.split())) for name, claims, text in items)


_PL = _of(
    "PL",
    (
        "PL-E1",
        "PL-D1",
        "Opposite orthants are enough for orthogonal separability but not the same: five unit vectors on a cone in space "
        "have positive inner products, and no rotation brings them into one orthant.",
    ),
    (
        "PL-E2",
        "PL-D1",
        "An example separates the classes only weakly when a pair of opposite labels is orthogonal, which the definition "
        "allows.",
    ),
    (
        "PL-E3",
        "PL-T1 PL-T1'",
        "The limit needs a loss with an exponential tail. With a force that decays like a power the direction tends to "
        "another vector; the lemmas on the early phase survive.",
    ),
    (
        "PL-E4",
        "PL-L2",
        "A sector is a set of weights, not of inputs; two references in the proofs of the appendix name the wrong equation.",
    ),
    (
        "PL-E5",
        "PL-D2",
        "Equation (80) has a factor y too many: w- is defined by positive inner products with its own class.",
    ),
    (
        "PL-E6",
        "PL-L2 PL-L2'",
        "The proof that there are two extremal sectors moves along a direction that need not increase G where G is "
        "negative; another direction does, and in a dead sector G is constant, which strict maxima exclude.",
    ),
    (
        "PL-E7",
        "PL-L1 PL-L2",
        "Where a point is orthogonal to the whole other class its entry of the extremal sector is 0, and a neuron may "
        "stay on its inactive side or stop on its hyperplane: membership means a sign of at most 0 there.",
    ),
    ("PL-E8", "PL-LA4", "Equation (58) lacks a factor 2, so the bound on growth has twice the printed rate."),
    (
        "PL-E9",
        "",
        "The identity of Lemma A.3 holds for almost every time and does not choose between staying on a hyperplane and "
        "leaving it.",
    ),
    (
        "PL-E10",
        "PL-T1p",
        "The probability 1 - 2^-p is that of some neuron being alive, not of both classes being fitted.",
    ),
    ("PL-E11", "PL-T1 PL-C1", "The vectors u and z are left free; their norms follow, and PL-T1' states them."),
    (
        "PL-E12",
        "PL-A PL-T1",
        "Spanning support is asked of the points with equality; the results used also need positive multipliers. PL-T1' "
        "needs neither.",
    ),
)

_ML = _of(
    "ML",
    (
        "ML-E1",
        "ML-MON",
        "Equations (2), (12), (13) and (16) and the force of the appendix lack the minus sign of a descent; (46) must be "
        "read with it.",
    ),
    (
        "ML-E2",
        "ML-L3 ML-L1",
        "The logistic loss has no factor 2 in the text and one in the appendix; the constants belong to the factor 2. "
        "Lemma 2 is announced without its display.",
    ),
    (
        "ML-E3",
        "ML-EPS ML-T1a",
        "zeta is printed as the larger of two numbers where both have to be respected: it is the smaller.",
    ),
    (
        "ML-E4",
        "ML-EPS ML-L1",
        "From (28) to (29) a factor 2 is lost if Lemma 3 is used as stated; its proof gives the bound without it.",
    ),
    (
        "ML-E5",
        "ML-T1a ML-T1a'",
        "The order log n / sqrt(mu) hides constants that are at most mu^2, so what is proved is log n / mu^(5/2); the "
        "sharper dwell time of ML-T1a' brings back log n log(1/mu) / sqrt(mu).",
    ),
    (
        "ML-E6",
        "ML-L8",
        "The proof of Lemma 8 uses that the two class sums are opposite, which is false; that both driving sums lie in "
        "the cone K is true and enough.",
    ),
    ("ML-E7", "ML-L8", "The cap of Lemma 8 is closed and can touch the boundary of its cone at the largest size."),
    ("ML-E8", "ML-T1a", "With one sample log n = 0 gives t_1 = 0, but a neuron needs time to die."),
    ("ML-E9", "ML-T1d", "The upper limit of the stable rank is at most 2, not equal to 2; in fact it is below 2."),
    (
        "ML-E10",
        "ML-L12",
        "That no neuron leaves the dead cone holds for regular solutions, not for all: an example of the paper's own "
        "appendix leaves it.",
    ),
    (
        "ML-E11",
        "ML-L13 ML-L15",
        "V+ is defined twice (the second is V-), and the neurons inside their cones are written like all neurons of that "
        "sign in the appendix.",
    ),
    ("ML-E12", "", "The caption of Figure 4 exchanges two marks."),
    ("ML-E13", "", "The index of the initial weights runs over the inputs, not over the samples."),
    ("ML-E14", "ML-L12", "Three signs in remarks and in the proof of Lemma 12 belong to the other class."),
    (
        "ML-E15",
        "ML-T1b",
        "At the end of the proof of the rate y f tends to infinity, not f, and -log of the loss is the margin for the "
        "exponential loss only.",
    ),
    ("ML-E16", "ML-D1", "The dead cone is never empty: it holds 0."),
    ("ML-E17", "ML-T1c", "Times are called of exact order where only one side is proved."),
    ("ML-E18", "ML-T1c", "W_min is not defined; it is the smallest norm of a row of W_0."),
    ("ML-E19", "", "After the mean of all points is subtracted the class sums are exactly opposite."),
    ("ML-E20", "", "The scale of the start is not legible in some captions; 10^-6 fits all of them."),
)

_SBG = _of(
    "SBG",
    (
        "E-S1",
        "SBG-A6.1 SBG-T6.1",
        "A loss below 1/n does not mean that all points are classified: n L < log 2 is needed. One point with margin -0.5 "
        "has a loss of 0.974.",
    ),
    ("E-S2", "SBG-T5.1", "Equation (6) is written with r where the line before has 2 r; as a statement it is true."),
    ("E-S3", "SBG-D6.2 SBG-T6.1", "The same letter stands for a sign in the definition and for a slope in the proof."),
    (
        "E-S4",
        "SBG-T6.2",
        "In the proof a feature vector is printed with the label multiplied in; the kernel is the same.",
    ),
    (
        "E-S5",
        "SBG-P-mono",
        "The norm in (4) and (5) is that of the first layer, which alone is trained; some references are off by one.",
    ),
    (
        "E-S6",
        "SBG-L1",
        "The Lipschitz constant is sqrt(2k) v R; the printed one is too small for more than two neurons.",
    ),
    ("E-S7", "SBG-T4.1", "The proof gives at most eps, the theorem says less; the order 1/eps^2 hides a factor n^4."),
    ("E-S8", "SBG-V SBG-T6.2", "The critical set must be taken at the same beta as the agreement region."),
)

_LL = _of(
    "LL",
    (
        "E-L1",
        "LL-L5.2",
        "The driving mean of symmetric data is (1 + slope)/4 times the mean, half of what is printed; rates and times "
        "follow it.",
    ),
    ("E-L2", "LL-G.5", "The same factor 2 for other data: the rates are |mu+|/2 and |mu-|/2."),
    (
        "E-L3",
        "LL-TA.7 LL-A.5 LL-A.5*",
        "The theorem on data without symmetry fails as printed: its proof uses a bound at the multipliers of the support "
        "vector machine, and the assumption gives it only for some multipliers. The three points of example D8 satisfy "
        "every assumption, and the flow goes to another classifier. With LL-A.5* in place of LL-A.5 the proof holds.",
    ),
    (
        "E-L4",
        "LL-T6.2 LL-TA.7 LL-TA.10",
        "The probability of a neuron of the right sign is 1 - 2^-m; it is over the draw of the limit start.",
    ),
    (
        "E-L5",
        "LL-T6.2",
        "That the margin is not optimal is not proved and is false for few hints; a condition on the hints is circular "
        "and is replaced.",
    ),
    ("E-L6", "LL-T5.5", "The limit is printed with the factor 1/4 where the unit norm needs 1/2."),
    (
        "E-L7",
        "LL-A.9 LL-A.9* LL-TA.10",
        "The sign of the neurons in the mirrored assumption is printed the wrong way round.",
    ),
    (
        "E-L8",
        "LL-TH.2",
        "The limit is a difference of two neurons; the printed sum misclassifies every negative point.",
    ),
    (
        "E-L9",
        "",
        "The example of the appendix is consistent as printed, if its third output weight is read as negative.",
    ),
    ("E-L10", "LL-L5.4", "The parts of the limit start are printed in another order than they are used."),
    ("E-L11", "", "The second case of x- is printed as the first; the definition of w- lacks an index."),
    ("E-L12", "LL-G.4", "The excluded directions have the wrong sign, and three constants are misprinted."),
    ("E-L13", "LL-B.19", "A unit separator is needed, and the rate has c where c^2 is printed."),
    ("E-L14", "", "Slips in proofs that change no statement."),
    ("E-L15", "", "The ReLU of Table 1 is a leaky ReLU."),
)

#: All corrections, in the order of the papers.
ERRATA = (*_PL, *_ML, *_SBG, *_LL)


def corrections(claim: str) -> tuple[Erratum, ...]:
    """Return the corrections that concern a claim.

    >>> [one.id for one in corrections("LL-TA.7")]
    ['E-L3', 'E-L4']
    """
    return tuple(one for one in ERRATA if claim in one.claims)
