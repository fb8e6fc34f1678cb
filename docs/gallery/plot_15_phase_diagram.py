r"""
A sweep as a phase diagram
==========================

When can a ReLU neuron die? Only if some direction has every point on its inactive side. For n points in random
directions of d-dimensional space Cover counted how often there is one: in half of the draws at n = 2 d, hardly ever
far above. Below that line a neuron still has to be pushed into the dead cone, which becomes thin as n grows. A
:class:`reluflow.Sweep` runs the early phase for every n, d and several draws, and keeps each row on disk; the map is
drawn from its table.
"""

import os
import tempfile

import matplotlib.pyplot as plt
import numpy as np

import reluflow as rf

quick = bool(os.environ.get("RELUFLOW_QUICK"))  # the tests draw a smaller picture
sweep = rf.Sweep(
    data={
        "source": "randlab",
        "n": [4, 16, 64] if quick else [2, 4, 6, 8, 12, 16, 24, 32, 48, 64],
        "d": [4, 16] if quick else [2, 4, 6, 8, 12, 16, 24],
        "seed": {"range": [0, 2 if quick else 6]},
    },
    network={"width": 20, "log_scale": -30},
    measures=["align"],
)
with tempfile.TemporaryDirectory() as folder:
    rows = sweep.run(os.path.join(folder, "sweep"), jobs=1).table()

n, d, dead = (np.asarray(rows[name]) for name in ("data.n", "data.d", "align.dead"))
places = sorted(set(n)), sorted(set(d))
share = np.array([[np.mean(dead[(n == i) & (d == j)] > 0) for i in places[0]] for j in places[1]])

# %%
# How often at least one of twenty neurons dies in the early phase; beyond the line
# n = 2 d few draws have a dead cone at all.

figure, axes = plt.subplots(figsize=(7, 4.4), layout="constrained")
drawn = axes.pcolormesh(share, cmap="cividis", vmin=0, vmax=1, edgecolors="white", lw=0.5)
for j, i in np.ndindex(share.shape):
    colour = "white" if share[j, i] < 0.5 else "black"
    box = {"facecolor": drawn.cmap(share[j, i]), "edgecolor": "none", "pad": 1.5}  # the line passes behind the number
    number = f"{100 * share[j, i]:.0f}"
    axes.text(i + 0.5, j + 0.5, number, ha="center", va="center", color=colour, fontsize=9, bbox=box)
at = np.interp(2 * np.array(places[1]), places[0], np.arange(len(places[0])) + 0.5)
axes.plot(at, np.arange(len(places[1])) + 0.5, color="#D55E00", lw=3, label="n = 2 d", zorder=2)  # below the numbers
axes.set_xticks(np.arange(len(places[0])) + 0.5, places[0])
axes.set_yticks(np.arange(len(places[1])) + 0.5, places[1])
axes.set(xlabel="points n", ylabel="dimension d", title="draws in which a neuron dies, percent")
figure.legend(loc="outside lower right")
figure.colorbar(drawn, label="share of draws")
plt.show()

# %%

assert len(dead) == len(n) == len(sweep)
assert (dead[n >= 4 * d] > 0).mean() < 0.05
assert (dead[n <= np.minimum(4, d)] > 0).mean() > 0.9
