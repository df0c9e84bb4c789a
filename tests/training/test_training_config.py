"""Settings of a training: their record in config.json, and a training that follows them."""

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest
from torch import Tensor, nn

from neuralbayes.training.config import TrainingConfig, open_run, train_in_folder

SETTINGS = {"batch_size": 8, "scales": (1, 2), "seed": 4}


class Config(TrainingConfig):
    method: ClassVar[str] = "test"


def test_the_config_is_written_once_and_found_again(tmp_path: Path) -> None:
    open_run(tmp_path, "test", SETTINGS)
    written = (tmp_path / "config.json").read_text()
    found = json.loads(written)
    assert (found["method"], found["batch_size"], found["scales"], found["seed"]) == ("test", 8, [1, 2], 4)
    open_run(tmp_path, "test", SETTINGS)
    assert (tmp_path / "config.json").read_text() == written


def test_a_folder_with_another_config_is_left_alone_and_what_differs_is_named(tmp_path: Path) -> None:
    open_run(tmp_path, "test", SETTINGS)
    with pytest.raises(ValueError, match=r"`out` .*different: batch_size, seed\)"):
        open_run(tmp_path, "test", SETTINGS | {"batch_size": 9, "seed": 5})
    assert json.loads((tmp_path / "config.json").read_text())["batch_size"] == 8

    with pytest.raises(ValueError, match=r"different: method\)"):
        open_run(tmp_path, "other", SETTINGS)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(ValueError, match=r"different: .*batch_size"):
        open_run(tmp_path, "test", SETTINGS)


def test_a_config_with_a_key_more_is_another_one(tmp_path: Path) -> None:
    open_run(tmp_path, "test", SETTINGS)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"extra": 1}))
    with pytest.raises(ValueError, match=r"different: extra\)"):
        open_run(tmp_path, "test", SETTINGS)


def test_patience_looks_at_what_the_config_monitors() -> None:
    def run(mode: str) -> int:
        class Watching(TrainingConfig):
            method: ClassVar[str] = "watching"
            monitor: ClassVar[Any] = ("score", mode)

        network = nn.Linear(1, 1)
        scores = iter(range(100))

        def step(network: Any, batch: Tensor) -> dict[str, float]:
            network(batch).sum().backward()
            return {"loss": 0.0, "score": float(next(scores))}

        fetch = lambda indices: indices[:, None].float()  # noqa: E731
        config = Watching(batch_size=4, epochs=9, patience=2)
        return int(train_in_folder(network, step, fetch, 4, config, None)["steps"])

    assert (run("max"), run("min")) == (9, 3)  # rising scores always improve, or never improve on the first


@pytest.mark.parametrize(("n", "steps"), [(9, 1), (10, 2), (1, 1), (8, 1)])
def test_a_last_batch_of_a_single_sample_is_left_out(n: int, steps: int) -> None:
    sizes: list[int] = []

    def step(network: Any, batch: Tensor) -> dict[str, float]:
        sizes.append(len(batch))
        network(batch).sum().backward()
        return {"loss": 0.0}

    config = Config(batch_size=8, epochs=1)
    fetch = lambda indices: indices[:, None].float()  # noqa: E731
    result = train_in_folder(nn.Linear(1, 1), step, fetch, n, config, None, samples="rows")
    assert (result["rows"], result["steps"], len(sizes)) == (n, steps, steps)
