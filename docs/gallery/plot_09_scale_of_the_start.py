r"""
From 1e-8 to 1: what the scale of the start does
================================================

One dataset (the three hints of an earlier example), one network, several draws of its weights, and only their scale
changes. Small starts all end at the same linear classifier, large ones at the largest margin there is. In between the
draw decides. :func:`reluflow.limit` finds the end of each flow and certifies it.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import reluflow as rf
from reluflow.report.panels import COLOURS, MARKS

quick = bool(os.environ.get("RELUFLOW_QUICK"))  # the tests draw a smaller picture
scales = np.logspace(-8, 0, 3 if quick else 9)
seeds = range(1, 2) if quick else range(4)
data = rf.example("D6-H12").data
margins = np.array(
    [
        [rf.limit(rf.as_problem(data, width=6, slope=0.5, scale=s, seed=k), rtol=1e-6).margin for s in scales]
        for k in seeds
    ]
)
best = rf.global_max_margin(data, slope=0.5)

# %%

figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
for k, row in enumerate(margins):
    shift = 10 ** (0.06 * (k - (len(margins) - 1) / 2))  # side by side, or they would hide each other
    axes.plot(scales * shift, row, MARKS[k], color=COLOURS[k], ms=8, mfc="none", mew=1.8, label=f"draw {seeds[k]}")
axes.axhline(best.lower, color="black", ls="--", lw=1, label="largest margin of any network")
axes.axhline(0.1, color="black", ls=":", lw=1, label="the linear classifier")
axes.set(xscale="log", xlabel="scale of the start", ylabel="normalised margin of the limit", ylim=(0.09, 0.155))
axes.legend(loc="center left", fontsize=9)
plt.show()

# %%

assert np.allclose(margins[:, 0], 0.1)
assert np.allclose(margins[:, -1], best.lower)
assert (np.isclose(margins, 0.1) | np.isclose(margins, best.lower)).all()
