"""Compiling with numba: what was compiled is kept on disk, and a compilation that takes long says so.

Numba optimises a function, and makes machine code of it, before it is linked into the functions that call it, where all
of that is done again: with functions in ten layers the time of compilation goes into code that nobody runs. `linked`
leaves a function as it is until it stands in the entry point (`kept`) that is really called.
"""

from __future__ import annotations

import gc
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.caching import FunctionCache, NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import NopythonTypeInference
from numba.core.types.misc import unliteral

Compiled = TypeVar("Compiled", bound=Callable[..., Any])

_said: set[str] = set()


def kept(function: Compiled, *, stamp: int = 0, slow: str = "", **options: Any) -> Compiled:
    """Compile a function for the types it is called with, once for all processes to come.

    What was compiled is kept in ``NUMBA_CACHE_DIR``, beside the source or in the user's cache directory: the first of
    them that can be written. Without such a place it is compiled in every process.

    Parameters
    ----------
    function : callable
    stamp : int
        Stands for whatever the compiled code depends on apart from the file of the function.
    slow : str
        What is being compiled, if that takes so long that it is announced on stderr.
    **options
        For `numba.njit`.
    """
    compiled = one_for_all(numba.njit(**options)(function))
    compiled.compile = _without_collecting(compiled.compile)
    try:
        compiled._cache = _Kept(function, stamp, slow)
    except (RuntimeError, OSError):  # there is no place to keep it
        compiled._cache = _Unkept(slow)
    return compiled  # type: ignore[no-any-return]


def linked(function: Compiled, **options: Any) -> Compiled:
    """Compile what only compiled functions call: it is optimised with them, and kept with them.

    Parameters
    ----------
    function : callable
    **options
        For `numba.njit`.
    """
    options |= {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return one_for_all(numba.njit(pipeline_class=_Linked, **options)(function))  # type: ignore[no-any-return]


class _Open(JITCodeLibrary):  # type: ignore[misc]
    """Code that waits to be linked into what calls it: neither optimised nor turned into machine code by itself."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002
        return 0  # it cannot be called from Python

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing: only functions that raise or print look into their environment."""


@register_pass(mutates_CFG=False, analysis_only=False)
class _LeaveOpen(FunctionPass):  # type: ignore[misc]
    _name = "leave_open"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state.library = _Open(state.targetctx.codegen(), state.func_id.func_qualname)
        return False


class _Linked(Compiler):  # type: ignore[misc]
    """The pipeline of numba with an open library at its end."""

    def define_pipelines(self) -> Any:
        pipelines = super().define_pipelines()
        for passes in pipelines:
            passes.add_pass_after(_LeaveOpen, NopythonTypeInference)
            passes.finalize()
        return pipelines


def _without_collecting(compiles: Callable[..., Any]) -> Callable[..., Any]:
    """Compile with the garbage collector at rest: a sixth of the time, for objects that stay anyway."""

    def compile_(signature: Any) -> Any:
        collects = gc.isenabled()
        gc.disable()
        try:
            return compiles(signature)
        finally:
            if collects:
                gc.enable()

    return compile_


def one_for_all(compiled: Any) -> Any:
    """Let compiled callers use one version for all integers: numba would compile ``f(0)`` and ``f(n)`` separately."""
    template = compiled.get_call_template

    def plain(args: Any, kws: Any) -> Any:
        return template(tuple(unliteral(arg) for arg in args), kws)

    compiled.get_call_template = plain
    return compiled


def stamp_of(file: str, *others: str) -> int:
    """Return a number that stands for the sources that compiled code depends on, given relative to a file of theirs."""
    try:
        return 1 + zlib.crc32(b"".join(Path(file).parent.joinpath(other).read_bytes() for other in others))
    except OSError:  # installed without sources: they cannot change either
        return 1


class _Kept(FunctionCache):  # type: ignore[misc]
    """The files of numba; damaged ones are made anew, and a full disk is no reason to fail."""

    def __init__(self, function: Callable[..., Any], stamp: int, slow: str) -> None:
        super().__init__(function)
        self._stamp, self._slow = stamp, slow

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = None
        try:
            found = super().load_overload(sig, target_context)
        except Exception:  # half a pickle raises anything
            with suppress(Exception):
                self.flush()
        if found is None:
            _announce(self._slow, "once")
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(Exception):
            super().save_overload(sig, data)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), self._stamp)


class _Unkept(NullCache):  # type: ignore[misc]
    def __init__(self, slow: str) -> None:
        self._slow = slow

    def load_overload(self, sig: Any, target_context: Any) -> None:  # noqa: ARG002
        _announce(self._slow, "for this process only; NUMBA_CACHE_DIR can name a place to keep it")


def _announce(what: str, how_often: str) -> None:
    """Say once, to whoever is waiting: at a terminal, in a notebook, at the command line even into a pipe."""
    if not what or what in _said:
        return
    _said.add(what)
    with suppress(Exception):  # stderr may be closed, or None
        if sys.stderr.isatty() or "ipykernel" in sys.modules or "reluflow.cli" in sys.modules:
            print(f"reluflow: compiling {what}, {how_often} (about half a minute) ...", file=sys.stderr, flush=True)
