"""Columns that the library wrote are not used as features when a table is read again, in any format."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from neuralbayes.data.sources import ArraySource
from neuralbayes.data.table_writing import write_table
from neuralbayes.data.tables import read_table
from neuralbayes.data.written import marked, written_columns
from neuralbayes.features.feature_files import write_features

FEATURES = ["f_0", "f_1", "f_2"]


class _Encoder:
    """Three numbers for each image, as from an encoder."""

    def features(self, source, state):
        images = source.read(np.arange(len(source)))
        return images.reshape(len(images), -1)[:, :3].astype(np.float32)


@pytest.fixture
def embedded(tmp_path):
    """The output of `neuralbayes embed` for twelve images with classes and paths."""
    images = np.random.default_rng(0).integers(0, 256, (12, 4, 4, 1), dtype=np.uint8)
    path = tmp_path / "features.parquet"
    names = [f"{i}.png" for i in range(12)]
    write_features(_Encoder(), ArraySource(images), path, labels=np.arange(12) % 3, names=names)
    return path


def proba(n, k=3, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(k), n).astype(np.float32)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv"])
def test_classes_that_embed_wrote_are_no_feature(embedded, tmp_path, suffix):
    path = tmp_path / f"again{suffix}"
    frame = pd.read_parquet(embedded)
    if suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, sep="," if suffix == ".csv" else "\t", index=False)
    table = read_table(path)
    assert table.feature_names == FEATURES
    assert set(table.ignored) == {"index", "path", "label"}
    assert table.ignored["label"] == "written by neuralbayes embed, not a feature"


def test_of_some_rows_in_another_order_too(embedded, tmp_path):
    frame = pd.read_parquet(embedded).sample(frac=0.8, random_state=0)
    frame.to_csv(tmp_path / "some.csv", index=False)
    assert read_table(tmp_path / "some.csv").feature_names == FEATURES


def test_columns_that_are_chosen_are_taken(embedded):
    assert read_table(embedded, columns=["label", "f_1"]).feature_names == ["label", "f_1"]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_labels_and_probabilities_of_an_earlier_labelling_are_no_features(tmp_path, suffix):
    rng = np.random.default_rng(0)
    first = tmp_path / f"data{suffix}"
    write_table(first, {"height": rng.normal(size=30), "weight": rng.normal(size=30)})
    p = proba(30)
    for number in range(3):  # label the labelled table, and then again
        again = tmp_path / f"labels{number}{suffix}"
        write_table(again, {"label": p.argmax(axis=1), "p": p}, beside=read_table(first).source)
        first = again
    table = read_table(again)
    assert table.feature_names == ["height", "weight"]
    assert len(table.ignored) == 12
    assert table.ignored["p_2_2"] == "written by neuralbayes label, not a feature"


def test_a_single_state_is_recognised_too(tmp_path):
    write_table(tmp_path / "a.csv", {"x": np.arange(9) ** 2, "label": np.zeros(9, int), "p": np.ones((9, 1))})
    assert read_table(tmp_path / "a.csv").feature_names == ["x"]


def test_a_label_alone_is_recognised_by_the_mark_of_the_file(tmp_path, embedded):
    p = proba(12)
    write_table(tmp_path / "a.parquet", {"label": p.argmax(axis=1), "p": p}, beside=read_table(embedded).source)
    frame = pd.read_parquet(tmp_path / "a.parquet")
    assert "label_1" in frame
    frame[["label_1", "f_1", "f_2"]].to_parquet(tmp_path / "b.parquet")
    assert read_table(tmp_path / "b.parquet").feature_names == ["f_1", "f_2"]


def test_a_table_of_labelled_images_holds_no_feature_but_what_was_added(tmp_path):
    p = proba(12)
    columns = {"index": np.arange(12), "class": np.arange(12) % 2, "label": p.argmax(axis=1), "p": p}
    write_table(tmp_path / "a.csv", columns)
    with pytest.raises(ValueError, match="written by neuralbayes label"):
        read_table(tmp_path / "a.csv")
    paths = np.array([f"{i}.png" for i in range(12)], dtype=object)
    write_table(tmp_path / "b.csv", {"path": paths, **columns, "brightness": np.arange(12.0) ** 2})
    assert read_table(tmp_path / "b.csv").feature_names == ["brightness"]


@pytest.mark.parametrize(
    "columns",
    [
        {"label": [0, 1, 5], "x": [1.0, 2.0, 4.0]},  # the owner of this label is unknown
        {"p_0": [0.2, 0.3, 0.9], "p_1": [0.2, 0.3, 0.9]},  # these do not add up to 1
        {"p_0": [1.2, 0.3, 0.9], "p_1": [-0.2, 0.7, 0.1]},
        {"p_0": [1.0, 1.0, 1.0], "x": [1.0, 2.0, 4.0]},
        {"p_0": ["a", "b", "c"], "p_1": [1.0, 1.0, 1.0]},
        {"p_0": [1.0, 1.0, None], "p_1": [0.0, 0.0, 0.0]},
        {"index": [1.5, 2.5, 9.0], "class": [0, 1, 1]},
        {"f_0": [1.0, 2.0, 4.0], "index": [1.5, 2.5, 9.0]},
    ],
)
def test_other_columns_of_these_names_are_left_alone(columns):
    assert written_columns(pd.DataFrame(columns)) == {}


def test_an_index_of_somebody_else_stays_when_the_table_was_labelled():
    p = proba(5)
    frame = pd.DataFrame({"index": np.random.default_rng(0).normal(size=5), "x": np.arange(5.0)})
    frame["label"], frame["p_0"], frame["p_1"], frame["p_2"] = p.argmax(axis=1), *p.T
    assert list(written_columns(frame)) == ["label", "p_0", "p_1", "p_2"]


@pytest.mark.parametrize("mark", ["x", ["label"], {"label": "x"}, {"label": [1, None]}, {"other": ["x"]}, None])
def test_marks_that_are_none_are_passed_over(mark):
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    frame.attrs["neuralbayes"] = mark
    assert written_columns(frame) == {}
    assert marked(frame.attrs, "label", ["p_0"])["neuralbayes"]["label"] == ["p_0"]


def test_the_mark_stands_in_the_schema(embedded):
    metadata = pq.read_schema(embedded).metadata
    assert json.loads(metadata[b"PANDAS_ATTRS"]) == {"neuralbayes": {"embed": ["index", "path", "label"]}}
