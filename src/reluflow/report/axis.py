"""Axes: where a value stands, what range is shown, which values are named."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..problem.axis import BEND, DECADE, axis_place, log_value

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Tick(NamedTuple):
    """A value that is named on an axis; the exponent is raised."""

    place: float
    text: str
    exponent: str = ""


def spread(values: npt.ArrayLike, *more: float, pad: float = 0.06, least: float = 0.0) -> tuple[float, float]:
    """Range of the finite values with some room around it, and no narrower than ``least``."""
    found = np.concatenate([np.ravel(np.asarray(values, dtype=float)), np.asarray(more, dtype=float)])
    found = found[np.isfinite(found)]
    low, high = (float(found.min()), float(found.max())) if found.size else (0.0, 1.0)
    room = max(pad * (high - low) or max(abs(high), 1.0) * pad, (least - (high - low)) / 2)
    return low - room, high + room


def log_ticks(low: float, high: float, most: int) -> list[Tick]:
    """Ticks of the axis of `axis_place`: powers of ten up to the bend, powers of e beyond it, about ``most``."""
    room = (high - low) / most
    found = sorted(tick for tick in _powers(max(abs(low), abs(high)), room) if low <= tick.place <= high)
    if len(found) < 2:
        return _between(low, high)
    kept = found[:1]
    for tick in found[1:]:
        if tick.place - kept[-1].place >= room:
            kept.append(tick)
    return kept


def _powers(reach: float, room: float) -> list[Tick]:
    """Powers of ten, and e to the powers of ten, as far as ``reach`` and no closer than ``room``."""
    stride = next(k for k in (1, 2, 4) if k * np.log(10.0) >= room or k == 4)
    found = [Tick(k * np.log(10.0), "10" if k else "1", str(k) if k else "") for k in range(-4, 5) if k % stride == 0]
    for k in range(2, 300, max(1, int(np.ceil(room / DECADE)))):
        place, power = float(axis_place(10.0**k)), "100" if k == 2 else f"10{str(k).translate(_RAISED)}"
        found += [Tick(-place, "e", f"-{power}"), Tick(place, "e", power)]
        if place > reach:
            break
    return found


def _between(low: float, high: float) -> list[Tick]:
    """Round values in a range that holds no two powers: of the number, or of its logarithm."""
    bottom, top = log_value(low), log_value(high)
    if max(abs(bottom), abs(top)) <= BEND:
        values = linear_ticks(float(np.exp(bottom)), float(np.exp(top)), 4)
        return [Tick(float(np.log(v)), text) for v, text, _ in values]
    return [Tick(float(axis_place(v)), "e", text) for v, text, _ in linear_ticks(bottom, top, 4)]


def linear_ticks(low: float, high: float, most: int = 5) -> list[Tick]:
    """Round numbers between two values."""
    raw = (high - low) / most
    size = 10.0 ** np.floor(np.log10(raw))
    step = next(m * size for m in (1, 2, 2.5, 5, 10) if m * size >= raw)
    first = np.ceil(low / step)
    marks = [float((first + k) * step) for k in range(2 * most + 2) if (first + k) * step <= high]
    return [Tick(m, f"{0.0 if abs(m) < 1e-9 * step else m:.6g}") for m in marks]
