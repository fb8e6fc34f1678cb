r"""
A neuron dies
=============

A ReLU neuron with a positive output weight is pulled by the positive points it is active on and pushed away by the
negative ones. One that starts among the negative points is only pushed: it loses them one after the other, and when the
last is gone nothing pulls at it. It keeps its small weights for ever.

With a leaky slope there is no such cone: a point on the inactive side still pulls, a little.
"""

import matplotlib.pyplot as plt
import numpy as np

import reluflow as rf
from reluflow.report.panels import COLOURS, samples

data = rf.Dataset([[1.0, 0.3], [0.6, 0.8], [-1.0, 0.3], [-0.6, 0.8]], [1, 1, -1, -1])
start = rf.Network.balanced([[-1.0, -0.25]], [1], log_scale=-20)
early = rf.align(rf.Problem(data, start))
times = np.linspace(0.0, 1.5 * early.last_event.max(), 300)
size = np.exp(early.log_norms(times) - early.log_norms(0.0))  # in units of the start
path = (size[..., None] * early.directions(times))[:, 0]
for event in early.events(0):
    print(f"t = {event['time']:.3f}: {event['kind']} point {event['sample']}")

# %%
# The arrow is the start, the line the way of the weight vector w. Each dashed line is the hyperplane of a negative
# point: on the other side the neuron no longer sees it.

figure, axes = plt.subplots(figsize=(5.6, 5), layout="constrained")
samples(axes, data.X, data.y, 110, 2.4, ("label +1", "label \N{MINUS SIGN}1"))
for x in data.X[data.y < 0]:
    along = np.array([-x[1], x[0]]) / np.linalg.norm(x)
    axes.plot(*np.outer([-2, 2], along).T, color=COLOURS[1], ls="--", lw=0.9)
axes.annotate("", path[0], (0, 0), arrowprops={"arrowstyle": "->", "color": "black", "lw": 1.4})
axes.plot(*path.T, color=COLOURS[0], lw=2.2, label="w over time")
axes.plot(*path[-1], "X", color="black", ms=11, label="rests here: no active point")
axes.set(xlim=(-1.6, 1.4), ylim=(-1.4, 1.4), aspect="equal", xlabel="$x_1$", ylabel="$x_2$", title="a neuron dies")
axes.legend(loc="lower right", fontsize=9)
plt.show()

# %%

leaky = rf.align(rf.Problem(data, rf.Network.balanced([[-1.0, -0.25]], [1], log_scale=-20, slope=0.1)))
print("ReLU:", early.fates[0], " leaky:", leaky.fates[0])
assert early.fates == ("dead",)
assert (data.X @ path[-1] <= 1e-9).all()
assert np.allclose(path[-1], path[-2])
assert leaky.fates == ("aligned",)
