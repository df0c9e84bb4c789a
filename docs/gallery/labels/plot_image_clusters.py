"""
Clusters of images
==================

Clusters of images touch: some ones look like sevens. There are no disjoint manifolds to
certify, but there are clusters, and
:class:`~neuralbayes.InformationClusterer` finds them.
"""

import matplotlib.pyplot as plt

import neuralbayes as nb

digits = nb.datasets.load("digits").train  # 1,437 of them, 8x8 pixels
clusterer = nb.InformationClusterer(n_clusters=10, random_state=0).fit(digits.images)
accuracy = nb.clustering_accuracy(clusterer.labels_, digits.labels)
print(f"{accuracy:.1%} are in the cluster of their digit")

# %%
# The most typical digits of each cluster. The numbers on the right are p(x|z) / p(x) of the
# first and the last:

figure, ax = plt.subplots(figsize=(8, 5.6), layout="constrained")
nb.plot.MembersDisplay.from_estimator(
    clusterer, digits.images[..., 0], states=range(10), n_members=14, ax=ax
)
plt.show()

# %%
# The ten clusters were merged from 40 states, four for each cluster. With only ten
# states from the start, it is more likely that one of them holds two digits while another
# digit is split:

few = nb.InformationClusterer(n_clusters=10, n_states=10, random_state=0).fit(digits.images)
for name, fitted in {"40 states, merged to 10": clusterer, "10 states": few}.items():
    accuracy = nb.clustering_accuracy(fitted.labels_, digits.labels)
    print(f"{name}: {accuracy:.1%}")

# %%
# Now use the classes to see which digits are in which cluster:

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
# A row with two dark cells is a digit that is split between two clusters. A column with two
# dark cells is a cluster that holds two digits. These images are few and small. On MNIST,
# with more and larger images, each digit gets its own cluster.
