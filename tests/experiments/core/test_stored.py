"""The full run that is kept in docs/reproduction says what today's checks say of its numbers, and so do its pages."""

import json
import re
import shutil
from collections import defaultdict
from dataclasses import asdict
from fnmatch import fnmatchcase
from html.parser import HTMLParser
from pathlib import Path

import pytest

from reluflow.experiments import IDS, experiment
from reluflow.experiments.core import pages, store
from reluflow.problem.plain import plain

FOLDER = Path(__file__).parents[3] / "docs" / "reproduction"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="docs/reproduction is not part of this installation")


@pytest.mark.parametrize("name", IDS)
def test_stored_verdicts_are_those_of_the_checks(name):
    one, kept = experiment(name), store.read(FOLDER, name)
    assert kept is not None, "run: reluflow reproduce --out docs/reproduction"
    assert not kept.quick
    assert kept.parameters == plain(one.settings())
    assert (FOLDER / f"{name}.png").stat().st_size > 1000
    said = json.loads((FOLDER / f"{name}.json").read_text())
    judged = one.judge(kept.numbers)
    assert said["expectations"] == [{**asdict(e), "verdict": e.verdict} for e in judged]
    assert (said["title"], said["caption"], said["illustration"]) == (one.title, one.caption, one.illustration)
    assert said["unstated"] == [asdict(choice) for choice in one.unstated]
    for pattern in (*one.implied, *one.ours):
        assert any(fnmatchcase(e.key, pattern) for e in judged), f"no expectation is called {pattern}"


#: How many figures and tables each paper has, by its captions.
CAPTIONS = {"PL": {"F": 4, "TAB": 1}, "ML": {"F": 21}, "SBG": {"F": 9}, "LL": {"F": 4, "TAB": 1}}


def test_every_figure_and_table_of_the_papers_is_there():
    found = defaultdict(set)
    for paper, rest in (name.split("-", 1) for name in IDS):
        numbers = [int(k) for k in re.findall(r"F(\d+)", rest)]  # F14-F17 are four
        for k in range(numbers[0], numbers[-1] + 1) if numbers else ():
            found[paper, "F"].add(k)
        if table := re.fullmatch(r"TAB(\d+)", rest):
            found[paper, "TAB"].add(int(table[1]))
    wanted = {(paper, kind): set(range(1, n + 1)) for paper, has in CAPTIONS.items() for kind, n in has.items()}
    assert found == wanted


def test_figures_of_one_run_hold_the_same_numbers():
    digests = defaultdict(set)
    for name in IDS:
        one = experiment(name)
        digests[one.run, repr(plain(one.settings()))].add(store.read(FOLDER, name).digest)
    assert all(len(found) == 1 for found in digests.values()), digests


def outdated(page):
    """Experiments of which a page says that other code computed them."""
    sections = re.split(r"^### ", page, flags=re.MULTILINE)[1:]
    return {section.split("\n", 1)[0] for section in sections if pages.OUTDATED in section}


def test_the_pages_are_those_of_the_files():
    """Every line of both, so that neither can say what the files do not."""
    made = pages.texts(FOLDER, outdated((FOLDER / "REPRODUCTION.md").read_text()))
    for name, text in made.items():
        assert (FOLDER / name).read_text().split("\n") == text.split("\n"), "run: reluflow reproduce --all --redraw"


def test_forged_pages_and_numbers_are_noticed(tmp_path):
    for name in ("SBG-F4", "SBG-F5"):
        shutil.copy(FOLDER / f"{name}.json", tmp_path)
    path, said = tmp_path / "SBG-F4.json", pages.texts(tmp_path, ())
    document = json.loads(path.read_text())
    document["numbers"]["slopes"][1]["wrong_sign"] = 3
    path.write_text(json.dumps(document))
    assert store.read(tmp_path, "SBG-F4") is None
    forged = pages.texts(tmp_path, ())
    assert "not those that were computed: SBG-F4." in forged["REPRODUCTION.md"]
    assert "### SBG-F4" not in forged["REPRODUCTION.md"]
    # With a hash of its own it is no longer the result of the run that the other figure is drawn from.
    document["digest"] = store.digest(document["numbers"])
    path.write_text(json.dumps(document))
    apart = pages.texts(tmp_path, ())
    for text, name in ((apart["REPRODUCTION.md"], "SBG-F5"), (apart["index.html"], "SBG-F4")):
        assert f"They are not those of {name}" in text
    assert "They are not those" not in said["REPRODUCTION.md"] + said["index.html"]


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.targets = set(), []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids.add(found.get("id"))
        self.targets += [found[key] for key in ("href", "src") if key in found]


def test_no_link_is_dead():
    links = Links()
    links.feed((FOLDER / "index.html").read_text())
    assert len(links.targets) > 3 * len(IDS)
    for target in links.targets:
        assert target[1:] in links.ids if target.startswith("#") else (FOLDER / target).is_file(), target
        assert not target.endswith(".svg"), "drawings for print are not kept"
    page = (FOLDER / "REPRODUCTION.md").read_text()
    headings = {line[4:].lower() for line in page.split("\n") if line.startswith("### ")}
    for target in re.findall(r"\]\(([^)]+)\)", page):
        assert target[1:] in headings if target.startswith("#") else (FOLDER / target).is_file(), target


def test_what_is_kept_is_small():
    assert sum(path.stat().st_size for path in FOLDER.iterdir() if path.suffix != ".svg") < 15e6
