"""Loading weights from a file into a module that has shapes but no memory yet."""

import pytest
import torch
from torch import Tensor, nn

from neuralbayes.networks.filling import fill


def on_meta() -> nn.Sequential:
    with torch.device("meta"):
        return nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3))


def weights() -> dict[str, Tensor]:
    torch.manual_seed(1)
    network = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3))
    network(torch.randn(4, 2, 5, 5))
    return dict(network.state_dict())


def test_a_filled_module_computes_what_the_saved_one_does() -> None:
    state, network = weights(), on_meta()
    fill(network, state)
    expected = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3))
    expected.load_state_dict(state)
    x = torch.randn(4, 2, 5, 5)
    assert torch.equal(network.eval()(x), expected.eval()(x))
    assert {name: t.tolist() for name, t in network.state_dict().items()} == {n: t.tolist() for n, t in state.items()}
    assert all(p.requires_grad and p.device.type == "cpu" for p in network.parameters())


def test_weights_are_copies() -> None:
    """A tensor that is a view of a whole file would keep the file in memory, or change with it."""
    state, network = weights(), on_meta()
    fill(network, state)
    for name, tensor in network.state_dict().items():
        assert tensor.data_ptr() != state[name].data_ptr()
    before = network[0].weight.clone()
    state["0.weight"].zero_()
    assert torch.equal(network[0].weight, before)


def test_weights_lie_in_memory_as_the_module_has_them() -> None:
    with torch.device("meta"):
        network = nn.Conv2d(2, 3, 3).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    weight = torch.randn(3, 2, 3, 3)
    fill(network, {"weight": weight, "bias": torch.zeros(3)})
    assert network.weight.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(network.weight, weight)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("0.weight", None, r"'0\.weight' is missing"),
        ("1.num_batches_tracked", None, r"'1\.num_batches_tracked' is missing"),
        ("2.weight", torch.ones(1), r"'2\.weight' is not a weight of this network"),
        (
            "0.bias",
            torch.ones(4),
            r"'0\.bias' must be .* of shape \(3,\), got torch\.float32 of shape \(4,\)",
        ),
        ("0.bias", torch.ones(3, 1), r"of shape \(3,\), got torch\.float32 of shape \(3, 1\)"),
        ("0.bias", torch.ones(3).double(), r"must be torch\.float32 of shape \(3,\), got torch\.float64"),
    ],
)
def test_what_does_not_fit_is_named_and_nothing_is_filled(name: str, value: Tensor | None, message: str) -> None:
    state, network = weights(), on_meta()
    if value is None:
        del state[name]
    else:
        state[name] = value
    with pytest.raises(ValueError, match=message):
        fill(network, state)
    assert all(p.device.type == "meta" for p in network.parameters())
