"""`neuralbayes label` on features of pictures, of texts, and from a file."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import neuralbayes as nb
from neuralbayes.cli import main

NETWORK = """
import numpy as np

def pictures(batch):
    with open("calls.txt", "a") as file:
        file.write(f"{len(batch)}\\n")
    return batch.reshape(len(batch), -1, 3).mean(axis=1) / 255.0

def texts(batch):
    return np.array([[text.count("cat"), text.count("dog"), len(text) / 100] for text in batch], float)

def other(batch):
    return texts(batch) + 1.0
"""
TEXTS = [text.format(i) for i in range(20) for text in ("my cat purrs and sleeps, {}", "a dog barks at strangers, {}")]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "network.py").write_text(NETWORK)
    pd.DataFrame({"id": range(40), "body": TEXTS}).to_csv("tickets.csv", index=False)
    (tmp_path / "photos").mkdir()
    rng = np.random.default_rng(0)
    for i in range(30):
        color = rng.integers(0, 40, 3) + (200 * np.eye(3)[i % 2]).astype(int)
        Image.new("RGB", (60, 40 + i), tuple(color.tolist())).save(tmp_path / "photos" / f"{i:02}.png")
    return tmp_path


def error_of(arguments, capsys):
    assert main(arguments) == 2
    return " ".join(capsys.readouterr().err.split())


def test_pictures_are_clustered_by_a_network_that_sees_each_once(here):
    command = ["label", "photos", "--clusters", "2", "--save", "model", "--size", "32", "--quiet", "--force"]
    command += ["--features", "network.py:pictures"]
    assert main(command) == 0
    labels = pd.read_csv("photos-labels.csv")["label"].to_numpy()
    assert set(labels[::2]) != set(labels[1::2])
    assert len(set(labels[::2])) == len(set(labels[1::2])) == 1
    assert (here / "photos-labels.png").is_file()
    assert main(command) == 0
    assert (here / "calls.txt").read_text().split() == ["30"]  # the second time, they are read from the file
    Image.new("RGB", (50, 50), (0, 220, 0)).save("photos/new.png")
    assert main(["label", "photos", "--model", "model", "--out", "more.csv", *command[5:]]) == 2  # --save is refused
    again = ["label", "photos", "--model", "model", "--size", "32", "--quiet", "--force", *command[-2:]]
    assert main(again) == 0
    assert (here / "calls.txt").read_text().split() == ["30", "1"]  # only the new one
    np.testing.assert_array_equal(pd.read_csv("photos-labels.csv")["label"].to_numpy()[:30], labels)


def test_texts_are_clustered_by_a_network_and_named_by_their_words(capsys):
    command = ["label", "tickets.csv", "--text", "body", "--features", "network.py:texts", "--clusters", "2"]
    assert main([*command, "--save", "model"]) == 0
    out = capsys.readouterr().out
    assert "cat" in out
    assert "dog" in out
    table = pd.read_csv("tickets-labels.csv")
    assert list(table) == ["id", "body", "label", "p_0", "p_1"]
    assert pd.crosstab(table["label"], table["body"].str.contains("cat")).to_numpy().tolist() in (
        [[20, 0], [0, 20]],
        [[0, 20], [20, 0]],
    )
    pd.DataFrame({"body": ["a new cat", "a new dog", None]}).to_csv("new.csv", index=False)
    used = ["label", "new.csv", "--text", "body", "--features", "network.py:texts", "--model", "model", "--json"]
    assert main(used) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["rows"] == 3
    assert any("1 rows have no text" in note for note in summary["notes"])
    new = pd.read_csv("new-labels.csv")["label"].tolist()
    assert new[:2] == table["label"].tolist()[:2]


def test_texts_without_a_network_go_by_their_letters():
    assert main(["label", "tickets.csv", "--text", "body", "--clusters", "2", "--save", "model", "--quiet"]) == 0
    labels = pd.read_csv("tickets-labels.csv")["label"].to_numpy()
    assert nb.clustering_accuracy(labels, np.arange(40) % 2) == 1.0
    assert main(["label", "tickets.csv", "--model", "model", "--out", "again.csv", "--quiet"]) == 0
    np.testing.assert_array_equal(pd.read_csv("again.csv")["label"], labels)


def test_rows_are_clustered_by_the_features_of_a_file(capsys):
    np.save("features.npy", np.random.default_rng(0).normal(size=(40, 5)) + 8 * (np.arange(40) % 2)[:, None])
    assert main(["label", "tickets.csv", "--features", "features.npy", "--clusters", "2", "--quiet"]) == 0
    labels = pd.read_csv("tickets-labels.csv")["label"].to_numpy()
    assert nb.clustering_accuracy(labels, np.arange(40) % 2) == 1.0
    np.save("short.npy", np.ones((7, 5)))
    message = error_of(["label", "tickets.csv", "--features", "short.npy", "--force"], capsys)
    assert "must have a row for each of the 40 rows of tickets.csv, got 7 rows" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--text", "words"], "has no column 'words'"),
        (["--features", "network.py:texts"], "needs --text COLUMN"),
        (["--text", "body", "--features", "timm:resnet18"], "is a network for pictures, but the data are texts"),
        (["--text", "body", "--features", "gone.npy"], "must be a .npy file that exists"),
        (["--text", "body", "--columns", "id"], "--columns is for columns of a table"),
    ],
)
def test_wrong_features_are_refused_before_anything_is_computed(options, message, capsys, here):
    assert message in error_of(["label", "tickets.csv", *options], capsys)
    assert not (here / "tickets-labels.csv").exists()


def test_a_model_refuses_features_of_another_network(capsys):
    command = ["label", "tickets.csv", "--text", "body", "--clusters", "2"]
    assert main([*command, "--features", "network.py:texts", "--save", "model", "--quiet"]) == 0
    again = ["label", "tickets.csv", "--text", "body", "--model", "model", "--out", "new.csv"]
    assert "was fitted to features of network.py:texts" in error_of([*again, "--features", "network.py:other"], capsys)
    assert "add --features network.py:texts" in error_of(again, capsys)
