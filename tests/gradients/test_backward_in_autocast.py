"""`backward` inside the caller's autocast, as in the training loop: half precision only for the network."""

import copy
import subprocess
import sys

import pytest
import torch
from gradient_cases import OBJECTIVES, grads, mlp, points, relative_error, whole_batch
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes import DML, Objective, Smoothness

every_objective = pytest.mark.parametrize("name", OBJECTIVES)
any_microbatch = pytest.mark.parametrize("size", [None, 7])


def bfloat16() -> torch.autocast:
    return torch.autocast("cpu", torch.bfloat16)


@pytest.fixture
def _bfloat16_works() -> None:
    """Some processors that claim bfloat16 crash (SIGILL), so it is tried in another process."""
    product = "import torch; a = torch.ones(8, 8, dtype=torch.bfloat16); (a @ a).sum()"
    if subprocess.run([sys.executable, "-c", product], check=False, capture_output=True).returncode:
        pytest.skip("no bfloat16 here")


class InFloat32(nn.Module):
    """A network that computes in float32 inside autocast, so any loss of precision comes from elsewhere."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", enabled=False):
            result: Tensor = self.network(x)
        return result


class ByProducts(Objective):
    """Terms with matrix products, which autocast would compute in half precision."""

    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        return p_zx @ p_z.log()

    def prior_term(self, p_z: Tensor) -> Tensor:
        return p_z @ p_z.log()


# What is not the network


@pytest.mark.parametrize("make", [DML, ByProducts])
@pytest.mark.parametrize("marginal", ["exact", "minibatch", "running"])
@pytest.mark.parametrize("of", ["pooled", "posterior", lambda outputs: outputs @ torch.eye(4)[:, :2]])
def test_nothing_changes_for_a_network_in_float32(make: type[Objective], marginal: str, of: str) -> None:
    """To the last bit: p(z), slopes, terms, directions and differences of R_c."""
    found = []
    for enabled in (False, True):
        network, x = mlp(dtype=torch.float32), points(20, torch.float32)
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = nb.backward(
                make(),
                InFloat32(network),
                x,
                microbatch_size=7,
                marginal=marginal,  # type: ignore[arg-type]
                smoothness=Smoothness(0.5, of, fraction=0.5),  # type: ignore[arg-type]
                sample_weight=torch.linspace(0.0, 1.0, 20),
            )
        found.append(torch.cat([loss.reshape(1), grads(network)]))
    assert torch.equal(*found)


# The network


@pytest.mark.usefixtures("_bfloat16_works")
@pytest.mark.parametrize("recompute", [False, True])
def test_every_pass_of_the_network_is_in_the_callers_autocast(recompute: bool) -> None:
    network, x = mlp(dtype=torch.float32), points(20, torch.float32)
    seen: list[torch.dtype] = []
    network[0].register_forward_hook(lambda _module, _inputs, output: seen.append(output.dtype))
    with bfloat16():
        nb.backward(DML(), network, x, microbatch_size=10, smoothness=Smoothness(fraction=0.5), recompute=recompute)
    assert len(seen) == (10 if recompute else 6)  # two pieces: p(z), clean, perturbed; slopes and perturbed again
    assert set(seen) == {torch.bfloat16}


@pytest.mark.usefixtures("_bfloat16_works")
@every_objective
@any_microbatch
def test_gradient_is_as_good_as_that_of_plain_autograd(name: str, size: int | None) -> None:
    """Forward in bfloat16, the rest in float32: only rounding in the network matters."""
    network, x = mlp(dtype=torch.float32), points(100, torch.float32)
    _, exact = whole_batch(OBJECTIVES[name](), copy.deepcopy(network).double(), x.double())
    with bfloat16():
        logits = network(x)
    OBJECTIVES[name]()(logits.float()).backward()
    plain = relative_error(grads(network).double(), exact)
    network.zero_grad()
    with bfloat16():
        nb.backward(OBJECTIVES[name](), network, x, microbatch_size=size)
    assert relative_error(grads(network).double(), exact) < 1.25 * plain
