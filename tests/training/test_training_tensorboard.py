import pytest
import torch
from torch import nn

from neuralbayes.training import Batches, Callback, TensorBoard, read_metrics, train

X = torch.linspace(-1, 1, 20).reshape(20, 1)


class KillAt(Callback):
    def __init__(self, step):
        self.step = step

    def on_step_end(self, state, metrics):
        if state.step == self.step:
            raise KeyboardInterrupt


def run(folder, *callbacks):
    """Three epochs of four steps, a line every second step, a checkpoint every third step."""
    torch.manual_seed(0)
    network = nn.Linear(1, 1)

    def step(network, batch):
        loss = (network(batch) - batch).square().mean()
        loss.backward()
        return {"loss": loss, "mi/a": 0.5}

    train(
        network,
        step,
        Batches(20, 5),
        fetch=lambda indices: X[indices],
        optimizer=torch.optim.SGD(network.parameters(), lr=0.1),
        max_epochs=3,
        callbacks=[TensorBoard(folder / "tensorboard"), *callbacks],
        run_dir=folder,
        log_every=2,
        checkpoint_every=3,
    )


def scalars(folder):
    """The scalars that TensorBoard shows: (step, value) by tag."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator").EventAccumulator
    events = accumulator(str(folder / "tensorboard")).Reload()
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_every_line_of_metrics_is_shown_with_its_step(tmp_path):
    pytest.importorskip("tensorboard")
    run(tmp_path)
    shown = scalars(tmp_path)
    lines = read_metrics(tmp_path / "metrics.jsonl")
    assert set(shown) == {"loss", "mi/a", "lr", "epoch"}
    for tag, points in shown.items():
        assert [step for step, _ in points] == [line["step"] for line in lines] == [2, 4, 6, 8, 10, 12]
        assert [value for _, value in points] == pytest.approx([line[tag] for line in lines])


@pytest.mark.parametrize("killed_at", [1, 3, 9, 11])
def test_steps_that_a_resumed_run_does_again_are_shown_once(tmp_path, killed_at):
    pytest.importorskip("tensorboard")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, KillAt(killed_at))
    for file in tmp_path.glob(
        "tensorboard/*"
    ):  # files are read in the order of their names, which start with the time in seconds
        file.rename(file.with_name("events.out.tfevents.0000000001"))
    run(tmp_path)
    assert [step for step, _ in scalars(tmp_path)["loss"]] == [2, 4, 6, 8, 10, 12]


def test_a_finished_run_adds_nothing(tmp_path):
    pytest.importorskip("tensorboard")
    run(tmp_path)
    before = sorted((tmp_path / "tensorboard").iterdir())
    run(tmp_path)
    assert sorted((tmp_path / "tensorboard").iterdir()) == before


def test_the_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("neuralbayes.training.tensorboard.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'neuralbayes\[track\]'"):
        TensorBoard(tmp_path)
