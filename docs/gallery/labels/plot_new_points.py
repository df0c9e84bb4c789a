"""
Label new points, with probabilities
====================================

The labeler is a small network: it labels points that it was not fitted on, with
:math:`p(z|x)`, and a saved model does so in another program. Spectral clustering cannot;
HDBSCAN does it by approximation.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np

import neuralbayes as nb
from neuralbayes.data.toys import make_spirals

X, _ = make_spirals(900, random_state=0)
labeler = nb.ManifoldLabeler(n_clusters=3, random_state=0).fit(X)

folder = tempfile.mkdtemp() + "/spirals"
labeler.save(folder)  # model.json and a safetensors file; nothing is pickled
model = nb.load(folder)

# %%
# Ten thousand new points from the same spirals:

new, y = make_spirals(10_000, random_state=1)
print(f"{nb.clustering_accuracy(model.predict(new), y):.2%} on the right arm")

# %%
# Now try four single points: the centre, one next to an arm, and two far away. A posterior
# always sums to 1: it compares the manifolds with each other and does not know whether a
# point looks like the data at all. The distance to the nearest training point does.

four = np.array([[0.0, 0.0], [0.4, -0.45], [1.6, 0.6], [-1.5, -1.2]])
for point, p in zip(four, model.predict_proba(four), strict=True):
    nearest = np.linalg.norm(X - point, axis=1).min()
    print(f"{point}: manifold {p.argmax()} with {p.max():.1%}, nearest row {nearest:.2f}")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2))
nb.plot.StateMapDisplay.from_estimator(model, new, ax=left)
left.get_legend().remove()
left.set_title("10,000 new points")

side = np.linspace(-1.8, 1.8, 200)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
certainty = model.predict_proba(grid).max(axis=1).reshape(200, 200)
extent = (-1.8, 1.8, -1.8, 1.8)
image = right.imshow(
    certainty, extent=extent, origin="lower", cmap="Blues", vmin=1 / 3, vmax=1
)
right.scatter(*X.T, s=3, color="#222222")
right.scatter(*four.T, marker="x", s=60, color="#D55E00")
right.set_title("the largest p(z|x) over the plane")
figure.colorbar(image, ax=right, shrink=0.8)
for ax in (left, right):
    ax.set(xlabel="", ylabel="", xticks=[], yticks=[])
plt.show()

# %%
# On the left, the new points continue the arms. On the right, the model is certain on the
# arms and uncertain on the boundaries between them. Far from the data, it is certain
# without a reason; two of the crosses are there.
