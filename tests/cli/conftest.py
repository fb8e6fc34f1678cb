"""What tests of the command line share."""

import pytest
import typer

from reluflow.cli.app import app
from reluflow.cli.common import in_options


@pytest.fixture
def spoken():
    """Give what the command line says of an error: the same words, with options in place of parameters."""

    def say(error, *verbs):
        command = typer.main.get_command(app)
        for verb in verbs:
            command = command.commands[verb]
        return in_options(str(error), command.params)

    return say
