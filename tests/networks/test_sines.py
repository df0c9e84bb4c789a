"""The network of the labeler."""

import torch
from torch.testing import assert_close

from neuralbayes.networks.sines import SineNetwork


def network(n_states: int = 3) -> SineNetwork:
    generator = torch.Generator().manual_seed(0)
    made = SineNetwork(
        torch.full((4,), 1e6, dtype=torch.float64),
        torch.randn(4, 2, generator=generator, dtype=torch.float64),
        torch.randn(2, 8, generator=generator, dtype=torch.float64),
        torch.rand(8, generator=generator, dtype=torch.float64),
        n_states,
    )
    with torch.no_grad():
        made.head.copy_(torch.randn(9, n_states, generator=generator))
    return made


def test_logits_are_the_formula():
    x = torch.randn(5, 4, dtype=torch.float64) + 1e6
    made = network()
    waves = torch.sin((x - made.center) @ made.basis @ made.frequency + made.phase)
    assert_close(made(x), waves @ made.head[:-1].double() + made.head[-1].double())


def test_the_dtype_is_that_of_the_input():
    assert network()(torch.zeros(2, 4)).dtype == torch.float32
    assert network()(torch.zeros(2, 4, dtype=torch.float64)).dtype == torch.float64


def test_float32_far_from_the_origin_loses_only_what_the_input_lost():
    x = (torch.randn(50, 4) + 1e6).float()
    assert_close(network()(x).double(), network()(x.double()), atol=1e-4, rtol=1e-4)
