"""Untrusted folders: symbolic links in a run or a model never redirect what is written, cleaned up or deleted."""

import os

import numpy as np
import pytest
import torch
from torch import nn

import neuralbayes as nb
from neuralbayes.cli import main
from neuralbayes.system.files import remove_temporaries, write_json, write_tensors
from neuralbayes.training import Batches, Callback, train

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows asks for a privilege to make links")


def run(folder, callbacks=()):
    network = nn.Linear(1, 1)

    def step(network, batch):
        loss = network(batch).square().mean()
        loss.backward()
        return {"loss": loss}

    return train(
        network,
        step,
        Batches(8, 4),
        fetch=lambda i: i[:, None] / 8,
        optimizer=torch.optim.SGD(network.parameters(), lr=0.1),
        max_epochs=2,
        callbacks=callbacks,
        run_dir=folder,
    )


@pytest.fixture
def victim(tmp_path):
    """A folder outside, with the names of files that runs and models clean up."""
    folder = tmp_path / "victim"
    (folder / "checkpoints").mkdir(parents=True)
    for name in ("step-000000001-0.pt", ".step-1.x.tmp.pt", ".a.x.tmp.json", "weights-0.safetensors"):
        (folder / name).write_text("years of work")
        (folder / "checkpoints" / name).write_text("years of work")
    (folder / "notes.txt").write_text("years of work")
    return folder


def contents(folder):
    return {path: path.read_text() if path.is_file() else None for path in sorted(folder.rglob("*"))}


LINKS = {
    "checkpoints": "../victim",
    "metrics.jsonl": "../victim/notes.txt",
    ".lock": "../victim/notes.txt",
    "checkpoints/step-000000009-0.pt": "../../victim/step-000000001-0.pt",
}


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("dangling", [False, True], ids=["there", "dangling"])
def test_a_run_refuses_a_link_in_its_folder_by_name(tmp_path, victim, name, dangling):
    link = tmp_path / "run" / name
    link.parent.mkdir(parents=True)
    link.symlink_to("../nowhere" if dangling else LINKS[name])
    before = contents(victim)
    with pytest.raises(OSError, match=f"symbolic link.*{link.name}"):
        run(tmp_path / "run")
    assert contents(victim) == before
    assert link.is_symlink()
    assert not (tmp_path / "nowhere").exists()


def test_a_link_that_comes_while_a_run_goes_on_is_not_followed(tmp_path, victim):
    class Swap(Callback):
        def on_step_end(self, state, metrics):
            if state.step == 1:
                (tmp_path / "run" / "metrics.jsonl").unlink()
                (tmp_path / "run" / "metrics.jsonl").symlink_to(victim / "notes.txt")

    with pytest.raises(OSError, match=r"symbolic link.*metrics\.jsonl"):
        run(tmp_path / "run", [Swap()])
    assert (victim / "notes.txt").read_text() == "years of work"


def test_the_folder_that_is_named_may_be_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").symlink_to("elsewhere")
    assert run(tmp_path / "run").step == 4
    assert (tmp_path / "elsewhere" / "metrics.jsonl").is_file()


@pytest.mark.parametrize("name", ["model.json", "weights-0123456789abcdef.safetensors", ".model.x.tmp.json"])
def test_a_model_is_not_saved_where_there_is_a_link(tmp_path, victim, name):
    labeler = nb.ManifoldLabeler(2, n_hidden=8, max_iter=5, n_init=1, random_state=0).fit(
        np.repeat([[0.0, 0.0], [9.0, 9.0]], 20, axis=0) + np.random.default_rng(0).normal(size=(40, 2))
    )
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / name).symlink_to(victim / "notes.txt")
    with pytest.raises(OSError, match=f"symbolic link.*{name}"):
        labeler.save(tmp_path / "model")
    assert [path.name for path in (tmp_path / "model").iterdir()] == [name]
    assert (victim / "notes.txt").read_text() == "years of work"


@pytest.mark.parametrize("write", [lambda path: write_json(path, 1), lambda path: write_tensors(path, {}, {})])
def test_files_of_a_folder_do_not_take_the_place_of_links(tmp_path, victim, write):
    (tmp_path / "link").symlink_to(victim / "notes.txt")
    with pytest.raises(OSError, match="symbolic link"):
        write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()


def test_links_among_temporaries_stay(tmp_path, victim):
    (tmp_path / ".a.x.tmp.json").symlink_to(victim / "notes.txt")
    (tmp_path / ".b.x.tmp.json").touch()
    remove_temporaries(tmp_path)
    assert [path.name for path in tmp_path.glob(".*")] == [".a.x.tmp.json"]


@pytest.mark.parametrize("words", [["cluster", "t.csv"], ["predict", "model", "t.csv"]])
def test_a_link_with_the_name_of_a_result_is_not_followed(tmp_path, victim, words, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,b\n" + "1.5,2\n2,9.5\n" * 9)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.json").touch()
    for name in ("t-clusters", "t-labels.csv"):
        (tmp_path / name).symlink_to(victim)
    before = contents(victim)
    assert main(words) == 2
    assert "symbolic link" in capsys.readouterr().err
    assert contents(victim) == before
