"""The studio in a notebook, and the modules as one script."""

import re

import pytest

import reluflow as rf
from reluflow.report.page import FRONT, bundle
from reluflow.studio.notebook import reply, script
from reluflow.studio.web import WEB
from reluflow.studio.work import Desk


def tops(text):
    """Names at the top of a module."""
    return re.findall(r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)", text, re.MULTILINE)


def modules():
    return {
        file.name: file.read_text(encoding="utf-8")
        for folder in (FRONT, WEB)
        for file in folder.iterdir()
        if file.name.endswith(".js")
    }


def test_every_import_is_there_and_every_name_is_its_own():
    given = modules()
    owners = {}
    for file, text in given.items():
        for name in tops(text):
            assert owners.setdefault(name, file) == file, f"{name} is in {owners[name]} and in {file}"
        for names, source in re.findall(r'^import \{ ([^}]*) \} from "\./([\w.]+)";$', text, re.MULTILINE):
            for name in names.split(", "):
                assert re.search(
                    rf"^export (?:async )?(?:function|const|let|class) {name}\b", given[source], re.MULTILINE
                )
                assert len(re.findall(rf"\b{name}\b", text)) > 1, f"{file} does not use {name}"
        assert len(re.findall(r"^import ", text, re.MULTILINE)) == len(re.findall(r'from "\./', text))


def test_the_bundle_has_each_module_once_and_before_its_users():
    text = bundle("report.js")
    order = re.findall(r"^// (\w+\.js)$", text, re.MULTILINE)
    assert len(order) == len(set(order))
    assert order[-1] == "report.js"
    given = modules()
    for file in order:
        for source in re.findall(r'from "\./([\w.]+)"', given[file]):
            assert order.index(source) < order.index(file)
    assert not re.search(r"^(import|export) ", text, re.MULTILINE)
    whole = script()
    assert re.findall(r"^export .*$", whole, re.MULTILINE) == ["export default { render };"]


def test_messages_are_answered():
    desk = Desk()
    state = {"points": [[2.0, 1.0], [-3.0, -1.0]], "labels": [1, -1], "width": 4}
    good = reply(desk, {"number": 7, "kind": "flow", "asked": {"state": state, "seconds": 5.0}})
    assert good["number"] == 7
    assert good["document"]["movie"]
    assert reply(desk, {"number": 8, "kind": "preset", "asked": {"name": "EX1"}})["document"]["labels"]
    for message in ({"number": 1}, {"number": 2, "kind": "flow", "asked": {"state": {}}}, "nonsense"):
        assert reply(desk, message)["error"]["remedy"]


def test_a_widget_gives_back_what_is_on_the_screen():
    pytest.importorskip("anywidget", reason="anywidget is not installed: the notebook door was not tested")
    widget = rf.Studio([[2.0, 1.0], [-3.0, -1.0]], [1, -1], width=10, log_scale=-7.0)
    assert widget.data == rf.Dataset([[2.0, 1.0], [-3.0, -1.0]], [1, -1])
    # The page draws a third point.
    widget.state = {**widget.state, "points": [*widget.state["points"], [1.0, 2.0]], "labels": [1, -1, 1]}
    assert widget.data.n == 3
    assert widget.result.problem.fingerprint() == widget.problem.fingerprint()
    assert widget.result.limit.kind == "margin"
    sent = []
    widget.send = sent.append
    widget._handle_custom_msg({"number": 3, "kind": "preset", "asked": {"name": "D1"}}, [])
    assert sent[0]["number"] == 3
    assert rf.Studio("EX1").data == rf.example("EX1").data
    problem = rf.as_problem("EX1", width=3)
    assert rf.Studio(problem).problem.net.p == 3
    assert rf.Studio().data.n == 4
    with pytest.raises(rf.ProblemError, match="no setting 'widht'"):
        rf.Studio("EX1", widht=3)


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "anywidget", None)
    with pytest.raises(rf.ProblemError, match=r"reluflow\[notebook\]"):
        rf.Studio("EX1")
