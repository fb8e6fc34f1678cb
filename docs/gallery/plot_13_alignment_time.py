r"""
How long alignment takes
========================

The closer a pair of signed points comes to a right angle, the longer neurons take to turn. The theorem of Min,
Mallada and Vidal bounds the time through mu, the smallest cosine between signed points (ML-T1a);
:func:`reluflow.align` gives the true time, to rounding. Here two points of one class open up to 90 degrees. The
printed bound grows like a power of 1/mu, the sharpened one (ML-T1a') and the truth only a little.
"""

import matplotlib.pyplot as plt
import numpy as np

import reluflow as rf
from reluflow.report.panels import curve

deltas = np.logspace(-3, -0.3, 12)
rows = []
for delta in deltas:
    data = rf.make("pair", delta=delta)
    net = rf.initialize(2, width=60, log_scale=-3000, seed=0, signs=np.ones(60))
    early = rf.align(rf.Problem(data, net, "exponential", "sum"))
    bounds = rf.alignment_constants(data, net)
    rows.append((bounds.mu, early.last_event.max(), bounds.t_1_sharp, bounds.t_1))
mu, true, sharp, printed = np.array(rows).T

# %%

figure, axes = plt.subplots(figsize=(6.6, 4.4), layout="constrained")
names = ("slowest of 60 neurons, exact", "bound, sharpened", "bound, as printed")
for kind, (time, name) in enumerate(zip((true, sharp, printed), names, strict=True)):
    curve(axes, mu, time, kind, name, marks=True)
axes.set(xscale="log", yscale="log", xlabel=r"$\mu$, smallest cosine between signed points", ylabel="time")
axes.legend()
plt.show()

# %%

assert (true <= sharp).all()
assert (sharp <= printed).all()
assert true[0] > true[-1]
powers = [-np.polyfit(np.log(mu[:6]), np.log(time[:6]), 1)[0] for time in (true, sharp, printed)]
print("powers of 1/mu: " + ", ".join(f"{name}: {power:.2f}" for name, power in zip(names, powers, strict=True)))
assert powers[2] > 2
assert powers[0] < 0.5
