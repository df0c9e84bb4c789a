"""
From a table to explained clusters
==================================

This notebook clusters a real table, explains the clusters, checks them, and labels new
rows. The table describes 178 wines by thirteen chemical measurements and comes with
scikit-learn. To use your own data, replace ``wine`` by your data frame.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import neuralbayes as nb

data = load_wine(as_frame=True)
wine = data.data
wine.head()

# %%
# Cluster the rows
# ----------------
# ``"auto"`` chooses the number of clusters. ``standardize=True`` puts all columns on the
# same scale.

clusterer = nb.InformationClusterer("auto", random_state=0)
labels = clusterer.fit_predict(wine)
print(clusterer.n_clusters_, "clusters of sizes", np.bincount(labels))

# %%
# Explain them
# ------------
# ``describe`` returns one row per cluster: a proposed name, what sets the cluster apart,
# a rule that finds its rows, and its most typical rows.

described = clusterer.describe(wine)
described[["name", "size", "rule", "precision", "recall"]]

# %%
for label, row in described.iterrows():
    print(f"Cluster {label}, {row['name']}:")
    print("   ", row["differences"].replace("); ", ")\n    "))

# %%
# Check them
# ----------
# Separation runs from 0 to 100. Below 40, treat the boundary of a cluster with suspicion.

print((100 * clusterer.separation_ / np.log(2)).round())

# %%
# The data set also has the grape variety of each wine. The clusters were found without
# it, so it is a fair check. Your own data has no such column.

accuracy = nb.clustering_accuracy(labels, data.target)
print(f"{accuracy:.1%} of the wines are in the cluster of their variety")

# %%
# Label new rows
# --------------
# ``reject=0.05`` labels a row -1 if it looks like nothing in the training data. At most
# 5 % of ordinary rows are rejected. Here the second row has all values ten times too
# large.

new = wine.head(2).copy()
new.iloc[1] *= 10
print(clusterer.predict(new, reject=0.05))

# %%
# Draw them
# ---------
# The map shows the rows by their first two principal components, next to the varieties.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2))
nb.plot.StateMapDisplay.from_estimator(clusterer, wine, ax=left)
left.set_title("clusters")
scaled = (wine - wine.mean()) / wine.std()
_, _, axes = np.linalg.svd(scaled.to_numpy(), full_matrices=False)
for variety, name in enumerate(data.target_names):
    points = scaled[data.target == variety].to_numpy() @ axes[:2].T
    right.scatter(*points.T, s=12, label=name)
right.set(title="varieties", xlabel="", ylabel="", xticks=[], yticks=[])
right.legend()
plt.show()

# %%
# The three clusters match the three varieties, up to a handful of wines on the
# boundaries. The guides "Work with tables" and "Explain clusters" go into more detail.
