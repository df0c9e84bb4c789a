"""
What a verdict is worth: disjoint, or segments of a continuum
=============================================================

Six sets of points in the plane. Four lie on manifolds that do not touch, and two are
connected. :func:`~neuralbayes.cluster` is told neither which is which nor how many
manifolds there are.
"""

import matplotlib.pyplot as plt
import numpy as np

import neuralbayes as nb
from neuralbayes.data.toys import (
    make_circles,
    make_five,
    make_moons,
    make_overlapping,
    make_ring,
    make_spirals,
)

sets = {
    "two moons": make_moons,
    "two circles": make_circles,
    "three spirals": make_spirals,
    "five manifolds": make_five,
    "one ring": make_ring,
    "two overlapping clouds": make_overlapping,
}
points = {name: make(random_state=0)[0] for name, make in sets.items()}
results = {name: nb.cluster(X) for name, X in points.items()}
for name, result in results.items():
    print(f"{name}: {result.sentence}")

# %%
# The verdict *disjoint* is a certificate. The separation of a manifold is the
# Jensen-Shannon divergence between its points and all others, after a long random walk
# between neighbouring points has blurred both. If no walk can leave the manifold, nothing
# is blurred, and the divergence is log 2, its maximum. On a scale from 0 to 100, at least
# 90 is needed.

for name, result in results.items():
    if result.verdict == "disjoint":
        separation = 100 * result.clusters["separation"].min() / np.log(2)
        print(f"{name}: separation at least {separation:.1f}")

# %%
# Points by their cluster, and behind them :math:`p(z|x)` wherever there are points nearby:

figure, axes = plt.subplots(2, 3, figsize=(10, 6.2))
for ax, (name, result) in zip(axes.flat, results.items(), strict=True):
    nb.plot.StateMapDisplay.from_estimator(result.model, points[name], ax=ax)
    ax.set_title(f"{name}: {result.verdict}")
    ax.set(xlabel="", ylabel="", xticks=[], yticks=[])
    if ax.get_legend() is not None:
        ax.get_legend().remove()
plt.show()

# %%
# Each certified colour is one whole manifold, whatever its shape: nothing is assumed about
# it, and the boundaries run through the empty space. The other two are divided as well, but
# without a certificate: their pieces are segments of a continuum. The stability says how
# repeatable such a division is. That of the ring is high, although every cut is arbitrary.
