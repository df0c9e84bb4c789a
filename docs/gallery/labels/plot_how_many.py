"""
How many clusters there are
===========================

``n_clusters="auto"`` takes the largest number of states that are all certified disjoint and
that are found again when the fit is repeated on parts of the data. What was tried on the
way is kept in ``selection_``.
"""

import matplotlib.pyplot as plt
import numpy as np

import neuralbayes as nb
from neuralbayes.data.toys import make_five

X, _ = make_five(1500, random_state=1)
labeler = nb.ManifoldLabeler(n_clusters="auto", random_state=0).fit(X)
states = np.array(labeler.selection_["n_clusters"])
shares = np.array(labeler.selection_["separation"]) / np.log(2)
for k, share, again in zip(states, shares, labeler.selection_["stability"], strict=True):
    found = "" if again is None else f"; in resamples, agreement {again:.0%}"
    print(f"{k} states: the weakest keeps {share:.1%} of log 2{found}")
print("taken:", labeler.n_clusters_)

# %%
# Smaller numbers pass too, because two manifolds can share a state. This is why the largest
# number counts. If the number is too large, some manifold has to be cut. After two such
# numbers, the search stops.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), width_ratios=(1, 1.25))
taken = states == labeler.n_clusters_
left.axhspan(0.9, 1.0, color="#eeeeee")
left.plot(states, shares, color="#999999", zorder=1)
left.scatter(
    states, shares, c=np.where(shares >= 0.9, "#009E73", "#D55E00"), s=60, zorder=2
)
left.scatter(states[taken], shares[taken], s=220, facecolors="none", edgecolors="#222222")
left.set(xlabel="states", ylabel="least separation / log 2", ylim=(0, 1.05), xticks=states)
left.set_title("certified in the grey band; ring: taken")
nb.plot.StateMapDisplay.from_estimator(labeler, X, ax=right)
right.set_title("what it found")
right.set(xlabel="", ylabel="", xticks=[], yticks=[])
plt.show()

# %%
# The weakest state keeps nearly all of log 2 as long as no manifold is cut, and drops
# sharply as soon as one is. You do not have to judge an elbow by eye.
