"""An objective of ten lines works in everything that trains, in one process and in two, with the same weights."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from image_cases import bars
from process_cases import each, made_once, results_of_launched, results_of_ranks
from torch import Tensor

import neuralbayes as nb
from neuralbayes.networks.encoders import mlp

IMAGES, _ = bars(30)
Result = dict[str, Tensor]


class ChiSquaredInformation(nb.Objective):
    """Minus the chi-squared information of x and z."""

    def __init__(self, strength: float = 1.0) -> None:
        super().__init__()
        self.strength = strength

    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        return self.strength * (1.0 - (p_zx * p_zx / p_z).sum(dim=1))


def rows(n: int = 45) -> Any:
    """Three clusters of points."""
    return np.random.default_rng(0).normal(size=(n, 4)) + 5.0 * np.eye(4)[np.arange(n) % 3]


def plain_network(**settings: Any) -> Result:
    torch.manual_seed(0)
    network = mlp((4, 16, 3), batch_norm=True).double()
    nb.fit(ChiSquaredInformation(), network, rows(), max_epochs=6, batch_size=15, **settings)
    return dict(network.state_dict())


def rows_encoder() -> Result:
    encoder = nb.MIMEncoder((8, 6), objective=ChiSquaredInformation(), beta=0.0, max_epochs=8, random_state=0)
    return dict(encoder.fit(rows()).module_.state_dict())


def image_encoder() -> Result:
    encoder = nb.MIMEncoder(encoder="tiny", objective=ChiSquaredInformation(), max_epochs=2, random_state=0)
    encoder.set_params(beta=0.0, learning_rate=1e-4, batch_size=10)
    return dict(encoder.fit(IMAGES).module_.state_dict())


TRAINERS: dict[str, Callable[[], Result]] = {
    "a plain network": plain_network,
    "a plain network in micro-batches": lambda: plain_network(microbatch_size=4),
    "features of rows": rows_encoder,
    "features of images": image_encoder,
}


def all_results(rank: int) -> dict[str, Result]:
    return each(TRAINERS)


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Result]]:
    if not dist.is_available() or not dist.is_gloo_available():
        pytest.skip("this torch has no gloo")
    return results_of_ranks(made_once(tmp_path_factory, "own", lambda folder: results_of_launched(folder, all_results)))


@pytest.mark.parametrize("name", TRAINERS)
def test_two_processes_end_with_what_one_ends_with(name: str, ranks: list[dict[str, Result]]) -> None:
    alone = TRAINERS[name]()
    first, second = (results[name] for results in ranks)
    assert "error" not in first, first
    assert all(torch.equal(first[key], second[key]) for key in alone)
    for key, tensor in alone.items():
        torch.testing.assert_close(first[key], tensor, rtol=1e-4, atol=1e-4)


def test_a_plain_network_finds_the_groups() -> None:
    torch.manual_seed(0)
    network = mlp((4, 16, 3)).double()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.03)
    state = nb.fit(ChiSquaredInformation(), network, rows(90), max_epochs=30, batch_size=45, optimizer=optimizer)
    x = torch.from_numpy(rows(90))
    assert ChiSquaredInformation()(network(x)).item() == pytest.approx(-2.0, abs=0.1)  # 1 - K, its minimum
    assert state.history[-1]["loss"] < state.history[0]["loss"]


def groups_of(clusterer: Any) -> bool:
    """Whether it has found the three clusters."""
    return len(set(zip(clusterer.labels_, np.arange(90) % 3, strict=True))) == 3


def test_a_labeler_finds_the_manifolds_by_the_objective_that_it_was_given() -> None:
    labeler = nb.ManifoldLabeler(3, objective=ChiSquaredInformation(), n_neighbors=8, random_state=0).fit(rows(90))
    assert groups_of(labeler)
    assert labeler.disjoint_.all()
    assert labeler.objective_ == pytest.approx(-2.0, abs=0.1)


def test_a_clusterer_finds_the_groups_by_the_objective_that_it_was_given() -> None:
    objective = ChiSquaredInformation()
    clusterer = nb.InformationClusterer(3, objective=objective, max_iter=200, n_hidden=32, random_state=0)
    clusterer.fit(rows(90))
    assert groups_of(clusterer)
    assert clusterer.loss_curve_[-1] == pytest.approx(
        -0.2, abs=0.02
    )  # a tenth of 1 - K; the rest of the loss is about 0


def test_an_encoder_minimises_the_objective_it_was_given_and_not_mim() -> None:
    encoder = nb.MIMEncoder((8,), objective=ChiSquaredInformation(), beta=0.0, max_epochs=60, random_state=0)
    encoder.fit(rows(90))
    value = ChiSquaredInformation()(torch.from_numpy(encoder.transform(rows(90)))).item()
    assert value == pytest.approx(encoder.loss_curve_[-1], abs=0.05)  # the displayed loss is that of the objective
    assert value < encoder.loss_curve_[0] - 0.2


@pytest.mark.parametrize("X", [rows(), IMAGES], ids=["rows", "images"])
def test_mim_given_by_hand_is_mim_by_default(X: Any) -> None:
    settings = {"hidden": (8,), "encoder": "tiny", "max_epochs": 2, "random_state": 0, "batch_size": 15}
    by_default = nb.MIMEncoder(alpha=3.0, **settings).fit(X)
    objective = nb.MIM(alpha=3.0)
    by_hand = nb.MIMEncoder(objective=objective, **settings).fit(X)
    assert np.array_equal(by_hand.transform(X), by_default.transform(X))
    assert not list(objective.buffers())  # p(z) over batches belongs to the fit, not to the caller


def test_a_saved_encoder_needs_no_objective_and_says_which_it_had(tmp_path: Path) -> None:
    X = rows()
    encoder = nb.MIMEncoder((8,), objective=ChiSquaredInformation(strength=2.0), max_epochs=2, random_state=0).fit(X)
    encoder.save(tmp_path / "model")
    loaded = nb.load(tmp_path / "model")
    assert np.array_equal(loaded.transform(X), encoder.transform(X))
    assert loaded.objective == f"{__name__}.ChiSquaredInformation(strength=2.0)"
    with pytest.raises(ValueError, match=r"'objective' parameter of MIMEncoder must be an instance of 'neuralbayes"):
        loaded.fit(X)  # instead of training with another objective than before


def test_a_run_says_which_objective_it_has_and_does_not_go_on_with_another(tmp_path: Path) -> None:
    config = nb.PretrainConfig(encoder="tiny", epochs=1, batch_size=15, microbatch_size=15)
    run = tmp_path / "run"
    nb.pretrain(IMAGES, config, objective=ChiSquaredInformation(), out=run)
    nb.pretrain(IMAGES, config, objective=ChiSquaredInformation(), out=run)
    for other in (ChiSquaredInformation(strength=2.0), nb.MIM(), None):
        with pytest.raises(ValueError, match=r"another config \(different: objective\)"):
            nb.pretrain(IMAGES, config, objective=other, out=run)
    nb.fit(nb.MIM(), mlp((4, 3)), rows(), max_epochs=1, out=tmp_path / "fit")
    with pytest.raises(ValueError, match=r"another config \(different: objective\)"):
        nb.fit(nb.DML(), mlp((4, 3)), rows(), max_epochs=1, out=tmp_path / "fit")
