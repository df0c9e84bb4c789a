"""Several outputs of one network: the sum over hidden states and scales of appendix B."""

import math

import pytest
import torch
from torch import Tensor

from neuralbayes import DML, MIM, WeightedSum
from neuralbayes.objectives.base import as_list


def outputs() -> list[Tensor]:
    shapes = [(6, 4, 3, 3), (6, 5, 2, 2), (6, 3)]
    return [torch.randn(shape, dtype=torch.float64) for shape in shapes]


def test_one_objective_is_averaged_over_the_outputs() -> None:
    """Appendix B: 1/8 sum over the 8 states, here 1/3 over 3."""
    states = outputs()
    mean = sum(float(MIM()(h)) for h in states) / 3
    assert float(WeightedSum(MIM())(states)) == pytest.approx(mean, abs=1e-12)


def test_weights_and_objectives_belong_to_outputs_in_order() -> None:
    states = outputs()
    objective = WeightedSum([MIM(), DML(), MIM(version=1)], weights=[0.5, 2.0, 0.0])
    expected = 0.5 * float(MIM()(states[0])) + 2.0 * float(DML()(states[1]))
    assert float(objective(states)) == pytest.approx(expected, abs=1e-12)


def test_a_mapping_counts_as_its_values() -> None:
    states = outputs()
    named = dict(zip("abc", states, strict=True))
    assert torch.equal(WeightedSum(DML())(named), WeightedSum(DML())(states))


def test_sample_weights_reach_every_output() -> None:
    states, weight = outputs(), torch.rand(6, dtype=torch.float64)
    mean = sum(float(DML()(h, weight)) for h in states) / 3
    assert float(WeightedSum(DML())(states, weight)) == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (WeightedSum(MIM(), weights=[1.0]), "`weights` must have one entry for each of the network's 3 outputs, got 1"),
        (WeightedSum([MIM(), DML()]), "`objectives` must have one entry for each of the network's 3 outputs, got 2"),
    ],
)
def test_a_wrong_number_of_terms_is_refused(objective: WeightedSum, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        objective(outputs())


@pytest.mark.parametrize(
    ("name", "bad"),
    [("weights", [-1.0]), ("weights", [math.nan]), ("objectives", []), ("objectives", [torch.nn.Identity()])],
)
def test_weights_and_objectives_that_cannot_be_are_refused(name: str, bad: list[object]) -> None:
    with pytest.raises((TypeError, ValueError), match=f"`{name}` must be"):
        WeightedSum(**({"objectives": MIM()} | {name: bad}))  # type: ignore[arg-type]


@pytest.mark.parametrize("junk", [[], [1.0], {"a": "b"}, None, 3.0], ids=str)
def test_outputs_that_are_no_tensors_are_refused(junk: object) -> None:
    with pytest.raises(TypeError, match="`network` must return a tensor of logits, or a sequence or mapping of them"):
        WeightedSum(MIM())(junk)


def test_what_a_network_returned_is_named_down_to_its_shapes() -> None:
    """A recurrent network returns its outputs and, in addition, its last states."""
    outputs = (torch.zeros(6, 4), (torch.zeros(1, 6, 4), None))
    with pytest.raises(TypeError, match=r"got tuple of \(6, 4\), tuple of \(1, 6, 4\), NoneType"):
        as_list(outputs)
    with pytest.raises(ValueError, match=r"n_samples = 5, got Tensor of \(6, 4\)"):
        as_list(torch.zeros(6, 4), 5)
