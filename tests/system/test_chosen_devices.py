"""The choice of the device, networks that stay where they compute, and leaving and entering autocast."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes.bayes import weighted_sum
from neuralbayes.system.devices import (
    device_of,
    torch_device,
    widened,
    within_autocast,
    without_autocast,
    working_copy,
)


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cpu:0", "", 0])
def test_an_unknown_device_is_refused_with_those_there_are(device: str) -> None:
    with pytest.raises(ValueError, match="`device`"):
        torch_device(device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
@pytest.mark.parametrize("name", ["ManifoldLabeler", "InformationClusterer", "MIMEncoder"])
def test_estimators_name_a_device_that_is_not_there(name: str) -> None:
    rows = torch.randn(20, 2).numpy()
    with pytest.raises(ValueError, match="`device`"):
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


CPU = torch.device("cpu")


def state() -> tuple[bool, torch.dtype, bool]:
    return torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("cached", [True, False])
def test_a_function_finds_the_autocast_that_it_was_taken_from(dtype: torch.dtype, cached: bool) -> None:
    with torch.autocast("cpu", dtype, cache_enabled=cached):
        function = within_autocast(lambda _: state(), CPU)
        with without_autocast(CPU):
            assert function(torch.ones(1)) == (True, dtype, cached)
            assert not torch.is_autocast_enabled("cpu")
    assert function(torch.ones(1)) == (True, dtype, cached)
    assert not torch.is_autocast_enabled("cpu")


def test_autocast_is_left_again_after_an_error_in_the_function() -> None:
    def fail(_: Tensor) -> Tensor:
        raise RuntimeError("inside")

    with torch.autocast("cpu", torch.bfloat16):
        function = within_autocast(fail, CPU)
    with pytest.raises(RuntimeError, match="inside"):
        function(torch.ones(1))
    assert not torch.is_autocast_enabled("cpu")


def test_without_autocast_the_function_is_the_same_object() -> None:
    assert within_autocast(state, CPU) is state  # type: ignore[arg-type, comparison-overlap]


@pytest.mark.parametrize("device", ["meta", "cuda"])
def test_autocast_of_another_device_is_left_alone(device: str) -> None:
    with torch.autocast("cpu", torch.bfloat16), without_autocast(torch.device(device)):
        assert torch.is_autocast_enabled("cpu")
        assert within_autocast(state, torch.device(device)) is state  # type: ignore[arg-type, comparison-overlap]


def test_half_precision_is_widened_in_containers_and_nothing_else() -> None:
    outputs = {
        "b": torch.ones(1, dtype=torch.bfloat16),
        "h": [torch.ones(1, dtype=torch.float16)],
        "d": torch.ones(1, dtype=torch.float64),
        "i": torch.ones(1, dtype=torch.int64),
        "n": None,
    }
    wide = widened(outputs)
    assert [wide["b"].dtype, wide["h"][0].dtype, wide["d"].dtype] == [torch.float32, torch.float32, torch.float64]
    assert wide["i"] is outputs["i"]
    assert wide["n"] is None


def test_the_backward_pass_of_a_weighted_sum_leaves_autocast_too() -> None:
    """0.1 has no short binary form, so a product in bfloat16 would differ."""
    values = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        weighted_sum(torch.tensor([0.1, 0.3]), values).backward(torch.tensor([0.7, 1.0]))
    assert values.grad is not None
    torch.testing.assert_close(values.grad, torch.tensor([[0.07, 0.1], [0.21, 0.3]]), rtol=1e-6, atol=0.0)
