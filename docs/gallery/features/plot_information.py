"""
What each layer knows while it learns
=====================================

:math:`I(x; z)` of a hidden layer is measured in nats, and its upper bound is the logarithm
of the number of states. So you can monitor training without labels: how much information
each layer carries, how close it is to its bound, and whether all of its states are in use.
This example uses a plain loop, with :func:`~neuralbayes.backward` in place of
``loss.backward()``.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

import neuralbayes as nb
from neuralbayes.networks.encoders import mlp
from neuralbayes.networks.hidden import HiddenStates

images = nb.datasets.load("digits").train.images
x = torch.from_numpy(images).float().flatten(1)
x = (x - x.mean()) / x.std()

torch.manual_seed(0)
encoder = mlp((64, 256, 128, 64, 10), batch_norm=True)
states = HiddenStates(encoder, ["relu1", "relu2", "relu3"])  # of any module
objective, smoothness = nb.MIM(alpha=4.0), nb.Smoothness(beta=0.1, scale=1.0)
optimizer = torch.optim.Adam(states.parameters(), lr=1e-3)


def look():
    """p(z|x) of each layer for all images."""
    with torch.no_grad():
        hidden = states.eval()(x)
    states.train()
    return {name: nb.posterior(h) for name, h in hidden.items()}


seen = [look()]
for _ in range(20):
    for batch in x[torch.randperm(len(x))].split(100):
        optimizer.zero_grad()
        nb.backward(objective, states, batch, smoothness=smoothness)
        optimizer.step()
    seen.append(look())

# %%
# Plot the curves with their bounds, and p(z) of the last layer before and after training,
# with one bar per state:

bounds = {name: float(np.log(p_zx.shape[1])) for name, p_zx in seen[0].items()}
epochs = range(len(seen))
curves = {
    name: (epochs, [float(nb.mutual_information(layers[name])) for layers in seen])
    for name in bounds
}
title = "I(x; z) in nats; dotted: its bound"
figure = plt.figure(figsize=(9.5, 4))
left, right = figure.subfigures(1, 2, width_ratios=(1.4, 1))
display = nb.plot.CurvesDisplay(curves, bounds=bounds, title=title, xlabel="epochs")
display.plot(ax=left.subplots(), legend="below").ax_.set_xticks(range(0, 21, 5))
for ax, when, i in zip(right.subplots(2, 1), ("before", "after"), (0, -1), strict=True):
    nb.plot.StatesDisplay.from_posterior(seen[i]["relu3"], name=f"relu3 {when}", ax=ax)
    ax.set(xticks=[], ylabel="p(z) times number of states", ylim=(0, 1.7))
plt.show()

# %%
# Before training, a layer carries almost no information: its softmax is nearly the same for
# all images. Then all three curves rise, the deeper layers faster. The last layer, with
# the fewest states, comes closest to its bound. No state dies, and none takes much more
# than its share (dashed). If some do, use a larger ``alpha``.
