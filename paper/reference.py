"""The paper in PyTorch, line by line: Arpit, Wang, Xiong, Socher, Bengio 2020, "Neural Bayes", arXiv:2002.09046.

Symbols and numbers are the paper's, and nothing is taken from the library: no speed, and no numerics beyond epsilon.
`L` is L_theta(x) for a batch, the output of a softmax: (B, K), or (B, K, H, W) with a latent variable at each position.
`.detach()` is the bracket <.>, through which no gradient flows. Where the authors' code differs
(https://github.com/salesforce/NeuralBayes), both are here, and names that end in `_authors` are theirs.
"""

# ruff: noqa: N802 (E, S, P, R_p, R_c and Enc are the paper's names)

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, max_pool2d

EPSILON = 1e-7  # below Eq. 7 and below Eq. 13

# Section 2. Lemma 1, Eqs. 1 and 26: p(z=k|x) = L_k(x)


def S(logits: Tensor) -> Tensor:  # "softmax output to realize this function L"
    return torch.softmax(logits, dim=1)


def E(L: Tensor) -> Tensor:  # p(z=k) = E_x[L_k(x)], by the mean over the batch: (K, ...)
    return L.mean(dim=0)


def density_ratio(L: Tensor) -> Tensor:  # p(x|z=k) / p(x) = L_k(x) / E_x[L_k(x)]
    return L / E(L)


# Section 3.1. Mutual information; sums over k, means over x and over positions


def mutual_information(L: Tensor) -> Tensor:  # Proposition 1, Eq. 2
    return (L * (L / E(L)).log()).sum(dim=1).mean()


def J(L: Tensor) -> Tensor:  # Theorem 1, Eq. 3
    return -mutual_information(L)


def J_hat(L: Tensor) -> Tensor:  # Theorem 1, Eq. 4: the same gradient as J
    return -(L * (L / E(L)).detach().log()).sum(dim=1).mean()


def mim_v1(L: Tensor, alpha: float = 0.0) -> Tensor:  # Eq. 5, whose second term gets the coefficient 1 + alpha
    first = -(L * L.detach().log()).sum(dim=1).mean()
    return first + (1 + alpha) * (E(L) * E(L).detach().log()).sum(dim=0).mean()


# Section 3.2. MIM-v2


def R_p(L: Tensor) -> Tensor:  # Eq. 6, with the brackets around both terms that Eq. 23 and the authors' code have
    K = L.shape[1]
    return -(1 / K * E(L).log() + (K - 1) / K * (1 - E(L)).log()).sum(dim=0).mean()


def mim_v2(L: Tensor, alpha: float, epsilon: float = EPSILON) -> Tensor:  # Eq. 7 without beta R_c
    return -(L * (L + epsilon).detach().log()).sum(dim=1).mean() + (1 + alpha) * R_p(L)


def mim_v2_given_E(L: Tensor, E_x: Tensor, alpha: float, epsilon: float = EPSILON) -> Tensor:
    """Has the gradient of Eq. 7 with "a good estimate of E_x[L_k(x)]" plugged in, by Eq. 23, but not its value."""
    K, E_x = L.shape[1], E_x.detach()
    slope = -1 / K * (1 / E_x - (K - 1) / (1 - E_x))
    return -(L * (L + epsilon).detach().log()).sum(dim=1).mean() + (1 + alpha) * (slope * E(L)).sum(dim=0).mean()


# Section 4. DML


def jensen_shannon(L: Tensor) -> Tensor:  # Proposition 2, Eq. 9, to be maximised; L is (B,), p(z=1|x)
    f_1, f_0 = L / E(L), (1 - L) / (1 - E(L))
    return 1 / 2 * (f_1 * (f_1 / (f_1 + f_0)).log() + f_0 * (f_0 / (f_1 + f_0)).log()).mean() + log(2)


def dml_binary(L: Tensor, epsilon: float = EPSILON) -> Tensor:  # Eq. 13 without beta R_c: L is (B,)
    f_1, f_0 = L / E(L) + epsilon, (1 - L) / (1 - E(L)) + epsilon
    return 1 / 2 * (f_1 * (1 + f_0 / f_1).log()).mean() + 1 / 2 * (f_0 * (1 + f_1 / f_0).log()).mean()


def theorem_3(L: Tensor) -> Tensor:  # Theorem 3, Eq. 69, to be maximised; as printed, without the 1/K of Eq. 64
    f, f_bar = L / E(L), (1 - L) / (1 - E(L))
    terms = f * (f / (f + f_bar)).log() + f_bar * (f_bar / (f_bar + f)).log()
    return 1 / 2 * terms.sum(dim=1).mean() + log(2)


def dml(L: Tensor, epsilon: float = EPSILON) -> Tensor:  # "in a similar way" to Eq. 13, with the 1/K of Eq. 64
    f, f_bar = L / E(L) + epsilon, (1 - L) / (1 - E(L)) + epsilon
    return (1 / 2 * (f * (1 + f_bar / f).log() + f_bar * (1 + f / f_bar).log())).mean()


def dml_authors(L: Tensor, epsilon: float = EPSILON) -> Tensor:  # without the 1/2
    return 2 * dml(L, epsilon)


# Section 4.2 and appendix B. Smoothness


def delta_hat(X: Tensor, v: Tensor) -> Tensor:  # Eqs. 12 and 17; X has a sample in each row, v has v_i in row i
    delta = v @ X.flatten(1)
    return (delta / delta.square().sum(dim=1, keepdim=True).sqrt()).reshape(X.shape)


def R_c(F: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Eq. 11, F = L_theta, and Eq. 16, F = P(h^3)."""
    v = torch.randn(len(x), len(x), dtype=x.dtype)
    zeta = 0.1 * torch.randn(1, dtype=x.dtype)  # "the scale of normalized noise added to all samples in a batch"
    return ((F(x) - F(x + zeta * delta_hat(x, v))).flatten(1).square().sum(dim=1) / zeta.square()).mean()


def R_c_authors(F: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """v in {0, 1}, X centred; F is the network before its softmax (DML), or h^3 averaged over all positions (MIM)."""
    v = torch.randint(0, 2, (len(x), len(x))).to(x.dtype)
    step = 0.1 * torch.randn(1, dtype=x.dtype) * delta_hat(x - x.mean(dim=0), v)
    return ((F(x) - F(x + step)).flatten(1).square().sum(dim=1) / step.flatten(1).square().sum(dim=1)).mean()


# Appendix B. MIM over the hidden states h^0, h^1, ... of a network and their scaled versions


def P(h: Tensor) -> Tensor:  # P(2, 2, 0, avg); "for states with height less than the pooling size, we use the height"
    return avg_pool2d(h, min(2, h.shape[-1])) if h.ndim == 4 else h


def P_authors(h: Tensor) -> Tensor:  # for R_c; h^3 is 3x3, not 2x2 as the paper says, so P(h^3) leaves out 5 positions
    return h.mean(dim=(2, 3)) if h.ndim == 4 else h


def all_scales(h: Sequence[Tensor]) -> list[Tensor]:  # h^i := P(h^(i-4)) for i = 4, 5, 6, 7
    return [*h, *(P(h_i) for h_i in h if h_i.ndim == 4)]


def mim(h: Sequence[Tensor], alpha: float, epsilon: float = EPSILON) -> Tensor:  # Eqs. 14 and 15 without beta R_c
    return torch.stack([mim_v2(S(h_i), alpha, epsilon) for h_i in h]).mean()


class Enc(nn.Module):
    """C(200,3,1,0)-P(2,2,0,max)-C(500,3,1,0)-C(700,3,1,0)-P(2,2,0,max)-C(1000,3,1,0); returns h^0, h^1, h^2, h^3."""

    def __init__(self, channels: Sequence[int] = (3, 200, 500, 700, 1000)) -> None:
        super().__init__()
        convolutions = [nn.Conv2d(c, d, 3) for c, d in pairwise(channels)]
        self.batch_norm = nn.ModuleList([nn.BatchNorm2d(d) for d in channels[1:]])  # "after each convolution layer"
        for C in convolutions:
            nn.init.orthogonal_(C.weight)
        self.C = nn.ModuleList(convolutions)

    def forward(self, x: Tensor) -> list[Tensor]:
        h: list[Tensor] = []
        for i, (C, batch_norm) in enumerate(zip(self.C, self.batch_norm, strict=True)):
            h.append(batch_norm(C(max_pool2d(h[-1], 2) if i in (1, 3) else h[-1] if h else x)).relu())
        return h


def accumulate(
    network: nn.Module, batch: Tensor, MBS: int, alpha: float, beta: float, *, authors: bool = False
) -> None:
    """Section 3.2 and the end of appendix B: accumulate the gradients of mini-batches of MBS samples, and average."""
    minibatches = torch.split(batch, MBS)
    for x in minibatches:
        if authors:
            smoothness = R_c_authors(lambda x: P_authors(network(x)[-1]), x)
        else:
            smoothness = R_c(lambda x: P(network(x)[-1]), x)
        ((mim(all_scales(network(x)), alpha) + beta * smoothness) / len(minibatches)).backward()  # type: ignore[no-untyped-call]


def train_mim(
    network: nn.Module, X: Tensor, *, epochs: int, MBS: int, BS: int, alpha: float, beta: float, authors: bool = False
) -> None:
    """Section 5.1; the final table has MBS = 500, BS = 4000, alpha = 2 and beta = 4 (the authors' README: 4 and 2)."""
    optimizer = torch.optim.Adam(network.parameters(), lr=0.001)
    for _ in range(epochs):
        for batch in torch.split(X[torch.randperm(len(X))], BS):
            optimizer.zero_grad()
            accumulate(network, batch, MBS, alpha, beta, authors=authors)
            optimizer.step()


def train_dml(network: nn.Module, X: Tensor, *, epochs: int, B: int, beta: float, authors: bool = False) -> None:
    """Section 5.2: `network` returns logits; B = 400. The authors' code has every point in the batch, and no beta."""
    optimizer = torch.optim.Adam(network.parameters(), lr=0.001)
    for _ in range(epochs):
        for x in torch.split(X[torch.randperm(len(X))], B):
            optimizer.zero_grad()
            if authors:
                loss = dml_authors(S(network(x))) + R_c_authors(network, x)
            else:
                loss = dml(S(network(x))) + beta * R_c(lambda x: S(network(x)), x)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
