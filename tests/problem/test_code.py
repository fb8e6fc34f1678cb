"""The version of the code behind a result: what changes it, and what does not."""

import ast
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import reluflow
from reluflow.problem import code

MAIN = '''
    """Doc."""
    from __future__ import annotations

    import math
    from typing import TYPE_CHECKING

    import numpy as np

    from .lower import K, Shape, table
    from .lower._tables import look_up
    from . import lower

    if TYPE_CHECKING:
        from .other import Unused

    LIMIT, OTHER = 3, 4


    def run(parameters, tell: Unused) -> dict[str, float]:
        """Doc."""
        from .lower._late import late

        def inner(table: int = K) -> float:
            return np.linalg.norm(table) + LIMIT  # a local name, not the function

        lower.check_time("running", None)
        if K < 0:
            raise ValueError(f"K is {K}", K)
        return {"k": f"{K:.{LIMIT}g} of {inner()!r}", "s": Shape(1).area(), "l": late(), "v": look_up(parameters)}


    def plot(numbers):
        return 1 + OTHER
'''
LOWER = """
    from ._deep import K, Shape, check_time
    from ._deep import table as table
"""
DEEP = '''
    from dataclasses import dataclass
    from typing import ClassVar

    K = 3


    @dataclass(frozen=True)
    class Shape:
        """A shape."""

        side: float
        kind: ClassVar[str] = "square"

        def area(self) -> float:
            """Doc."""
            return self.side**2 * _factor()

        def __repr__(self) -> str:
            return "a shape"


    def _factor():
        return 2.0


    def table():
        return 0


    def check_time(doing: str, partial=None) -> None:
        raise ValueError


    def unreached():
        return 5
'''
TABLES = """
    from importlib import import_module

    _FILLED = {}
    FILES = ("numbers.txt",)


    def register(figure: str):
        def put(function):
            _FILLED[function.__name__] = function
            return function

        return put


    def look_up(name):
        return _FILLED[name]() + len(FILES)
"""
DRAWN = """
    from typing import Annotated

    from ._tables import register

    RULE = 7


    @register("F1")
    def spiral(n: Annotated[int, RULE] = 4):
        return n
"""
FILES = {
    "__init__.py": "",
    "main.py": MAIN,
    "other.py": "class Unused: ...\n",
    "lower/__init__.py": LOWER,
    "lower/_deep.py": DEEP,
    "lower/_tables.py": TABLES,
    "lower/_drawn.py": DRAWN,
    "lower/numbers.txt": "1 2 3\n",
    "lower/_late.py": "def late():\n    from .named import find\n    return find('found')\n",
    "lower/named/__init__.py": "from importlib import import_module\ndef find(name):\n"
    "    return import_module('.' + name, __package__).VALUE\n",
    "lower/named/found.py": "VALUE = 11\n",
}


@pytest.fixture
def tree(tmp_path):
    """A small package, and its version after changes to some of its files."""

    def version(changes=(), moved=(), start=("main", "run")):
        root = tmp_path / f"package{len(list(tmp_path.iterdir()))}" / "pack"
        files = {name: textwrap.dedent(text).lstrip("\n") for name, text in FILES.items()}
        for name, old, new in changes:
            names = list(files) if name == "*" else [name]
            assert any(old in files[one] for one in names), old
            files |= {one: files[one].replace(old, new) for one in names}
        for old, new in moved:
            files[new] = files.pop(old)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return code.code_of(root, *start)

    return version


SAME = {
    "docstring": [("main.py", '"""Doc."""', '"""Other."""'), ("lower/_deep.py", '"""A shape."""', "")],
    "comment": [("main.py", "# a local name, not the function", "")],
    "annotations": [("main.py", "tell: Unused", "tell: int"), ("lower/_deep.py", "side: float", "side: 'int'")],
    "text of an error": [("main.py", "K is", "K was")],
    "a guard of time": [("main.py", '    lower.check_time("running", None)\n', "")],
    "quotes, brackets, line breaks": [
        ("main.py", '{"k": f"{K:.{LIMIT}g} of {inner()!r}",', "{\n 'k': (f'{K:.{LIMIT}g} ' f'of {inner()!r}'),"),
        ("lower/_deep.py", "self.side**2 * _factor()", "(self.side ** 2) * (_factor())"),
        ("main.py", "LIMIT, OTHER = 3, 4", "(LIMIT, OTHER,) = (3, 4,)"),
    ],
    "how it is printed": [("lower/_deep.py", "a shape", "the shape")],
    "what draws": [("main.py", "return 1 + OTHER", "return 2")],
    "what is not reached": [
        ("lower/_deep.py", "return 5", "return 6"),
        ("lower/_deep.py", "return 0", "return 1"),
        ("other.py", "Unused", "Unused2"),
    ],
    "a function renamed": [("*", "_factor", "_other_name")],
    "a constant and a class renamed": [("*", "LIMIT", "BOUND"), ("*", "Shape", "Square")],
    "an alias of a library": [("main.py", "numpy as np", "numpy as xp"), ("main.py", "np.linalg", "xp.linalg")],
    "another way to the same name": [
        ("main.py", "np.linalg.norm", "norm"),
        ("main.py", "import numpy as np", "from numpy.linalg import norm"),
    ],
    "another way to import": [
        ("main.py", "    from .lower._late import late\n", "    import pack.lower._late as later\n"),
        ("main.py", "late()", "later.late()"),
    ],
}
OTHER = {
    "constant": [("lower/_deep.py", "K = 3", "K = 4")],
    "one of two constants": [("main.py", "LIMIT, OTHER = 3, 4", "LIMIT, OTHER = 4, 3")],
    "operator": [("lower/_deep.py", "side**2 *", "side**2 /")],
    "order": [("main.py", "np.linalg.norm(table) + LIMIT", "LIMIT + np.linalg.norm(table)")],
    "deep down": [("lower/_deep.py", "return 2.0", "return 3.0")],
    "field of a class": [("lower/_deep.py", "side: float\n", "side: float = 1\n")],
    "kind of a field": [("lower/_deep.py", "kind: ClassVar[str]", "kind: str")],
    "default": [("main.py", "table: int = K", "table: int = 1")],
    "decorator": [("lower/_deep.py", "frozen=True", "frozen=False")],
    "library": [("main.py", "np.linalg.norm", "np.linalg.det")],
    "what an error carries": [("main.py", 'f"K is {K}", K)', 'f"K is {K}", -K)')],
    "kind of an error": [("main.py", "raise ValueError", "raise KeyError")],
    "text": [("main.py", "g} of {", "g} by {")],
    "format": [("main.py", "{LIMIT}g}", "{LIMIT}e}")],
    "conversion": [("main.py", "inner()!r", "inner()!s")],
    "registered": [("lower/_drawn.py", "return n", "return -n")],
    "name in a table": [("lower/_drawn.py", "def spiral", "def other")],
    "rule in an annotation that is read": [("lower/_drawn.py", "RULE = 7", "RULE = 8")],
    "data file": [("lower/numbers.txt", "1 2 3", "1 2 4")],
    "imported by name": [("lower/named/found.py", "11", "12")],
}


@pytest.mark.parametrize("changes", SAME.values(), ids=SAME)
def test_what_computes_the_same_has_the_same_version(tree, changes):
    assert tree(changes) == tree()


@pytest.mark.parametrize("changes", OTHER.values(), ids=OTHER)
def test_what_computes_otherwise_has_another_version(tree, changes):
    assert tree(changes) != tree()


def test_moved_modules_and_functions(tree):
    plain = tree()
    renamed = [("*", "._deep", "._elsewhere")]
    assert tree(renamed, moved=[("lower/_deep.py", "lower/_elsewhere.py")]) == plain
    assert tree(moved=[("main.py", "other_main.py")], start=("other_main", "run")) == plain
    function = "def _factor():\n    return 2.0\n"
    away = [
        ("lower/_deep.py", function, ""),
        ("lower/_deep.py", "K = 3", "from ..other import _factor\n\nK = 3"),
        ("other.py", "class", f"{function}\n\nclass"),
    ]
    assert tree(away) == plain
    assert tree([*away, ("other.py", "2.0", "3.0")]) != plain


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ([("main.py", "LIMIT, OTHER = 3, 4", "LIMIT, OTHER = 3, 4\nK = K + 1")], ("lower/_deep.py", "K = 3", "K = 4")),
        ([("main.py", "+ LIMIT  #", "+ globals()['LIMIT']  #")], ("main.py", "return 1 + OTHER", "return 2")),
        (
            [
                ("main.py", "norm(table)", "norm(other)"),
                ("main.py", "from . import lower", "from . import lower, other"),
            ],
            ("other.py", "Unused: ...", "Unused: a = 1"),
        ),
    ],
)
def test_roundabout_ways_are_followed(tree, first, then):
    assert tree(first) != tree([*first, then])


def test_a_function_that_is_not_there(tree):
    with pytest.raises(KeyError, match="main does not define walk"):
        tree(start=("main", "walk"))


# -- real code ------------------------------------------------------------------------------------------------------

MARGINS = Path(reluflow.__file__).parent / "margins"


def test_real_code_laid_out_anew_under_other_names(tmp_path):
    root = tmp_path / "margins"
    shutil.copytree(MARGINS, root, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "hard" / "rows.py").rename(root / "hard" / "lines.py")
    for path in root.rglob("*.py"):
        text = re.sub(r"\.rows import", ".lines import", path.read_text())
        path.write_text(ast.unparse(ast.parse(re.sub(r"\bhard_margin\b", "widest", text))))
    assert code.code_of(root, "global_.solution", "global_max_margin") == code.code_of(
        MARGINS, "global_.solution", "global_max_margin"
    )


def test_other_versions_of_python_agree():
    program = (
        "import importlib.util, pathlib, sys\n"
        "spec = importlib.util.spec_from_file_location('_code', sys.argv[1])\n"
        "module = sys.modules['_code'] = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "print(module.code_of(pathlib.Path(sys.argv[2]), 'global_.solution', 'global_max_margin'))\n"
    )
    expected = [code.code_of(MARGINS, "global_.solution", "global_max_margin")]
    tried = []
    for version in ("3.11", "3.12", "3.13", "3.14"):
        if version == f"{sys.version_info.major}.{sys.version_info.minor}":
            continue
        places = [shutil.which(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
        for python in filter(None, places):
            done = subprocess.run(
                [python, "-c", program, code.__file__, str(MARGINS)], capture_output=True, text=True, check=False
            )
            if done.returncode == 0 or "Traceback" in done.stderr:  # else the name leads nowhere
                tried.append(version)
                assert done.stdout.split() == expected, done.stderr
                break
    if not tried:
        pytest.skip("no other version of Python is here")
