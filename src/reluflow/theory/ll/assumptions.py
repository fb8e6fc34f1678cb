"""The assumptions of LL as claims of their own: whether they hold for a problem, with their numbers."""

from __future__ import annotations

from typing import ClassVar

from ..base import Claim, Condition
from ..conditions import (
    both_layers,
    funnel,
    game,
    good_draw,
    leaky,
    longer,
    no_branching,
    off_mean,
    outside,
    renamed,
    separable,
    spread,
    symmetric,
)
from ..facts import Facts

_TEST = "tests/theory/ll/test_assumptions.py::"


class Separable(Claim):
    """LL-A3.2."""

    id, paper = "LL-A3.2", "LL"
    statement = "Assumption: some w classifies every sample."
    falsifier = "a verdict that the vector or the vanishing combination it comes with does not bear out"
    test = _TEST + "test_separable_verdict_has_its_witness"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (separable(facts),)


class Symmetric(Claim):
    """LL-A4.1."""

    id, paper = "LL-A4.1", "LL"
    statement = "Assumption: with every (x, y) the data hold (-x, -y)."
    falsifier = "a symmetrised data set refused, or one with a moved point accepted"
    test = _TEST + "test_symmetry_is_exact"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (symmetric(facts),)


class OffMean(Claim):
    """LL-A4.5."""

    id, paper = "LL-A4.5", "LL"
    statement = "Assumption: no sample is orthogonal to the mean of y_i x_i."
    falsifier = "an exact zero accepted, or a non-zero refused"
    test = _TEST + "test_orthogonal_to_the_mean_is_decided_exactly"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (off_mean(facts),)


class NoBranching(Claim):
    """LL-A4.6 and LL-A.6."""

    id, paper = "LL-A4.6", "LL"
    also = ("LL-A.6",)
    statement = "Assumption: the flow from the limit start near 0 does not branch; sure if all y_i y_j x_i.x_j >= 0."
    falsifier = "a ridge met in a run on data where the sufficient test holds"
    test = "tests/theory/ll/test_claims.py::test_a_ridge_is_flagged"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (no_branching(facts),)


class Funnel(Claim):
    """LL-A.1 and LL-G.1."""

    id, paper = "LL-A.1", "LL"
    also = ("LL-G.1",)
    statement = "Assumption: one direction dominates the spread of the data; it implies LL-A.2."
    falsifier = "data with a vector for LL-A.1 on which LL-A.2 fails"
    test = _TEST + "test_a1_implies_a2"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return leaky(facts), funnel(facts)


class Spread(Claim):
    """LL-A.2 and LL-G.2."""

    id, paper = "LL-A.2", "LL"
    also = ("LL-G.2",)
    statement = "Assumption: every direction that can drive a small neuron separates the data (K inside the cone C)."
    falsifier = "a combination sum a_i z_i, a_i in [slope, 1], that does not separate although the slack is positive"
    test = _TEST + "test_a2_is_the_cone_inclusion"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return leaky(facts), spread(facts)


class LongerPlus(Claim):
    """LL-A.3."""

    id, paper = "LL-A.3", "LL"
    statement = "Assumption: |mu+| > |mu-|: positive neurons outgrow negative ones."
    falsifier = "an order of the two lengths other than in rational arithmetic"
    test = _TEST + "test_order_of_the_means_is_exact"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return leaky(facts), longer(facts, 1)


class LongerMinus(LongerPlus):
    """LL-A.8."""

    id = "LL-A.8"
    statement = "Assumption: |mu+| < |mu-|: negative neurons outgrow positive ones."

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return leaky(facts), longer(facts, -1)


class OtherSignOutside(Claim):
    """LL-A.5 and LL-G.10."""

    id, paper = "LL-A.5", "LL"
    also: ClassVar[tuple[str, ...]] = ("LL-G.10",)
    statement = "Assumption (printed): nets of negative outputs have margin below gamma+/2 on the support of w+."
    falsifier = "a net of the other sign with a larger margin on the support than the value reported"
    test = _TEST + "test_one_signed_nets_stay_below_the_value"
    sign, star = 1, False

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return leaky(facts), outside(facts, self.sign, self.star)


class OtherSignOutsideStar(OtherSignOutside):
    """LL-A.5*."""

    id = "LL-A.5*"
    also = ()
    statement = "Assumption (as the proof needs it): the same with the weights of the samples held to the dual of w+."
    test = _TEST + "test_printed_and_corrected_assumptions_differ_on_D8"
    star = True


class OtherSignOutsideMinus(OtherSignOutside):
    """LL-A.9, with the sign of the outputs corrected."""

    id = "LL-A.9"
    also = ()
    statement = (
        "Assumption: nets of positive (printed: negative) outputs have margin below gamma-/2 on the support of w-."
    )
    test = _TEST + "test_sign_in_a9_as_printed_fails"
    sign = -1

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        own = _own_sign(facts)
        return leaky(facts), renamed(own, "as printed", False), renamed(outside(facts, -1, False), "as corrected", True)


class OtherSignOutsideMinusStar(OtherSignOutside):
    """LL-A.9*."""

    id = "LL-A.9*"
    also = ()
    statement = "Assumption: LL-A.9 with the weights of the samples held to the dual of w-."
    test = "tests/theory/ll/test_claims.py::test_label_flip_exchanges_the_two_theorems"
    sign, star = -1, True


def _own_sign(facts: Facts) -> Condition:
    """LL-A.9 with the sign as printed: nets of the sign of the surviving neuron, which itself reaches gamma-/2."""
    found = game(facts, -1)
    name = "the same sign gains too little on the support (LL-A.9)"
    if found is None:
        return Condition(name, False, "proved", why="it is about leaky networks on separable data.")
    why = "the surviving neuron itself is such a network and attains gamma-/2, so this never holds."
    return Condition(name, False, "proved", found.threshold, found.threshold, why=why)


class GoodDraw(Claim):
    """LL-Emb and LL-L5.3."""

    id, paper = "LL-Emb", "LL"
    also = ("LL-L5.3",)
    statement = "A good b embeds nets of two neurons: function and norm are kept, trajectories go to trajectories."
    falsifier = "an embedded net with another function, norm or flow"
    test = _TEST + "test_embedding_keeps_function_norm_and_flow"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return both_layers(facts), symmetric(facts), good_draw(facts)


CLAIMS: tuple[Claim, ...] = (
    Separable(),
    Symmetric(),
    OffMean(),
    NoBranching(),
    Funnel(),
    Spread(),
    LongerPlus(),
    LongerMinus(),
    OtherSignOutside(),
    OtherSignOutsideStar(),
    OtherSignOutsideMinus(),
    OtherSignOutsideMinusStar(),
    GoodDraw(),
)
