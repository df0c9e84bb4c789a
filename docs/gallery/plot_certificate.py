"""
Disjoint manifolds and their certificate
========================================

Four sets of points, each on manifolds that do not touch.
:class:`~neuralbayes.ManifoldLabeler` does not know how many there are. It labels every
point, returns :math:`p(z|x)` for new points, and measures the separation of each manifold
from the rest.
"""

import matplotlib.pyplot as plt
import numpy as np

import neuralbayes as nb
from neuralbayes.data.toys import make_circles, make_five, make_moons, make_spirals

sets = {
    "two moons": make_moons(random_state=0),
    "two circles": make_circles(random_state=0),
    "three spirals": make_spirals(random_state=0),
    "five manifolds": make_five(random_state=0),
}
labelers = {
    name: nb.ManifoldLabeler(n_clusters="auto", random_state=0).fit(X)
    for name, (X, _) in sets.items()
}

# %%
# The separation of a manifold is the Jensen-Shannon divergence between its points and all
# others, after a long random walk between neighbouring points has blurred both. If no walk
# can leave the manifold, nothing is blurred, and the divergence is log 2, its maximum. On a
# scale from 0 to 100, a manifold is certified if its separation is at least 90.

for name, labeler in labelers.items():
    shares = ", ".join(f"{100 * share:.1f}" for share in labeler.separation_ / np.log(2))
    verdict = "all disjoint" if labeler.disjoint_.all() else "not all disjoint"
    print(f"{name}: {labeler.n_clusters_} clusters, separation {shares} of 100, {verdict}")

# %%
# Compare with the true labels, which the labeler has not seen:

for name, (_, y) in sets.items():
    right = nb.clustering_accuracy(labelers[name].labels_, y)
    print(f"{name}: {right:.2%} of the points")

# %%
# Points by their label, and behind them :math:`p(z|x)` wherever there are points nearby:

figure, axes = plt.subplots(2, 2, figsize=(8.5, 6.2))
for ax, (name, (X, _)) in zip(axes.flat, sets.items(), strict=True):
    nb.plot.StateMapDisplay.from_estimator(labelers[name], X, ax=ax)
    least = labelers[name].separation_.min() / np.log(2)
    ax.set_title(f"{name}: certified, separation at least {100 * least:.1f}")
    ax.set(xlabel="", ylabel="", xticks=[], yticks=[])
    ax.get_legend().remove()
plt.show()

# %%
# Each colour is one whole manifold. The boundaries run through the empty space between
# them. A manifold may be round, bent or wound around another, because nothing is assumed
# about its shape.
#
# Next: :ref:`what happens where there is nothing to divide
# <sphx_glr_examples_labels_plot_certificate_refused.py>`.
