"""What the site is made from: every public name and every statement has its place, and a broken link is noticed.

Whether the site builds without a warning is asked by `make docs`; here is what can be asked without Sphinx.
"""

import re
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import reluflow as rf

EXTENSIONS = Path(__file__).parents[2] / "docs" / "ext"

pytestmark = pytest.mark.skipif(not EXTENSIONS.exists(), reason="the site is not part of this installation")


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    yield
    for name in ("api_pages", "claim_pages", "formulas", "links"):
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


def test_formulas_are_set_and_names_are_left_alone():
    from formulas import typeset

    def plain(text):
        marks = {"sub": "_", "sup": "^"}
        return re.sub(r":(sub|sup):", lambda found: marks[found[1]], typeset(text)).replace("\\", "").replace(" ", "")

    assert plain("a_j^2 >= mu+") == "a_`j`^`2`≥μ_`+`"
    assert plain("(w-u).x and w_+-.x_i") == "(w-u)·xandw_`±`·x_`i`"
    assert plain("f_W'(x), t_1', L'") == "f_`W′`(x),t_`1`′,L′"
    assert plain("limsup_stable_rank of LL-A.5*, 'for ever'") == "limsup_stable_rankofLL-A.5*,'forever'"
    assert typeset("2^-m+ <= gamma_phi", markdown=True) == "2<sup>−m+</sup> ≤ γ<sub>φ</sub>"


def test_letters_and_words_of_a_paper_are_explained_on_its_page():
    from formulas import SYMBOLS

    for one in rf.theory.claims():
        known = " ".join(SYMBOLS[one.paper]) + str(SYMBOLS[one.paper])
        for word in ("mu", "gamma", "zeta_1", "kappa", "xi", "NAR", "PAR", "dead", "ridge", "smoothed margin", "hints"):
            if re.search(rf"(?<![A-Za-z]){word}(?![A-Za-z])", one.statement):
                assert word in known, (one.id, word)


def test_the_main_theorems_are_shown_where_they_apply():
    from claim_pages import _shown

    for name in ("PL-T1", "ML-T1a", "SBG-T6.2", "LL-T4.3", "LL-T5.5", "LL-TA.7", "LL-TA.10", "LL-T6.2"):
        assert _shown(rf.theory.claim(name))[1].applies, name


def test_links_to_modules_lead_to_their_code():
    """Packages and rooms have a place in the API pages; a single module has only the page with its code."""
    for page in sorted({*EXTENSIONS.parent.glob("*.md"), *EXTENSIONS.parent.glob("howto/*.md")}):
        for role, name in re.findall(r"\{(py:mod|source)\}`([\w.]+)`", page.read_text(encoding="utf-8")):
            spec = find_spec(name)
            assert spec is not None, (page.name, name)
            assert (spec.submodule_search_locations is not None) == (role == "py:mod"), (page.name, role, name)


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
