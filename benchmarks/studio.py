"""The studio under load: how long a drag takes to the picture, fifty questions at once, a thousand broken ones, memory.

    python benchmarks/studio.py               # latency in a browser (if there is one), load, memory: a minute or two
    python benchmarks/studio.py --soak 30     # the same mixture for so many minutes: memory must not grow
    python benchmarks/studio.py --pictures docs/studio    # the six pictures of the documentation

Everything goes to 127.0.0.1. Exit code 1 if a question is not answered as it should be or memory grows.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from helpers.browser import MISSING, SETTLED, opened, programs, studio, until

_PICTURES = {
    "two-sectors": "preset=two-sectors&at=0.2&show=paths.regions.sum.cones",
    "sliding": "preset=sliding&at=0.42&show=regions.paths.limit.walls",
    "death": "preset=death&at=0.38&show=regions.paths.cones.predicted",
    "hints": "preset=hints&at=1&show=regions.margin.predicted.limit&reach=5",
    "counterexample": "lecture=LL-5&at=1&show=regions.paths.limit&tab=theorems&open=LL-TA.7",
    "large-start": "preset=large&at=0.42&show=regions.margin.paths.predicted",
}
_GROWTH = 1.25  # memory after the warm-up by which it may grow


def drawn(n: int = 20, width: int = 50, seed: int = 0) -> dict:
    """Return what people draw: two clouds of points."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1, -1)
    X = 1.2 * y[:, None] * np.array([1.0, 0.5]) + 0.6 * rng.standard_normal((n, 2))
    return {"points": X.round(4).tolist(), "labels": y.tolist(), "width": width}


def send(address: str, path: str, body: bytes, kind: str = "application/json") -> tuple[int, bytes]:
    """Send one request on a connection of its own."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=300)
    try:
        connection.request("POST", path, body, {"Content-Type": kind})
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def ask(address: str, path: str, state: dict, session: str, seconds: float) -> tuple[int, bytes]:
    """Ask one question."""
    return send(address, path, json.dumps({"state": state, "session": session, "seconds": seconds}).encode())


def memory(pid: int) -> float:
    """Return the resident memory of a process and its children, in megabytes."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = dict(
                line.split(":\t", 1) for line in (folder / "status").read_text().splitlines() if ":\t" in line
            )
        except (OSError, ValueError):
            continue
        if int(folder.name) == pid or int(status.get("PPid", 0)) == pid:
            total += int(status.get("VmRSS", "0 kB").split()[0])
    return total / 1024


def times(name: str, took: list[float]) -> None:
    """Print a line of milliseconds."""
    found = np.percentile(took, [50, 95, 100])
    print(f"{name:46s} median {found[0]:7.1f} ms   p95 {found[1]:7.1f} ms   largest {found[2]:7.1f} ms", flush=True)


def server_latency(address: str, drags: int = 100) -> None:
    """Measure how long the server takes for the picture while a point is dragged."""
    state, took, complete = drawn(), [], 0
    for k in range(drags):
        state["points"][0] = [2.0 - 0.03 * k, 0.5 + 0.01 * k]
        start = time.perf_counter()
        code, text = ask(address, "/api/flow", state, "drag", 0.06)
        took.append(1e3 * (time.perf_counter() - start))
        assert code == 200, text
        complete += json.loads(text)["complete"]
    times(f"a drag, server (20 points, 50 neurons, {drags})", took)
    print(f"{'':46s} {complete} of {drags} runs followed to log t = 10^6 within 0.06 s")


def browser_latency(address: str, drags: int = 100) -> None:
    """Measure the same in a browser, from the move of the pointer to the picture."""
    if programs() is None:
        print(MISSING)
        return
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as window:
        window.get(address)
        until(window, SETTLED)
        window.execute_script("studio.open({...studio.state, network: null, ...arguments[0]}, null, 0.6)", drawn())
        until(window, SETTLED, 120)
        took = []
        for k in range(drags):
            window.execute_script(
                "studio.latencies.length = 0; studio.state.points[0] = arguments[0]; studio.moved();",
                [2.0 - 0.03 * k, 0.5 + 0.01 * k],
            )
            took += until(window, "studio.latencies.length && studio.latencies")[:1]
        times(f"a drag, browser: server and drawing ({drags})", took)


def crowd(address: str, many: int = 50) -> None:
    """Ask many questions at once, each of another visitor."""
    codes: list[int] = []

    def one(k: int) -> None:
        codes.append(ask(address, "/api/flow", drawn(seed=k), f"visitor {k}", 0.2)[0])

    start = time.perf_counter()
    threads = [threading.Thread(target=one, args=(k,)) for k in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes.count(200) == many, codes
    print(f"{f'{many} questions at once':46s} all answered after {time.perf_counter() - start:.1f} s", flush=True)


def nonsense(address: str, many: int = 1000, seed: int = 0) -> None:
    """Send broken requests; every answer is a refusal in JSON, and afterwards the server answers as before."""
    rng, codes = random.Random(seed), {}
    good = json.dumps({"state": drawn(4, 4), "seconds": 0.1})
    start = time.perf_counter()
    for _ in range(many):
        at = rng.randrange(len(good))
        body = rng.choice(
            [
                good[:at],
                good[:at] + chr(rng.randrange(32, 126)) * rng.randrange(1, 9) + good[at:],
                good.replace("points", "pints"),
                good.replace("1", "1e999", 1),
                "[" * 5000,
                "null",
                "",
            ]
        )
        path = rng.choice(["/api/flow", "/api/theory", "/api/export", "/api/change", "/api/table", "/api/none"])
        kind = rng.choice(["application/json"] * 5 + ["text/plain"])
        code, text = send(address, path, body.encode(), kind)
        codes[code] = codes.get(code, 0) + 1
        if code != 200:
            assert set(json.loads(text)) == {"error", "kind", "remedy"}, text
    assert not any(code >= 500 for code in codes), codes
    assert ask(address, "/api/flow", drawn(4, 4), "after", 1.0)[0] == 200
    took = time.perf_counter() - start
    print(f"{f'{many} broken requests':46s} {dict(sorted(codes.items()))} in {took:.1f} s", flush=True)


def soak(address: str, pid: int, minutes: float) -> bool:
    """Mix everything for so many minutes; whether memory stayed where it was after the first tenth."""
    end, start, first, k = time.monotonic() + 60 * minutes, time.monotonic(), 0.0, 0
    said = start
    while time.monotonic() < end:
        k += 1
        state = drawn(seed=k % 97, width=10 + k % 30)
        assert ask(address, "/api/flow", state, f"s{k % 5}", 0.1)[0] == 200
        if k % 20 == 0:
            assert ask(address, "/api/theory", state, f"s{k % 5}", 5.0)[0] == 200
        if k % 50 == 0:
            nonsense(address, 50, k)
        if not first and time.monotonic() - start > 6 * minutes:
            first = memory(pid)
        if time.monotonic() - said > 60:
            said = time.monotonic()
            print(f"  {(said - start) / 60:5.1f} min: {k} questions, {memory(pid):.0f} MB", flush=True)
    last = memory(pid)
    print(f"{f'{minutes:g} minutes, {k} questions':46s} memory {first:.0f} MB, then {last:.0f} MB")
    return last <= _GROWTH * first


def pictures(address: str, target: Path) -> int:
    """Take the pictures of the documentation."""
    if programs() is None:
        print(MISSING)
        return 1
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as window:
        for name, link in _PICTURES.items():
            window.get("about:blank")
            window.get(f"{address}#{link}")
            until(window, SETTLED, 120)
            time.sleep(0.5)
            window.save_screenshot(str(target / f"{name}.png"))
            print(f"{name:20s} {(target / f'{name}.png').stat().st_size / 1000:.0f} kB", flush=True)
    return 0


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="go on for so long and watch the memory")
    parser.add_argument("--drags", type=int, default=100)
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="take the pictures of the documentation")
    given = parser.parse_args()
    with studio() as (address, process):
        assert ask(address, "/api/flow", drawn(), "first", 5.0)[0] == 200
        if given.pictures:
            return pictures(address, given.pictures)
        if given.soak:
            return 0 if soak(address, process.pid, given.soak) else 1
        server_latency(address, given.drags)
        browser_latency(address, given.drags)
        crowd(address)
        before = memory(process.pid)
        nonsense(address)
        crowd(address)
        print(f"{'memory of server and processes':46s} {before:.0f} MB, then {memory(process.pid):.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
