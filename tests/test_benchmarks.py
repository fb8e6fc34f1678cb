"""The comparison is fair: every solver keeps the accuracy it states on the smallest case of each problem."""

import inspect
import math
import signal
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import __main__ as runner
from benchmarks import charts, page
from benchmarks.measure import Case, Cells, Found, Target, cells, missing, modules, once, settings

PROBLEMS, SOLVERS = modules("problems"), modules("solvers")
YIELDS = 400  # how far a solver that follows the flow for ever is followed


def taking_part():
    for name, problem in PROBLEMS.items():
        for who, solver in SOLVERS.items():
            smoke = getattr(problem, "SMOKE", None)
            if smoke and settings(solver, problem, problem.CASES[smoke], who) and problem.TASK in solver.PROMISE:
                yield pytest.param(problem, solver, id=f"{name}-{who}")


def need(solver):
    if lacks := missing(solver):
        pytest.skip(
            f"{lacks} is not installed: a solver of the benchmarks did not run; make bench installs what it can"
        )


@pytest.mark.filterwarnings("default")  # the libraries of others warn of what they like
@pytest.mark.parametrize(("problem", "solver"), list(taking_part()))
def test_every_solver_keeps_its_promise_on_the_smallest_case(problem, solver):
    need(solver)
    if problem.TASK == "watch":
        pytest.importorskip("torch", reason="torch is not installed")
    case = problem.CASES[problem.SMOKE]
    given = case.make()
    exact = problem.reference(*given) if hasattr(problem, "reference") else None
    finest = settings(solver, problem, case, solver.__name__.rpartition(".")[2])[-1]
    found = getattr(solver, problem.TASK)(*given, *([] if finest is None else [finest]))
    found = found() if callable(found) else found
    promise = solver.PROMISE[problem.TASK]
    several = found if inspect.isgenerator(found) else [found]
    errors = []
    for one in islice(several, YIELDS):
        errors.append(problem.error(given, exact, one.value if isinstance(one, Found) else one))
        if errors[-1] <= promise:
            return
    raise AssertionError(f"states {promise:g}, is off by {errors[-1]:g} ({errors[:1]} at first)")


def test_every_task_is_solved_by_us_and_every_named_solver_is_there():
    for problem in PROBLEMS.values():
        assert problem.TITLE
        assert problem.__doc__
        assert hasattr(SOLVERS["reluflow"], problem.TASK)
        for case in problem.CASES.values():
            assert set(case.solvers or ()) <= set(SOLVERS)
        assert getattr(problem, "SMOKE", None) in {None, *problem.CASES}
        assert set(getattr(problem, "PICTURES", ())) <= set(charts.DRAWN)


def test_a_rival_takes_part_in_fifteen_lines():
    lines = inspect.getsource(SOLVERS["daqp"]).splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 15


def toy(name="toy", **more):
    return SimpleNamespace(
        __name__=f"benchmarks.problems.{name}",
        TASK="root",
        CASES={"two": Case(lambda: (2.0,), 1.0, {"n": 2})},
        error=lambda given, exact, answer: abs(answer**2 - given[0]),
        **more,
    )


def solver(function, **more):
    return SimpleNamespace(__name__="benchmarks.solvers.toy", root=function, **more)


def halve(x):
    """Yield better and better square roots."""
    low, high = 0.0, x
    while True:
        middle = (low + high) / 2
        low, high = (middle, high) if middle**2 < x else (low, middle)
        yield middle


def test_what_is_measured_of_a_run():
    begun, cell = cells(toy(), "two", solver(lambda x: Found(math.sqrt(x), {"digits": 16})))
    assert set(begun) == {"begun", "budget"}
    assert cell["status"] == "done"
    assert cell["error"] < 1e-15
    assert cell["figures"] == {"digits": 16}
    assert cell["sizes"] == {"n": 2}
    assert cell["cpu"] >= 0


def test_settings_are_runs_of_their_own():
    rounded = solver(lambda x, digits: round(math.sqrt(x), digits), SETTINGS={"root": (1, 3, 9)})
    errors = [cell["error"] for cell in cells(toy(), "two", rounded) if "error" in cell]
    assert errors == sorted(errors, reverse=True)
    assert len(errors) == 3


def test_a_preparation_is_not_timed_and_a_course_is_followed():
    heard = []

    def prepare(x):
        heard.append("prepared")
        return lambda: (one for one in islice(halve(x), 30))

    _, cell = cells(toy(), "two", solver(prepare))
    assert heard == ["prepared"]
    assert len(cell["points"]) == 30
    assert cell["error"] == cell["points"][-1][2] < 1e-6


def test_failures_and_time_that_is_up_are_results():
    def fails(x):
        raise RuntimeError("says infeasible")

    def never(x):
        while True:
            x = math.sqrt(x)

    _, failed = cells(toy(), "two", solver(fails))
    assert (failed["status"], failed["note"]) == ("failed", "RuntimeError: says infeasible")
    assert failed["error"] is None
    if not hasattr(signal, "setitimer"):
        pytest.skip("budgets of processor time need a POSIX system")
    assert once(lambda: never(2.0), lambda _: 0.0, 0.05)["status"] == "out of time"


def test_targets_are_met_missed_or_not_measured():
    assert Target("speed", 1.0, "<=", 2.0).met
    assert not Target("speed", 3.0, "<=", 2.0).met
    assert Target("ratio", 3.0, ">=", 2.0).met
    assert not Target("ratio", 1.0, ">=", 2.0).met
    assert not Target("not measured", None, "<=", 2.0).met
    assert not Target("not a number", math.nan, ">=", 2.0).met


def made(problem, case, who, setting=None, **more):
    plain = {"status": "done", "note": "", "cpu": 1.0, "wall": 1.0, "error": 1e-3, "memory": 5.0, "peak": 50.0}
    place = {"problem": problem, "case": case, "solver": who, "setting": setting}
    rest = {"points": [], "figures": {}, "sizes": {}, "load": 0.5, "when": 0, "share": 1.0, "code": ""}
    return {**place, **plain, **rest, **more}


def test_the_late_race_is_judged_by_when_a_gap_is_kept_and_the_law_of_descent():
    late = PROBLEMS["late"]
    case = next(iter(late.CASES))
    ours = [
        made("late", case, "reluflow", [log, 1e-6], cpu=cpu, error=1 / log) for log, cpu in ((1e2, 0.2), (1e6, 0.4))
    ]
    points = [[1.0, 1.0, 5e-3], [2.0, 2.0, 3e-2], [3.0, 3.0, 9e-3], [4.0, 4.0, 5e-3]]
    found = Cells([*ours, made("late", case, late.BEST, points=points, error=5e-3)])
    assert late.seconds_to(found, case, "reluflow", 1e-2) == (0.2, False)
    assert late.seconds_to(found, case, "reluflow", 1e-6) == (0.4, False)
    assert late.seconds_to(found, case, late.BEST, 1e-2) == (3.0, False)  # the first look was luck
    assert late.seconds_to(found, case, late.BEST, 1e-4) == (pytest.approx(4.0 * 5e-3 / 1e-4), True)
    assert late.seconds_to(found, case, "numpy_gd", 1e-2) == (None, False)


def test_a_table_row_that_stops_short_of_its_loss_is_missed():
    scales = PROBLEMS["scales"]
    case = "small 20x2 p=50, he 1e-1"
    (good,) = scales.targets(
        Cells([made("scales", case, "reluflow", 1e-6, cpu=0.01, error=1e-9, figures={"events": 3})])
    )
    (short,) = scales.targets(Cells([made("scales", case, "reluflow", 1e-6, cpu=0.01, error=0.5)]))
    (slow,) = scales.targets(Cells([made("scales", case, "reluflow", 1e-6, cpu=0.05, error=1e-9)]))
    assert (good.met, short.met, slow.met) == (True, False, False)


def test_store_and_page(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "STORE", tmp_path / "benchmarks.json")
    grown = [
        made("growth", f"n = {n}", who, 1e-6, cpu=n**power, sizes={"n": n, "varied": "n"}, figures={"events": 2 * n})
        for who, power in (("reluflow", 1.5), ("numpy_gd", 1.0))
        for n in (100, 200, 400)
    ]
    lost = {"status": "out of time", "note": "ended after 20 s", "error": None}
    race = [
        made("hard_margin", "random 500x20", "reluflow", cpu=0.01, error=0.0, memory=0.0),
        made("hard_margin", "random 500x20", "sklearn_svc", cpu=0.02, error=1e-4),
        made("hard_margin", "random 500x20", "clarabel", **lost),
    ]
    document = {"machine": runner.machine(), "versions": runner.versions(), "cells": [*grown, *race]}
    document["targets"] = runner.verdicts(document["cells"])
    runner.save(document)
    assert runner.load()["cells"] == runner.rounded(document["cells"])
    page.write(runner.load(), tmp_path)
    text = (tmp_path / "benchmarks.md").read_text()
    assert "**MISSED** | times as fast as svc, random 500x20 | 2x | ≥ 10x" in text
    assert "| met | direction error, random 500x20" in text
    assert "out of time" in text
    for picture in ("growth-growth", "hard_margin-precision", "hard_margin-memory"):
        assert (tmp_path / "benchmarks" / f"{picture}.png").stat().st_size > 5000
    assert "Fitted: reluflow ~ n^1.50, NumPy GD ~ n^1.00, reluflow ~ events^1.50, NumPy GD ~ events^1.00." in text


def test_an_unchanged_cell_is_not_measured_again(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "STORE", tmp_path / "benchmarks.json")
    asked = []

    def measure(problem, case, solver, share):
        asked.append((runner.short(problem), case, runner.short(solver)))
        found = made(*asked[-1], share=share)
        yield {key: found[key] for key in found if key not in ("problem", "case", "solver")}

    monkeypatch.setattr(runner, "measure", measure)
    runner.run(["cells/8x3"], [], False, 1.0)
    runner.run(["cells/8x3"], [], False, 1.0)
    assert asked == [("cells", "8x3", "reluflow")]
    runner.run(["cells/8x3"], [], True, 1.0)
    assert len(asked) == 2
    monkeypatch.setattr(runner, "stamp", lambda *_: "changed")
    runner.run(["cells/8x3"], [], False, 1.0)
    assert len(asked) == 3


def test_numbers_are_kept_to_four_digits():
    assert runner.rounded({"a": [1 / 3, {"b": np.pi}], "c": "text"}) == {"a": [0.3333, {"b": 3.142}], "c": "text"}
