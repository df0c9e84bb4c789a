"""
What the smoothness term does
=============================

An objective in p(z|x) and p(z) sees samples one by one and does not know which of them are
neighbours, so any sharp division is as good as any other. :class:`~neuralbayes.Smoothness`
adds :math:`\\beta R_c`, which measures how fast the output changes between a sample and a
nearby point. This turns sets of points into manifolds.
"""

import matplotlib.pyplot as plt
import torch

import neuralbayes as nb
from neuralbayes.data.toys import make_moons
from neuralbayes.networks.encoders import mlp

X, y = make_moons(500, random_state=0)
x = torch.from_numpy(X - X.mean(axis=0)).float() / X.std()


def trained(beta, steps=200):
    """The same network from the same start, with another weight of the smoothness."""
    torch.manual_seed(1)
    network = mlp((2, 100, 100, 100, 2), batch_norm=True)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    smoothness = nb.Smoothness(beta=beta, of="logits", scale=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        nb.backward(nb.DML(), network, x, smoothness=smoothness)
        optimizer.step()
    return network.eval()


networks = {beta: trained(beta) for beta in (0.0, 0.1, 10.0)}

# %%
across, up = torch.linspace(-2.2, 2.2, 200), torch.linspace(-1.5, 1.5, 140)
grid = torch.cartesian_prod(up, across).flip(1)  # row by row, from the bottom up
figure, axes = plt.subplots(1, 3, figsize=(10, 2.7))
for ax, (beta, network) in zip(axes, networks.items(), strict=True):
    with torch.no_grad():
        logits, plane = network(x), nb.posterior(network(grid))[:, 0].reshape(140, 200)
    p_zx = nb.posterior(logits)
    ax.pcolormesh(across, up, plane, cmap="RdBu", vmin=-0.5, vmax=1.5, rasterized=True)
    ax.scatter(
        *x.T,
        s=6,
        c=p_zx[:, 0],
        cmap="RdBu",
        vmin=-0.1,
        vmax=1.1,
        edgecolors="#555555",
        lw=0.2,
    )
    share = nb.clustering_accuracy(p_zx.argmax(dim=1).numpy(), y)
    ax.set_title(f"beta = {beta:g}: loss {nb.DML()(logits):.3f}, {share:.0%} correct")
    ax.set_axis_off()
plt.show()

# %%
# Without smoothness, the loss is almost 0, its minimum, but the division is meaningless: it
# runs across both moons. With some smoothness, the loss is nearly as small, and the gap is
# the only place where a change is cheap. With too much, the output is the same for every
# point, and the loss stays at log 2.
#
# The range between too little and too much differs between data sets, which makes the
# paper's method delicate. :class:`~neuralbayes.ManifoldLabeler` uses differences between
# neighbouring points instead of random directions. It adapts their weights to the data and
# starts several times.
