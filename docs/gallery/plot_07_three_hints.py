r"""
Three hints fool it
===================

Four points that a bent boundary separates best, and three more, far out and all of one class. From a small start the
far points, which pull hardest, decide where the first neuron goes; it takes everything, and the flow ends at one
neuron: a linear classifier with margin 0.1. A larger start finds the margin 0.143, the largest there is (LL-T6.2).
"""

import matplotlib.pyplot as plt

import reluflow as rf
from reluflow.report.panels import regions, samples

data = rf.example("D6-H12").data
small = rf.limit(rf.as_problem(data, width=8, slope=0.5, log_scale=-12, seed=1))
large = rf.limit(rf.as_problem(data, width=8, slope=0.5, scale=0.5, seed=1))
best = rf.global_max_margin(data, slope=0.5)
print(best)

# %%
# Seen from near; the three hints are outside the window, at the right.

figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.9), layout="constrained")
for axes, end, title in ((left, small, "small start"), (right, large, "large start")):
    regions(axes, end.network.outputs, (-1.6, 1.6))
    samples(axes, data.X, data.y, 100, 2.4)
    axes.set(title=f"{title}\n{end.network.p} neuron{'s' * (end.network.p > 1)}, margin {end.margin:.4f}")
plt.show()

# %%

assert best.exact
assert small.network.p == 1
assert rf.linearity(small.network).linear
assert abs(small.margin - 0.1) < 1e-9
assert abs(large.margin - best.lower) < 1e-9 > best.upper - best.lower
assert small.margin < 0.75 * large.margin
