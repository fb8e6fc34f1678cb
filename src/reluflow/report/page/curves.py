"""The charts of a page: what the run did over time, and the spectrum and angles of its ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import charts, svg
from ..axis import Tick, linear_ticks
from ..words import phase_words

if TYPE_CHECKING:
    from ...dynamics import Trajectory
    from ...problem import Network
    from ..explanation import Explanation


_MOST_PAIRS = 200  # neurons whose pairwise angles are counted


def over_time(found: Explanation) -> list[str]:
    """Draw everything that has time on its horizontal axis."""
    run = found.trajectory
    if run is None or len(run) < 2:
        return []
    return [svg.paint(one) for one in charts.over_time(run, found.predictions, found.limit) if one.curves]


def phases_key(run: Trajectory) -> str:
    """Explain the shading."""
    names = dict.fromkeys(phase.name for phase in run.phases)
    items = "".join(f'<span><i style="background:{charts.tint(n)}"></i>{n}: {phase_words(n)}</span>' for n in names)
    return f'<p class="key">{items}<span>ticks at the top edge: a neuron changes sides</span></p>'


# -- the two ends ----------------------------------------------------------------------------------------


def ends(found: Explanation) -> list[str]:
    """Compare start and end: the singular values of the first layer, and the angles between neurons."""
    run = found.trajectory
    if run is None:
        return []
    pair = [run.network(0), run.final]
    if not all(net.W.any() for net in pair):
        return []
    return [_spectrum(pair), *([_cosines(pair)] if run.p > 1 else [])]


def _spectrum(pair: list[Network]) -> str:
    values = [np.linalg.svd(net.scaled_weights("first")[0], compute_uv=False)[:20] for net in pair]
    values = [v / v[0] for v in values]
    count = values[0].size
    frame = svg.Frame((0.5, count + 0.5), (0.0, 1.08))
    where = np.arange(1, count + 1)
    body = []
    for shift, style, v in ((-0.36, "before", values[0]), (0.02, "after", values[1])):
        for k, height in zip(where, v, strict=True):
            body.append(svg.bars(frame, np.array([k + shift, k + shift + 0.34]), np.array([height]), style))
            if count <= 6:
                x, y = float(frame.across(k + shift + 0.17)), float(frame.down(height))
                body.append(svg.label(x, y - 4, f"{height:.3g}"))
    ticks = [Tick(float(k), str(k)) for k in where]
    return svg.framed(
        frame, "Singular values of W", body, ticks, linear_ticks(0, 1), "index k", "σₖ / σ₁", "bars", key=_boxes()
    )


def _cosines(pair: list[Network]) -> str:
    edges = np.linspace(-1.0, 1.0, 41)
    shares = []
    for net in pair:
        rows = net.directions[np.isfinite(net.log_norms)][:_MOST_PAIRS]
        cosines = (rows @ rows.T)[np.triu_indices(len(rows), 1)]
        counts = np.histogram(np.clip(cosines, -1, 1), edges)[0]
        shares.append(100 * counts / max(counts.sum(), 1))
    top = float(max(s.max() for s in shares)) or 1.0
    frame = svg.Frame((-1.0, 1.0), (0.0, 1.06 * top))
    body = [svg.bars(frame, edges, shares[0], "before"), svg.bars(frame, edges, shares[1], "after see-through")]
    return svg.framed(
        frame,
        "Cosines between pairs of neurons",
        body,
        linear_ticks(-1, 1, 4),
        linear_ticks(0, top),
        "cos(wⱼ, wₖ)",
        "% of pairs",
        css="bars",
        key=_boxes(),
    )


def _boxes() -> str:
    return (
        '<p class="key"><span><i class="before"></i>at the start</span><span><i class="after"></i>at the end</span></p>'
    )
