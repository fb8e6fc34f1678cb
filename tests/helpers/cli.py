"""The command line, called as a user would, in this process or in one of its own."""

import contextlib
import functools
import json
import subprocess
import sys

import typer
from typer.testing import CliRunner

from reluflow.cli.app import app

# The tree of commands is the same at every call, and making it costs more than most calls.
typer.testing._get_command = functools.cache(typer.main.get_command)


def run(*arguments):
    """Call reluflow with these words."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def document(*arguments, code=0):
    """Call it with --json, which must end with this exit code; return what it prints."""
    result = run(*arguments, "--json")
    assert result.exit_code == code, (result.stdout, result.stderr)
    found = json.loads(result.stdout)
    assert found["schema"] == 1
    return found


def refused(folder, words, *arguments):
    """Call it in an empty folder, which it must leave empty: exit code 2, and these words; return the result."""
    with contextlib.chdir(folder):
        result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr.replace("\n", " ")
    assert list(folder.iterdir()) == []
    return result


def process(*arguments, **options):
    """Call it as a process of its own."""
    command = [sys.executable, "-m", "reluflow", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)
