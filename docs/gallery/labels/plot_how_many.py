"""
How many clusters there are
===========================

``n_clusters="auto"`` selects the largest number of clusters that are all certified as
disjoint and that are found again when the fit is repeated on parts of the data. The
attribute ``selection_`` lists all numbers that were tried.
"""

import matplotlib.pyplot as plt
import numpy as np

import neuralbayes as nb
from neuralbayes.data.toys import make_five

X, _ = make_five(1500, random_state=1)
labeler = nb.ManifoldLabeler(n_clusters="auto", random_state=0).fit(X)
numbers = np.array(labeler.selection_["n_clusters"])
separation = 100 * np.array(labeler.selection_["separation"]) / np.log(2)
for k, value, again in zip(
    numbers, separation, labeler.selection_["stability"], strict=True
):
    found = "" if again is None else f"; in resamples, agreement {again:.0%}"
    print(f"{k} clusters: smallest separation {value:.1f} of 100{found}")
print("selected:", labeler.n_clusters_)

# %%
# Smaller numbers pass too, because two manifolds can share a cluster. This is why the
# largest number counts. If the number is too large, some manifold has to be cut. After two
# such numbers, the search stops.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), width_ratios=(1, 1.25))
selected = numbers == labeler.n_clusters_
left.axhspan(90, 100, color="#eeeeee")
left.plot(numbers, separation, color="#999999", zorder=1)
left.scatter(
    numbers, separation, c=np.where(separation >= 90, "#009E73", "#D55E00"), s=60, zorder=2
)
left.scatter(
    numbers[selected], separation[selected], s=220, facecolors="none", edgecolors="#222222"
)
left.set(xlabel="clusters", ylabel="smallest separation", ylim=(0, 105), xticks=numbers)
left.set_title("certified in the grey band; ring: selected")
nb.plot.StateMapDisplay.from_estimator(labeler, X, ax=right)
right.set_title("the clusters")
right.set(xlabel="", ylabel="", xticks=[], yticks=[])
plt.show()

# %%
# The smallest separation is close to 100 as long as no manifold is cut, and drops sharply
# as soon as one is. You do not have to judge an elbow by eye.
