"""Min, Mallada and Vidal: neurons align early with their class, and from then on the loss falls like 1/t."""

from __future__ import annotations

import numpy as np

from ...sectors import dead_cone
from ..base import Claim, Condition, Prediction
from ..conditions import not_on_ray, relu, strictly_orthogonal
from ..facts import Facts
from .early import EARLY
from .late import LATE

_GEOMETRY = "tests/theory/ml/test_claims.py"

#: Data up to this many entries are asked whether a dead direction exists.
_ENTRIES = 200_000


class SignedCosines(Claim):
    """ML-A1."""

    id = "ML-A1"
    paper = "ML"
    statement = "mu = min cos(y_i x_i, y_j x_j) > 0 (the same as strict orthogonal separability)."
    falsifier = "one pair of samples whose signed inner product is not positive (given as witness)."
    test = f"{_GEOMETRY}::test_constants_of_the_examples"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (strictly_orthogonal(facts),)

    def bounds(self, facts: Facts) -> dict[str, float]:
        return {"mu": facts.constants.mu, "x_min": facts.constants.x_min, "x_max": facts.constants.x_max}


class OffRays(Claim):
    """ML-A2."""

    id = "ML-A2"
    paper = "ML"
    statement = "No neuron starts exactly along the sum of the class it does not fit: zeta_2 = 1 - c0^2 > 0."
    falsifier = "a neuron exactly parallel to that sum (given as witness)."
    test = f"{_GEOMETRY}::test_repelling_ray"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (not_on_ray(facts),)

    def bounds(self, facts: Facts) -> dict[str, float]:
        gap = facts.zeta_2
        return {"zeta_2": gap, "c0": float(np.sqrt(1 - gap))}


class TrappingCones(Claim):
    """ML-D1."""

    id = "ML-D1"
    paper = "ML"
    statement = (
        "S+, S- and S_dead are convex cones; S+ and S- do not contain 0 when their class is present, S_dead does."
    )
    falsifier = "two members of a cone whose sum is outside, or a vector counted in the wrong one."
    test = f"{_GEOMETRY}::test_cones_of_the_examples"
    also = ("ML-L6",)

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (relu(facts),)

    def prediction(self, facts: Facts) -> Prediction:
        cones = facts.start_cones
        counts = [int(flags.sum()) for flags in (cones.plus, cones.minus, cones.dead, cones.none)]
        text = "at the start {} neurons are in S+, {} in S-, {} dead, {} in none.".format(*counts)
        if facts.data.X.size <= _ENTRIES:
            alone = dead_cone(facts.data).trivial
            # ML-E16: the dead cone is never empty, it always holds 0.
            text += " No direction is dead." if alone else " There are dead directions."
        return self.promise(text)


class DrivingCone(Claim):
    """ML-K, with the two lemmas on it."""

    id = "ML-K"
    paper = "ML"
    statement = "Forces lie in the cone K of the y_i x_i; cosines in K are >= mu; y_i x_i.z >= mu|x_i| for unit z in K."
    falsifier = "two vectors of K with a cosine below mu, or one outside S+."
    test = f"{_GEOMETRY}::test_driving_cone"
    also = ("ML-L5", "ML-L7")

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (strictly_orthogonal(facts),)

    def bounds(self, facts: Facts) -> dict[str, float]:
        return {"smallest_cosine": facts.constants.mu}


class ForceBound(Claim):
    """ML-L11."""

    id = "ML-L11"
    paper = "ML"
    statement = "|x_a(w)| >= sqrt(mu) n_a X_min, and more sharply sqrt(n_a (1 + mu (n_a - 1))) X_min."
    falsifier = "a w with a smaller force."
    test = f"{_GEOMETRY}::test_force_bound"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return relu(facts), strictly_orthogonal(facts)

    def bounds(self, facts: Facts) -> dict[str, float]:
        found = {}
        for active in _counts(facts.data.n):
            found[f"force with {active} active"] = force_bound(facts, active)
            found[f"force with {active} active (sharp)"] = sharp_force_bound(facts, active)
        return found


def _counts(n: int) -> list[int]:
    return list(range(1, n + 1)) if n <= 8 else [1, n]


def force_bound(facts: Facts, active: int) -> float:
    """ML-L11 as printed, for a sum of losses with unit force at zero."""
    return float(np.sqrt(facts.constants.mu) * active * facts.constants.x_min)


def sharp_force_bound(facts: Facts, active: int) -> float:
    """ML-L11 with all cross terms counted."""
    return float(np.sqrt(active * (1 + facts.constants.mu * (active - 1))) * facts.constants.x_min)


class Caps(Claim):
    """ML-L8."""

    id = "ML-L8"
    paper = "ML"
    statement = (
        "Vectors with cos^2 to x+ (x-) above 1 - zeta_1 are in S+ (S-); any zeta_1 up to zeta_1* >= mu^2 will do."
    )
    falsifier = "a vector inside the open cap and outside the cone."
    test = f"{_GEOMETRY}::test_caps_lie_in_the_cones"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return relu(facts), strictly_orthogonal(facts)

    def bounds(self, facts: Facts) -> dict[str, float]:
        c = facts.constants
        return {"zeta_1_plus": c.zeta_1_plus, "zeta_1_minus": c.zeta_1_minus, "mu_squared": c.xi}


class Gap(Claim):
    """ML-L9."""

    id = "ML-L9"
    paper = "ML"
    statement = "|cos(k, z)| <= sqrt(1 - xi) for k in K and z outside S+ and S-; xi = mu^2 is the best constant."
    falsifier = "k in K and z outside both cones with a larger cosine."
    test = f"{_GEOMETRY}::test_gap_is_best_possible"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return relu(facts), strictly_orthogonal(facts)

    def bounds(self, facts: Facts) -> dict[str, float]:
        return {"xi": facts.constants.xi, "c": facts.constants.c}


CLAIMS: tuple[Claim, ...] = (
    SignedCosines(),
    OffRays(),
    TrappingCones(),
    DrivingCone(),
    ForceBound(),
    Caps(),
    Gap(),
    *EARLY,
    *LATE,
)

#: Statements that cannot be put to the test, with the reason.
NOT_COMPUTABLE: dict[str, str] = {
    "ML-D2": "defines which solution is meant and says that one exists; the integrators compute this one and mark "
    "starts where there are others",
}
