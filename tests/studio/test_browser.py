"""The studio and the page of explain in a real browser, as a new user would try them."""

import base64
import json
import time

import numpy as np
import pytest

import reluflow as rf
from helpers.browser import MISSING, SETTLED, addresses, complaints, opened, programs, resize, studio, until
from reluflow.studio import problem_of
from reluflow.studio.notebook import opening, script, stylesheet
from reluflow.studio.presets import preset_state
from reluflow.studio.work import Desk

pytest.importorskip("fastapi", reason="FastAPI is not installed: the studio was not opened in a browser")
pytestmark = pytest.mark.skipif(programs() is None, reason=MISSING)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="module")
def window(folder):
    with opened(folder) as found:
        found.get("about:blank")
        addresses(found)  # those of the browser's own first page
        yield found


@pytest.fixture(scope="module")
def address():
    with studio() as (found, _):
        yield found


@pytest.fixture(autouse=True)
def clean(window):
    """Nothing is said on the console, and nobody but the studio is asked."""
    yield
    assert complaints(window) == []
    for url in addresses(window):
        assert url.startswith(("http://127.0.0.1:", "file:", "data:", "blob:http://127.0.0.1:")), url


def few(name="EX1", **more):
    """Return a link to an example with six neurons, which takes no time."""
    data = rf.example(name).data
    given = {"name": name, "points": data.X.tolist(), "labels": data.y.astype(int).tolist(), "width": 6, **more}
    return "#state=" + base64.urlsafe_b64encode(json.dumps(given).encode()).decode().rstrip("=")


def visit(window, address, hash_=""):
    window.get("about:blank")
    window.get(f"{address}{hash_}")
    until(window, SETTLED)


def ask(window, script, *arguments):
    return window.execute_script(f"return {script}", *arguments)


def mouse(window, *steps):
    """Press, move and let go at points of the data, as (kind, x, y) with options."""
    pixels = "studio.show.plane.toPixels([arguments[0], arguments[1]])"
    box = ask(window, "(b => [b.left, b.top])(studio.show.canvas.getBoundingClientRect())")
    for kind, x, y, *more in steps:
        a, b = ask(window, pixels, x, y)
        event = {"type": kind, "x": box[0] + a, "y": box[1] + b, "button": "left", "clickCount": 1}
        window.execute_cdp_cmd("Input.dispatchMouseEvent", {**event, **(more[0] if more else {})})


def click(window, x, y, **options):
    mouse(window, ("mousePressed", x, y, options), ("mouseReleased", x, y, options))


def press(window, key, code, **more):
    for kind in ("keyDown", "keyUp"):
        window.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": code, **more})


def verdict(window, claim):
    return ask(window, f"studio.found.claims.find(one => one.claim === {json.dumps(claim)}).applies")


def state(window):
    return ask(window, "studio.state")


def test_six_points_are_drawn_and_everything_follows(window, address, capsys):
    visit(window, address, few())
    ask(window, "studio.clear()")
    ask(window, "studio.latencies.length = 0")
    points = [(2.0, 0.6), (1.4, 1.5), (2.2, 1.2)], [(-2.0, -0.5), (-1.2, -1.6), (-2.2, -1.3)]
    for x, y in points[0]:
        click(window, x, y)
    for x, y in points[1]:
        click(window, x, y, modifiers=8)  # shift
    until(window, SETTLED)
    assert state(window)["labels"] == [1, 1, 1, -1, -1, -1]
    np.testing.assert_allclose(state(window)["points"], [*points[0], *points[1]], atol=0.02)
    # What is said is what reluflow says of these points.
    found = rf.explain(problem_of(state(window)), progress=False)
    assert ask(window, "studio.found.words.headline") == list(found.headline)
    shown = ask(window, "studio.head.textContent")
    assert shown[:30] == found.headline[0][:30]
    assert verdict(window, "PL-D1") is True
    # A point crosses to the other side, and the verdict turns.
    way = [("mouseMoved", 2.0 - 0.5 * k, 0.6 + 0.2 * k, {"buttons": 1}) for k in range(1, 8)]
    mouse(window, ("mousePressed", 2.0, 0.6), *way, ("mouseReleased", -1.5, 2.0))
    until(window, SETTLED)
    assert verdict(window, "PL-D1") is False
    moved = state(window)["points"][0]
    np.testing.assert_allclose(moved, [-1.5, 2.0], atol=0.02)
    # The condition that fails lights up the points at fault.
    ask(window, "studio.openTab('theorems')")
    row = (
        "[...document.querySelectorAll('details.claim')].find(one => one.querySelector('.id').textContent === 'PL-T1')"
    )
    ask(window, f"{row}.firstChild.dispatchEvent(new PointerEvent('pointerenter'))")
    fault = sorted(ask(window, "[...studio.show.plane.lit]"))
    X, y = np.array(state(window)["points"]), np.array(state(window)["labels"])
    assert len(fault) == 2
    assert np.prod(y[fault]) * (X[fault[0]] @ X[fault[1]]) <= 0
    ask(window, f"{row}.firstChild.dispatchEvent(new PointerEvent('pointerleave'))")
    assert ask(window, "studio.show.plane.lit.size") == 0
    # Undo, redo, delete.
    press(window, "z", "KeyZ", modifiers=2)
    until(window, SETTLED)
    assert verdict(window, "PL-D1") is True
    press(window, "Z", "KeyZ", modifiers=10)
    until(window, SETTLED)
    assert state(window)["points"][0] == moved
    click(window, -1.5, 2.0, button="right", buttons=2)
    until(window, SETTLED)
    assert len(state(window)["points"]) == 5
    with capsys.disabled():
        took = ask(window, "studio.latencies")
        print(f"\n  adding and dragging: median {np.median(took):.0f} ms, largest {max(took):.0f} ms of {len(took)}")


def test_time_is_played_scrubbed_and_stepped(window, address):
    visit(window, address, few())
    assert ask(window, "studio.show.course.where") == 0
    ask(window, "studio.show.slider.focus()")
    press(window, "End", "End", windowsVirtualKeyCode=35)
    until(window, "studio.show.course.where === 1")
    assert "1·10" in ask(window, "studio.show.readout.textContent") or "log t" in ask(
        window, "studio.show.readout.textContent"
    )
    press(window, "Home", "Home", windowsVirtualKeyCode=36)
    until(window, "studio.show.course.where === 0")
    ask(window, "studio.show.canvas.focus()")
    press(window, "Escape", "Escape")
    press(window, "ArrowRight", "ArrowRight")
    first = until(window, "studio.show.course.where")
    assert first == pytest.approx(ask(window, "studio.show.course.stops()[1]"))
    # Over a chart: a click goes there.
    middle = ask(
        window, "(b => [b.left + b.width / 2, b.top + 60])(document.querySelector('svg.timed').getBoundingClientRect())"
    )
    for kind in ("mousePressed", "mouseReleased"):
        event = {"type": kind, "x": middle[0], "y": middle[1], "button": "left", "clickCount": 1}
        window.execute_cdp_cmd("Input.dispatchMouseEvent", event)
    assert ask(window, "studio.show.course.place()") == pytest.approx(0.46, abs=0.06)
    # Play to the limit.
    ask(window, "studio.show.course.seek(0.9), studio.show.course.speed = 4")
    ask(window, "document.querySelector('button.play').click()")
    until(window, "studio.show.course.where === 1 && !studio.show.course.running", 20)
    ends = ask(window, "studio.show.course.movie.neurons.at(-1)")
    rays = ask(window, "studio.show.course.movie.rays.filter(ray => ray[0] === 'limit').map(ray => ray.slice(2))")
    dead = ask(window, "studio.show.course.movie.dead")
    living = np.array([end for end, lost in zip(ends, dead, strict=True) if lost < 0]) / 1000
    assert (np.max(living @ np.array(rays).T, axis=1) > 0.999).all()


def test_a_link_restores_everything(window, address):
    visit(window, address, f"{few('ML-F6')}&at=0.4&tab=theorems&show=paths.cones&reach=2.5")
    ask(window, "[...document.querySelectorAll('.id')].find(one => one.textContent === 'PL-T1').click()")
    ask(window, "studio.turn('slope', 0.25), studio.keep()")
    click(window, 0.5, -0.5)
    until(window, SETTLED)
    before = state(window)
    time.sleep(0.4)
    link = ask(window, "location.hash")
    assert "state=" in link
    visit(window, address, link)
    assert state(window) == before
    assert ask(window, "studio.tab") == "theorems"
    assert ask(window, "[...document.querySelectorAll('details[open] .id')].map(one => one.textContent)") == ["PL-T1"]
    assert ask(window, "studio.show.course.where") == pytest.approx(0.4)
    assert ask(window, "studio.show.plane.reach") == pytest.approx(2.5)
    assert ask(window, "Object.entries(studio.show.plane.shown).filter(one => one[1]).map(one => one[0])") == [
        "paths",
        "cones",
    ]
    visit(window, address, "#state=nonsense!")
    assert "damaged" in ask(window, "studio.trouble.textContent")


def test_a_table_is_pasted(window, address):
    visit(window, address)
    ask(window, "[...document.querySelectorAll('button')].find(b => b.textContent === 'table …').click()")
    ask(window, "studio.text.value = '1,2,1\\n3,oops,-1'")
    ask(window, "studio.dialog.querySelector('button.play').click()")
    until(window, "studio.tableTrouble.textContent.includes('line 2')")
    ask(window, "studio.text.value = 'a,b,c,y\\n1,2,0,1\\n2,1,1,1\\n-1,-2,0.5,-1\\n'")
    ask(window, "studio.dialog.querySelector('button.play').click()")
    until(window, f"!studio.dialog.open && {SETTLED}")
    assert state(window)["points"] == [[1, 2, 0], [2, 1, 1], [-1, -2, 0.5]]
    # In space, points are looked at and not moved.
    count = len(state(window)["points"])
    click(window, 0.1, 0.1)
    assert len(state(window)["points"]) == count
    # 400 was an answer, not a mistake of the page.
    assert all("400" in line for line in complaints(window))


def test_files_are_saved(window, address, folder):
    visit(window, address, f"{few()}&at=0.3")
    wanted = {
        "png": b"\x89PNG",
        "svg": b"<svg",
        "csv": b"x1,x2,y",
        "json": b"{",
        "html": b"<!DOC",
    }
    for kind, start in wanted.items():
        ask(window, "studio.export(arguments[0])", kind)
        file = folder / f"EX1.{kind}"
        end = time.monotonic() + 20
        while not file.exists() and time.monotonic() < end:
            time.sleep(0.05)
        assert file.read_bytes().startswith(start), kind
    ask(window, "studio.export('python')")
    until(window, "studio.codeDialog.open")
    names = {}
    exec("\n".join(ask(window, "studio.code.value").splitlines()[:-2]), names)
    assert names["problem"].fingerprint() == problem_of(state(window)).fingerprint()
    assert (folder / "EX1.svg").read_text().count("<path") > 20
    # The report is the studio frozen: the same modules, no network.
    window.get(f"file://{folder / 'EX1.html'}")
    until(window, "document.querySelector('details.claim')")
    assert ask(window, "document.querySelector('.sentence').textContent").startswith("The network learns")


def test_keys_and_lectures(window, address):
    visit(window, address, "#lecture=PL-1")
    assert "1 of 5" in ask(window, "studio.lecture.node.textContent")
    press(window, "PageDown", "PageDown", windowsVirtualKeyCode=34)
    until(window, f"location.hash.includes('lecture=PL-2') && {SETTLED}")
    assert ask(window, "studio.show.plane.shown.sum") is True
    press(window, "PageUp", "PageUp", windowsVirtualKeyCode=33)
    until(window, f"location.hash.includes('lecture=PL-1') && {SETTLED}")
    many = len(state(window)["points"])
    ask(window, "studio.show.canvas.focus()")
    press(window, "-", "Minus")
    press(window, "ArrowUp", "ArrowUp")
    until(window, SETTLED)
    assert len(state(window)["points"]) == many + 1
    assert state(window)["labels"][-1] == -1
    press(window, "Backspace", "Backspace")
    until(window, SETTLED)
    assert len(state(window)["points"]) == many


def test_every_control_can_be_reached_and_has_a_name(window, address):
    visit(window, address, few())
    nameless = ask(
        window,
        "[...document.querySelectorAll('button, select, input, textarea, canvas[tabindex]')].filter(one => "
        "!(one.textContent.trim() || one.getAttribute('aria-label') || one.labels?.length)).map(one => one.outerHTML)",
    )
    assert nameless == []
    seen = set()
    for _ in range(60):
        press(window, "Tab", "Tab", windowsVirtualKeyCode=9)
        seen.add(ask(window, "document.activeElement.outerHTML.slice(0, 90)"))
        visible = ask(
            window, "document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle"
        )
        assert visible in (True, "solid", "auto") or "range" in ask(window, "document.activeElement.type ?? ''")
    assert len(seen) > 25


def test_a_phone_and_the_night(window, address):
    try:
        resize(window, 390, 844)
        visit(window, address, f"{few()}&at=0.5")
        assert ask(window, "document.documentElement.scrollWidth") <= 390
        sizes = ask(
            window,
            "[...document.querySelectorAll('svg .tick')].map(one => parseFloat(getComputedStyle(one).fontSize) * "
            "one.closest('svg').clientWidth / one.closest('svg').viewBox.baseVal.width)",
        )
        assert min(sizes) > 10
        resize(window, 1280, 720, dark=True)
        visit(window, address, few())
        light, ink = (ask(window, f"getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color"))
        assert sum(map(int, light[4:-1].split(","))) < 150 < 500 < sum(map(int, ink[4:-1].split(",")))
    finally:
        resize(window, 1280, 720)


def test_nothing_jumps(window, address):
    visit(window, address, few())
    before = ask(window, "studio.show.canvas.getBoundingClientRect().top")
    for link in (few("ALG-EARLY"), few("D8", slope=0.2), few("D7", slope=0.2)):
        ask(window, "location.hash = arguments[0]", link)
        until(window, f"studio.state.name === {json.dumps(state_name(link))} && {SETTLED}")
        assert ask(window, "studio.show.canvas.getBoundingClientRect().top") == before, link


def state_name(link):
    text = link.partition("=")[2]
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))["name"]


def test_the_page_of_explain(window, tmp_path):
    found = rf.explain("ML-F6", width=12, progress=False)
    found.html(tmp_path / "report.html")
    window.get(f"file://{tmp_path / 'report.html'}")
    until(window, "document.querySelectorAll('details.claim').length")
    ask(window, "document.querySelector('[data-show=all]').click()")
    assert ask(window, "document.querySelectorAll('details.claim').length") == len(found.findings)
    assert ask(window, "document.querySelector('input[type=range]').value") == "0"
    titles = ask(window, "[...document.querySelectorAll('figcaption')].map(one => one.textContent)")
    for title in ("Training loss", "Margin", "Stable rank of the first layer", "Singular values of W"):
        assert title in titles
    assert ask(window, "document.querySelector('canvas').getBoundingClientRect().top") < 300
    drawn = ask(
        window, "[...document.querySelectorAll('svg.timed path.curve.main')].map(one => one.getAttribute('d').length)"
    )
    assert len(drawn) >= 3
    assert min(drawn) > 100
    ask(window, "document.querySelector('button.play').click()")
    until(window, "Number(document.querySelector('input[type=range]').value) > 5")
    # A failed condition lights up the points it names.
    ask(window, "document.querySelector('details.claim').open = true")
    until(window, "document.querySelector('details.claim table')")


FAKE = """
const waiting = [], kept = {}, answers = %s;
const model = {
  get: name => answers[name],
  set: (name, value) => { kept[name] = value; },
  save_changes: () => { window.saved = structuredClone(kept); },
  on: (_, listener) => waiting.push(listener),
  send: ({ number, kind }) => setTimeout(() => waiting.forEach(tell => tell({ number, document: answers[kind] })), 5),
};
render({ model, el: document.getElementById("cell") });
"""


def test_the_notebook_draws_the_same(window, tmp_path):
    desk, first = Desk(), {**preset_state("EX1"), "width": 6}
    answers = {kind: desk.answer(kind, {"state": first, "seconds": 60.0}) for kind in ("flow", "theory")}
    answers |= {"start": opening(first), "preset": first}
    given = json.dumps(answers).replace("</", "<\\/")
    text = script().replace("export default { render };", FAKE % given)
    page = f'<style>{stylesheet()}</style><div id="cell"></div><script type="module">{text}</script>'
    (tmp_path / "cell.html").write_text(f'<!DOCTYPE html><meta charset="utf-8">{page}')
    window.get(f"file://{tmp_path / 'cell.html'}")
    until(window, "document.querySelector('.sentence')?.textContent.startsWith('The network learns')")
    assert ask(window, "document.querySelectorAll('figure.chart').length") >= 5
    # What is drawn comes back.
    box = ask(window, "(b => [b.left, b.top])(document.querySelector('.stage canvas').getBoundingClientRect())")
    for kind in ("mousePressed", "mouseReleased"):
        event = {"type": kind, "x": box[0] + 60, "y": box[1] + 300, "button": "left", "clickCount": 1}
        window.execute_cdp_cmd("Input.dispatchMouseEvent", event)
    assert len(until(window, "window.saved?.state.points.length > 4 && window.saved.state.points")) == 5
