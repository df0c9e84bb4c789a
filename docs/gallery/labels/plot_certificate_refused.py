"""
When the certificate is refused
===============================

k-means divides any data into the requested number of clusters. So does
:class:`~neuralbayes.ManifoldLabeler`, but it warns if the clusters cut through connected
data, and sets ``disjoint_`` to False.
"""

import textwrap
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

import neuralbayes as nb
from neuralbayes.data.toys import (
    make_gaussian,
    make_moons,
    make_overlapping,
    make_ring,
    make_square,
)

sets = {
    "two moons": make_moons,
    "a ring": make_ring,
    "two Gaussians that overlap": make_overlapping,
    "a square": make_square,
    "a Gaussian": make_gaussian,
}
points = {name: make(1200, random_state=0)[0] for name, make in sets.items()}

# %%
# Asked for two manifolds, the labeler returns two for each set. With "auto", it decides how
# many there are.

asked, decided = {}, {}
for name, X in points.items():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        asked[name] = nb.ManifoldLabeler(n_clusters=2, random_state=0).fit(X)
    decided[name] = nb.ManifoldLabeler(n_clusters="auto", random_state=0).fit(X).n_clusters_
    print(f"{name}: {'warned' if caught else 'certified'}; auto finds {decided[name]}")

# %%
# The last warning in full; it says what to try:

print(textwrap.fill(str(caught[-1].message), 90))

# %%
# The cuts, and the certificate of each set:

figure = plt.figure(figsize=(9, 5))
rows = figure.subfigures(2, 1, height_ratios=(1, 1.2))
maps = rows[0].subplots(1, 4)
for ax, name in zip(maps, list(sets)[:4], strict=True):
    labeler = asked[name]
    nb.plot.StateMapDisplay.from_estimator(labeler, points[name], ax=ax)
    ax.get_legend().remove()
    ax.set_title(f"{name}:\n{'certified' if labeler.disjoint_.all() else 'refused'}")
    ax.set(xlabel="", ylabel="", xticks=[], yticks=[])

ax = rows[1].subplots()
least = [100 * labeler.separation_.min() / np.log(2) for labeler in asked.values()]
colors = ["#009E73" if value >= 90 else "#D55E00" for value in least]
ax.barh(list(asked), least, color=colors)
ax.axvline(90, color="#555555", linestyle=":")
ax.text(89, 4.3, "certified", ha="right", va="center", color="#555555")
for i, (value, k) in enumerate(zip(least, decided.values(), strict=True)):
    color = "white" if value > 50 else "#333333"
    ax.text(min(value, 50) + 1, i, f"{value:.0f}; auto finds {k}", va="center", color=color)
ax.set(xlim=(0, 102), xlabel="smaller separation of the two clusters, from 0 to 100")
ax.invert_yaxis()
plt.show()

# %%
# The separation of the moons is close to 100. That of the ring is about 25: a walk of two
# thousand steps does not quite forget on which half of a thin ring it started. The
# threshold of 90 leaves room for this. The overlapping Gaussians were drawn from two
# clusters, but the set is connected, so the certificate is refused. A mixture model can
# find the two clusters.
