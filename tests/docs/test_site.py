"""What the site is made from: every public name and every statement has its place, and a broken link is noticed.

Whether the site builds without a warning is asked by `make docs`; here is what can be asked without Sphinx.
"""

import re
import sys
import tomllib
from pathlib import Path

import pytest

import reluflow as rf

EXTENSIONS = Path(__file__).parents[2] / "docs" / "ext"

pytestmark = pytest.mark.skipif(not EXTENSIONS.exists(), reason="the site is not part of this installation")


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    yield
    for name in ("api_pages", "claim_pages", "links"):
        sys.modules.pop(name, None)


def test_every_public_name_is_described_once():
    from api_pages import pages

    found = re.findall(r"^\.\. (?:auto\w+|py:data):: (\S+)", "\n".join(pages().values()), re.MULTILINE)
    described = [name for name in found if name not in {f"reluflow.{part}" for part in rf._PARTS}]
    for name in rf.__all__:
        assert described.count(f"reluflow.{name}") == 1, name
    for part in rf._PARTS:
        for name in set(getattr(rf, part).__all__) - set(rf.__all__):
            assert described.count(f"reluflow.{part}.{name}") == 1, (part, name)
    listed = pages()["index"]
    assert all(f"`~reluflow.{name}`" in listed for name in rf.__all__)


def test_every_statement_has_its_place():
    from claim_pages import PROBLEMS, places

    found = places()
    for one in rf.theory.statements():
        for name in (one.id, *one.also):
            page, anchor = found[name]
            assert page.startswith("theory/")
            assert anchor.startswith("claim-")
    anchors = [found[one.id] for one in rf.theory.statements()]
    assert len(set(anchors)) == len(anchors)  # PL-T1, PL-T1' and PL-T1* are three places
    for how in PROBLEMS.values():
        rf.as_problem(**how)


def test_what_a_claim_says_of_itself_is_shown():
    from claim_pages import describe

    text = "\n".join(describe(rf.theory.claim("LL-A.9")))
    assert "**Refuted by**" in text
    assert "as printed" in text
    assert "as corrected" in text
    assert "E-L7" in text
    assert rf.theory.claim("LL-A.9").test in text


def test_every_extra_is_described():
    page = (EXTENSIONS.parent / "start.md").read_text(encoding="utf-8")
    table = page.partition("| extra |")[2].partition("\n\n")[0]
    project = tomllib.loads((EXTENSIONS.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for developers in ("dev", "bench"):
        assert project["optional-dependencies"].pop(developers)
    assert set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == set(project["optional-dependencies"])


def test_broken_links_are_noticed(tmp_path):
    from links import broken

    (tmp_path / "sub").mkdir()
    (tmp_path / "a.html").write_text('<p id="here"><a href="sub/b.html#there">b</a><a href="#here">a</a></p>')
    (tmp_path / "sub" / "b.html").write_text('<p id="there"><a href="../a.html">a</a><img src="data:,x"></p>')
    assert broken(tmp_path) == []
    wrong = {
        '<a href="gone.html">': "is not there",
        '<a href="a.html#gone">': "has no such place",
        '<script src="https://example.org/x.js"></script>': "from elsewhere",
        '<img src="gone.png">': "is not there",
    }
    for text, said in wrong.items():
        (tmp_path / "c.html").write_text(text)
        (found,) = broken(tmp_path)
        assert said in found
    (tmp_path / "c.html").write_text('<a href="https://example.org">out</a>')
    assert broken(tmp_path) == []
