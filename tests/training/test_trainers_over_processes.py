"""Every trainer on two processes: both end with the same bits, and with the same result as one process."""

import os
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
import torch.distributed as dist
from image_cases import bars
from process_cases import each, in_double, made_once, results_of_launched, results_of_ranks
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes import baselines
from neuralbayes.features.encoder import ImageEncoder

if not dist.is_available() or not dist.is_gloo_available():
    pytest.skip("this torch has no gloo", allow_module_level=True)

IMAGES, LABELS = bars(30)
COMMON = {"encoder": "tiny", "batch_size": 8, "epochs": 3, "learning_rate": 1e-4}  # 12 steps; the last has 6 images
Result = dict[str, Tensor]


def digits() -> Any:
    return nb.datasets.load("digits").train.images[:61]


def rows() -> Any:
    return np.random.default_rng(0).normal(size=(45, 4)) + 5.0 * np.eye(4)[np.arange(45) % 3]


def clusters(X: Any, **settings: Any) -> Result:
    """Train twenty-four steps on batches with an odd number of samples, and return the result."""
    quick = {"n_clusters": 3, "max_iter": 24, "n_hidden": 16, "n_neighbors": 5, "random_state": 0}
    with in_double():
        labeler = nb.InformationClusterer(**quick | settings).fit(X)
    found = {name: tensor.detach() for name, tensor in labeler.module_.state_dict().items()}
    for name in ("labels_", "separation_", "loss_curve_"):
        found[name] = torch.as_tensor(getattr(labeler, name))
    return found


def unseeded_clusters() -> Result:
    """Processes whose global generators differ, and a custom network that differs too."""
    seed = int(os.environ.get("RANK", 0))
    np.random.seed(seed)  # noqa: NPY002  what `random_state=None` draws from
    torch.manual_seed(seed)
    return clusters(digits(), random_state=None, network=convolution())


def precise_on_rank_zero(wanted: str) -> str:
    """Measurements of a machine with different processors."""
    return "float32" if os.environ.get("RANK", "0") == "0" else "bfloat16"


def clusters_on_unequal_processors() -> Result:
    with (
        mock.patch("neuralbayes.clusters.fit.choose_precision", precise_on_rank_zero),
        mock.patch("neuralbayes.clusters.fit.LARGE", 0),
    ):
        return clusters(digits())


def features_on_unequal_processors() -> Result:
    config = nb.PretrainConfig(encoder="tiny", batch_size=10, microbatch_size=10, epochs=1, beta=0, precision="auto")
    with mock.patch("neuralbayes.features.pretraining.choose_precision", precise_on_rank_zero):
        return dict(nb.pretrain(IMAGES, config).state_dict())


def convolution() -> nn.Sequential:
    layers = nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(4)
    return nn.Sequential(*layers).double()


def own_network() -> Result:
    torch.manual_seed(1)
    return clusters(digits(), network=convolution())


def imsat_rows() -> Result:
    config = baselines.ImsatRowsConfig(n_clusters=3, hidden=(8,), batch_size=9, epochs=3, n_neighbors=4)
    return dict(baselines.imsat_rows(rows(), config).network.state_dict())


def fixed_noise(*shape: int, **kind: Any) -> Tensor:
    return torch.ones(*shape, dtype=kind.get("dtype"))


def encoder_of(method: Callable[..., Any], data: Any, config: Any) -> Result:
    """Train an encoder with fixed perturbations, which `pretrain` draws from a separate generator on each process."""
    prepare = ImageEncoder.prepare
    with (
        in_double(),
        mock.patch.object(ImageEncoder, "prepare", lambda encoder, images: prepare(encoder, images).double()),
        mock.patch("torch.randn", fixed_noise),
        mock.patch("torch.rand_like", lambda x: torch.full_like(x, 0.3)),
    ):
        return dict(method(data, config).state_dict())


TRAINERS: dict[str, Callable[[], Result]] = {
    "clusters of images": lambda: clusters(digits()),
    "clusters of images by a network of one's own": own_network,
    "clusters of rows": lambda: clusters(rows()),
    "as many clusters as stand out": lambda: clusters(digits(), n_clusters="auto", n_states=8, n_init=2),
    "IMSAT on rows": imsat_rows,
    "IMSAT": lambda: encoder_of(baselines.imsat, IMAGES, baselines.ImsatConfig(**COMMON, n_clusters=3)),
    "rotation": lambda: encoder_of(baselines.rotation, IMAGES, baselines.RotationConfig(**COMMON)),
    "Deep InfoMax, jsd": lambda: encoder_of(
        baselines.infomax, IMAGES, baselines.InfoMaxConfig(**COMMON, units=8, global_weight=0.5)
    ),
    "Deep InfoMax, InfoNCE": lambda: encoder_of(
        baselines.infomax, IMAGES, baselines.InfoMaxConfig(**COMMON, units=8, estimator="infonce")
    ),
    "supervised": lambda: encoder_of(
        baselines.supervised, (IMAGES, LABELS), baselines.SupervisedConfig(**COMMON, validation=0.2)
    ),
    "features of rows": lambda: dict(
        nb.MIMEncoder((8,), beta=0.0, batch_size=9, max_epochs=3, random_state=0).fit(rows()).module_.state_dict()
    ),
}
DIVIDED: dict[str, Callable[[], Result]] = {
    "processes with other seeds": unseeded_clusters,
    "clusters on unequal processors": clusters_on_unequal_processors,
    "features on unequal processors": features_on_unequal_processors,
}
"""Cases in which the processes must agree although each would decide differently."""


def all_results(rank: int) -> dict[str, Result]:
    return each(TRAINERS | DIVIDED)


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Result]]:
    """The results of both processes."""
    return results_of_ranks(
        made_once(tmp_path_factory, "trainers", lambda folder: results_of_launched(folder, all_results))
    )


@pytest.mark.parametrize("name", [*TRAINERS, *DIVIDED])
def test_processes_end_with_the_same_bits(name: str, ranks: list[dict[str, Result]]) -> None:
    first, second = (results[name] for results in ranks)
    assert "error" not in first, first
    assert first.keys() == second.keys()
    assert [key for key in first if not torch.equal(first[key], second[key])] == []


@pytest.mark.parametrize("name", TRAINERS)
def test_two_processes_end_with_what_one_ends_with(name: str, ranks: list[dict[str, Result]]) -> None:
    """Agree up to rounding, after a dozen or more updates."""
    alone, together = TRAINERS[name](), ranks[0][name]
    assert alone.keys() == together.keys()
    for key, tensor in alone.items():
        tolerance = 1e-5 if tensor.dtype == torch.float32 else 1e-8
        torch.testing.assert_close(together[key], tensor, rtol=tolerance, atol=tolerance)
