r"""
Margins of pairs of digits
==========================

How far apart are two handwritten digits for a linear classifier? For every pair the widest separator is computed to
rounding and its certificate verified (:func:`reluflow.max_margin`); the margin is shown relative to the length of the
longest image. A zero is easily told from the others; an eight is not.

The images are those of MNIST where they have been fetched (``reluflow data fetch mnist``), else the 8 x 8 digits that
come with scikit-learn; sixty images a pair are enough for the picture.
"""

import os
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np

import reluflow as rf

quick = bool(os.environ.get("RELUFLOW_QUICK"))  # the tests draw a smaller picture
try:
    rf.data.mnist((0, 1), samples=60)
    images, source = rf.data.mnist, "MNIST"
except rf.DataError:
    images, source = rf.data.digits, "scikit-learn's digits"
print("images of", source)

digits = range(3 if quick else 10)
margins = np.full((len(digits), len(digits)), np.nan)
for pair in combinations(digits, 2):
    data = images(pair, samples=60, center=True)
    found = rf.max_margin(data)
    assert found.verified
    margins[pair] = margins[pair[::-1]] = found.margin / data.norms.max()

# %%

figure, axes = plt.subplots(figsize=(6.6, 5.4), layout="constrained")
drawn = axes.imshow(margins, cmap="cividis")
for i, j in zip(*np.nonzero(np.isfinite(margins)), strict=True):
    dark = np.dot(drawn.cmap(drawn.norm(margins[i, j]))[:3], (0.21, 0.72, 0.07)) < 0.46  # by how light the cell is
    axes.text(
        j, i, f"{100 * margins[i, j]:.0f}", ha="center", va="center", color="white" if dark else "black", fontsize=9
    )
axes.set(xticks=digits, yticks=digits, xlabel="digit", ylabel="digit", title=f"margins in percent, {source}")
figure.colorbar(drawn, label="margin / longest image", shrink=0.85)
plt.show()

# %%

found = margins[np.isfinite(margins)]
widest = np.unravel_index(np.nanargmax(margins), margins.shape)
print("easiest pair:", *widest, " hardest:", *np.unravel_index(np.nanargmin(margins), margins.shape))
assert found.min() > 0
assert found.max() > 1.5 * found.min()
if not quick:
    typical = np.nanmean(margins, axis=0)
    assert typical[0] > 1.2 * typical[8]  # a zero is easily told from the others, an eight is not
