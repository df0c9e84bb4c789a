"""The global generators: seeded inside, unchanged outside."""

import random
from typing import Any
from unittest import mock

import numpy as np
import torch

from neuralbayes.distributed import noise_of_rank, seeded_globally


def states() -> tuple[Any, ...]:
    name, keys, *rest = np.random.get_state()  # noqa: NPY002
    return torch.get_rng_state().tolist(), (name, list(keys), *rest), random.getstate()


def test_generators_are_seeded_inside_and_as_before_outside() -> None:
    before = states()
    drawn = []
    for _ in range(2):
        with seeded_globally(3):
            drawn.append((torch.rand(2).tolist(), np.random.random(2).tolist()))  # noqa: NPY002
            random.random()
        assert states() == before
    assert drawn[0] == drawn[1]
    with seeded_globally(4):
        assert torch.rand(2).tolist() != drawn[0][0]
        assert np.random.random(2).tolist() != drawn[0][1]  # noqa: NPY002


def test_each_process_draws_noise_of_its_own() -> None:
    before = states()
    drawn = []
    for rank in (0, 1, 1):
        with noise_of_rank(mock.Mock(world_size=2, global_rank=rank), seed=3):
            drawn.append(torch.rand(2).tolist())
    assert drawn[0] != drawn[1] == drawn[2]
    assert states() == before
