"""
Groups of very different size
=============================

One moon has a tenth, a thirtieth, a hundredth of the points of the other. Methods that
weigh points by squared distance, or that want evenly filled clusters, cut the large group
in two. Whether two sets are disjoint does not depend on how many points each of them has.
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
# In the last column the small moon has a colour of its own; in the others it shares one
# with half of the large moon ("apart" is the share of its points in a state that no point
# of the large moon is in).
#
# There is a limit. A network is trained on ``max_samples`` rows, 2,000 by default; to be
# found and found again by ``n_clusters="auto"`` a group should have some dozens of rows
# among them. With 20 it is seen, but not in resamples, and a warning says so; with three
# times as many rows, all of them looked at, it is found, and p(z) says how small it is.

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
# Left one colour, right two. Of groups that are smaller still a fit cannot tell anything:
# more rows, or a larger ``max_samples``, can.
