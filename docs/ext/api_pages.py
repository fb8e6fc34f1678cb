"""The pages of the API, written from the one table of public names and the lists of the packages."""

import inspect
from importlib import import_module
from pathlib import Path

import reluflow

#: What the names of a group are for.
_LEADS = {
    "Data and problems": "Points with labels, networks, and both together: everything begins with one of these.",
    "What theory says": "Which theorems apply to a problem, what they promise, and whether a run kept the promises.",
    "Training": "A network as it learns: by the gradient flow, to its limit, or in steps as in practice.",
    "Margins": "How wide a separator, a neuron or a network can be on given data, each answer with a proof of its own.",
    "Sectors": "The geometry that small neurons move in: which samples a direction sees, and where it is pulled.",
    "Many problems": "The same question over ranges of parameters, kept row by row and drawn.",
    "Time": "How long something may take.",
    "Errors": "What is raised when an answer cannot be given, and what was found until then.",
}
#: What is no class and no function has no docstring.
_DATA = {
    "reluflow.data.CONSTRUCTIONS": "The constructions by name, each with its function and where it is from.",
    "reluflow.data.DRAW": "How a network is drawn where nothing else is said, as :obj:`~reluflow.initialize` takes it.",
    "reluflow.data.IMAGES": "The sets of images by name, each with the function that reads it.",
    "reluflow.dynamics.EVENT": "The type of a row of events: log time, neuron, sample, and what happened.",
    "reluflow.theory.PAPERS": "The papers by the letters that the ids of their statements begin with.",
    "reluflow.experiments.IDS": "The ids of all experiments, in the order of the papers.",
    "reluflow.experiments.PAPERS": "The papers by the letters that the ids begin with, and one for checks of our own.",
}


def _directive(full, value):
    kind = "autoclass" if inspect.isclass(value) else "autofunction" if callable(value) else "py:data"
    if inspect.isclass(value) and issubclass(value, BaseException):
        kind = "autoexception"
    lines = [f".. {kind}:: {full}"]
    if kind == "py:data":
        lines += ["", f"   {_DATA[full]}"]
    if kind == "autoclass":
        lines += ["   :members:"]
        if full.startswith("reluflow.learn."):  # what scikit-learn's classes bring is described there
            lines += ["   :exclude-members: set_fit_request, set_score_request, set_predict_request"]
        else:
            lines += ["   :inherited-members: object, tuple, list, BaseException, dict"]
    return [*lines, ""]


def _gallery(full):
    return [".. minigallery:: " + full, ""]


def _title(text):
    return [text, "=" * len(text), ""]


def _file(title):
    return title.lower().replace(" ", "-")


def pages():
    """Return the pages by name: one for each group of the table, one for each package with the rest of its names."""
    index = [
        *_title("API"),
        "After ``import reluflow as rf`` each name below is ``rf.name``. Each has an example that is run by the",
        "tests; there the name stands by itself, as after ``from reluflow import explain``.",
        "",
    ]
    found, groups = {}, []
    for title, names in reluflow._NAMES.items():
        page = [*_title(title), _LEADS[title], ""]
        index += [f":doc:`{title} <{_file(title)}>`", "", ".. list-table::", "   :widths: 30 70", ""]
        for name, (_, line) in names.items():
            index += [f"   * - :obj:`~reluflow.{name}`", f"     - {line}"]
            page += [*_title(name)[:1], "-" * len(name), "", *_directive(f"reluflow.{name}", getattr(reluflow, name))]
            if title != "Errors":
                page += _gallery(f"reluflow.{name}")
        index += [""]
        found[_file(title)] = "\n".join(page)
        groups.append(_file(title))
    index += [
        "The rest, for specialists: what the functions above return, and the parts they are made of.",
        "",
        ".. list-table::",
        "   :widths: 30 70",
        "",
    ]
    for part, line in reluflow._PARTS.items():
        module = import_module(f"reluflow.{part}")
        page = [*_title(f"reluflow.{part}"), f".. automodule:: reluflow.{part}", "   :no-members:", ""]
        here = [name for name in module.__all__ if name in reluflow._HOME_OF]
        if here:
            page += ["See also " + ", ".join(f":obj:`~reluflow.{name}`" for name in here) + ".", ""]
        for name in (name for name in module.__all__ if name not in reluflow._HOME_OF):
            value = getattr(module, name)
            page += [name, "-" * len(name), "", *_directive(f"reluflow.{part}.{name}", value)]
        found[f"package-{part}"] = "\n".join(page)
        index += [f"   * - :doc:`reluflow.{part} <package-{part}>`", f"     - {line}"]
    index += ["   * - :doc:`inside`", "     - the rooms of the packages, module by module, with their code"]
    below = (*groups, *(f"package-{part}" for part in reluflow._PARTS), "inside")
    index += ["", ".. toctree::", "   :hidden:", "", *(f"   {name}" for name in below), ""]
    found["inside"] = inside()
    found["index"] = "\n".join(index)
    return found


def inside():
    """Write the page on the rooms: what each is for, and its modules with their first lines and their code."""
    lines = [*_title("Inside"), "The rooms of the packages and the modules in them, for readers of the code.", ""]
    house = Path(reluflow.__file__).parent
    for door in sorted(house.glob("*/*/__init__.py")):
        room = ".".join(("reluflow", *door.parent.relative_to(house).parts))
        title = room.removeprefix("reluflow.").rstrip("_").replace(".", ": ")
        lines += [title, "-" * len(title), "", f".. automodule:: {room}", "   :no-members:", ""]
        for file in sorted(door.parent.glob("[a-z]*.py")):
            module = import_module(f"{room}.{file.stem}")
            first = (module.__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")
            lines += [f"- :source:`{module.__name__}`: {first}"]
        lines += [""]
    return "\n".join(lines)


def _write(app):
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    for name, text in pages().items():
        file = folder / f"{name}.rst"
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def _skip(app, what, name, obj, skip, options):  # noqa: ARG001
    """Leave out fields of named tuples that say nothing of themselves; the class lists them."""
    return True if (getattr(obj, "__doc__", None) or "").startswith("Alias for field number") else None


def setup(app):
    """Write the pages before they are read."""
    app.connect("builder-inited", _write)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True}
