"""A client that speaks to an application of this process, with any headers and any bytes."""

import asyncio
import json
from dataclasses import dataclass
from urllib.parse import unquote, urlencode


@dataclass
class Answer:
    """What the application sent."""

    status_code: int
    headers: dict
    content: bytes

    @property
    def text(self):
        return self.content.decode()

    def json(self):
        return json.loads(self.content)


class Client:
    """Sends requests to an application as a browser would to ``host``."""

    def __init__(self, app, host):
        self.app, self.host = app, host

    def request(self, method, path, body=(), headers=None, params=None):
        """Send a request; the body is the parts it comes in."""
        named = {"host": self.host, **(headers or {})}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": urlencode(params or {}).encode(),
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in named.items()],
            "server": ("127.0.0.1", 80),
            "client": ("127.0.0.1", 1),
        }
        parts = list(body)
        sent = []

        async def receive():
            if not parts:
                return {"type": "http.request", "body": b"", "more_body": False}
            return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

        async def send(message):
            sent.append(message)

        async def both():
            try:
                await self.app(scope, receive, send)
            except Exception:  # Starlette answers a bug and then raises it, for the log of the server
                if not sent:
                    raise

        asyncio.run(both())
        start = next(message for message in sent if message["type"] == "http.response.start")
        content = b"".join(message.get("body", b"") for message in sent if message["type"] == "http.response.body")
        return Answer(start["status"], {name.decode(): value.decode() for name, value in start["headers"]}, content)

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, json_=None, content=None, headers=None):
        """Send JSON, or bytes, or parts of bytes."""
        body = json.dumps(json_).encode() if content is None else content
        parts = [body.encode() if isinstance(body, str) else body] if isinstance(body, (bytes, str)) else body
        return self.request("POST", path, parts, {"content-type": "application/json", **(headers or {})})
