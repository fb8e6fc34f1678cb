r"""
Global against local margins
============================

Where the flow ends is a KKT point of the margin problem: nothing nearby is better. It need not be the best. On these
six symmetric points a network of three neurons is such a point and has margin 0.356, while 0.375 is the largest
margin of any network (Lyu, Li, Wang and Arora, Figure 1). Both are certified: the first by its multipliers, the
second by a bound that no network of any width can pass.
"""

import matplotlib.pyplot as plt
import numpy as np

import reluflow as rf
from reluflow.report.panels import arrows, regions, samples

example = rf.example("D4")
data, slope = example.data, 0.5
local = next(iter(example.networks.values()))
best = rf.global_max_margin(data, slope=slope)
certificate = rf.kkt(data, local)
print(certificate)
print(best)

# %%

figure, panels = plt.subplots(1, 2, figsize=(7.4, 3.9), layout="constrained")
reach = 1.15 * np.abs(data.X).max()
for axes, net, title in (
    (panels[0], local, f"a KKT point: margin {local.normalized_margin(data):.4f}"),
    (panels[1], best.network, f"the optimum: margin {best.lower:.4f}"),
):
    regions(axes, net.outputs, (-reach, reach))
    long = net.W / np.linalg.norm(net.W, axis=1).max() * 0.8 * reach
    arrows(axes, long, np.sign(net.a), unit=False)
    samples(axes, data.X, data.y, 100, 2.4)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), title=title)
plt.show()

# %%
# The flow from a small start avoids it and ends at the optimum (LL-T4.3):

end = rf.limit(rf.as_problem(data, width=20, slope=slope, log_scale=-12, seed=0))
assert certificate.is_kkt(1e-9)
assert best.exact
assert local.normalized_margin(data) < 0.96 * best.lower
assert abs(end.margin - best.lower) < 1e-9
