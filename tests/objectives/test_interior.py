"""Probabilities inside (0, 1): changed by no more than rounding."""

import math

import pytest
import torch

from neuralbayes.objectives.base import interior, interior_posterior

both_types = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


@both_types
def test_certain_states_get_the_last_number_before_1_and_the_others_the_root_of_the_smallest(
    dtype: torch.dtype,
) -> None:
    before_1 = torch.nextafter(torch.ones((), dtype=dtype), torch.zeros((), dtype=dtype)).item()
    floor = torch.tensor(math.sqrt(torch.finfo(dtype).tiny), dtype=dtype).item()
    assert interior_posterior(torch.tensor([[2e3, 0.0]], dtype=dtype)).tolist() == [[before_1, floor]]
    assert interior(torch.tensor([1.0, 0.0], dtype=dtype)).tolist() == [before_1, floor]


@both_types
def test_what_is_inside_stays_as_it_is(dtype: torch.dtype) -> None:
    p = torch.tensor([0.5, 1e-18, 1 - 1e-6], dtype=dtype)
    assert torch.equal(interior(p), p)
