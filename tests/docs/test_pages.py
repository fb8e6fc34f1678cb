"""Every block of code on the pages is run: Python as doctests or statements, commands, TOML as a sweep.

A page is run from the top to the bottom in one empty folder. What a reader has and the page does not show (a model, a
loader) is made by a block inside an HTML comment.
"""

import doctest
import re
import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer

import reluflow as rf
from helpers.cli import run

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
#: Blocks that need these are compiled and not run: they are not installed for the tests.
FOREIGN = ("dask_jobqueue", "lightning", "wandb", "tensorboard", "pyarrow")
#: Commands that take minutes or never end: their options are checked, and they are not run.
LONG = ("studio", "reproduce", "sweep run", "data fetch")

pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="the pages are not part of this installation")


def pages():
    """Return the pages with code, by name, with what they need beyond the package."""
    found = [file for file in sorted(DOCS.rglob("*.md")) if not {"_build", "reproduction"} & set(file.parts)]
    return [file for file in found if FENCE.search(file.read_text(encoding="utf-8"))]


def blocks(page):
    """Yield the blocks of code of a page, with the line each begins at and its language."""
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        indent, language, code = found.groups()
        plain = "".join(line.removeprefix(indent) for line in code.splitlines(keepends=True))
        yield text[: found.start()].count("\n") + 2, language, plain


def run_python(code, names, place):
    """Run a block: a doctest if it has prompts, else as it stands."""
    missing = [name for name in FOREIGN if name in code and find_spec(name) is None]
    if missing:
        compile(code, place, "exec")
    elif ">>>" in code:
        runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
        said = []
        test = doctest.DocTestParser().get_doctest(code, names, place, place, 0)
        runner.run(test, out=said.append, clear_globs=False)
        names.update(test.globs)
        assert not runner.summarize(verbose=False).failed, "".join(said)
    else:
        exec(compile(code, place, "exec"), names)


def run_command(line, place):
    """Run a command of the shell as far as it can be: those of the package, and the targets of make by their names."""
    words = shlex.split(line, comments=True)
    if not words or words[:2] == ["pip", "install"]:
        return
    if words[0] == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert set(words[1:]) <= set(targets), (place, line)
        return
    assert words[0] == "reluflow", (place, line)
    from reluflow.cli.app import app

    if " ".join(words[1:]).startswith(LONG):
        command, rest = typer.main.get_command(app), words[1:]
        while hasattr(command, "commands"):
            name, *rest = rest
            command = command.commands[name]
        command.make_context(name, list(rest))
        return
    result = run(*words[1:])
    assert result.exit_code == 0, f"{place}: {line}\n{result.output}"


def test_there_are_pages():
    names = {page.relative_to(DOCS).as_posix() for page in pages()}
    assert {"index.md", "start.md", "doors.md", "sweep.md", "howto/verdict.md", "theory/index.md"} <= names


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(DOCS).as_posix())
def test_every_block_runs(page, tmp_path, monkeypatch):
    text = page.read_text(encoding="utf-8")
    if "torch" in text and page.name in ("doors.md", "pytorch.md"):
        pytest.importorskip("torch", reason="torch is not installed: the blocks of this page need it")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DOCS / "sweep", tmp_path / "docs" / "sweep", ignore=lambda *_: ["hinted"])  # what a clone has there
    names = {"__name__": "__main__"}
    for line, language, code in blocks(page):
        place = f"{page.relative_to(ROOT)}:{line}"
        if language == "python":
            run_python(code, names, place)
        elif language == "sh":
            for command in code.splitlines():
                run_command(command, place)
        elif language == "toml":
            (tmp_path / "spec.toml").write_text(code, encoding="utf-8")
            assert len(rf.Sweep.read("spec.toml")) > 0
        else:
            assert language in ("math", "bibtex"), (place, language)


def test_a_wrong_block_is_noticed(tmp_path):
    with pytest.raises(AssertionError, match="Expected"):
        run_python(">>> 1 + 1\n3\n", {}, "here")
    with pytest.raises(ZeroDivisionError):
        run_python("1 / 0\n", {}, "here")
    with pytest.raises(AssertionError):
        run_command("reluflow explain nothing-like-this.csv", "here")
    with pytest.raises(AssertionError):
        run_command("make coffee", "here")
    with pytest.raises(Exception, match="No such option"):
        run_command("reluflow sweep run spec.toml --colour red", "here")
