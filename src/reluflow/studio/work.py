"""What the studio asks for: the picture of a run at once, what theory says of it a little later, files.

Here is no science: `flow`, `explain` and the documents of the page are put together.
"""

from __future__ import annotations

import io
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..data import load, make
from ..dynamics import Trajectory, flow
from ..problem import DataError, Dataset, Interrupted, Problem, ProblemError, Undecided
from ..problem.plain import plain
from ..report import Explanation, explain
from ..report.page import document, page, running
from .presets import preset_state
from .state import DEFAULTS, check_sizes, data_of, problem_of, snippet, state_of

_LATEST = 1e6  # log time to which the picture goes
_RECORDS = 80  # of a run while a point is moved
_ROUGH = 1e-6  # tolerance of a run that is only looked at


class Desk:
    """Answers, and remembers the last run and the last explanation."""

    def __init__(self) -> None:
        self._run: Trajectory | None = None
        self._found: Explanation | None = None

    def answer(self, kind: str, asked: dict[str, Any]) -> Any:
        """Answer one question: ``flow``, ``theory``, ``export``, ``change``, ``table`` or ``preset``."""
        if kind == "flow":
            return self.flow(asked["state"], asked["seconds"])
        if kind == "theory":
            return self.theory(asked["state"], asked["seconds"])
        if kind == "export":
            return self.export(asked["state"], asked["format"], asked["seconds"])
        if kind == "change":
            return change(asked["state"], asked["change"])
        if kind == "table":
            return table(asked["text"])
        if kind == "preset":
            return preset_state(asked["name"])
        raise ProblemError(f"the studio cannot {kind!r}.")

    def flow(self, state: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Follow the flow for so many seconds and describe what can be seen of it."""
        problem, trouble = problem_of(state), ""
        run = self._known(problem)
        if run is None:
            try:
                run = flow(problem, {"log_time": _LATEST}, rtol=_ROUGH, time_limit=seconds, progress=False)
                self._run = run
            except Interrupted:
                raise KeyboardInterrupt from None
            except Undecided as error:
                run, trouble = error.partial if isinstance(error.partial, Trajectory) else None, str(error)
        seen = Explanation(problem, (), (), run, None, ())
        return {**running(seen, _RECORDS), "complete": not trouble, "trouble": trouble}

    def theory(self, state: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Explain the problem, and describe all of it; the run is the longest one there is."""
        problem = problem_of(state)
        found = self._explained(problem, seconds)
        run = self._known(problem)
        if run is not None and (found.trajectory is None or run.log_time[-1] > found.trajectory.log_time[-1]):
            found = replace(found, trajectory=run)
        return plain(document(found))  # type: ignore[no-any-return]

    def export(self, state: dict[str, Any], form: str, seconds: float) -> dict[str, Any]:
        """Write a file: its name, its type and its text."""
        name = "".join(c if c.isalnum() or c in "-_" else "-" for c in state.get("name") or "studio")[:60]
        if form == "python":
            return {"name": f"{name}.py", "type": "text/x-python", "text": snippet(state) + "\n"}
        problem = problem_of(state)
        if form == "csv":
            return {"name": f"{name}.csv", "type": "text/csv", "text": _csv(problem.data)}
        found = self._explained(problem, seconds)
        if form == "html":
            return {"name": f"{name}.html", "type": "text/html", "text": page(found)}
        import json

        text = json.dumps({"state": {**DEFAULTS, **state}, **found.to_dict()}, indent=1, allow_nan=False)
        return {"name": f"{name}.json", "type": "application/json", "text": text}

    def explanation(self, state: dict[str, Any], seconds: float) -> Explanation:
        """Return the explanation itself."""
        return self._explained(problem_of(state), seconds)

    def _known(self, problem: Problem) -> Trajectory | None:
        same = self._run is not None and self._run.problem.fingerprint() == problem.fingerprint()
        return self._run if same else None

    def _explained(self, problem: Problem, seconds: float) -> Explanation:
        last = self._found
        if last is None or last.troubles or last.problem.fingerprint() != problem.fingerprint():
            last = explain(problem, time_limit=seconds, progress=False)
            if last.interrupted:
                raise KeyboardInterrupt
            self._found = last
        return last


def change(state: dict[str, Any], how: str) -> dict[str, Any]:
    """Return the state with other data: symmetric, hinted, with the labels exchanged.

    >>> change({"points": [[2.0, 1.0]], "labels": [1]}, "flip")["labels"]
    [-1]
    """
    data = data_of({**DEFAULTS, **state, "bias": None})
    if how == "flip":
        new = data.flipped()
    elif how == "symmetrize":
        new = data.symmetrized()
    elif how == "hint":
        new = make("hinted", base=data)
    else:
        raise ProblemError(f"change {how!r} is not known; choose flip, symmetrize or hint.")
    check_sizes(new.n, new.d, 1)
    name = f"{state.get('name') or 'drawn'}, {how}"[:120]
    return {**state, **_points(new), "name": name}


def table(text: str) -> dict[str, Any]:
    r"""Read a table as pasted or dropped: the label stands in the last column.

    >>> table("2,1,1\n-3,-1,-1\n")["labels"]
    [1, -1]
    """
    if not text.strip():
        raise DataError("the table is empty; paste lines such as 2, 1, +1.")
    tabbed = "\t" in text.splitlines()[0]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"table.{'tsv' if tabbed else 'csv'}"
        file.write_text(text, encoding="utf-8")
        try:
            data = load(file)
        except DataError as error:
            raise DataError(str(error).replace(str(file), "the table")) from None
    check_sizes(data.n, data.d, 1)
    return {**_points(data), "name": "pasted table"}


def _points(data: Dataset) -> dict[str, Any]:
    state = state_of(data, width=1)
    return {key: state[key] for key in ("points", "labels")}


def _csv(data: Dataset) -> str:
    lines = io.StringIO()
    print(",".join([*(f"x{k + 1}" for k in range(data.d)), "y"]), file=lines)
    for row, label in zip(data.X.tolist(), data.y.tolist(), strict=True):
        print(",".join([*(repr(v) for v in row), f"{label:g}"]), file=lines)
    return lines.getvalue()
