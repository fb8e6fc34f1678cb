"""The server: it answers its own page, refuses others, and survives whatever it is sent."""

import json
import random
import re

import pytest

import reluflow as rf
from reluflow.studio.state import DEFAULTS

pytest.importorskip("fastapi", reason="FastAPI is not installed: the server of the studio was not tested")

from helpers.asgi import Client
from reluflow.studio.server import MOST_BYTES, make_app
from reluflow.studio.work import Desk
from reluflow.studio.worker import Reply, error_document

STATE = {"points": [[2.0, 1.0], [-3.0, -1.0]], "labels": [1, -1], "width": 4}


class Here:
    """Answers in this process: what is tested is the server, not the processes."""

    def __init__(self):
        self.desk, self.asked = Desk(), []

    def start(self):
        pass

    def stop(self):
        pass

    async def ask(self, session, kind, asked):
        self.asked.append((session, kind))
        try:
            return Reply(json.dumps(self.desk.answer(kind, asked)).encode(), True)
        except rf.ReluflowError as error:
            return Reply(json.dumps(error_document(error)).encode(), False)


@pytest.fixture(scope="module")
def engine():
    return Here()


@pytest.fixture(scope="module")
def client(engine):
    return Client(make_app(8797, engine=engine), "127.0.0.1:8797")


def refused(reply, code):
    assert reply.status_code == code, reply.text
    document = reply.json()
    assert set(document) == {"error", "kind", "remedy"}
    assert document["error"]
    return document["error"]


def test_the_page_asks_nobody_else(client):
    page = client.get("/")
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    files = re.findall(r'(?:src|href)="(/[^"]*)"', page.text)
    assert files == ["/web/style.css", "/web/main.js"]
    seen, waiting = set(), ["main.js", "style.css"]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        reply = client.get(f"/web/{name}")
        assert reply.status_code == 200, name
        assert reply.headers["content-type"].startswith(("text/javascript", "text/css"))
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", reply.text), name
        waiting += re.findall(r'from "\./([\w.]+)"', reply.text)
    assert {"studio.js", "plane.js", "charts.js", "statements.js"} <= seen
    refused(client.get("/web/server.py"), 404)
    refused(client.get("/web/..%2Fserver.py"), 404)
    for path in ("/docs", "/redoc", "/api/nothing"):
        refused(client.get(path), 404)


def test_it_answers(client):
    opening = client.get("/api/presets").json()
    assert opening["defaults"] == DEFAULTS
    assert client.get("/api/preset", params={"name": "EX1"}).json()["labels"] == [1, 1, -1, -1]
    assert "no preset" in refused(client.get("/api/preset", params={"name": "x"}), 400)
    found = client.post("/api/flow", json_={"state": STATE, "seconds": 5.0})
    assert found.status_code == 200
    assert found.json()["movie"]["labels"] == [1, -1]
    found = client.post("/api/theory", json_={"state": STATE, "seconds": 20.0, "session": "me"}).json()
    assert found["claims"]
    found = client.post("/api/table", json_={"text": "2,1,1\n-3,-1,-1"}).json()
    assert found["points"] == STATE["points"]
    assert "line 1" in refused(client.post("/api/table", json_={"text": "2,x,1\n1,1,-1\n"}), 400)


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"host": "evil.example:8797"}, 421),
        ({"host": "127.0.0.1:8798"}, 421),
        ({"host": "127.0.0.1"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:8798"}, 403),
        ({"origin": "https://127.0.0.1:8797"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_another_page_cannot_drive_it(client, engine, headers, code):
    before = len(engine.asked)
    body = json.dumps({"state": STATE})
    refused(client.post("/api/flow", content=body, headers=headers), code)
    assert len(engine.asked) == before


def test_its_own_page_may_ask(client):
    for host in ("127.0.0.1:8797", "localhost:8797"):
        headers = {"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"}
        assert client.post("/api/flow", json_={"state": STATE}, headers=headers).status_code == 200
    assert "access-control-allow-origin" not in client.get("/", headers={"origin": "http://127.0.0.1:8797"}).headers


def test_too_much_is_refused(client):
    refused(client.post("/api/table", json_={"text": "1" * (MOST_BYTES + 10)}), 413)

    def endless():
        for _ in range(MOST_BYTES // 50_000 + 2):
            yield b"[" * 50_000

    refused(client.post("/api/flow", content=endless()), 413)
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        refused(client.request(method, "/api/flow"), 405)


WRONG = [None, True, -1, 0, 1.5, 10**400, "", "balanced", "\x00", "é" * 300, [], [[]], [[[1.0]]], {}, {"a": 1}, ["1"]]


def mutations(rng, schema, document):
    """Yield documents that break the schema in one place each: a field wrong, missing, too much, out of range."""
    state = document["state"]
    fields = schema["components"]["schemas"]["State"]["properties"]
    while True:
        broken = json.loads(json.dumps(document))
        kind = rng.randrange(6)
        name = rng.choice(list(fields))
        if kind == 0:
            broken["state"][name] = rng.choice(WRONG)
        elif kind == 1:
            broken[rng.choice(["state", "seconds", "session", "more"])] = rng.choice(WRONG)
        elif kind == 2:
            broken["state"][rng.choice(["Points", "__proto__", "x" * 500])] = rng.choice(WRONG)
        elif kind == 3:
            limits = {key: value for key, value in fields[name].items() if isinstance(value, (int, float))}
            edge = rng.choice([*limits.values(), 1e308, -1e308])
            broken["state"][name] = rng.choice([edge * 2 + 1, edge - 1e-9, -edge, [edge] * 3])
        elif kind == 4:
            row = rng.randrange(len(state["points"]))
            broken["state"]["points"][row] = rng.choice(
                [[1.0], [1.0, 2.0, 3.0], [None, 1.0], ["1", "2"], [1e7, 0.0], 4]
            )
        else:
            broken["state"]["labels"] = rng.choice([[0, 1], [1], [1, -1, 1], [True, False], [1.5, -1], "+-"])
        yield json.dumps(broken)


def test_a_thousand_malformed_requests(client, engine):
    schema = client.get("/openapi.json").json()
    rng = random.Random(0)
    good = json.dumps({"state": STATE, "seconds": 0.05})
    broken = mutations(rng, schema, json.loads(good))
    codes = {}
    for k in range(1000):
        text = next(broken).encode() if k % 3 else good.encode()
        if k % 3 == 0:  # bytes that are no JSON
            at = rng.randrange(len(text))
            text = rng.choice(
                [text[:at], text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :], b"[" * 3000, b"NaN", b""]
            )
        path = rng.choice(["flow", "theory", "export", "change", "table"])
        reply = client.post(f"/api/{path}", content=text)
        codes[reply.status_code] = codes.get(reply.status_code, 0) + 1
        if reply.status_code != 200:
            assert set(reply.json()) == {"error", "kind", "remedy"}, text
    # Some mutations are harmless, none is a bug of the server.
    assert set(codes) <= {200, 400, 422}
    assert codes[422] > 700
    assert client.post("/api/flow", content=good).status_code == 200
