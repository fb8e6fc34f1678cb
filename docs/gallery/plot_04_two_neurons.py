r"""
Orthogonally separable data end in two neurons
==============================================

Points of one class are less than 90 degrees apart, points of two classes at least 90: then, from a small start, the
network of forty ReLU neurons ends as two (in direction). One is the widest separator of the positive class, the other
that of the negative class, and no network has a larger margin. This is the theorem of Phuong and Lampert (PL-T1).
"""

import matplotlib.pyplot as plt
import numpy as np

import reluflow as rf
from reluflow.report.panels import arrows, regions, samples

problem = rf.as_problem("ML-F6", width=40, seed=1)
end = rf.limit(problem)
print(end)

# %%
# Left the directions of the neurons at the start, right those of the network at time infinity with its decision: a tint
# for each answer, white where the network is exactly zero.

data = problem.data
figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.9), layout="constrained")
regions(right, end.network.outputs, (-1.3, 1.3))
for axes, net, title in ((left, problem.net, "the start: 40 neurons"), (right, end.network, "the limit: 2 neurons")):
    samples(axes, data.X, data.y, 100, 2.2)
    arrows(axes, net.W, np.sign(net.a))
    axes.set(title=title, xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), xlabel="$x_1$", ylabel="$x_2$")
plt.show()

# %%
# The limit in closed form: the two class margins say all of it.

plus, minus = (rf.class_margins(data)[k].w for k in (0, 1))
promised = 1 / (2 * (np.linalg.norm(plus) + np.linalg.norm(minus)))
assert end.kind == "margin"
assert end.network.p == 2
assert abs(end.margin - promised) < 1e-9
for w, sign in zip(end.network.W, np.sign(end.network.a), strict=True):
    goal = plus if sign > 0 else minus
    assert w @ goal > (1 - 1e-9) * np.linalg.norm(w) * np.linalg.norm(goal)
