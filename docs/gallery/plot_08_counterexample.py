r"""
A counterexample to a printed theorem
=====================================

Three points, all conditions of a theorem hold as they are printed (LL-TA.7 with LL-A.5), and it promises that the
flow ends at one neuron with margin 1/2. It does, if all neurons have a positive output weight. With a negative
neuron, however small, the flow first rests at 1/2, then leaves it and ends at 0.527. The proof uses a little more
than the assumption says (E-L3); the package asks for what the proof needs (LL-A.5*) and finds that it fails here.
"""

import matplotlib.pyplot as plt
import numpy as np

import reluflow as rf
from reluflow.report.panels import curve

data = rf.example("D8").data
W = np.array([[1.0, 0.2], [0.6, -0.4], [-1.0, 0.5], [-0.4, -0.8]])
runs = {}
sizes = np.array([-12.0, -12.0, -20.0, -20.0])  # logarithms: the negative neurons are 3000 times smaller
for name, signs in (("two tiny negative neurons", (1, 1, -1, -1)), ("all neurons positive", (1, 1, 1, 1))):
    net = rf.Network.balanced(W, signs, log_scale=sizes, slope=0.2)
    runs[name] = rf.flow(rf.Problem(data, net), {"log_time": 1e7})

# %%
# Margins of the network (normalised) against time, which is e to what the axis says.

figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
for kind, (name, run) in enumerate(runs.items()):
    late = run.log_time > 3
    curve(axes, run.log_time[late], run.normalized_margin()[late], kind, name)
axes.axhline(0.5, color="black", lw=0.8, ls=":")
axes.annotate("promised: 1/2", (1e6, 0.4995), va="top", ha="center")
axes.set(xscale="log", ylim=(0.48, 0.535), xlabel="log t", ylabel="normalised margin", title="three points that leave")
axes.legend(loc="lower right")
plt.show()

# %%

best = rf.global_max_margin(data, slope=0.2)
left, stayed = (run.normalized_margin()[-1] for run in runs.values())
problem = next(iter(runs.values())).problem
(finding,) = rf.check(problem, claim="LL-TA.7")
print(finding)
assert abs(stayed - 0.5) < 1e-4
assert abs(left - best.lower) < 1e-3
assert left > 0.52
assert finding.applies is False  # as corrected; as printed every condition holds
assert all(c.holds is not False for c in finding.conditions if "corrected" not in c.name)
