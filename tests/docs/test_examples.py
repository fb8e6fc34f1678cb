"""Every public name is shown in use: its docstring has an example, which is run with the other doctests."""

import doctest
import inspect

import pytest

import reluflow as rf


@pytest.mark.parametrize("name", rf.__all__)
def test_every_public_name_has_an_example(name):
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(getattr(rf, name)) or "")
    assert examples, f"rf.{name} has no example in its docstring"
    used = " ".join(f"{example.source} {example.exc_msg or example.want}" for example in examples)
    assert name in used, f"the example of rf.{name} does not use it"
