r"""
Adam against the flow
=====================

The theorems are about gradient flow, and gradient descent with small steps keeps to it. Adam does not. It divides
every entry of the gradient by its own size, so all entries of a tiny weight vector grow at the same speed: instead of
turning to the sum of its class, a neuron turns to the *signs* of that sum, which in the plane is a diagonal.
"""

import matplotlib.pyplot as plt
import numpy as np

import reluflow as rf
from reluflow.report.panels import arrows, samples

data = rf.Dataset([[1.0, 0.05], [0.95, 0.4], [-0.35, -0.95], [-0.05, -1.0]], [1, 1, -1, -1])
problem = rf.as_problem(data, width=40, scale=1e-5, seed=3)
flow = rf.flow(problem, {"loss": 0.4}, rtol=1e-6)
adam = rf.descend(problem, "adam", step=1e-3, steps=5000, until_loss=0.4, progress=False)

# %%
# The neurons when the loss has fallen from 0.69 to 0.4. Grey lines lead to the class sums.

figure, panels = plt.subplots(1, 2, figsize=(7.4, 3.9), layout="constrained")
sums = [data.X[data.y == sign].sum(axis=0) for sign in (1, -1)]
for axes, run, title in zip(panels, (flow, adam), ("the flow", "Adam"), strict=True):
    W = run.W[-1] / np.linalg.norm(run.W[-1], axis=1).max()
    arrows(axes, W, np.sign(run.a[-1]), unit=False)
    for goal in sums:
        axes.plot(*np.outer([0, 1.4], goal / np.linalg.norm(goal)).T, color="#777777", lw=3, alpha=0.5, zorder=0)
    samples(axes, data.X, data.y, 90, 2.2)
    axes.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), title=title, xlabel="$x_1$", ylabel="$x_2$")
plt.show()

# %%
# Cosines of the whole group of a sign, weighted by size, with the class sum and with its signs:


def cosines(run, sign):
    """Return the cosines of the sum of the neurons of a sign with the class sum and with the signs of that sum."""
    total = run.W[-1][run.signs[-1] == sign].sum(axis=0)
    goals = (sums[0], np.sign(sums[0])) if sign > 0 else (sums[1], np.sign(sums[1]))
    return [total @ goal / np.linalg.norm(total) / np.linalg.norm(goal) for goal in goals]


for sign in (1, -1):
    of_flow, of_adam = cosines(flow, sign), cosines(adam, sign)
    print(f"class {sign:+d}: flow {of_flow[0]:.4f} and {of_flow[1]:.4f}; Adam {of_adam[0]:.4f} and {of_adam[1]:.4f}")
    assert of_flow[0] > 0.995 > of_flow[1]
    assert of_adam[1] > 0.995 > of_adam[0]
