"""Many arrays handed to compiled functions as one address.

Numba hands a tuple of fifty arrays on as five hundred numbers, at every call, and about half of the time of compilation
went into that (70 s before, 36 to 40 s after, on one machine). A `Held` is the same named tuple with its numbers
written down once; compiled functions get the address and read ``held.name`` from there. What is written down never
changes (the arrays do), and the compiler knows it.
"""

from __future__ import annotations

import zlib
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import NativeValue, lower_getattr_generic, register_model, unbox
from numba.np.arrayobj import populate_array


class HeldType(types.Type):
    """What compiled functions know of a `Held`: names and types, and at which word each begins."""

    def __init__(self, of: str, names: tuple[str, ...], kinds: tuple[Any, ...]) -> None:
        starts = np.cumsum([0, *(_words(kind) for kind in kinds)]).tolist()
        self.fields = {name: (kind, at) for name, kind, at in zip(names, kinds, starts, strict=False)}
        self.size = starts[-1]
        code = zlib.crc32(repr([(name, str(kind)) for name, (kind, _) in self.fields.items()]).encode())
        super().__init__(name=f"{of}{code:08x}")  # short: it becomes part of every symbol


def _form(value: Any) -> Any:
    """Return what the type of a value depends on, quickly compared; whether arrays may be written to is not asked."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim
    if isinstance(value, tuple):
        return type(value), tuple(map(_form, value))
    return value.dtype if isinstance(value, np.void) else type(value)


@cache
def _kind(form: Any) -> Any:
    """Type of the values of a form; arrays are contiguous."""
    if isinstance(form, np.dtype):
        return numba.from_dtype(form)
    if isinstance(form, type):
        return numba.typeof(form(0))
    first, rest = form
    if isinstance(first, np.dtype):
        return types.Array(_kind(first), rest, "C")
    return HeldType(first.__name__, first._fields, tuple(map(_kind, rest)))


def _words(kind: Any) -> int:
    if isinstance(kind, HeldType):
        return int(kind.size)
    return 2 + 2 * kind.ndim if isinstance(kind, types.Array) else 1


class Held:
    """A named tuple of arrays, numbers, records and tuples of these, as compiled functions take it.

    Parameters
    ----------
    values : NamedTuple
        Kept, so that its arrays live as long as this.
    """

    __slots__ = ("_numba_type_", "address", "values", "words")

    def __init__(self, values: NamedTuple) -> None:
        self.values = values
        self._numba_type_ = _kind(_form(values))
        self.words = np.fromiter(_written(values), np.int64, self._numba_type_.size)
        self.address = self.words.ctypes.data


def _written(values: Any) -> Any:
    """Numbers of a tuple, as words: of an array item size, address, shape, strides."""
    for value in values:
        if isinstance(value, np.ndarray):
            if not value.flags.c_contiguous:
                raise ValueError(f"an array of shape {value.shape} and strides {value.strides} is not contiguous")
            yield from (value.itemsize, value.ctypes.data, *value.shape, *value.strides)
        elif isinstance(value, tuple):
            yield from _written(value)
        elif isinstance(value, np.void):
            yield np.asarray(value).ctypes.data
        elif isinstance(value, float):
            yield int(np.float64(value).view(np.int64))
        else:
            yield int(value)


@register_model(HeldType)
class _Address(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.IntType(64).as_pointer())


@infer_getattr
class _Names(AttributeTemplate):  # type: ignore[misc]
    key = HeldType

    def generic_resolve(self, held: HeldType, name: str) -> Any:
        return held.fields[name][0] if name in held.fields else None


@unbox(HeldType)  # type: ignore[untyped-decorator]
def _unboxed(kind: HeldType, held: Any, c: Any) -> Any:  # noqa: ARG001
    number = c.pyapi.object_getattr_string(held, "address")
    address = c.builder.bitcast(c.pyapi.long_as_voidptr(number), ir.IntType(64).as_pointer())
    c.pyapi.decref(number)
    return NativeValue(address, is_error=c.pyapi.c_api_error())


@lower_getattr_generic(HeldType)  # type: ignore[untyped-decorator]
def _read(context: Any, builder: Any, held: HeldType, address: Any, name: str) -> Any:
    kind, at = held.fields[name]

    def place(k: int) -> Any:
        return builder.gep(address, [ir.IntType(64)(at + k)], inbounds=True)

    def word(k: int) -> Any:
        found = builder.load(place(k))
        found.set_metadata("invariant.load", builder.module.add_metadata([]))
        return found

    if isinstance(kind, HeldType):
        return place(0)
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder)
        shape, strides = ([word(2 + first + i) for i in range(kind.ndim)] for first in (0, kind.ndim))
        data = builder.inttoptr(word(1), array.data.type)
        # No reference is counted: the `Held` has the arrays.
        populate_array(  # type: ignore[no-untyped-call]
            array, data=data, shape=shape, strides=strides, itemsize=word(0), meminfo=None
        )
        return array._getvalue()
    if isinstance(kind, types.Record):
        return builder.inttoptr(word(0), context.get_value_type(kind))
    if isinstance(kind, types.Float):
        return builder.bitcast(word(0), context.get_value_type(kind))
    if isinstance(kind, types.Boolean):
        return builder.icmp_signed("!=", word(0), ir.IntType(64)(0))
    return word(0)
