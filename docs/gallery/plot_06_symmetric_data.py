r"""
Symmetric data give the linear classifier
=========================================

If with every point its mirror image with the other label is there, a leaky network of any width that starts small ends
as a linear classifier: the support vector machine's. This is the theorem of Lyu, Li, Wang and Arora (LL-T4.3). From a
large start the boundary of the same network is still bent when the loss is already small.
"""

import matplotlib.pyplot as plt
import numpy as np

import reluflow as rf
from reluflow.report.panels import boundary, regions, samples

data = rf.example("D1").data
small = rf.limit(rf.as_problem(data, width=20, slope=0.5, log_scale=-12, seed=1))
run = rf.flow(rf.as_problem(data, width=20, slope=0.5, scheme="he", scale=3.0, seed=1), {"loss": 1e-3}, rtol=1e-6)
svm = rf.max_margin(data)

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.9), layout="constrained")
for axes, net, title in (
    (left, small.network, "small start: the limit"),
    (right, run.final, "large start: at loss 0.001"),
):
    regions(axes, net.outputs, (-1.2, 1.2))
    samples(axes, data.X, data.y, 90, 2.2)
    boundary(axes, svm.w, label="support vector machine")
    axes.set(title=title)
left.legend(loc="lower left", fontsize=9)
plt.show()

# %%

assert rf.linearity(small.network).linear
assert not rf.linearity(run.final).linear
normal = small.network.outputs(np.eye(2))
assert normal @ svm.w > (1 - 1e-9) * np.linalg.norm(normal) * np.linalg.norm(svm.w)
assert abs(small.margin - (1 + 0.5) / 4 * svm.margin) < 1e-9
