"""
When one state has taken everything
===================================

A network that assigns every sample to the same state carries no information, and its
saturated softmax can make it hard to recover. The second version of the paper's objective
replaces the entropy of p(z) by a cross-entropy with a much steeper slope there. Does it
help? That depends on the optimiser.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

import neuralbayes as nb
from neuralbayes.networks.encoders import mlp

images = nb.datasets.load("digits").train.images
x = torch.from_numpy(images).float().flatten(1)
x = (x - x.mean()) / x.std()
optimizers = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=3e-3),
}


def recover(version, optimizer, steps=200):
    """I(x; z) step by step, from a network in which one of 16 states has all but all."""
    torch.manual_seed(0)
    network = mlp((64, 64, 16), batch_norm=True)
    with torch.no_grad():
        network[-1].bias[0] += 16.0
    update = optimizers[optimizer](network.parameters())
    information = []

    def note(posteriors):
        information.append(float(nb.mutual_information(posteriors[0])))

    for _ in range(steps):
        update.zero_grad()
        nb.backward(nb.MIM(alpha=2.0, version=version), network, x, monitor=note)
        update.step()
    return information


runs = {
    (name, version): recover(version, name) for name in optimizers for version in (1, 2)
}

# %%
# Plot the slope of the prior term against the mass of the growing state, and the four runs:

mass = torch.linspace(0.5, 0.9999, 500, dtype=torch.float64)
slopes = {}
for version in (1, 2):
    p = mass.clone().requires_grad_()
    p_z = torch.cat([p[None], ((1 - p) / 15).expand(15, -1)])  # the others share the rest
    nb.MIM(alpha=2.0, version=version).prior_term(p_z).sum().backward()
    slopes[version] = p.grad

figure, (left, *panels) = plt.subplots(1, 3, figsize=(9.5, 3.6))
for version, slope in slopes.items():
    left.plot(1 - mass, slope, label=f"version {version}")
left.set(xscale="log", yscale="log", xlabel="1 - p(z) of the largest state")
left.set_title("slope of the prior term")
left.invert_xaxis()
left.legend()
for ax, name in zip(panels, optimizers, strict=True):
    for version in (1, 2):
        ax.plot(runs[name, version])
    ax.axhline(np.log(16), color="#999999", linestyle=":")
    ax.set(xlabel="steps", title=f"{name}: I(x; z) in nats", ylim=(-0.05, 2.9))
plt.show()

# %%
# A saturated softmax shrinks gradients by a factor of about 1 - p(z). On the left, the
# slope of version 2 grows like the inverse of this factor and compensates for it. The slope
# of version 1 grows only like its logarithm. In the middle, with gradient descent with
# momentum, this makes the difference: version 1 does not move in 200 steps, while version 2
# recovers at once. On the right, Adam divides by the size of the gradient, so a small
# gradient moves the weights just as far. Both recover, and version 1, which maximises the
# information itself, is ahead.
#
# If states die in your training, watch p(z) with ``monitor``, and check the optimiser
# before the objective.
