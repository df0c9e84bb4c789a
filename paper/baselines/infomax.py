"""Deep InfoMax (Hjelm et al. 2019): a code of the image that a discriminator can match with its feature map."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch
from neuralbayes.distributed.global_batch import global_batch
from neuralbayes.features.encoder_training import EncoderConfig, Learner, train_encoder
from neuralbayes.training.config import check_choice
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import Images, ImageSource
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.networks.encoders import mlp
from neuralbayes.networks.hidden import HiddenStates
from neuralbayes.training import Callback
from paper.baselines.headed import state_shape
from paper.discriminators import ConcatDiscriminator, DotDiscriminator

LAST = "relu4"
DISCRIMINATORS = {"dot": DotDiscriminator, "concat": ConcatDiscriminator}


@dataclass(frozen=True)
class InfoMaxConfig(EncoderConfig):
    """Settings of Deep InfoMax. The default weights are those of DIM(L), information with local features.

    Attributes
    ----------
    global_weight, local_weight, prior_weight : float
        alpha, beta and gamma of the DIM paper. DIM(L) is 0, 1, 0.1 and DIM(G) is 1, 0, 1.
    estimator : {"jsd", "infonce"}
    discriminator : {"dot", "concat"}
        Encode and dot product, or a network on the concatenation, which is much more expensive on local features.
    state : {"relu1", "relu2", "relu3"}
        Hidden state used as the feature map.
    code_size : int
        Dimension of the code.
    units : int
        Units of the hidden layers of the discriminators. The DIM paper uses 2048 for "dot" and 512 for "concat".
    encoder, normalize, augment, batch_size, epochs, patience, learning_rate, weight_decay, schedule, seed
        As in :class:`neuralbayes.PretrainConfig`; batch size and learning rate are those of the DIM paper.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> baselines.InfoMaxConfig(encoder="small", estimator="infonce").code_size
    64
    """

    method: ClassVar[str] = "infomax"

    batch_size: int = 64
    learning_rate: float = 1e-4
    global_weight: float = 0.0
    local_weight: float = 1.0
    prior_weight: float = 0.1
    estimator: Literal["jsd", "infonce"] = "jsd"
    discriminator: Literal["dot", "concat"] = "dot"
    state: Literal["relu1", "relu2", "relu3"] = "relu3"
    code_size: int = 64
    units: int = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("global_weight", "local_weight", "prior_weight"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"`{name}` must be finite and non-negative, got {value!r}")
        if self.global_weight == self.local_weight == 0:
            raise ValueError("`global_weight` or `local_weight` must be positive, got 0 for both")
        for name in ("code_size", "units"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1, got {getattr(self, name)!r}")
        if self.batch_size < 2:
            raise ValueError(f"`batch_size` must be at least 2 to pair images with others, got {self.batch_size!r}")
        check_choice(self, "estimator", tuple(ESTIMATORS))
        check_choice(self, "discriminator", tuple(DISCRIMINATORS))
        check_choice(self, "state", ("relu1", "relu2", "relu3"))


def infomax(
    images: Images | ImageSource | NDArray[np.uint8],
    config: InfoMaxConfig,
    *,
    out: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
) -> ImageEncoder:
    r"""Learn features of unlabelled images by maximising the information between a code and a feature map.

    .. math::
        \max_{E, T} \; \alpha \, \hat I(C(x); E(x)) + \frac{\beta}{P} \sum_{p=1}^{P} \hat I(C^{(p)}(x); E(x))
        \quad\text{and}\quad \gamma \text{ times a prior to match, uniform in } [0, 1]

    C(x) is a hidden state of the encoder with P positions, and E(x) is a linear map of its last state. The information
    is estimated from the scores T of codes with the feature maps of their own images and of others.

    Parameters
    ----------
    images : Images, ImageSource or ndarray of shape (n, H, W, C), uint8
        At least two images.
    config : InfoMaxConfig
    out, callbacks, verbose
        As in :func:`neuralbayes.pretrain`.

    Returns
    -------
    ImageEncoder
        Without the code and the discriminators, which only checkpoints contain.

    Notes
    -----
    Method of Hjelm et al., "Learning deep representations by mutual information estimation and maximization", ICLR 2019
    (arXiv:1808.06670). Differences from their experiments:

    - The encoder is this library's: 3x3 convolutions, for images of 32x32 a feature map of 11x11 where theirs has 8x8,
      and a code that is linear in the last state, without a fully connected layer between.
    - A probe uses the hidden states of the encoder, not the code.
    - Every code is scored with every image of the batch for both estimators and both discriminators, where the
      paper's concatenating ones take one other image.
    - With InfoNCE the others of a position are all positions of all other images, as in the authors' code; the paper's
      formula compares equal positions only.
    - The encoder matches the prior by the non-saturating loss, as in the authors' code; the paper has the minimax.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> images = nb.datasets.load("digits").train.images[:40].repeat(3, axis=1).repeat(3, axis=2)  # of 24x24 pixels
    >>> encoder = baselines.infomax(images, baselines.InfoMaxConfig(encoder="tiny", epochs=1))
    >>> encoder.features(images).shape
    (40, 80)
    """

    def learner(source: ImageSource, normalization: Normalization) -> Learner[ImageEncoder]:
        if len(source) < 2:
            raise ValueError(f"`images` must be at least 2 to be paired with each other, got {len(source)}")
        encoder = ImageEncoder(config.encoder, source.shape, normalization)
        return Learner(encoder, InfoMax(encoder, config), _step)

    return train_encoder(images, config, learner, out=out, callbacks=callbacks, verbose=verbose)


class InfoMax(nn.Module):
    """An encoder with its code and its discriminators. A call on images returns the losses by name."""

    def __init__(self, encoder: ImageEncoder, config: InfoMaxConfig) -> None:
        super().__init__()
        self.config = config
        self.states = HiddenStates(encoder.network, [config.state, LAST], scales=(1,))
        channels, height, width = state_shape(encoder, config.state)
        self.code = nn.Linear(math.prod(state_shape(encoder, LAST)), config.code_size)
        discriminator = DISCRIMINATORS[config.discriminator]
        sizes = {"global": channels * height * width, "local": channels}
        weights = {"global": config.global_weight, "local": config.local_weight}
        self.weights = {name: weight for name, weight in weights.items() if weight}
        self.discriminators = nn.ModuleDict(
            {name: discriminator(sizes[name], config.code_size, config.units) for name in self.weights}
        )
        self.prior = mlp((config.code_size, 1000, 200, 1)) if config.prior_weight else None

    def forward(self, x: Tensor, gathered: Callable[[Tensor], Tensor] = lambda x: x) -> dict[str, Tensor]:
        """Losses: "loss" is the sum to minimise; "global" and "local" are minus the estimates; "prior" and "judge" are
        the losses of the encoder and of the discriminator of the prior.

        Images may be a share of the batch; `gathered` then collects the tensors of all processes.
        """
        states = self.states(x)
        codes = gathered(self.code(states[LAST].flatten(1)))
        feature_map = gathered(states[self.config.state])
        # A global feature is a feature map with a single position.
        features = {"global": feature_map.flatten(1)[:, None], "local": feature_map.flatten(2).mT}
        estimate = ESTIMATORS[self.config.estimator]
        losses = {name: -estimate(self.discriminators[name](features[name], codes)) for name in self.weights}
        loss = torch.stack([weight * losses[name] for name, weight in self.weights.items()]).sum()
        if self.prior is not None:
            losses["prior"], losses["judge"] = prior_losses(self.prior, codes)
            loss = loss + self.config.prior_weight * losses["prior"] + losses["judge"]
        return {"loss": loss, **losses}


def jsd_estimate(scores: Tensor) -> Tensor:
    r"""The Jensen-Shannon estimator of mutual information of the DIM paper, to be maximised.

    .. math::
        \hat I = \mathbb{E}_{\text{pairs}}[-\operatorname{sp}(-T)] - \mathbb{E}_{\text{others}}[\operatorname{sp}(T)],
        \qquad \operatorname{sp}(t) = \log(1 + e^t)

    Parameters
    ----------
    scores : Tensor of shape (n, n, n_positions)
        T of code i with position p of image j; i = j are the pairs.

    Returns
    -------
    Scalar tensor, at most 0.

    Examples
    --------
    >>> jsd_estimate(torch.zeros(3, 3, 1))
    tensor(-1.3863)
    """
    pairs, others = _split(scores)
    return -nn.functional.softplus(-pairs).mean() - nn.functional.softplus(others).mean()


def infonce_estimate(scores: Tensor) -> Tensor:
    r"""The noise-contrastive estimator of mutual information of the DIM paper, InfoNCE, to be maximised.

    .. math:: \hat I = \mathbb{E}\Big[T(x_i^{(p)}, y_i)
        - \log \Big(e^{T(x_i^{(p)}, y_i)} + \sum_{j \neq i} \sum_q e^{T(x_j^{(q)}, y_i)} \Big)\Big]

    Parameters
    ----------
    scores : Tensor of shape (n, n, n_positions)
        T of code i with position p of image j; i = j are the pairs.

    Returns
    -------
    Scalar tensor, at most 0. With one position, log n more than it is a lower bound on the mutual information in nats
    (van den Oord, Li and Vinyals 2018, arXiv:1807.03748).

    Examples
    --------
    >>> infonce_estimate(torch.zeros(3, 3, 1)), -math.log(3)
    (tensor(-1.0986), -1.0986122886681098)
    """
    pairs, others = _split(scores)
    return -nn.functional.softplus(others.flatten(1).logsumexp(dim=1, keepdim=True) - pairs).mean()


ESTIMATORS: dict[str, Callable[[Tensor], Tensor]] = {"jsd": jsd_estimate, "infonce": infonce_estimate}


def prior_losses(judge: nn.Module, codes: Tensor) -> tuple[Tensor, Tensor]:
    """Losses of the encoder and of a judge that separates its codes from the uniform distribution, which they should
    match.

    Parameters
    ----------
    judge : nn.Module
        Maps vectors in [0, 1] to a logit, which is high for the uniform distribution.
    codes : Tensor of shape (n, code_size)
        Codes before the sigmoid.

    Returns
    -------
    Two scalar tensors, each with the gradient of its own player only.
    """
    values = codes.sigmoid()
    fixed = {name: parameter.detach() for name, parameter in judge.named_parameters()}
    fooled = nn.functional.softplus(-functional_call(judge, fixed, values)).mean()
    uniform = nn.functional.softplus(-judge(torch.rand_like(values))).mean()
    return fooled, uniform + nn.functional.softplus(judge(values.detach())).mean()


def _split(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Scores of pairs, (n, n_positions), and of each code with the other images, (n, n - 1, n_positions)."""
    n = len(scores)
    pairs = scores.diagonal(dim1=0, dim2=1).mT
    other = ~torch.eye(n, dtype=torch.bool, device=scores.device)
    return pairs, scores[other].reshape(n, n - 1, scores.shape[2])


def _step(network: nn.Module, batch: Tensor) -> dict[str, Tensor]:
    with global_batch(network, batch) as whole:
        losses: dict[str, Tensor] = network(whole.samples, whole.gathered)
        torch.autograd.backward(losses["loss"] / whole.n_processes)
    return losses
