"""Processes that answer for the studio: the server stays awake, a newer question ends an older one, none lasts.

A lane is one process with a line before it. Who asks names a session; a newer question of the session makes the older
one pointless, whether it waits or runs. To end one that runs the process gets a SIGINT, which every long loop of
reluflow hears as Ctrl-C. One that does not end in time is ended for good, and its lane begins anew.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import multiprocessing
import os
import signal
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..problem import ReluflowError

_GRACE = 20.0  # seconds beyond those asked for after which a process is ended
_FIRST = 180.0  # seconds that the first compilation may take
_LONGEST_LINE = 128


class Superseded(ReluflowError):
    """A newer question of the same session came."""


class Busy(ReluflowError):
    """Too many wait already."""


class Failed(ReluflowError):
    """The process that worked on it ended, or had to be ended."""


@dataclass
class Reply:
    """What a process answered: JSON text, and whether it is that of an error."""

    text: bytes
    good: bool


def error_document(error: ReluflowError) -> dict[str, str]:
    """Describe an error as the command line does with --json."""
    return {"error": str(error), "kind": type(error).__name__, "remedy": error.remedy}


# -- in the process --------------------------------------------------------------------------------------


def run_process(pipe: Any, ended: Any) -> None:
    """Answer questions until the pipe closes; ``ended`` has the number of the question that is no longer asked."""
    at_work: list[int] = [-1]

    def hear(*_: object) -> None:
        if ended.value == at_work[0]:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, hear)
    from .work import Desk

    desk = Desk()
    _warm_up(desk)
    pipe.send_bytes(b"ready")
    while True:
        try:
            number, kind, asked = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            at_work[0] = number
            if ended.value == number:
                raise KeyboardInterrupt
            reply = _answer(desk, kind, asked)
            at_work[0] = -1
        except KeyboardInterrupt:
            at_work[0] = -1
            reply = False, error_document(Superseded("a newer question came; nothing is lost."))
        text = json.dumps(reply[1], separators=(",", ":"), allow_nan=False).encode()
        pipe.send_bytes((b"+" if reply[0] else b"-") + text)


def _answer(desk: Any, kind: str, asked: dict[str, Any]) -> tuple[bool, Any]:
    try:
        return True, desk.answer(kind, asked)
    except ReluflowError as error:
        return False, error_document(error)
    except MemoryError:
        return False, error_document(Failed("there is not enough memory; use fewer points or neurons."))
    except Exception as error:
        message = f"a bug in reluflow: {type(error).__name__}: {error}; please report it with the link of this page."
        return False, error_document(Failed(message))


def _warm_up(desk: Any) -> None:
    """Compile what every question needs."""
    state = {"points": [[2.0, 1.0], [-3.0, -1.0]], "labels": [1, -1], "width": 4, "log_scale": -7.0}
    _answer(desk, "theory", {"state": state, "seconds": _FIRST})
    _answer(desk, "flow", {"state": state, "seconds": _FIRST})


# -- in the server ---------------------------------------------------------------------------------------


@dataclass
class Lane:
    """A process and the line before it."""

    process: Any = None
    pipe: Any = None
    ended: Any = None
    ready: bool = False
    waiting: int = 0
    running: tuple[str, int] | None = None
    newest: dict[str, int] = field(default_factory=dict)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    numbers: Callable[[], int] = field(default_factory=lambda: itertools.count().__next__)
    busy: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """Begin a process; it compiles on its own."""
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.ended = context.Value("q", -1, lock=False)
        self.process = context.Process(target=run_process, args=(other, self.ended), daemon=True)
        self.process.start()
        other.close()
        self.ready = False

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.pipe.close()
            self.process.kill()
            self.process.join(5)
            self.process = None

    async def ask(self, session: str, kind: str, asked: dict[str, Any]) -> Reply:
        """Wait for the turn and the answer."""
        if self.waiting >= _LONGEST_LINE:
            raise Busy(f"{self.waiting} questions wait already; ask again in a moment.")
        number = self.numbers()
        self.newest[session] = number
        if self.running is not None and self.running[0] == session:
            self._interrupt(self.running[1])
        self.waiting += 1
        try:
            async with self.turn:
                if self.newest.get(session) != number:
                    raise Superseded("a newer question came; nothing is lost.")
                self.running = (session, number)
                try:
                    return await asyncio.shield(asyncio.to_thread(self._exchange, number, kind, asked))
                finally:
                    self.running = None
        finally:
            self.waiting -= 1
            if self.newest.get(session) == number:
                del self.newest[session]

    def _interrupt(self, number: int) -> None:
        """Tell the process that a question is no longer asked."""
        if self.process is not None and self.process.is_alive() and self.ready:
            self.ended.value = number
            os.kill(self.process.pid, signal.SIGINT)

    def _exchange(self, number: int, kind: str, asked: dict[str, Any]) -> Reply:
        with self.busy:
            try:
                if self.process is None or not self.process.is_alive():
                    self.start()
                if not self.ready:
                    self._receive(_FIRST)
                    self.ready = True
                self.pipe.send((number, kind, asked))
                reply = self._receive(float(asked.get("seconds", 0.0)) + _GRACE)
                return Reply(reply[1:], reply[:1] == b"+")
            except (EOFError, OSError):
                self.stop()
                raise Failed("the calculation ended unexpectedly; ask again, with fewer points or neurons.") from None

    def _receive(self, seconds: float) -> bytes:
        end = time.monotonic() + seconds
        while not self.pipe.poll(max(min(end - time.monotonic(), 1.0), 0.0)):
            if time.monotonic() >= end:
                self.stop()
                raise Failed("the calculation took much longer than it was allowed to; use fewer points or neurons.")
            if not self.process.is_alive():
                raise EOFError
        return bytes(self.pipe.recv_bytes())


class Engine:
    """Some lanes; a session keeps to its own, where the last run is remembered."""

    def __init__(self, lanes: int = 2) -> None:
        self.lanes = [Lane() for _ in range(lanes)]

    def start(self) -> None:
        """Begin the processes, so that the first question finds them ready."""
        for lane in self.lanes:
            lane.start()

    def stop(self) -> None:
        """End them."""
        for lane in self.lanes:
            lane.stop()

    async def ask(self, session: str, kind: str, asked: dict[str, Any]) -> Reply:
        """Ask the lane of the session; pictures and theory replace each other, files stand beside them."""
        lane = self.lanes[zlib.crc32(session.encode()) % len(self.lanes)]
        return await lane.ask(session if kind in ("flow", "theory") else f"{session}/{kind}", kind, asked)
