"""Exact arithmetic: doubles as integers times a power of two, as rationals, and unevaluated pairs of doubles."""

from .integers import (
    Echelon,
    as_integers,
    independent,
    null_vector,
    primitive,
    project_out,
    rounded,
    solve,
    to_float,
    unit_float,
    value_along,
)
from .pairs import Pair, product, product_error, two_product, two_sum
from .rationals import Rationals, as_rationals, column_sums, dot, multiple, total

__all__ = [
    "Echelon",
    "Pair",
    "Rationals",
    "as_integers",
    "as_rationals",
    "column_sums",
    "dot",
    "independent",
    "multiple",
    "null_vector",
    "primitive",
    "product",
    "product_error",
    "project_out",
    "rounded",
    "solve",
    "to_float",
    "total",
    "two_product",
    "two_sum",
    "unit_float",
    "value_along",
]
