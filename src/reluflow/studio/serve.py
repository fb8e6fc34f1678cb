"""Open the studio: a server on this machine, and a browser."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable
from typing import Any

from ..problem import ProblemError

PORT = 8797  #: where the studio listens if nothing else is said


def serve(
    first: dict[str, Any] | None = None,
    port: int = PORT,
    browser: bool = True,
    tell: Callable[[str], None] | None = None,
) -> None:
    """Serve the studio on 127.0.0.1 until Ctrl-C.

    Parameters
    ----------
    first : dict, optional
        The state it opens with, as `state_of` makes it.
    port : int
        0 takes a free one.
    browser : bool
        Open a browser.
    tell : callable, optional
        Told the address; default: print it.

    Raises
    ------
    ProblemError
        The port is taken, or the extra ``studio`` is not installed.
    """
    try:
        import uvicorn

        from .server import make_app
    except ImportError as error:
        raise ProblemError(
            f'the studio needs FastAPI and uvicorn ({error.name} is missing); pip install "reluflow[studio]".'
        ) from None
    door = _door(port)
    number = int(door.getsockname()[1])
    address = f"http://127.0.0.1:{number}/"
    (tell or _say)(address)
    if browser:
        threading.Timer(0.8, webbrowser.open, (address,)).start()
    config = uvicorn.Config(
        make_app(number, first), log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=2
    )
    uvicorn.Server(config).run(sockets=[door])


def _say(address: str) -> None:
    print(f"The studio is open at {address} (Ctrl-C closes it)", flush=True)


def _door(port: int) -> socket.socket:
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536:
        raise ProblemError(f"port = {port!r}: a number from 0 to 65535 is needed; 0 takes a free one.")
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        why = error.strerror or str(error)
        raise ProblemError(f"port {port} cannot be used ({why}); choose another with --port, or --port 0.") from None
