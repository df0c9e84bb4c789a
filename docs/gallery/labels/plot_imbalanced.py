"""
Clusters of very different sizes
================================

One moon has a tenth, a thirtieth or a hundredth of the points of the other. Methods that
minimise squared distances, or that prefer clusters of equal size, cut the large moon in
two. Whether two sets are disjoint does not depend on how many points each of them has.
"""

import textwrap
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

import neuralbayes as nb
from neuralbayes.data.toys import make_unequal

ratios = (10, 30, 100)
methods = {
    "k-means": KMeans(2, n_init=10, random_state=0),
    "Gaussian mixture": GaussianMixture(2, random_state=0),
    "ManifoldLabeler": nb.ManifoldLabeler(2, random_state=0),
}
figure, axes = plt.subplots(len(ratios), len(methods), figsize=(9, 5.8))
for row, ratio in zip(axes, ratios, strict=True):
    X, y = make_unequal(2000, ratio=ratio, random_state=0)
    for ax, (name, method) in zip(row, methods.items(), strict=True):
        labels = method.fit_predict(X)
        holds_large = np.bincount(labels[y == 0], minlength=2) > 0
        apart = np.mean(~holds_large[labels[y == 1]])
        nb.plot.StateMapDisplay(X, labels).plot(ax=ax)
        ax.get_legend().remove()
        ax.set_title(f"{name}, {np.sum(y == 1)} of {len(y)}: {apart:.0%} apart")
        ax.set(xlabel="", ylabel="", xticks=[], yticks=[])
plt.show()

# %%
# In the last column, the small moon has its own colour. In the others, it shares one with
# half of the large moon ("apart" is the share of its points in a cluster without any point
# of the large moon).
#
# There is a limit. The network is trained on ``max_samples`` rows, 2,000 by default. For
# ``n_clusters="auto"`` to find a manifold again in resamples, it should have a few dozen
# rows among them. With 20 rows, it is found once but not in resamples, and a warning says
# so. With three times as many rows, it is found, and p(z) says how small it is.

figure, axes = plt.subplots(1, 2, figsize=(7, 2.8))
for ax, n in zip(axes, (2000, 6000), strict=True):
    X, _ = make_unequal(n, ratio=100, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        labeler = nb.ManifoldLabeler("auto", max_samples=n, random_state=0).fit(X)
    for warning in caught:
        print(textwrap.fill(f"{n:,} rows: {warning.message}", 90))
    nb.plot.StateMapDisplay.from_estimator(labeler, X, ax=ax)
    ax.get_legend().remove()
    ax.set_title(f"{n:,} rows: p(z) = {labeler.prior_.round(3).tolist()}")
    ax.set(xlabel="", ylabel="", xticks=[], yticks=[])
plt.show()

# %%
# On the left, there is one colour; on the right, there are two. To find even smaller
# manifolds, use more rows or a larger ``max_samples``.
