"""The data of the papers by name, examples with known answers, and files."""

from .loaders import digits, load, save
from .mnist import Fetched, cache_folder, fetch_mnist, mnist
from .registry import CONSTRUCTIONS, Construction, make
from .source import DRAW, as_dataset, as_problem, takes_data
from .spec import IMAGES, dataset, label_rule
from .summary import Summary, summarize
from .zoo import Example, KnownFacts, example, examples

__all__ = [
    "CONSTRUCTIONS",
    "DRAW",
    "IMAGES",
    "Construction",
    "Example",
    "Fetched",
    "KnownFacts",
    "Summary",
    "as_dataset",
    "as_problem",
    "cache_folder",
    "dataset",
    "digits",
    "example",
    "examples",
    "fetch_mnist",
    "label_rule",
    "load",
    "make",
    "mnist",
    "save",
    "summarize",
    "takes_data",
]
