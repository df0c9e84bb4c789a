"""Cluster MNIST with one change at a time to the recipe of InformationClusterer, without image transformations.

    python benchmarks/tried.py                  measure all changes with two seeds, into results/field: hours
    python benchmarks/tried.py --only NAME      measure one change

Ten clusters are trained on all 60,000 training images and scored on all test images. Classes are only used for scores.
Images are given as rows of pixels, so they are not transformed. On some other sets, only the rule for merging states is
changed. An interrupted run continues.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from field_records import OTHER_SETS, TRIED, tried_results
from field_sets import IMAGES, TABLES, Data
from neuralbayes.clusters.fit import fit_clusters
from neuralbayes.clusters.smooth_step import Step, smooth_step
from records import Record
from torch import Tensor, nn
from tried_mergings import MERGINGS

from neuralbayes.clusters import fit, training
from neuralbayes.clusters.accuracy import clustering_accuracy
from neuralbayes.clusters.training import ClusterOptions, Fetch, Trained, default_steps, train_states
from neuralbayes.gradients.passes import frozen_buffers
from neuralbayes.objectives import DML, MIM, RunningPrior, smoothness
from neuralbayes.objectives.virtual_adversarial import virtual_adversarial
from neuralbayes.training.progress import progress

ROOT = Path(__file__).parents[1]
SEEDS = 2
DEFAULT = ClusterOptions(n_clusters=10, n_states=40, max_iter=6000)
"""Options for MNIST."""
Train = Callable[[nn.Module, Fetch, Tensor, ClusterOptions], Trained]


@dataclass(frozen=True)
class Change:
    """One change: other options, another way to train the network, or other data."""

    options: dict[str, Any] = field(default_factory=dict)
    train: Train = train_states
    set: str = "MNIST"


def regularized(of: str, weight: float, options: ClusterOptions, rising: bool = False) -> Step:
    """Replace virtual adversarial training by the paper's R_c on logits or p(z|x); its weight may rise from 0."""
    objective = MIM(DEFAULT.prior - 1.0, version=1)
    steps = itertools.count(1)

    def step(network: nn.Module, batch: tuple[Tensor, ...]) -> dict[str, Tensor]:
        x, radius = batch
        logits = network(x)

        def function(inputs: Tensor) -> Tensor:
            outputs: Tensor = network(inputs)
            return outputs.softmax(dim=1) if of == "posterior" else outputs

        with frozen_buffers(network):
            clean = logits.softmax(dim=1) if of == "posterior" else logits
            rough = smoothness(function, x, float(radius.mean()), clean=clean, center=True)
        share = next(steps) / options.max_iter if rising else 1.0
        loss = share * weight * float(radius.mean()) ** 2 * rough + DEFAULT.information * objective(logits)
        torch.autograd.backward(loss)
        return {"loss": loss}

    return step


def with_objective(objective: Callable[[Tensor], Tensor]) -> Step:
    """Use another objective together with virtual adversarial training."""

    def step(network: nn.Module, batch: tuple[Tensor, ...]) -> dict[str, Tensor]:
        x, radius = batch
        logits = network(x)
        with frozen_buffers(network):
            change = virtual_adversarial(network, x, radius, clean=logits, step=DEFAULT.small_step)
        loss = change + objective(logits)
        torch.autograd.backward(loss)
        return {"loss": loss}

    return step


def informative(logits: Tensor) -> Tensor:
    value: Tensor = DEFAULT.information * MIM(DEFAULT.prior - 1.0, version=1)(logits)
    return value


def running_information() -> Callable[[Tensor], Tensor]:
    """The default objective with a running average as p(z), which has the gradient of the batch."""
    running = RunningPrior()

    def objective(logits: Tensor) -> Tensor:
        log_p = logits.log_softmax(dim=1)
        p_zx = log_p.exp()
        batch = p_zx.mean(dim=0)
        p_z = running.update(0, batch) + batch - batch.detach()
        h_zx = -(p_zx * log_p).sum(dim=1).mean()
        h_z = -(p_z * p_z.clamp_min(1e-12).log()).sum()
        return DEFAULT.information * (h_zx - DEFAULT.prior * h_z)

    return objective


def unregularized(network: nn.Module, batch: tuple[Tensor, ...]) -> dict[str, Tensor]:
    """Maximise the information only, without smoothness."""
    loss = informative(network(batch[0]))
    torch.autograd.backward(loss)
    return {"loss": loss}


def trained_with(step: Step, network: nn.Module, fetch: Fetch, radius: Tensor, options: ClusterOptions) -> Trained:
    """Call `train_states` with another step."""
    with mock.patch.object(training, "smooth_step", return_value=step):
        return train_states(network, fetch, radius, options)


def averaged(network: nn.Module, fetch: Fetch, radius: Tensor, options: ClusterOptions) -> Trained:
    """Average weights and running statistics over the last quarter of training."""
    mean = copy.deepcopy(network)
    inner = smooth_step(MIM(options.prior - 1.0, version=1), options.information, step=options.small_step)
    done = {"steps": 0, "averaged": 0}

    def step(network: nn.Module, batch: tuple[Tensor, ...]) -> dict[str, Tensor]:
        done["steps"] += 1
        if done["steps"] > 0.75 * options.max_iter:
            done["averaged"] += 1
            with torch.no_grad():
                for ours, theirs in zip(mean.state_dict().values(), network.state_dict().values(), strict=True):
                    if ours.is_floating_point():
                        ours.lerp_(theirs, 1.0 / done["averaged"])
        return inner(network, batch)

    trained = trained_with(step, network, fetch, radius, options)
    network.load_state_dict(mean.state_dict())
    return trained


def self_trained(network: nn.Module, fetch: Fetch, radius: Tensor, options: ClusterOptions) -> Trained:
    """After two thirds of the steps, also train confident samples on their own predictions."""
    inner = smooth_step(MIM(options.prior - 1.0, version=1), options.information, step=options.small_step)
    done = {"steps": 0}

    def step(network: nn.Module, batch: tuple[Tensor, ...]) -> dict[str, Tensor]:
        done["steps"] += 1
        metrics = inner(network, batch)
        if 3 * done["steps"] > 2 * options.max_iter:
            with frozen_buffers(network):
                logits = network(batch[0])
            sure, label = logits.detach().softmax(dim=1).max(dim=1)
            loss = 0.1 * (nn.functional.cross_entropy(logits, label, reduction="none") * (sure > 0.9)).mean()
            torch.autograd.backward(loss)
        return metrics

    return trained_with(step, network, fetch, radius, options)


def trained_by(make_step: Callable[[ClusterOptions], Step]) -> Change:
    """Use another step, created separately for the states and for the clusters."""

    def train(network: nn.Module, fetch: Fetch, radius: Tensor, options: ClusterOptions) -> Trained:
        return trained_with(make_step(options), network, fetch, radius, options)

    return Change(train=train)


def roughness(of: str, weight: float, rising: bool = False) -> Callable[[], Change]:
    return lambda: trained_by(lambda options: regularized(of, weight, options, rising))


def beside(make_objective: Callable[[], Callable[[Tensor], Tensor]]) -> Callable[[], Change]:
    return lambda: trained_by(lambda _: with_objective(make_objective()))


CHANGES: dict[str, Callable[[], Change]] = {
    "default": Change,
    "10 states, as many as clusters": lambda: Change({"n_states": 10}),
    "20 states": lambda: Change({"n_states": 20}),
    "80 states": lambda: Change({"n_states": 80}),
    "160 states": lambda: Change({"n_states": 160}),
    "all pixels": lambda: Change({"n_dimensions": 784}),
    "32 components": lambda: Change({"n_dimensions": 32}),
    "128 components": lambda: Change({"n_dimensions": 128}),
    "no smoothness": lambda: trained_by(lambda _: unregularized),
    "R_c on logits, weight 0.001": roughness("logits", 0.001),
    "R_c on logits, weight 0.01": roughness("logits", 0.01),
    "R_c on logits, weight 0.1": roughness("logits", 0.1),
    "R_c on logits, weight 1": roughness("logits", 1.0),
    "R_c on logits, weight 10": roughness("logits", 10.0),
    "R_c on logits, weight rising to 1": roughness("logits", 1.0, rising=True),
    "R_c on p(z|x), weight 1": roughness("posterior", 1.0),
    "R_c on p(z|x), weight 10": roughness("posterior", 10.0),
    "R_c on p(z|x), weight 100": roughness("posterior", 100.0),
    "R_c on p(z|x), weight 1000": roughness("posterior", 1000.0),
    "radius 0.2": lambda: Change({"radius": 0.2}),
    "radius 0.3": lambda: Change({"radius": 0.3}),
    "radius 0.6": lambda: Change({"radius": 0.6}),
    "small step 0.1": lambda: Change({"small_step": 0.1}),
    "small step 1": lambda: Change({"small_step": 1.0}),
    "DML in the place of MIM": beside(DML),
    "DML and MIM": beside(lambda: lambda logits: informative(logits) + 0.1 * DML()(logits)),
    "running p(z)": beside(running_information),
    "batches of 1000, as many images": lambda: Change({"batch_size": 1000, "max_iter": 1500}),
    "batches of 5000, as many images": lambda: Change({"batch_size": 5000, "max_iter": 300}),
    "batches of 1000, as many steps": lambda: Change({"batch_size": 1000}),
    "1500 steps": lambda: Change({"max_iter": 1500}),
    "3000 steps": lambda: Change({"max_iter": 3000}),
    "12000 steps": lambda: Change({"max_iter": 12_000}),
    "256 hidden units": lambda: Change({"n_hidden": 256}),
    "1200 hidden units": lambda: Change({"n_hidden": 1200}),
    "weights averaged": lambda: Change(train=averaged),
    "self-training": lambda: Change(train=self_trained),
    **{name: partial(Change, set=name) for name in OTHER_SETS},
}


load = cache(lambda name: {**IMAGES, **TABLES}[name]())


def measure(name: str, seed: int) -> Record:
    change = CHANGES[name]()
    data: Data = load(change.set)
    train, test = (torch.from_numpy(rows) for rows in data.rows)
    n_clusters, n_steps = data.n_clusters, default_steps(len(train))
    options = replace(DEFAULT, n_clusters=n_clusters, n_states=4 * n_clusters, max_iter=n_steps)
    after_states: list[nn.Module] = []

    def watched(network: nn.Module, fetch: Fetch, radius: Tensor, options: ClusterOptions, _: None) -> Trained:
        trained = change.train(network, fetch, radius, options)
        after_states.append(copy.deepcopy(network))
        return trained

    start = time.process_time()
    with mock.patch.object(fit, "train_states", watched):
        found = fit_clusters(
            lambda indices: train[indices],
            len(train),
            None,
            replace(options, **change.options),
            np.random.RandomState(seed),
        )
    seconds = time.process_time() - start
    with torch.no_grad():
        clusters = torch.cat([found.network(part) for part in test.tensor_split(10)]).argmax(dim=1).numpy()
        parts = [after_states[0](found.network.normalize(part)) for part in test.tensor_split(10)]
        states = torch.cat(parts).softmax(dim=1).numpy()
    table = np.zeros((states.shape[1], n_clusters))
    np.add.at(table, (states.argmax(axis=1), data.test_classes), 1)
    merged = {name: merge(found.joint, n_clusters)[states.argmax(axis=1)] for name, merge in MERGINGS.items()}
    merged["ours"] = (states @ found.network.membership.numpy()).argmax(axis=1)
    return {
        "accuracy": clustering_accuracy(clusters, data.test_classes),
        **{f"merged by {name}": clustering_accuracy(labels, data.test_classes) for name, labels in merged.items()},
        "purity": float(table.max(axis=1).sum() / table.sum()),
        "standing_out": found.merging.standing_out(20),
        "objective": found.objective,
        "processor_seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(CHANGES), metavar="NAME", help="measure only these changes")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    versions = {
        "python": platform.python_version(),
        **{name: version(name) for name in ("neuralbayes", "torch", "numpy", "scikit-learn")},
    }
    results = tried_results(ROOT / "results" / "field", versions, arguments.threads)
    names, seeds = arguments.only or CHANGES, range(arguments.seeds)
    todo: list[Record] = [{"change": name, "seed": seed} for seed in seeds for name in names]
    left = [job for job in todo if not results.has(TRIED, job)]
    with progress(len(todo), description="fit", completed=len(todo) - len(left)) as display:
        for job in left:
            record = measure(job["change"], job["seed"])
            results.add(TRIED, {**job, **record})
            print(f"{job['change']}, seed {job['seed']}: {100 * record['accuracy']:.2f} %", flush=True)
            display.advance()


if __name__ == "__main__":
    main()
