"""Whether a network is a KKT direction of the margin problem."""

from .residual import KKT, check_relative, kkt

__all__ = ["KKT", "check_relative", "kkt"]
