"""The server of the studio: it listens to this machine only, believes nothing it is sent, and never asks anybody."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from ..problem import ReluflowError
from ..report.page import FRONT, style
from .notebook import opening
from .presets import preset_state
from .state import DEFAULTS, LARGEST, LOG_SCALES, MOST_DIMENSIONS, MOST_NEURONS, MOST_POINTS
from .web import WEB
from .worker import Busy, Engine, Failed, Reply, Superseded, error_document

MOST_BYTES = 2_000_000
# That nobody wants an answer any more is no failure, and a browser would note one.
_CODES: dict[type[ReluflowError], int] = {Superseded: 200, Busy: 503, Failed: 500}
_KINDS = {".js": "text/javascript", ".css": "text/css"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (
        b"content-security-policy",
        _POLICY.encode(),
    ),
]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# -- what may be asked -----------------------------------------------------------------------------------

Coordinate = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Row = Annotated[list[Coordinate], Field(min_length=1, max_length=MOST_DIMENSIONS)]


class _Strict(BaseModel):
    """Nothing is guessed: a text is no number, an unknown field a mistake."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Weights(_Strict):
    """A network that is given instead of drawn."""

    W: Annotated[list[Row], Field(min_length=1, max_length=MOST_NEURONS)]
    a: Annotated[list[Coordinate], Field(min_length=1, max_length=MOST_NEURONS)]


class State(_Strict):
    """What the studio shows; see `reluflow.studio.state`."""

    name: Annotated[str, Field(max_length=200)] = DEFAULTS["name"]
    points: Annotated[list[Row], Field(min_length=1, max_length=MOST_POINTS)]
    labels: Annotated[list[Literal[-1, 1]], Field(min_length=1, max_length=MOST_POINTS)]
    bias: Annotated[float, Field(ge=-LARGEST, le=LARGEST)] | None = None
    width: Annotated[int, Field(ge=1, le=MOST_NEURONS)] = DEFAULTS["width"]
    slope: Annotated[float, Field(ge=0, le=1)] = DEFAULTS["slope"]
    scheme: Literal["balanced", "gaussian", "balanced-gaussian", "two-sign", "he", "uniform"] = DEFAULTS["scheme"]
    log_scale: Annotated[float, Field(ge=LOG_SCALES[0], le=LOG_SCALES[1])] = DEFAULTS["log_scale"]
    seed: Annotated[int, Field(ge=0, lt=2**53)] = DEFAULTS["seed"]
    loss: Literal["logistic", "exponential"] = DEFAULTS["loss"]
    reduction: Literal["mean", "sum"] = DEFAULTS["reduction"]
    train: Literal["both", "first"] = DEFAULTS["train"]
    network: Weights | None = None


class Asked(_Strict):
    """A question: the state, who asks, and how long it may take."""

    state: State
    session: Annotated[str, Field(min_length=1, max_length=64)] = "one"
    seconds: Annotated[float, Field(gt=0, le=60)] = 10.0


class Exported(Asked):
    """A question for a file."""

    format: Literal["html", "json", "python", "csv"]


class Changed(Asked):
    """A question for other data."""

    change: Literal["flip", "symmetrize", "hint"]


class Pasted(_Strict):
    """A table as text."""

    text: Annotated[str, Field(max_length=1_000_000)]
    session: Annotated[str, Field(min_length=1, max_length=64)] = "one"


_QUESTIONS: dict[str, tuple[type[_Strict], str]] = {
    "flow": (Asked, "The picture of a run: frames, events, charts"),
    "theory": (Asked, "Findings, predictions, limit and verdicts, with the picture"),
    "export": (Exported, "A file: report, document, Python, table"),
    "change": (Changed, "The data symmetrised, hinted, with labels exchanged"),
    "table": (Pasted, "A pasted table as points"),
}


# -- the guard -------------------------------------------------------------------------------------------


class Guard:
    """Lets in only what comes from the page itself: right host, right origin, JSON, and not too much of it.

    Another page in the same browser can send requests to 127.0.0.1, under this name or under one of its own that it
    has made point there; the headers tell them apart.
    """

    def __init__(self, app: Any, port: int) -> None:
        self.app = app
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"} | ({"127.0.0.1", "localhost"} if port == 80 else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        refusal = self._refusal(scope)
        body = b""
        if refusal is None:
            found = await _body(scope, receive)
            if found is None:
                refusal = 413, f"more than {MOST_BYTES} bytes were sent; use fewer points."
            else:
                body = found
        if refusal is not None:
            code, words = refusal
            await _refused(words, code)(scope, receive, dressed)
            return
        sent = False

        async def again() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, again, dressed)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        host = headers.get("host", [])
        if len(host) != 1 or host[0].lower() not in self.hosts:
            return 421, "this server answers to 127.0.0.1 only; open the address that reluflow studio printed."
        origin = headers.get("origin", [])
        if any(one.lower() != f"http://{host[0].lower()}" for one in origin):
            return 403, "another page asks; only the studio's own page may."
        if any(site not in ("same-origin", "none") for site in headers.get("sec-fetch-site", [])):
            return 403, "another page asks; only the studio's own page may."
        if scope["method"] == "POST":
            kind = headers.get("content-type", [""])[0].partition(";")[0].strip().lower()
            if kind != "application/json":
                return 415, f"content of type {kind or 'none'!r} was sent; application/json is needed."
            length = headers.get("content-length", ["0"])[0]
            if not length.isdecimal() or int(length) > MOST_BYTES:
                return 413, f"more than {MOST_BYTES} bytes were announced; use fewer points."
        elif scope["method"] not in ("GET", "HEAD"):
            return 405, f"{scope['method']} means nothing here; use GET or POST."
        return None


async def _body(scope: Scope, receive: Receive) -> bytes | None:
    """Read what was sent; None if it is too much."""
    if scope["method"] != "POST":
        return b""
    parts, total = [], 0
    while True:
        message = await receive()
        part = message.get("body", b"")
        total += len(part)
        if total > MOST_BYTES:
            return None
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


# -- the server ------------------------------------------------------------------------------------------


def make_app(port: int, first: dict[str, Any] | None = None, engine: Engine | None = None) -> FastAPI:
    """Make the application for a port; ``first`` is the state it opens with."""
    work = engine or Engine()

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        work.start()
        try:
            yield
        finally:
            work.stop()

    # The documents that FastAPI offers load scripts from elsewhere.
    app = FastAPI(title="reluflow studio", docs_url=None, redoc_url=None, lifespan=living)
    app.add_middleware(Guard, port=port)
    _add_errors(app)
    _add_pages(app, first)

    for kind, (model, summary) in _QUESTIONS.items():
        app.post(f"/api/{kind}", summary=summary)(_answering(work, kind, model))
    return app


def _answering(work: Engine, kind: str, model: type[_Strict]) -> Callable[..., Awaitable[Response]]:
    """Make the function that answers one kind of question."""

    async def answer(asked: Any) -> Response:
        document = asked.model_dump()
        reply = await work.ask(document.pop("session"), kind, document)
        return Response(reply.text, 200 if reply.good else _code_of(reply), media_type="application/json")

    answer.__name__, answer.__annotations__ = kind, {"asked": model, "return": Response}  # what FastAPI reads
    return answer


def _code_of(reply: Reply) -> int:
    kind = json.loads(reply.text).get("kind")
    return next((code for error, code in _CODES.items() if error.__name__ == kind), 400)


def _add_pages(app: FastAPI, first: dict[str, Any] | None) -> None:
    @app.get("/", include_in_schema=False)
    async def index() -> HTMLResponse:
        return HTMLResponse(WEB.joinpath("index.html").read_text(encoding="utf-8"))

    @app.get("/web/{name}", include_in_schema=False)
    async def module(name: str) -> Response:
        text = _file(name)
        if text is None:
            raise HTTPException(404, f"there is no {name[:80]!r} here.")
        return Response(text, media_type=_KINDS[name[name.rindex(".") :]])

    @app.get("/api/presets", summary="What can be opened, and what the studio opens with")
    async def listed() -> dict[str, Any]:
        return opening(first)

    @app.get("/api/preset", summary="One of them as a state")
    async def preset(name: Annotated[str, Field(max_length=100)]) -> dict[str, Any]:
        return preset_state(name)


@cache
def _files() -> dict[str, str]:
    """All modules by name: those of the page and those of the studio."""
    found = {"style.css": style()}
    for folder in (FRONT, WEB):
        found |= {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".js")}
    return found


def _file(name: str) -> str | None:
    return _files().get(name)


def _refused(words: str, code: int, kind: str = "Refused") -> Response:
    return JSONResponse({"error": words, "kind": kind, "remedy": words.rpartition("; ")[2]}, code)


def _add_errors(app: FastAPI) -> None:
    """Answer every error with a document: what was wrong, of what kind, what to do."""

    async def answer(_: Request, error: Exception) -> Response:
        if isinstance(error, ReluflowError):
            code = next((number for kind, number in _CODES.items() if isinstance(error, kind)), 400)
            return JSONResponse(error_document(error), code)
        if isinstance(error, RequestValidationError):
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"] if part != "body") or "the request"
            return _refused(f"{place}: {first['msg'][:200]}; /openapi.json says what is expected.", 422)
        if isinstance(error, HTTPException):
            return _refused(str(error.detail), error.status_code)
        return _refused(f"a bug in reluflow: {type(error).__name__}; please report it.", 500, "Failed")

    for kind in (ReluflowError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, answer)
