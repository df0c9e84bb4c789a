"""`neuralbayes report` on pictures and texts that were clustered by features."""

import html
import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from neuralbayes.cli import main

NETWORK = """
import numpy as np

def pictures(batch):
    with open("calls.txt", "a") as file:
        file.write(f"{len(batch)}\\n")
    return batch.reshape(len(batch), -1, 3).mean(axis=1) / 255.0

def texts(batch):
    with open("calls.txt", "a") as file:
        file.write(f"{len(batch)}\\n")
    return np.array([[text.count("cat"), text.count("dog"), len(text) / 100] for text in batch], float)

def other(batch):
    return np.ones((len(batch), 3))
"""
TEXTS = [text.format(i) for i in range(20) for text in ("my cat purrs and sleeps, {}", "a <b>dog</b> barks, {}")]
KEY_WORDS = {"cat", "purrs", "sleeps", "dog", "barks"}
BY_TEXTS = ["--text", "body", "--features", "network.py:texts"]


@pytest.fixture(scope="module")
def labelled(tmp_path_factory, few_steps):
    """A folder in which the texts were labelled; no test changes it."""
    folder = tmp_path_factory.mktemp("labelled")
    write_texts(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        label("tickets.csv", *BY_TEXTS)
    return folder


@pytest.fixture
def of_texts(here, labelled):
    """A copy in the folder of the test."""
    shutil.copytree(labelled, here, dirs_exist_ok=True)


def write_texts(folder):
    (folder / "network.py").write_text(NETWORK)
    kind = ["cat", "dog"] * 20
    pd.DataFrame({"id": range(40), "body": TEXTS, "kind": kind}).to_csv(folder / "tickets.csv", index=False)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_texts(tmp_path)
    for folder in ("red", "green"):
        (tmp_path / "photos" / folder).mkdir(parents=True)
    rng = np.random.default_rng(0)
    for i in range(30):
        colors = rng.integers(0, 40, (6, 6, 3)) + (200 * np.eye(3)[i % 2]).astype(int)
        path = tmp_path / "photos" / ("green" if i % 2 else "red") / f"{i:02}.png"
        Image.fromarray(colors.astype(np.uint8)).resize((60, 40 + i)).save(path)
    return tmp_path


def page_of(arguments):
    """The text of the page without styles and scripts, and the data of its script."""
    assert main(["report", *arguments, "--out", "page.html", "--map", "pca", "--quiet"]) == 0
    with open("page.html", encoding="utf-8") as file:
        text = file.read()
    payload = json.loads(re.search(r'id="payload">(.*?)</script>', text, re.DOTALL).group(1))
    return html.unescape(re.sub("<(script|style).*?</(script|style)>", "", text, flags=re.DOTALL)), payload


def error_of(arguments, capsys):
    assert main(arguments) == 2
    return " ".join(capsys.readouterr().err.split())


def label(*options):
    assert main(["label", *options, "--clusters", "2", "--save", "model", "--quiet", "--no-picture"]) == 0


@pytest.mark.usefixtures("of_texts")
def test_texts_are_shown_with_words_members_and_a_list(here):
    page, payload = page_of(["model", "tickets.csv", *BY_TEXTS, "--labels", "kind"])
    assert "2 clusters in 40 texts: " in page
    assert "of 100." in page
    assert page.count('class="card cluster"') == 2
    assert page.count("20 texts · 50.0 % · separation") == 2
    assert page.count("Classes: cat 100 %") == page.count("Classes: dog 100 %") == 1
    assert re.search(r"<li>[a-z ]*purrs[a-z ]*</li>", page)
    assert "my cat purrs and sleeps, " in page
    assert "No layer has collapsed" not in page
    assert "PCA of the features of network.py:texts of 40 texts" in payload["sides"][0]["layers"][0]["caption"]
    assert payload["samples"][0]["texts"] == TEXTS
    assert payload["samples"][0]["textColumn"] == "body"
    assert all(set(name.split()) & KEY_WORDS for name in payload["sides"][0]["gallery"]["clusters"])
    assert (here / "calls.txt").read_text().split() == ["40"]  # only `label` computed features
    command = "neuralbayes label tickets.csv --text body --features network.py:texts --clusters 2 --save model"
    assert command in re.sub("</?span>", "", page)
    assert not (here / "page-features.safetensors").exists()


@pytest.mark.usefixtures("of_texts")
def test_markup_in_texts_stays_text():
    page_of(["model", "tickets.csv", *BY_TEXTS])
    with open("page.html", encoding="utf-8") as file:
        assert "<b>dog" not in file.read()


@pytest.mark.usefixtures("of_texts")
def test_features_that_are_not_kept_are_computed_and_kept_beside_the_page(here):
    (here / "tickets-features.safetensors").unlink()
    page_of(["model", "tickets.csv", *BY_TEXTS, "--samples", "30"])
    assert (here / "calls.txt").read_text().split() == ["40", "30"]  # only for samples in the page
    page_of(["model", "tickets.csv", *BY_TEXTS, "--samples", "30"])
    assert (here / "calls.txt").read_text().split() == ["40", "30"]
    assert (here / "page-features.safetensors").is_file()


def test_features_beside_the_model_are_found(here):
    label("tickets.csv", *BY_TEXTS, "--out", "elsewhere.csv")
    page_of(["model", "tickets.csv", *BY_TEXTS])
    assert (here / "calls.txt").read_text().split() == ["40"]


@pytest.mark.parametrize("options", [[], ["--text", "body"]])
def test_texts_by_their_letters_get_the_same_page(options):
    label("tickets.csv", "--text", "body")
    page, payload = page_of(["model", "tickets.csv", *options])
    assert "2 clusters in 40 texts: " in page
    assert payload["samples"][0]["texts"] == TEXTS
    assert "PCA of the letters in body of 40 texts" in payload["sides"][0]["layers"][0]["caption"]


def test_rows_by_the_features_of_a_file_are_explained_by_their_columns():
    np.save("features.npy", np.random.default_rng(0).normal(size=(40, 5)) + 8 * (np.arange(40) % 2)[:, None])
    label("tickets.csv", "--features", "features.npy")
    page, payload = page_of(["model", "tickets.csv", "--features", "features.npy"])
    assert "2 clusters in 40 rows: " in page
    assert sorted(payload["sides"][0]["described"]["clusters"]) == ["cat", "dog"]
    page, payload = page_of(["model", "tickets.csv", "--text", "body", "--features", "features.npy"])
    assert "2 clusters in 40 texts: " in page


def test_pictures_are_shown_in_a_gallery(here):
    options = ["--features", "network.py:pictures", "--size", "32"]
    label("photos", *options)
    page, payload = page_of(["model", "photos", *options])
    assert "2 clusters in 30 images, the largest of 15, the smallest of 15." in page
    assert page.count("15 images · 50.0 % · separation") == 2
    assert page.count("Classes: red 100 %") == page.count("Classes: green 100 %") == 1
    assert page.count('<img src="data:image/webp;base64,') == 2 * (12 + 6)
    assert len(set(re.findall(r'alt="(\d\d\.png)"', page))) > 20
    assert "PCA of the features of network.py:pictures of 30 images" in payload["sides"][0]["layers"][0]["caption"]
    assert sorted(payload["samples"][0]["names"]) == [f"{i:02}.png" for i in range(30)]
    assert (here / "calls.txt").read_text().split() == ["30"]
    assert "--features network.py:pictures --size 32x32" in re.sub("</?span>", "", page)


def test_the_first_pictures_alone_can_be_asked_for():
    options = ["--features", "network.py:pictures", "--size", "32", "--limit", "12"]
    label("photos", *options)
    page, payload = page_of(["model", "photos", *options])
    assert "2 clusters in 12 images" in page
    assert payload["samples"][0]["nAll"] == 12


def test_the_command_that_label_proposes_makes_the_page(capsys):
    options = ["--features", "network.py:pictures", "--size", "32", "--limit", "20", "--clusters", "2"]
    assert main(["label", "photos", *options, "--save", "model", "--no-picture"]) == 0
    words = re.search("next +neuralbayes (report .*) --open", capsys.readouterr().out).group(1).split()
    page, _ = page_of(words[1:])
    assert "clusters in 20 images" in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "was fitted to features: add --features network.py:texts"),
        (["--features", "network.py:texts"], "needs --text COLUMN"),
        (["--text", "body", "--features", "network.py:other"], "but --features is another network"),
        (["--text", "words", "--features", "network.py:texts"], "has no column 'words'"),
        (["--text", "body", "--features", "gone.npy"], "must be a .npy file that exists"),
        ([*BY_TEXTS, "--limit", "3"], "--limit is for images"),
        (["--text", "body", "--size", "3"], "--size is for pictures with --features"),
    ],
)
@pytest.mark.usefixtures("of_texts")
def test_wrong_features_are_refused(options, message, capsys, here):
    assert message in error_of(["report", "model", "tickets.csv", *options, "--out", "page.html"], capsys)
    assert not (here / "page.html").exists()


def test_a_table_of_other_columns_has_no_texts_to_show(capsys):
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"]).assign(body=TEXTS).to_csv("rows.csv", index=False)
    label("rows.csv", "--columns", "a,b", "--method", "information")
    message = error_of(["report", "model", "rows.csv", "--text", "body", "--out", "page.html"], capsys)
    assert "was not fitted to the texts in 'body', but to the columns a, b" in message
