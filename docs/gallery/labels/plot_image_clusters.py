"""
Clusters of images
==================

Kinds of images touch each other: some ones look like sevens. There are no disjoint
manifolds to be certified, but there are clusters, and
:class:`~neuralbayes.InformationClusterer` finds them.
"""

import matplotlib.pyplot as plt

import neuralbayes as nb

digits = nb.datasets.load("digits").train  # 1,437 of them, 8x8 pixels
clusterer = nb.InformationClusterer(n_clusters=10, random_state=0).fit(digits.images)
accuracy = nb.baselines.clustering_accuracy(clusterer.labels_, digits.labels)
print(f"{accuracy:.1%} are in the cluster of their digit")

# %%
# The digits that are most typical of each cluster, by p(x|z) / p(x), which stands on the
# right for the first and the last of them:

figure, ax = plt.subplots(figsize=(8, 5.6), layout="constrained")
nb.plot.MembersDisplay.from_estimator(
    clusterer, digits.images[..., 0], states=range(10), n_members=14, ax=ax
)
plt.show()

# %%
# Behind the ten clusters are forty small states, four for each, of which those that are
# often neighbours were merged before the clusters were trained on. With ten from the
# start it is likelier that one of them holds two digits while another digit has two:

few = nb.InformationClusterer(n_clusters=10, n_states=10, random_state=0).fit(digits.images)
for name, fitted in {"40 states, merged to 10": clusterer, "10 states": few}.items():
    accuracy = nb.baselines.clustering_accuracy(fitted.labels_, digits.labels)
    print(f"{name}: {accuracy:.1%}")

# %%
# Which digits went where, now that the classes are looked at:

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
names = [str(digit) for digit in range(10)]
for ax, (name, fitted) in zip(
    axes, {"40 states, merged": clusterer, "10 states": few}.items(), strict=True
):
    nb.plot.CrosstabDisplay.from_labels(
        fitted.labels_, digits.labels, class_names=names, ax=ax
    )
    ax.set_title(name)
plt.show()

# %%
# A row with two dark cells is a digit in two clusters, a column with two a cluster of two
# digits. Here there are few images of few pixels; on MNIST, with more of both, each digit
# gets a cluster of its own.
