"""
A new objective in ten lines
============================

Mutual information prefers states of equal size: of all sharp divisions, it selects the one
with the largest H(z), even if this cuts a large cluster in two. Is there an objective that
does not depend on sizes? The chi-squared information,

.. math:: \\chi^2(x; z) = E_x \\sum_k \\frac{p(z{=}k|x)^2}{p(z{=}k)} - 1,

is K - 1 for *every* sharp division into K states, small or large. The library does not have
this objective, but you can write it yourself.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

import neuralbayes as nb
from neuralbayes.networks.encoders import mlp


class ChiSquaredInformation(nb.Objective):
    """Minus the chi-squared information: objectives are minimised."""

    def sample_term(self, p_zx, p_z):  # (n, K, ...), (K, ...) -> (n, ...)
        return 1.0 - (p_zx * p_zx / p_z).sum(dim=1)


# %%
# This is the whole objective. Called on logits it is a loss, and with
# :func:`~neuralbayes.backward` it has exact gradients over micro-batches and processes. Try
# it on two clusters; one has ten times as many points as the other:

rng = np.random.default_rng(0)
noise = np.clip(rng.standard_normal((660, 2)), -2.5, 2.5)
points = np.concatenate([0.4 * noise[:600], 0.2 * noise[600:] + [1.8, 0.7]])
x = torch.from_numpy(points - points.mean(axis=0)).float() / points.std()


def trained(objective, steps=150):
    """A network with two states, trained on all points with a little smoothness."""
    torch.manual_seed(0)
    network = mlp((2, 100, 100, 2), batch_norm=True)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    smoothness = nb.Smoothness(beta=0.1, of="logits")
    for _ in range(steps):
        optimizer.zero_grad()
        nb.backward(objective, network, x, smoothness=smoothness)
        optimizer.step()
    return network.eval()


networks = {
    "mutual information": trained(nb.MIM(alpha=0.0, version=1)),
    "chi-squared information": trained(ChiSquaredInformation()),
}

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2))
for ax, (name, network) in zip(axes, networks.items(), strict=True):
    with torch.no_grad():
        logits = network(x)
    p_zx = nb.posterior(logits)
    nb.plot.StateMapDisplay(points, p_zx.argmax(dim=1).numpy(), proba=p_zx).plot(ax=ax)
    information, chi = nb.mutual_information(p_zx), -ChiSquaredInformation()(logits)
    ax.set_title(f"{name}\nI = {information:.2f} nats, chi-squared {chi:.2f}")
    ax.set(xlabel="", ylabel="", xticks=[], yticks=[])
plt.show()

# %%
# On the left, mutual information cuts through the large cluster, for a more even p(z). On
# the right, the boundary runs through the gap between the clusters. With the chi-squared
# information, all sharp divisions have the same value, so the smoothness term decides, and
# a change where there are no points costs nothing. :doc:`/objectives` explains how to test
# an objective.
