r"""
The same data with a leaky slope
================================

The five points of the example before, and the slope of the activation on its inactive side turned up from 0 (ReLU) to 1
(a linear network). With ReLU the two neurons ignore the other class; with a slope each of them answers for it too, the
boundary straightens, and at slope 1 it is the line of the support vector machine.
"""

import matplotlib.pyplot as plt
import numpy as np

import reluflow as rf
from reluflow.report.panels import arrows, boundary, regions, samples

slopes = (0.0, 0.3, 0.7, 1.0)
ends = {slope: rf.limit(rf.as_problem("ML-F6", width=20, seed=1, slope=slope)) for slope in slopes}
data = rf.example("ML-F6").data
svm = rf.max_margin(data)

# %%

figure, grid = plt.subplots(2, 2, figsize=(7.4, 7.4), layout="constrained")
panels = grid.ravel()
for axes, (slope, end) in zip(panels, ends.items(), strict=True):
    regions(axes, end.network.outputs, (-1.3, 1.3))
    arrows(axes, end.network.W, np.sign(end.network.a))
    samples(axes, data.X, data.y, 80, 2.0)
    axes.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), title=f"slope {slope:g}: margin {end.margin:.4f}")
boundary(panels[-1], svm.w, label="support vector machine")
panels[-1].legend(loc="lower left", fontsize=8)
plt.show()

# %%

assert all(end.kind == "margin" for end in ends.values())
margins = [end.margin for end in ends.values()]
assert margins == sorted(margins)  # a leaky network can do what this one does, and more
assert not rf.linearity(ends[0.0].network).linear
assert rf.linearity(ends[1.0].network).linear
normal = ends[1.0].network.outputs(np.eye(2))
assert normal @ svm.w > (1 - 1e-9) * np.linalg.norm(normal) * np.linalg.norm(svm.w)
