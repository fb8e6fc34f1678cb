r"""
Neurons swing to the class sums
===============================

While the weights are tiny the network says nearly zero everywhere, so every point pulls with the same strength. A
neuron feels the sum of the points that it is active on, and turns. On these five points every neuron ends at one of
three places: the sum of the positive points (output weight above zero), the sum of the negative ones (below), or
nowhere: it is active on no point any more and never moves again.

:func:`reluflow.align` follows each neuron exactly, from event to event.
"""

import matplotlib.pyplot as plt
import numpy as np

import reluflow as rf
from reluflow.report.panels import COLOURS

problem = rf.as_problem("ML-F6", width=30, seed=0)
early = rf.align(problem)
print(early)

times = np.linspace(0.0, 1.2 * early.last_event.max(), 400)
paths = early.directions(times)
angles = np.degrees(np.unwrap(np.arctan2(paths[..., 1], paths[..., 0]), axis=0))

# %%
# Angles of the neurons over time. Solid blue: positive output weight; dashed orange: negative; dotted grey: dies.

data = problem.data
sums = {sign: data.X[data.y == sign].sum(axis=0) for sign in (1, -1)}
figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
for j, fate in enumerate(early.fates):
    look = (
        {"color": "#777777", "ls": ":"}
        if fate == "dead"
        else ({"color": COLOURS[0], "ls": "-"} if early.signs[j] > 0 else {"color": COLOURS[1], "ls": "--"})
    )
    axes.plot(times, angles[:, j], lw=1.2, **look)
low, high = angles.min(), angles.max()
for sign, mark in ((1, "+"), (-1, "\N{MINUS SIGN}")):
    angle = np.degrees(np.arctan2(*sums[sign][::-1]))
    for turn in (-360, 0, 360):
        if low - 10 <= angle + turn <= high + 10:
            axes.axhline(angle + turn, color="black", lw=0.8)
            axes.annotate(f" sum of class {mark}", (1, angle + turn), xycoords=("axes fraction", "data"), va="center")
axes.set(xlabel="time", ylabel="angle of the neuron (degrees)", title="every neuron turns to a class sum, or dies")
plt.show()

# %%
# What the picture says, checked:

for j, fate in enumerate(early.fates):
    if fate == "aligned":
        goal = sums[int(early.signs[j])]
        assert early.direction[j] @ goal > (1 - 1e-12) * np.linalg.norm(goal)
assert set(early.fates) == {"aligned", "dead"}
