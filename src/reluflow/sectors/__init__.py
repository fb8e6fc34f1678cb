"""How neurons see the data: activation patterns and the geometry of the early phase."""

from .cells import Cells, cell_bound, enumerate_cells
from .closed import class_sectors, class_sums
from .cones import Cones, DeadCone, cones_of, cones_of_patterns, dead_cone, driving_cone, smallest_cosine
from .constants import AlignmentConstants, alignment_constants, harmonic_factor, initial_gap
from .driving import DrivingSlack, driving_slack
from .extremal import ExtremalDirections, Extremum, extremal_directions
from .g import ClarkeSet, G, G_clarke, G_derivative, G_gradient, linear_until
from .patterns import exact_dot, exact_signs, gram_signs, is_orthogonally_separable, sector, separability_violations

__all__ = [
    "AlignmentConstants",
    "Cells",
    "ClarkeSet",
    "Cones",
    "DeadCone",
    "DrivingSlack",
    "ExtremalDirections",
    "Extremum",
    "G",
    "G_clarke",
    "G_derivative",
    "G_gradient",
    "alignment_constants",
    "cell_bound",
    "class_sectors",
    "class_sums",
    "cones_of",
    "cones_of_patterns",
    "dead_cone",
    "driving_cone",
    "driving_slack",
    "enumerate_cells",
    "exact_dot",
    "exact_signs",
    "extremal_directions",
    "gram_signs",
    "harmonic_factor",
    "initial_gap",
    "is_orthogonally_separable",
    "linear_until",
    "sector",
    "separability_violations",
    "smallest_cosine",
]
