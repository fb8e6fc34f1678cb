"""The page of an explanation, the documents it is drawn from, and the modules that draw them."""

from .modules import FRONT, bundle, style
from .page import document, page, running
from .plane import bias_of

__all__ = ["FRONT", "bias_of", "bundle", "document", "page", "running", "style"]
