"""The modules of the studio in the browser; those that the page of an explanation needs too are with it."""

from importlib.resources import files
from importlib.resources.abc import Traversable

__all__ = ["WEB"]

WEB: Traversable = files(__package__)
