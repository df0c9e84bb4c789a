"""In a process group, every rank gets the gradient of the global batch, for any split."""

from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest import mock

import pytest
import torch
import torch.distributed as dist
from gradient_cases import OBJECTIVES, grads, mlp
from process_cases import made_once, results_of_group, results_of_ranks
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes import DML, RunningPrior, Smoothness

if not dist.is_available() or not dist.is_gloo_available():
    pytest.skip("this torch has no gloo", allow_module_level=True)

N = 36
SHARDS: dict[str, tuple[int, ...]] = {
    "uneven": (22, 14),
    "two-samples": (34, 2),  # fewer than there are micro-batches
    "one-is-empty": (0, 36),
    "dealt": (2,),  # every second sample, as in the training loop
    "four": (11, 1, 0, 24),
    "four-dealt": (4,),
}
"""The number of samples of each process, or the number of processes that get samples in turn."""


@dataclass(frozen=True)
class Call:
    """One call of `backward`, the same on one process or on several."""

    objective: str
    marginal: str = "exact"
    microbatch_size: int | None = 7
    dtype: torch.dtype = torch.float64
    extra: str = ""


NORMED = ("norm", "norm, R_c", "norm, a part of R_c", "norm, R_c, recompute")
UNEVEN = ("uneven", "one-is-empty")
BETWEEN_TWO = ("uneven", "two-samples", "one-is-empty", "dealt")

CASES = [
    *[(Call(name), shard) for name in OBJECTIVES for shard in BETWEEN_TWO],
    *[(Call(name, "minibatch", None), shard) for name in OBJECTIVES for shard in BETWEEN_TWO],  # one global micro-batch
    *[(Call(name, dtype=torch.float32), "uneven") for name in OBJECTIVES],
    *[(Call(name, "minibatch", None, torch.float32), "uneven") for name in OBJECTIVES],
    *[(Call(name, microbatch_size=None), "uneven") for name in OBJECTIVES],
    *[(Call(name, extra="weighted"), "uneven") for name in OBJECTIVES],
    *[(Call(name, extra="ddp"), "uneven") for name in OBJECTIVES],
    *[(Call(name, "running", None), "uneven") for name in OBJECTIVES],
    # Batch normalisation sees all processes: one micro-batch of all samples, or pieces with the same samples.
    *[(Call(name, "exact", None, extra=extra), shard) for name in OBJECTIVES for extra in NORMED for shard in UNEVEN],
    *[(Call(name, marginal, 6, extra="norm"), "dealt") for name in OBJECTIVES for marginal in ("exact", "minibatch")],
    *[(Call(name, "exact", None, torch.float32, "norm"), "uneven") for name in OBJECTIVES],
]
FOUR = [
    *[(Call(name), shard) for name in OBJECTIVES for shard in ("four", "four-dealt")],
    *[(Call(name, dtype=torch.float32), "four") for name in OBJECTIVES],
    *[(Call(name, "minibatch", None, extra="norm"), "four") for name in OBJECTIVES],
    *[(Call(name, "exact", 12, extra="norm"), "four-dealt") for name in OBJECTIVES],
]


def data(dtype: torch.dtype) -> Tensor:
    """Two clusters of points one after the other, so the prior of each rank differs from that of the batch."""
    torch.manual_seed(4)
    x = torch.randn(N, 5, dtype=torch.float64)
    x[: N // 2, 0] += 3.0
    x[N // 2 :, 0] -= 3.0
    return x.to(dtype)


def weights() -> Tensor:
    weight = torch.linspace(0.0, 2.0, N, dtype=torch.float64)
    weight[20:30] = 0.0
    return weight


def rows_of(rank: int, shard: str) -> slice:
    sizes = SHARDS[shard]
    if len(sizes) == 1:
        return slice(rank, N, sizes[0])
    return slice(sum(sizes[:rank]), sum(sizes[: rank + 1]))


def normed(dtype: torch.dtype) -> nn.Sequential:
    torch.manual_seed(3)
    norms = nn.BatchNorm1d(8), nn.BatchNorm1d(6, momentum=None, affine=False)
    return nn.Sequential(nn.Linear(5, 8), norms[0], nn.ReLU(), nn.Linear(8, 6), norms[1], nn.Linear(6, 4)).to(dtype)


def one_direction(x: Tensor, n_directions: int, center: bool, generator: Any, coefficients: str) -> Tensor:
    return nn.functional.normalize(torch.arange(5, dtype=x.dtype), dim=0).expand(n_directions, 5)


def halves(shard: str) -> Tensor:
    """The first halves of all shards, then the second halves."""
    parts = [torch.arange(N)[rows_of(rank, shard)] for rank in range(2)]
    firsts = [part[: len(part) // 2] for part in parts]
    return torch.cat([*firsts, *(part[len(part) // 2 :] for part in parts)])


def run(case: Call, rows: slice, shard: str) -> tuple[float, Tensor]:
    """Loss and gradient for the rows of this process, and the statistics of batch normalisation."""
    network: nn.Module = normed(case.dtype) if "norm" in case.extra else mlp(dtype=case.dtype)
    alone = not dist.is_initialized()
    if case.extra == "ddp" and not alone:
        network = nn.parallel.DistributedDataParallel(network)
    smooth = Smoothness(0.5, of="logits", fraction=0.5 if "part" in case.extra else 1.0)
    running = RunningPrior(momentum=0.5)
    running.update(0, torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=case.dtype))
    size = case.microbatch_size
    if "norm" in case.extra and size is not None and not alone:
        size //= dist.get_world_size()
    with (
        # The perturbations do not depend on which process has a sample: all have the same step.
        mock.patch("torch.randn", lambda *shape, **kind: torch.ones(*shape, dtype=kind.get("dtype"))),
        mock.patch("torch.randperm", lambda n, **kind: halves(shard) if alone else torch.arange(n)),
        mock.patch("neuralbayes.objectives.smoothness.span_directions", one_direction),
    ):
        loss = nb.backward(
            OBJECTIVES[case.objective](),
            network,
            data(case.dtype)[rows],
            microbatch_size=size,
            marginal=running if case.marginal == "running" else case.marginal,  # type: ignore[arg-type]
            smoothness=smooth if "R_c" in case.extra else None,
            sample_weight=weights()[rows] if case.extra == "weighted" else None,
            recompute="recompute" in case.extra,
        )
    remembered = [b.to(case.dtype).flatten() for b in network.buffers()]
    return loss.item(), torch.cat([grads(network), *remembered])


@cache
def on_one_process(call: Call, shard: str) -> tuple[float, Tensor]:
    return run(call, slice(0, N), shard)


# Functions that the processes of the group run; results reach the tests through files


class Switched(nn.Module):
    """Uses another layer for samples of one kind than for the other kind, and has a frozen layer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.frozen = nn.Linear(5, 5).double().requires_grad_(False)
        self.right, self.left = nn.Linear(5, 4).double(), nn.Linear(5, 4).double()

    def forward(self, x: Tensor) -> Tensor:
        layer = self.right if float(x[:, 0].mean()) > 0 else self.left
        result: Tensor = layer(self.frozen(x))
        return result


def switched(rows: slice) -> tuple[float, Tensor]:
    """Call `backward` when each process trains a layer that the other does not use.

    The clusters of points come one after the other, so a process, or half of the batch on one process, has one of them.
    Returns 1 if the frozen layer has no gradient, and the gradients.
    """
    network = Switched()
    half = slice(N // 2) if rows.start == 0 else slice(N // 2, N)
    x = data(torch.float64)
    nb.backward(DML(), network, x[half] if dist.is_initialized() else x, microbatch_size=N // 2)
    return float(network.frozen.weight.grad is None), grads(network)


def in_one_of_two(rank: int) -> dict[str, tuple[float, Tensor]]:
    results = {str(case): run(case[0], rows_of(rank, case[1]), case[1]) for case in CASES}
    return results | {"switched": switched(rows_of(rank, "uneven"))}


def in_one_of_four(rank: int) -> dict[str, tuple[float, Tensor]]:
    return {str(case): run(case[0], rows_of(rank, case[1]), case[1]) for case in FOUR}


Results = list[dict[str, tuple[float, Tensor]]]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The results of two processes in every case."""
    return results_of_ranks(
        made_once(tmp_path_factory, "two-ranks", lambda folder: results_of_group(folder, in_one_of_two, 2))
    )


@pytest.fixture(scope="module")
def four_ranks(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return results_of_ranks(
        made_once(tmp_path_factory, "four-ranks", lambda folder: results_of_group(folder, in_one_of_four, 4)), 4
    )


@pytest.mark.parametrize(("group", "cases"), [("ranks", CASES), ("four_ranks", FOUR)])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_rank_ends_with_the_gradient_of_the_global_batch(
    name: str, group: str, cases: list[tuple[Call, str]], request: pytest.FixtureRequest
) -> None:
    """Agrees to 1e-10 in float64 and 1e-6 in float32, for every split, marginal, micro-batch size and network."""
    wrong = []
    ranks: Results = request.getfixturevalue(group)
    for call, shard in (case for case in cases if case[0].objective == name):
        value, gradient = on_one_process(call, shard)
        tolerance = 1e-10 if call.dtype == torch.float64 else 1e-6
        for rank, results in enumerate(ranks):
            loss, ours = results[str((call, shard))]
            if float((ours - gradient).abs().max()) > tolerance or abs(loss - value) > tolerance * max(1.0, abs(value)):
                wrong.append((call, shard, rank, float((ours - gradient).abs().max()), loss - value))
    assert wrong == []


def test_a_layer_that_one_process_alone_uses_gets_its_gradient_everywhere(ranks: Results) -> None:
    _, expected = switched(slice(0, N))
    for results in ranks:
        torch.testing.assert_close(results["switched"][1], expected, rtol=0, atol=1e-10)
        assert results["switched"][0] == 1.0


def test_ranks_agree_to_the_last_bit(ranks: Results) -> None:
    """Their parameters therefore never diverge."""
    for case in CASES:
        assert torch.equal(ranks[0][str(case)][1], ranks[1][str(case)][1])
