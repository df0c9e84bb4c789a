"""The choice of the device, and networks that stay on the device where they compute."""

from pathlib import Path

import pytest
import torch
from torch import nn

import neuralbayes as nb
from neuralbayes.system.devices import device_of, torch_device, working_copy


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cpu:0", "", 0])
def test_an_unknown_device_is_refused_with_those_there_are(device: str) -> None:
    with pytest.raises(ValueError, match="`device` must be 'auto', 'cpu', 'cuda'"):
        torch_device(device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
@pytest.mark.parametrize("name", ["ManifoldLabeler", "InformationClusterer", "MIMEncoder"])
def test_estimators_name_a_device_that_is_not_there(name: str) -> None:
    rows = torch.randn(20, 2).numpy()
    with pytest.raises(ValueError, match=r"`device` must be one that PyTorch finds here, got 'cuda:1'"):
        getattr(nb, name)(device="cuda:1").fit(rows)


def test_a_network_in_its_place_is_taken_itself() -> None:
    network = nn.Linear(2, 2)
    assert working_copy(network, torch.device("cpu")) is network


def test_a_network_is_copied_to_another_device() -> None:
    network = nn.Linear(2, 2)
    copied = working_copy(network, torch.device("meta"))
    assert (device_of(copied).type, device_of(network).type) == ("meta", "cpu")


def test_double_precision_stays_where_mps_has_none() -> None:
    network = nn.Linear(2, 2).double()
    assert working_copy(network, torch.device("mps")) is network


def test_a_loaded_model_computes_on_the_machine_it_is_on(tmp_path: Path) -> None:
    rows = torch.randn(30, 2).numpy()
    nb.ManifoldLabeler(1, random_state=0, device="cpu").fit(rows).save(tmp_path)
    assert nb.load(tmp_path).device == "auto"
