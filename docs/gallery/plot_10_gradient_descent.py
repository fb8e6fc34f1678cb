r"""
Gradient descent against the flow
=================================

Gradient descent with a small step follows the gradient flow. How closely? Run both to the same time and compare the
weights: the distance shrinks in proportion to the step, as for every method of first order, although the network is
not smooth. The flow itself is one call, whatever the step.
"""

import matplotlib.pyplot as plt
import numpy as np

import reluflow as rf
from reluflow.report.panels import COLOURS

problem = rf.as_problem("ML-F6", width=10, scale=0.1, seed=0)
time = 60.0
flow = rf.flow(problem, {"time": time})
steps = np.array([1.0, 0.3, 0.1, 0.03, 0.01, 0.003])
errors = []
for step in steps:
    run = rf.descend(problem, step=step, steps=round(time / step), progress=False)
    errors.append(np.abs(run.W[-1] - flow.W[-1]).max() / np.abs(flow.W[-1]).max())
errors = np.array(errors)

# %%

figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
axes.loglog(steps, errors, "o-", color=COLOURS[0], ms=7, label="gradient descent")
axes.loglog(steps, errors[-1] * steps / steps[-1], "--", color="black", lw=1, label="proportional to the step")
axes.set(xlabel="step", ylabel=f"relative distance to the flow at t = {time:g}", title="a method of first order")
axes.legend()
plt.show()

# %%

order = np.polyfit(np.log(steps), np.log(errors), 1)[0]
print(f"measured order: {order:.2f}")
assert 0.7 < order < 1.5
assert errors[-1] < 1e-4
