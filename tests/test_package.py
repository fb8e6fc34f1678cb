"""The package as a whole: lazy names, versions, what an import costs."""

import ast
import pydoc
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import reluflow

ROOT = Path(__file__).parent.parent


def test_every_public_name_resolves():
    for name in reluflow._HOME_OF:
        assert getattr(reluflow, name).__name__ == name


def test_the_stub_has_the_same_names():
    nodes = ast.parse(Path(reluflow.__file__).with_suffix(".pyi").read_text()).body
    imports = [(node.module, alias) for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert all(alias.asname == alias.name for _, alias in imports)  # a stub gives away nothing else
    assert {alias.name: module for module, alias in imports if module} == reluflow._HOME_OF
    assert {alias.name for module, alias in imports if not module} == set(reluflow._PARTS)
    assert len(imports) == len(reluflow._HOME_OF) + len(reluflow._PARTS)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'flwo'"):
        reluflow.flwo  # noqa: B018


@pytest.mark.parametrize("part", reluflow._PARTS)
def test_names_of_specialists_say_where_they_live(part):
    names = set(getattr(reluflow, part).__all__) - set(reluflow._HOME_OF) - set(reluflow._PARTS)
    assert names
    for name in names:
        assert hasattr(getattr(reluflow, part), name)
        with pytest.raises(AttributeError, match=rf"no attribute '{name}'; it lives at .*reluflow\.{part}\.{name}\b"):
            getattr(reluflow, name)


def test_import_loads_nothing_heavy():
    code = "import sys, reluflow; print([m for m in ('numpy', 'scipy', 'numba', 'matplotlib') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_versions_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == reluflow.__version__
    assert f"version: {reluflow.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_help_lists_every_public_name_with_a_line():
    block = re.findall(r"^    (\w+) {2,}(\S.*)$", reluflow.__doc__, flags=re.MULTILINE)
    assert [name for name, _ in block] == [*reluflow.__all__, *reluflow._PARTS]
    assert len(dict(block)) == len(block)
    shown = pydoc.render_doc(reluflow, renderer=pydoc.plaintext)
    for name, line in block:
        assert f"{name} " in shown
        assert line in shown


def test_star_import_gives_the_public_names():
    found = {}
    exec("from reluflow import *", found)
    assert set(found) - {"__builtins__"} == set(reluflow._HOME_OF)


def test_parts_are_attributes():
    code = "import reluflow as rf; print(rf.margins.kkt is rf.kkt, rf.problem.__name__, 'margins' in dir(rf))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "reluflow.problem", "True"]
    folders = {path.parent.name for path in Path(reluflow.__file__).parent.glob("*/__init__.py")}
    assert set(reluflow._PARTS) == folders - {"cli"}
    assert not folders & set(reluflow._HOME_OF)
