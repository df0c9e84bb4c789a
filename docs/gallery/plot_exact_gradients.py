"""
Why small micro-batches need the exact p(z)
===========================================

Ordinary losses are means over samples, so gradients of small batches can be added up.
Objectives in p(z) are different, because p(z) of a piece is not p(z) of the whole batch.
The function :func:`~neuralbayes.backward` first computes p(z) of the whole batch and then
the gradient piece by piece. So the size of a piece only affects memory.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

import neuralbayes as nb
from neuralbayes.networks.encoders import mlp

images = nb.datasets.load("digits").train.images
x = torch.from_numpy(images).double().flatten(1)
x = ((x - x.mean()) / x.std())[:256]
objective = nb.MIM(alpha=0.0, version=1)  # minus the mutual information
sizes = [2**i for i in range(1, 9)]


def gradient(network, size, marginal):
    """The value that the objective believes to have, and the gradient as one vector."""
    network.zero_grad()
    value = nb.backward(objective, network, x, microbatch_size=size, marginal=marginal)
    return float(value), torch.cat([p.grad.flatten() for p in network.parameters()])


torch.manual_seed(0)
network = mlp((64, 128, 64)).double()  # 64 states
update = torch.optim.Adam(network.parameters(), lr=3e-3)
for _ in range(30):  # to somewhere in the middle of its training
    gradient(network, len(x), "exact")
    update.step()

true_value, true_gradient = gradient(network, len(x), "exact")
believed, angles, difference = [], [], []
for size in sizes:
    value, piecewise = gradient(network, size, "minibatch")
    believed.append(-value)
    cosine = torch.cosine_similarity(piecewise, true_gradient, dim=0).clamp(max=1.0)
    angles.append(float(torch.rad2deg(torch.arccos(cosine))))
    exact = gradient(network, size, "exact")[1]
    difference.append(float((exact - true_gradient).abs().max()))
print(f"largest difference of the exact gradients over all sizes: {max(difference):.1e}")

# %%
# Now train with micro-batches of 4, with the same network and number of updates, and three
# ways to estimate p(z).


def trained(marginal, size=4, steps=40):
    """The true information while training with micro-batches."""
    torch.manual_seed(0)
    network = mlp((64, 128, 64)).double()
    update = torch.optim.Adam(network.parameters(), lr=3e-3)
    curve = []
    for _ in range(steps):
        gradient(network, size, marginal)
        update.step()
        with torch.no_grad():
            curve.append(float(nb.mutual_information(network(x), from_logits=True)))
    return curve


curves = {marginal: trained(marginal) for marginal in ("exact", "running", "minibatch")}

# %%
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3.6))
left.plot(sizes, believed, marker="o", color="#D55E00", label="minibatch")
left.axhline(-true_value, color="#0072B2", label="exact, at every size")
left.set(xscale="log", xlabel="micro-batch", ylim=(0, None))
left.set_title("estimated information, nats")
left.legend()
middle.plot(sizes, angles, marker="o", color="#D55E00")
middle.axhline(0.0, color="#0072B2")
middle.set(xscale="log", xlabel="micro-batch", title="angle to the true gradient, degrees")
colors = {"exact": "#0072B2", "running": "#009E73", "minibatch": "#D55E00"}
for name, curve in curves.items():
    right.plot(curve, label=name, color=colors[name])
right.axhline(np.log(64), color="#999999", linestyle=":")
right.set(xlabel="updates", title="true information, micro-batches of 4")
right.legend()
plt.show()

# %%
# On the left, a piece of two samples cannot carry more than log 2 nats, whatever the
# network does, so the mean over pieces is far too small. In the middle, its gradient points
# in a different direction, and the angle vanishes only as the piece becomes the whole
# batch. On the right, a network trained in this way ends with less information than with
# the exact p(z); the dotted line is the bound, log 64. The running average over past pieces
# needs one pass instead of two and lies in between.
