r"""
A neuron slides
===============

A neuron with a positive output weight leaves a negative point behind. But it may be pushed back as soon as it is on the
other side: the positive point pulls it to where the negative one is felt, the negative one pushes it out again. Then it
does neither. It slides along the hyperplane, with a slope of the activation between 0 and 1 that balances the two (the
solution in the sense of Clarke). A solver in small steps chatters here for ever.
"""

import matplotlib.pyplot as plt
import numpy as np

import reluflow as rf
from reluflow.report.panels import COLOURS, samples

data = rf.example("ALG-EARLY").data
start = rf.Network.balanced([[-0.6, 1.0]], [1], log_scale=-20)
early = rf.align(rf.Problem(data, start))
print(early)
print("held on the hyperplane of point", *early.held(0), "with slope", *early.held(0).values())

times = np.linspace(0.0, 4.0, 400)
path = (np.exp(early.log_norms(times) - early.log_norms(0.0))[..., None] * early.directions(times))[:, 0]
caught = int(np.searchsorted(times, early.events(0)["time"][-1]))

# %%

figure, axes = plt.subplots(figsize=(5.6, 5), layout="constrained")
samples(axes, data.X, data.y, 110, 2.4, ("label +1", "label \N{MINUS SIGN}1"))
axes.axvline(0.0, color=COLOURS[1], ls="--", lw=1, label="hyperplane of the negative point")
axes.annotate("", path[0], (0, 0), arrowprops={"arrowstyle": "->", "color": "black", "lw": 1.4})
axes.plot(*path[: caught + 1].T, color=COLOURS[0], lw=2.4, label="free")
axes.plot(*path[caught:].T, color=COLOURS[2], lw=4, alpha=0.8, label="sliding")
axes.plot(*path[caught], "o", color="black", ms=7)
axes.set(xlim=(-1.2, 2.4), ylim=(-0.4, 3.2), aspect="equal", xlabel="$x_1$", ylabel="$x_2$", title="a neuron slides")
axes.legend(loc="upper right", fontsize=9)
plt.show()

# %%
# On the hyperplane both sides push towards it; the mixture of them that stays is the velocity.

assert early.fates == ("sliding",)
assert np.allclose(path[caught + 1 :, 0], 0.0)
(slope,) = early.held(0).values()
force = data.X[0] - slope * data.X[1]
assert abs(force[0]) < 1e-12  # the slope that keeps it there
