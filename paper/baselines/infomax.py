"""Deep InfoMax (Hjelm et al. 2019): a code of the image that a discriminator can match with its feature map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from neuralbayes.data.images import as_source
from neuralbayes.data.normalize import Normalization
from neuralbayes.distributed import seeded_globally
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.networks.encoders import mlp
from neuralbayes.networks.hidden import HiddenStates
from paper.baselines.training import EncoderConfig, state_shape, train_in_folder

FEATURES, LAST = "relu3", "relu4"
"""The hidden states that are the feature map, and the input of the code."""


@dataclass(frozen=True)
class InfoMaxConfig(EncoderConfig):
    """Settings of Deep InfoMax with local features, DIM(L).

    `prior_weight` is gamma of the DIM paper, whose alpha is 0 and beta 1; the batch size and the learning rate are its
    own. Codes of `code_size` meet features in a space of `units` dimensions (2048 in the DIM paper).
    """

    method: ClassVar[str] = "infomax"

    batch_size: int = 64
    learning_rate: float = 1e-4
    prior_weight: float = 0.1
    code_size: int = 64
    units: int = 512


def infomax(images: Any, config: InfoMaxConfig, *, out: str | Path | None = None) -> ImageEncoder:
    r"""Learn features of unlabelled images by maximising the information between a code and a feature map.

    .. math:: \max_{E, T} \; \frac{1}{P} \sum_{p=1}^{P} \hat I(C^{(p)}(x); E(x))
        \quad\text{and}\quad \gamma \text{ times a prior to match, uniform in } [0, 1]

    C(x) is a hidden state of the encoder with P positions, and E(x) is a linear map of its last state. The information
    is estimated from the scores T of codes with the feature maps of their own images and of others. The code and the
    discriminators are not kept.

    Notes
    -----
    Method of Hjelm et al., "Learning deep representations by mutual information estimation and maximization", ICLR 2019
    (arXiv:1808.06670), with their Jensen-Shannon estimator and encode-and-dot-product discriminator. The encoder is the
    paper's: for images of 32x32 a feature map of 11x11 where theirs has 8x8, and a code that is linear in the last
    state, without a fully connected layer between. A probe uses the hidden states, not the code. The encoder matches
    the prior by the non-saturating loss, as in the authors' code; the DIM paper has the minimax.
    """
    source = as_source(images)
    with seeded_globally(config.seed):
        normalization = Normalization.fit(source, per=config.normalize, progress=False)
        encoder = ImageEncoder(config.encoder, source.shape, normalization)
        network = InfoMax(encoder, config)

        def fetch(indices: Tensor) -> Tensor:
            return encoder.prepare(source.read(indices.numpy()))

        train_in_folder(network, _step, fetch, len(source), config, out)
    return encoder.eval()


class InfoMax(nn.Module):
    """An encoder with its code and its discriminators. A call on images returns the losses by name: "loss" is the sum
    to minimise, "local" is minus the estimate, "prior" and "judge" are the losses of the two players."""

    def __init__(self, encoder: ImageEncoder, config: InfoMaxConfig) -> None:
        super().__init__()
        self.prior_weight = config.prior_weight
        self.states = HiddenStates(encoder.network, [FEATURES, LAST], scales=(1,))
        self.code = nn.Linear(math.prod(state_shape(encoder, LAST)), config.code_size)
        self.of_features = Projection(state_shape(encoder, FEATURES)[0], config.units)
        self.of_code = Projection(config.code_size, config.units)
        self.prior = mlp((config.code_size, 1000, 200, 1))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        states = self.states(x)
        codes = self.code(states[LAST].flatten(1))
        a, b = self.of_code(codes), self.of_features(states[FEATURES].flatten(2).mT)
        local = -jsd_estimate(torch.einsum("iu,jpu->ijp", a / a.shape[1] ** 0.5, b))  # unrelated ones are of order 1
        prior, judge = prior_losses(self.prior, codes)
        return {"loss": local + self.prior_weight * prior + judge, "local": local, "prior": prior, "judge": judge}


class Projection(nn.Module):
    """One hidden layer with a linear shortcut, then layer normalisation: (..., n_inputs) -> (..., units).

    On the positions of a feature map, this is a network of 1x1 convolutions.
    """

    def __init__(self, n_inputs: int, units: int) -> None:
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(n_inputs, units), nn.ReLU(), nn.Linear(units, units))
        self.shortcut = nn.Linear(n_inputs, units, bias=False)
        self.norm = nn.LayerNorm(units)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.norm(self.hidden(x) + self.shortcut(x))
        return y


def jsd_estimate(scores: Tensor) -> Tensor:
    r"""The Jensen-Shannon estimator of mutual information of the DIM paper: (n, n, n_positions) -> (), at most 0.

    .. math::
        \hat I = \mathbb{E}_{\text{pairs}}[-\operatorname{sp}(-T)] - \mathbb{E}_{\text{others}}[\operatorname{sp}(T)],
        \qquad \operatorname{sp}(t) = \log(1 + e^t)

    `scores` are T of code i with position p of image j; i = j are the pairs.

    Examples
    --------
    >>> jsd_estimate(torch.zeros(3, 3, 1))
    tensor(-1.3863)
    """
    own = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    return -nn.functional.softplus(-scores[own]).mean() - nn.functional.softplus(scores[~own]).mean()


def prior_losses(judge: nn.Module, codes: Tensor) -> tuple[Tensor, Tensor]:
    """Losses of the encoder and of a judge that separates its codes, (n, code_size) before the sigmoid, from the
    uniform distribution that they should match. Each has the gradient of its own player only."""
    values = codes.sigmoid()
    fixed = {name: parameter.detach() for name, parameter in judge.named_parameters()}
    fooled = nn.functional.softplus(-functional_call(judge, fixed, values)).mean()
    uniform = nn.functional.softplus(-judge(torch.rand_like(values))).mean()
    return fooled, uniform + nn.functional.softplus(judge(values.detach())).mean()


def _step(network: nn.Module, batch: Tensor) -> dict[str, Tensor]:
    losses: dict[str, Tensor] = network(batch)
    torch.autograd.backward(losses["loss"])
    return losses
