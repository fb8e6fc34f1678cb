"""A playground in the browser: draw points, watch the neurons, and see what the theorems say."""

from .notebook import Studio
from .serve import serve
from .state import problem_of, state_of

__all__ = ["Studio", "problem_of", "serve", "state_of"]
