"""The studio under load: how long a drag takes to the picture, fifty questions at once, a thousand broken ones, memory.

    python -m benchmarks studio                            # latency, load, memory: a minute or two
    python -m benchmarks.studio --soak 30                  # a mixture for so many minutes: memory must not grow
    python -m benchmarks.studio --pictures docs/studio     # the six pictures of the documentation

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
from typing import Any
from urllib.parse import urlsplit

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.measure import Found
from helpers.browser import MISSING, SETTLED, opened, programs, until
from helpers.browser import studio as serving

_PICTURES = {
    "two-sectors": "preset=two-sectors&at=0.2&show=paths.regions.sum.cones",
    "sliding": "preset=sliding&at=0.42&show=regions.paths.limit.walls",
    "death": "preset=death&at=0.38&show=regions.paths.cones.predicted",
    "hints": "preset=hints&at=1&show=regions.margin.predicted.limit&reach=5",
    "counterexample": "lecture=LL-5&at=1&show=regions.paths.limit&tab=theorems&open=LL-TA.7",
    "large-start": "preset=large&at=0.42&show=regions.margin.paths.predicted",
}
_GROWTH = 1.25  # memory after the warm-up by which it may grow


def drawn(n: int = 20, width: int = 50, seed: int = 0) -> dict[str, Any]:
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


def ask(address: str, path: str, state: dict[str, Any], session: str, seconds: float) -> tuple[int, bytes]:
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


def studio(drags: int) -> Found:
    """Ask in every way there is; the answer is how many questions were not answered as they should be."""
    with serving() as (address, process):
        assert ask(address, "/api/flow", drawn(), "first", 5.0)[0] == 200
        took, complete = server_latency(address, drags)
        figures = {**_quantiles("drag ms", took), "followed to the end": complete / drags}
        if seen := browser_latency(address, drags):
            figures |= _quantiles("drag in a browser ms", seen)
        figures["fifty at once s"], unanswered = crowd(address)
        before = memory(process.pid)
        codes = nonsense(address)
        figures["fifty again s"], again = crowd(address)
        figures |= {"memory MB": before, "memory afterwards MB": memory(process.pid)}
    return Found(unanswered + again + sum(many for code, many in codes.items() if code >= 500), figures)


def _quantiles(name: str, took: list[float]) -> dict[str, float]:
    """Return median, 95 % and largest."""
    return dict(
        zip((f"{name}, median", f"{name}, 95 %", f"{name}, largest"), np.percentile(took, [50, 95, 100]), strict=True)
    )


def server_latency(address: str, drags: int) -> tuple[list[float], int]:
    """Measure how long the server takes while a point is dragged, and how many runs are followed to the end."""
    state, took, complete = drawn(), [], 0
    for k in range(drags):
        state["points"][0] = [2.0 - 0.03 * k, 0.5 + 0.01 * k]
        start = time.perf_counter()
        code, text = ask(address, "/api/flow", state, "drag", 0.06)
        took.append(1e3 * (time.perf_counter() - start))
        assert code == 200, text
        complete += json.loads(text)["complete"]
    return took, complete


def browser_latency(address: str, drags: int) -> list[float]:
    """Measure the same in a browser, from the move of the pointer to the picture; nothing if there is none."""
    if programs() is None:
        return []
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as window:
        window.get(address)
        until(window, SETTLED)
        window.execute_script("studio.open({...studio.state, network: null, ...arguments[0]}, null, 0.6)", drawn())
        until(window, SETTLED, 120)
        took: list[float] = []
        for k in range(drags):
            window.execute_script(
                "studio.latencies.length = 0; studio.state.points[0] = arguments[0]; studio.moved();",
                [2.0 - 0.03 * k, 0.5 + 0.01 * k],
            )
            took += until(window, "studio.latencies.length && studio.latencies")[:1]
        return took


def crowd(address: str, many: int = 50) -> tuple[float, int]:
    """Ask many questions at once, each of another visitor: seconds, and how many were not answered."""
    codes: list[int] = []

    def one(k: int) -> None:
        codes.append(ask(address, "/api/flow", drawn(seed=k), f"visitor {k}", 0.2)[0])

    start = time.perf_counter()
    threads = [threading.Thread(target=one, args=(k,)) for k in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start, many - codes.count(200)


def nonsense(address: str, many: int = 1000, seed: int = 0) -> dict[int, int]:
    """Send broken requests, count the codes; every refusal is JSON, and afterwards the server answers as before."""
    rng, codes = random.Random(seed), dict[int, int]()
    good = json.dumps({"state": drawn(4, 4), "seconds": 0.1})
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
    assert ask(address, "/api/flow", drawn(4, 4), "after", 1.0)[0] == 200
    return codes


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
            codes = nonsense(address, 50, k)
            assert max(codes) < 500, codes
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
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="take the pictures of the documentation")
    given = parser.parse_args()
    with serving() as (address, process):
        assert ask(address, "/api/flow", drawn(), "first", 5.0)[0] == 200
        if given.pictures:
            return pictures(address, given.pictures)
        return 0 if soak(address, process.pid, given.soak or 30.0) else 1


if __name__ == "__main__":
    sys.exit(main())
