"""Over a process group every rank ends with the gradient of the global batch, however it is split."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from filelock import FileLock
from gradient_cases import OBJECTIVES, grads, mlp, relative_error
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes import DML, MIM, RunningPrior, Smoothness

if not dist.is_available() or not dist.is_gloo_available():
    pytest.skip("this torch has no gloo", allow_module_level=True)

N = 36
SHARDS = {
    "uneven": (22, 14),
    "two-samples": (34, 2),  # fewer than there are micro-batches
    "one-is-empty": (0, 36),
}


@dataclass(frozen=True)
class Call:
    """One call of `backward`, the same on one process or on several."""

    objective: str
    marginal: str = "exact"
    microbatch_size: int | None = 7
    dtype: torch.dtype = torch.float64
    extra: str = ""


CASES = [
    *[(Call(name), shard) for name in OBJECTIVES for shard in SHARDS],
    *[(Call(name, "minibatch", None), shard) for name in OBJECTIVES for shard in SHARDS],  # one global micro-batch
    *[(Call(name, dtype=torch.float32), "uneven") for name in OBJECTIVES],
    *[(Call(name, "minibatch", None, torch.float32), "uneven") for name in OBJECTIVES],
    *[(Call(name, microbatch_size=None), "uneven") for name in OBJECTIVES],
    *[(Call(name, extra="weighted"), "uneven") for name in OBJECTIVES],
    *[(Call(name, extra="ddp"), "uneven") for name in OBJECTIVES],
    *[(Call(name, "running", None), "uneven") for name in OBJECTIVES],
]


def data(dtype: torch.dtype) -> Tensor:
    """Two groups of points one after the other, so that each rank sees a prior that is not that of the batch."""
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
    first = SHARDS[shard][0]
    return slice(0, first) if rank == 0 else slice(first, N)


def run(case: Call, rows: slice) -> tuple[float, Tensor]:
    """Loss and gradient of the rows that this process has."""
    network: nn.Module = mlp(dtype=case.dtype)
    if case.extra == "ddp" and dist.is_initialized():
        network = nn.parallel.DistributedDataParallel(network)
    running = RunningPrior(momentum=0.5)
    running.update(0, torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=case.dtype))
    loss = nb.backward(
        OBJECTIVES[case.objective](),
        network,
        data(case.dtype)[rows],
        microbatch_size=case.microbatch_size,
        marginal=running if case.marginal == "running" else case.marginal,  # type: ignore[arg-type]
        sample_weight=weights()[rows] if case.extra == "weighted" else None,
    )
    return loss.item(), grads(network)


@cache
def on_one_process(call: Call) -> tuple[float, Tensor]:
    return run(call, slice(0, N))


# What a process of the group does; results go to the tests through files


def kept_gradients(rows: slice) -> tuple[float, Tensor]:
    """`backward` where every parameter has a gradient of 1 already."""
    network = mlp()
    for p in network.parameters():
        p.grad = torch.ones_like(p)
    return nb.backward(DML(), network, data(torch.float64)[rows], microbatch_size=7).item(), grads(network)


def stretched(rows: slice) -> tuple[float, Tensor]:
    """F(x) = 3x, whose R_c is 9 whatever the directions."""
    network = nn.Linear(5, 5, bias=False).double()
    with torch.no_grad():
        network.weight.copy_(3.0 * torch.eye(5))
    R_c = Smoothness(beta=2.0, of="logits")
    loss = nb.backward(MIM(), network, data(torch.float64)[rows], microbatch_size=7, smoothness=R_c)
    return loss.item(), grads(network)


def own_prior(rows: slice) -> tuple[float, Tensor]:
    """What each rank would contribute with a prior of its own."""
    x = data(torch.float64)[rows]
    network = mlp()
    DML()(network(x)).backward()
    return 0.0, grads(network) * len(x) / N


EXTRAS: dict[str, Callable[[slice], tuple[float, Tensor]]] = {
    "kept": kept_gradients,
    "stretched": stretched,
    "own prior": own_prior,
}


def process(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    meeting, patience = f"file://{folder}/meeting", timedelta(seconds=120)
    dist.init_process_group("gloo", init_method=meeting, timeout=patience, rank=rank, world_size=2)
    try:
        results = {str(case): run(case[0], rows_of(rank, case[1])) for case in CASES}
        for name, function in EXTRAS.items():
            results[name] = function(rows_of(rank, "uneven"))
        torch.save(results, f"{folder}/{rank}.pt")
    finally:
        dist.destroy_process_group()


Results = list[dict[str, tuple[float, Tensor]]]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What each of two processes got in every case. They are started once, also under pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    folder: Path = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "processes"
    with FileLock(f"{folder}.lock"):
        if not (folder / "done").exists():
            folder.mkdir()
            mp.spawn(process, (str(folder),), nprocs=2)
            (folder / "done").touch()
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in (0, 1)]


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_rank_ends_with_the_gradient_of_the_global_batch(name: str, ranks: Results) -> None:
    """To 1e-10 in float64 and 1e-6 in float32, for every split, marginal and micro-batch size."""
    wrong = []
    for call, shard in (case for case in CASES if case[0].objective == name):
        value, gradient = on_one_process(call)
        tolerance = 1e-10 if call.dtype == torch.float64 else 1e-6
        for rank, results in enumerate(ranks):
            loss, ours = results[str((call, shard))]
            if float((ours - gradient).abs().max()) > tolerance or abs(loss - value) > tolerance * max(1.0, abs(value)):
                wrong.append((call, shard, rank, float((ours - gradient).abs().max()), loss - value))
    assert wrong == []


def test_a_prior_of_each_ranks_own_would_be_seen(ranks: Results) -> None:
    """The average of what each rank gets from its own p(z) is another gradient: the test above can fail."""
    _, gradient = on_one_process(Call("dml"))
    averaged = sum(results["own prior"][1] for results in ranks)
    assert relative_error(averaged, gradient) > 0.1


def test_gradients_that_were_there_are_not_summed_over_processes(ranks: Results) -> None:
    _, expected = kept_gradients(slice(0, N))
    for results in ranks:
        torch.testing.assert_close(results["kept"][1], expected, rtol=0, atol=1e-10)


def test_smoothness_is_a_mean_over_the_samples_of_all_processes(ranks: Results) -> None:
    """2 * 9 above the objective alone, on both ranks."""
    alone = float(MIM()(3.0 * data(torch.float64)))
    assert [results["stretched"][0] for results in ranks] == pytest.approx([alone + 18.0] * 2, rel=1e-9)


def test_ranks_agree_to_the_last_bit(ranks: Results) -> None:
    """So that their parameters never drift apart."""
    for case in CASES:
        assert torch.equal(ranks[0][str(case)][1], ranks[1][str(case)][1])
