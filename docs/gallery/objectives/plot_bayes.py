"""
Bayes' rule from a softmax
==========================

If the output of a network is :math:`p(z|x)`, everything else follows in closed form:
:math:`p(z)` is its mean, and :math:`p(x|z) / p(x) = p(z|x) / p(z)`. No density has to be
estimated. In this example, the correct answer is known, so we can compare.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

import neuralbayes as nb

weights = torch.tensor([0.6, 0.3, 0.1])
parts = torch.distributions.Normal(
    torch.tensor([-2.0, 1.0, 3.5]), torch.tensor([1.0, 0.7, 0.4])
)


def network(x):
    """Logits of three states: log p(x, z), as if it had been learnt."""
    return weights.log() + parts.log_prob(x[:, None])


torch.manual_seed(0)
z = torch.multinomial(weights, 20_000, replacement=True)
x = parts.sample((20_000,))[range(20_000), z]

p_zx = nb.posterior(network(x))  # (20000, 3)
print("p(z):", nb.prior(p_zx).numpy().round(3), "true:", weights.numpy())
print(f"H(z): {nb.marginal_entropy(p_zx):.3f} nats")
print(f"H(z|x): {nb.conditional_entropy(p_zx):.3f} nats")
print(f"I(x; z): {nb.mutual_information(p_zx):.3f} nats, their difference")
print("JS of p(x|z) and p(x|not z):", nb.js_divergence(p_zx).numpy().round(3), "nats")

# %%
# Weight each sample by its :math:`p(x|z) / p(x)`, and the histogram shows :math:`p(x|z)`:

ratio = nb.density_ratio(p_zx)
grid = torch.linspace(-5, 5, 400)
truth = parts.log_prob(grid[:, None]).exp()
bins = np.linspace(-5, 5, 81)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8))
left.plot(grid, nb.posterior(network(grid)))
left.set(xlabel="x", title="p(z|x), the output of the network")
for k, color in enumerate(("#0072B2", "#D55E00", "#009E73")):
    right.hist(x, bins, weights=ratio[:, k], density=True, color=color, alpha=0.35)
    right.plot(grid, truth[:, k], color=color, label=f"z = {k}")
right.set(xlabel="x", title="p(x|z): bars from p(z|x) and samples, lines true")
right.legend()
plt.show()

# %%
# The bars follow the lines, although the method does not know that there are Gaussians. The
# rarest state has the highest density: its p(z) is small, so each of its samples counts
# more. Objectives like :class:`~neuralbayes.MIM` and :class:`~neuralbayes.DML` are
# functions of these quantities.
