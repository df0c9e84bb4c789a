"""
The paper's MIM on handwritten digits
=====================================

Neural Bayes-MIM trains every hidden layer to maximise the information that its softmax
carries about the image. This example computes the objective with the library and with
``paper/reference.py``, which follows the paper line by line, trains by both, and compares
their features.

As a notebook, it needs a clone of the repository on the Python path: start
``PYTHONPATH=. jupyter lab`` at the top of the clone.
"""

import copy

import matplotlib.pyplot as plt
import numpy as np
import torch
from paper import reference
from sklearn.linear_model import LogisticRegression

import neuralbayes as nb
from neuralbayes.networks.encoders import mlp
from neuralbayes.networks.hidden import HiddenStates

digits = nb.datasets.load("digits")  # comes with scikit-learn: no download
x, x_test = (
    torch.from_numpy(part.images.reshape(-1, 64) / 255.0).float()
    for part in (digits.train, digits.test)
)
mean, spread = x.mean(dim=0), x.std(dim=0) + 0.1
x, x_test = (x - mean) / spread, (x_test - mean) / spread

# %%
# Hidden layers as posteriors
# ---------------------------
# A fully connected network with three hidden layers, as for figure 1 of the paper. The
# softmax over the 100 units of a layer is p(z|x), and its mean over the images is p(z)
# (Lemma 1).

torch.manual_seed(0)
network = mlp((64, 100, 100, 100, 10), batch_norm=True)
with torch.no_grad():
    for _ in range(50):
        network(x)  # so that the running statistics are those of the images
start = HiddenStates(network, ["relu1", "relu2", "relu3"])


class Layers(torch.nn.Module):
    """The hidden states as the list h^0, h^1, h^2 of appendix B."""

    def __init__(self, states):
        super().__init__()
        self.states = states

    def forward(self, x):
        return list(self.states(x).values())


h = Layers(start)(x)
p_zx = nb.posterior(h[-1])
print("p(z|x):", tuple(p_zx.shape), " p(z):", tuple(nb.prior(p_zx).shape))
print("I(x; z) by the library:", nb.mutual_information(p_zx).item())
print("I(x; z) by Eq. 2:      ", reference.mutual_information(reference.S(h[-1])).item())

# %%
# The objective
# -------------
# Eq. 14 is the mean of Eq. 7 over the layers. The paper adds an epsilon of 1e-7 inside the
# logarithm, which the library does not need.

print("library:", nb.WeightedSum(nb.MIM(alpha=4.0))(h).item())
print("Eq. 14: ", reference.mim(h, alpha=4.0).item())

# %%
# Gradients of mini-batches
# -------------------------
# The paper accumulates the gradients of mini-batches, each with its own p(z). How far is
# that from the gradient of the whole batch? ``nb.backward`` gives the exact gradient for
# mini-batches of any size.


def gradient(size, marginal):
    """The gradient accumulated over mini-batches of `size` images."""
    states = copy.deepcopy(start).eval()  # batch normalisation would couple the images
    nb.backward(
        nb.MIM(alpha=4.0), states, x[:1400], microbatch_size=size, marginal=marginal
    )
    return torch.cat([p.grad.flatten() for p in states.parameters() if p.grad is not None])


sizes, whole = (10, 50, 100, 350, 700), gradient(1400, "exact")
error = {
    marginal: [
        ((gradient(n, marginal) - whole).norm() / whole.norm()).item() for n in sizes
    ]
    for marginal in ("minibatch", "exact")
}
figure, ax = plt.subplots(figsize=(6.5, 3.4))
for marginal, label in (
    ("minibatch", "p(z) of the mini-batch, as in the paper"),
    ("exact", "exact p(z)"),
):
    ax.plot(sizes, error[marginal], marker="o", label=label)
ax.set(xscale="log", yscale="log", xlabel="images per mini-batch")
ax.set(ylabel="relative error of the gradient")
ax.legend()
plt.show()

# %%
# Train by both
# -------------
# Each starts from the same weights and sees 60 epochs of batches of 200 images in two
# mini-batches, with R_c weighted by beta = 0.05.

by_paper = copy.deepcopy(start)
torch.manual_seed(1)
reference.train_mim(Layers(by_paper), x, epochs=60, MBS=100, BS=200, alpha=4.0, beta=0.05)

by_library = copy.deepcopy(start)
nb.fit(
    nb.MIM(alpha=4.0),
    by_library,
    x,
    max_epochs=60,
    batch_size=200,
    microbatch_size=100,
    marginal="minibatch",
    smoothness=nb.Smoothness(beta=0.05),
)

# %%
# Compare the features
# --------------------
# Information of each layer, at most log 100 = 4.61 nats, and the accuracy of a linear
# classifier on ten labels per digit.

rows = np.concatenate([np.flatnonzero(digits.train.labels == c)[:10] for c in range(10)])


def judged(states):
    """Information and accuracy of each layer."""
    with torch.no_grad():
        train, test = states.eval()(x), states.eval()(x_test)
    information = [nb.mutual_information(nb.posterior(h)).item() for h in train.values()]
    accuracies = []
    for a, b in zip(train.values(), test.values(), strict=True):
        classifier = LogisticRegression(max_iter=2000).fit(
            a[rows], digits.train.labels[rows]
        )
        accuracies.append(100 * classifier.score(b, digits.test.labels))
    return information, accuracies


found = {
    "untrained": judged(start),
    "paper/reference.py": judged(by_paper),
    "nb.fit": judged(by_library),
}
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2))
for offset, (name, values) in enumerate(found.items()):
    for ax, value in zip(axes, values, strict=True):
        ax.bar(np.arange(3) + 0.27 * (offset - 1), value, width=0.25, label=name)
axes[0].set(ylabel="I(x; z) in nats", title="information")
axes[1].set(ylabel="accuracy in %", title="ten labels per digit", ylim=(50, 100))
for ax in axes:
    ax.set_xticks(range(3), ["layer 1", "layer 2", "layer 3"])
axes[0].legend(fontsize=8)
plt.show()

# %%
# Both loops optimise the same objective. They differ in the order of the images and in the
# directions of R_c, so their features agree in quality, not in each unit. Every layer
# carries far more information than before training, and classifiers on layers 2 and 3 are
# more accurate. ``python -m paper fig-filters`` trains the filters of figure 1.
