"""Where the rows of a watched run go as it trains: text files, TensorBoard, Weights & Biases."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from ..problem.errors import ProblemError
from ..problem.files import write_to
from ..problem.plain import plain

#: One row: the name of each curve and its value at a record.
Row = Mapping[str, float]
#: What takes rows; if it has a method ``close``, that is called at the end.
Log = Callable[[Row], object]

_ENDINGS = (".csv", ".tsv", ".jsonl")


class TextLog:
    r"""Writes a row a line, as CSV, TSV or JSONL, each handed to the system at once: ``kill -9`` loses none.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "run.jsonl")
    >>> log = TextLog(file)
    >>> log({"step": 3, "log_loss": -0.5})
    >>> file.read_text()
    '{"step": 3, "log_loss": -0.5}\n'
    >>> log.close()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = write_to(path, _ENDINGS)
        if self.path.exists() and self.path.stat().st_size:
            raise ProblemError(
                f"{self.path} is there already, and a run is never mixed with another one; name a new file, or remove "
                f"it."
            )
        try:
            self._stream = self.path.open("w", encoding="utf-8", newline="")
        except OSError as exc:
            raise ProblemError(f"{self.path} cannot be written: {exc.strerror or exc}.") from None
        self._names: list[str] = []

    def __call__(self, row: Row) -> None:
        """Write one row."""
        if self.path.suffix.lower() == ".jsonl":
            self._stream.write(json.dumps(plain(row)) + "\n")
        else:
            out = io.StringIO()
            table = csv.writer(out, delimiter="," if self.path.suffix.lower() == ".csv" else "\t", lineterminator="\n")
            if not self._names:
                self._names = list(row)
                table.writerow(self._names)
            table.writerow([row[name] for name in self._names])
            self._stream.write(out.getvalue())
        self._stream.flush()

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


class TensorBoardLog:
    """Sends every curve of a watched run to TensorBoard, as ``reluflow/margin`` and so on.

    Parameters
    ----------
    writer : path or SummaryWriter
        A folder for event files, or a ``torch.utils.tensorboard.SummaryWriter`` that is in use already.
    """

    def __init__(self, writer: Any) -> None:
        self._own = isinstance(writer, (str, os.PathLike))
        if self._own:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise ProblemError("TensorBoardLog needs TensorBoard; pip install tensorboard brings it.") from None
            writer = SummaryWriter(os.fspath(writer))
        elif not hasattr(writer, "add_scalar"):
            raise ProblemError(
                f"{type(writer).__name__} is no SummaryWriter: it has no add_scalar; give one, or the name of a folder."
            )
        self.writer = writer

    def __call__(self, row: Row) -> None:
        """Send one row."""
        for name, value in row.items():
            if name != "step":
                self.writer.add_scalar(f"reluflow/{name}", value, int(row["step"]))
        self.writer.flush()

    def close(self) -> None:
        """Close the writer, if it is ours."""
        if self._own:
            self.writer.close()


class WandbLog:
    """Sends every curve of a watched run to Weights & Biases.

    Parameters
    ----------
    run : wandb.Run, optional
        What ``wandb.init`` returned; default: the run that is active.
    """

    def __init__(self, run: Any = None) -> None:
        if run is None:
            try:
                import wandb
            except ImportError:
                raise ProblemError("WandbLog needs Weights & Biases; pip install wandb brings it.") from None
            run = wandb.run
        if run is None:
            raise ProblemError("no run of Weights & Biases is active; call wandb.init(...) first, or give its result.")
        if not hasattr(run, "log"):
            raise ProblemError(f"{type(run).__name__} is no run of Weights & Biases; give what wandb.init returned.")
        self.run = run

    def __call__(self, row: Row) -> None:
        """Send one row; the training loop keeps its own count of steps, so ours is a value like the others."""
        self.run.log({f"reluflow/{name}": value for name, value in row.items()})


def as_logs(log: Any) -> list[Log]:
    """Make what takes rows of a path, a function, or several of them."""
    if log is None:
        return []
    if isinstance(log, (list, tuple)):
        return [one for part in log for one in as_logs(part)]
    if isinstance(log, (str, os.PathLike)):
        return [TextLog(log)]
    if callable(log):
        return [log]
    raise ProblemError(
        f"log = {log!r} takes no rows; give a file that ends in {', '.join(_ENDINGS)}, a function of a row (a mapping "
        "of names to numbers), TensorBoardLog, WandbLog, or a list of these."
    )
