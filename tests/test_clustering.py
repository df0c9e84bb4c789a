"""The front door: `nb.cluster` on anything, and what its result can do."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from PIL import Image
from sklearn.datasets import load_digits, load_wine
from sklearn.metrics import adjusted_rand_score

import neuralbayes as nb
from neuralbayes.data.points import as_points
from neuralbayes.data.toys import make_unequal

SENTENCES = [f"{verb} my {thing} {n}" for n in range(12) for verb, thing in [("pay", "bill"), ("book", "flight")]]


def embed(texts):
    """Counts of letters: features of texts that need no network."""
    return np.array([[text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz "] for text in texts], np.float32)


def brightness(pictures):
    """Mean of each quarter of square pictures."""
    half = pictures.shape[1] // 2
    return np.stack([pictures[:, i : i + half, j : j + half].mean((1, 2, 3)) for i in (0, half) for j in (0, half)], 1)


@pytest.fixture(scope="session")
def flowers():
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1, 2], [120, 80, 60])
    frame = pd.DataFrame({"length": rng.normal(5 * kind, 0.5), "width": rng.normal(-3 * kind, 0.5)})
    frame["color"] = np.array(["red", "blue", "green"])[kind]
    frame["code"] = [f"F{i:04d}" for i in range(len(frame))]
    return frame.assign(kind=kind)


@pytest.fixture(scope="session")
def clustered(flowers):
    return nb.cluster(flowers, 3, method="information", known=None, columns=["length", "width", "color"])


@pytest.fixture(scope="session")
def texts():
    return nb.cluster(SENTENCES, 2, features=embed)


@pytest.fixture(scope="session")
def digits():
    images = load_digits().images[:300] / 16.0
    model = nb.InformationClusterer(4, max_iter=60, random_state=0).fit(images)
    return nb.Clustering(as_points(images), model)


def test_rows_of_every_kind_give_the_same_clusters(tmp_path):
    frame = load_wine(as_frame=True).data
    paths = [tmp_path / "wine.csv", tmp_path / "wine.parquet"]
    frame.to_csv(paths[0], index=False)
    frame.to_parquet(paths[1])
    first = nb.cluster(frame, 3).labels
    for data in paths:
        assert (nb.cluster(data, 3).labels == first).all()
    np.save(tmp_path / "wine.npy", frame.to_numpy())
    array = nb.cluster(frame.to_numpy(), 3).labels
    for data in (tmp_path / "wine.npy", frame.to_numpy().tolist()):
        assert (nb.cluster(data, 3).labels == array).all()
    assert adjusted_rand_score(first, array) > 0.9


def test_polars_and_sparse_rows_are_rows(flowers):
    polars = pytest.importorskip("polars")
    found = nb.cluster(polars.DataFrame({name: flowers[name].tolist() for name in ("length", "width")}), 3)
    assert adjusted_rand_score(found.labels, flowers["kind"]) == 1.0
    counts = sp.csr_array(embed(SENTENCES))
    assert adjusted_rand_score(nb.cluster(counts, 2).labels, np.tile([0, 1], 12)) == 1.0


def test_lines_of_a_text_file_are_sentences_and_lines_of_numbers_are_rows(tmp_path):
    (tmp_path / "tickets.txt").write_text("\n".join(SENTENCES), encoding="utf-16")
    found = nb.cluster(tmp_path / "tickets.txt", 2, features=embed)
    assert found.points.texts == SENTENCES
    (tmp_path / "numbers.txt").write_text("\n".join(f"{i % 2 * 9}.5 {i * i % 7}.25" for i in range(60)))
    assert nb.cluster(tmp_path / "numbers.txt", 2).points.noun == "row"


def test_a_column_of_texts_is_clustered_and_its_table_kept(tmp_path):
    pd.DataFrame({"id": range(24), "body": SENTENCES}).to_csv(tmp_path / "tickets.csv", index=False)
    found = nb.cluster(tmp_path / "tickets.csv", 2, text="body", features=embed)
    assert adjusted_rand_score(found.labels, np.tile([0, 1], 12)) == 1.0
    assert list(found.table()) == ["id", "body", "cluster", "name", "probability", "typicality"]
    assert {"bill", "flight"} <= set(" ".join(found.names).replace(",", "").split())


def test_folders_and_lists_of_pictures_are_images(tmp_path):
    for i, image in enumerate(load_digits().images[:40]):
        Image.fromarray((image * 15).astype(np.uint8)).resize((16, 16)).save(tmp_path / f"{i:02d}.png")
    found = nb.cluster(tmp_path, 2, features=brightness)
    assert found.points.noun == "image"
    assert [path.endswith(f"{i:02d}.png") for i, path in enumerate(found.table()["path"])] == [True] * 40
    paths = [str(path) for path in sorted(tmp_path.glob("*.png"))]
    assert nb.cluster(paths, 2, features=brightness).points.noun == "image"


def test_bytes_and_extended_precision_are_no_stumbling_blocks(tmp_path):
    X = np.r_[np.zeros((20, 2)), np.ones((20, 2))] + np.random.default_rng(0).normal(size=(40, 2)) / 20
    assert nb.cluster(X.astype(np.longdouble), 2).clusters["size"].tolist() == [20, 20]
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(raw=[bytes([255, i]) for i in range(40)])
    found = nb.cluster(frame, 2)
    assert [column.kind for column in found.points.columns] == ["number", "number", "ignored"]
    assert found.clusters["size"].tolist() == [20, 20]


def test_numbers_of_rows_with_a_gap_certify_nothing_where_rows_are_repeated():
    rows = np.r_[np.arange(60, 280), np.random.default_rng(0).integers(0, 280, 60)]
    frame = pd.DataFrame({"x": rows + 3000 * (rows > 120), "y": rows + 150 * (rows > 200), "z": rows % 90})
    assert nb.cluster(frame).verdict != "disjoint"


def test_disjoint_rows_are_certified():
    X, y = make_unequal(600, random_state=0)
    found = nb.cluster(X)
    assert found.verdict == "disjoint"
    assert adjusted_rand_score(found.labels, y) == 1.0
    assert found.stability is None
    assert found.typicality is None
    assert "certified" in found.sentence


def test_rows_without_structure_are_one_cluster_or_segments():
    found = nb.cluster(np.random.default_rng(0).normal(size=(300, 6)))
    assert (found.n_clusters, found.verdict) == (1, "none")
    assert found.at(3).verdict == "segments"


def test_equal_rows_are_one_cluster():
    found = nb.cluster(pd.DataFrame({"a": [1.0] * 30, "b": ["x"] * 30}))
    assert found.sentence == "One cluster: all rows are equal in the columns that can be used."


def test_clusters_have_names_rules_and_typical_members(clustered, flowers):
    cards = clustered.clusters
    assert cards["size"].tolist() == [120, 80, 60]
    assert cards["share"].sum() == pytest.approx(1.0)
    assert len(set(clustered.names)) == 3
    assert (cards["precision"] > 0.95).all()
    assert (cards["recall"] > 0.95).all()
    for k, typical in cards["typical"].items():
        assert (clustered.labels[typical] == k).all()
    assert clustered.proba.shape == (260, 3)
    assert clustered.stability > 0.9
    assert (cards["stability"] > 0.9).all()


def test_the_table_keeps_the_input_and_its_new_columns_are_no_features(clustered, flowers, tmp_path):
    table = clustered.table()
    pd.testing.assert_frame_equal(table[list(flowers)], flowers)
    table.to_csv(tmp_path / "labelled.csv", index=False)
    again = nb.cluster(tmp_path / "labelled.csv", 3, method="information")
    assert not {"cluster", "probability", "typicality"} & {one.name for one in again.points.columns if one.used}


def test_a_column_named_cluster_is_kept(flowers):
    table = nb.cluster(flowers.rename(columns={"kind": "cluster"}), 3, method="information").table()
    assert (table["cluster"] == flowers["kind"]).all()
    assert "cluster (neuralbayes)" in table


def test_columns_that_describe_do_not_vote(flowers):
    noise = flowers.assign(noise=np.random.default_rng(1).permutation([0.0, 100.0] * 130))
    found = nb.cluster(noise, 3, columns=["length", "width"], describe=["color"])
    assert [one.name for one in found.points.columns if one.used] == ["length", "width"]
    assert "color" in {column.name for column in found.description.columns}


def test_known_classes_in_a_column_keep_their_names_out_of_the_description(flowers):
    some = flowers["color"].where(np.arange(260) % 5 == 0, None)
    found = nb.cluster(flowers.assign(color=some), 3, known="color", columns=["length", "width"])
    assert found.model.class_names_ == ["blue", "green", "red"]
    assert (found.labels[some == "green"] == 1).all()
    assert "color" not in {column.name for column in found.description.columns}


def test_rejected_samples_have_the_label_minus_one(flowers):
    far = pd.concat([flowers, flowers.tail(1).assign(length=500.0)], ignore_index=True)
    found = nb.cluster(far, 3, reject=0.01, columns=["length", "width"])
    assert found.labels[-1] == -1
    assert found.table()["name"].iloc[-1] == "outlier"
    assert found.summary()["rejected"] == (found.labels < 0).sum()
    with pytest.raises(ValueError, match="`reject`"):
        nb.cluster(flowers, 3, reject=1e-6)


def test_other_numbers_of_clusters_are_compared(clustered):
    compared = clustered.compare([2, 3])
    assert compared.index.tolist() == [2, 3]
    assert compared.loc[3, "agreement"] == 1.0
    assert clustered.at(2).n_clusters == 2


def test_images_are_merged_to_other_numbers_without_training(digits):
    fewer = digits.at(2)
    assert fewer.n_clusters == 2
    assert fewer.proba.shape == (300, 2)
    pairs = set(zip(digits.labels.tolist(), fewer.labels.tolist(), strict=True))
    assert len(pairs) <= 6  # nearly nested


def test_a_saved_clustering_labels_new_data_with_the_same_names(clustered, texts, flowers, tmp_path):
    clustered.save(tmp_path / "rows")
    loaded = nb.load(tmp_path / "rows")
    assert loaded.names == clustered.names
    assert loaded.clusters["size"].tolist() == [120, 80, 60]
    assert (loaded.predict(flowers) == clustered.labels).all()
    with pytest.raises(ValueError, match="on\\(data\\)"):
        _ = loaded.labels
    with pytest.raises(ValueError, match="must be a data frame"):
        loaded.model.predict(np.zeros((2, 3)))
    assert (texts.predict(SENTENCES[:4]) == texts.labels[:4]).all()
    texts.save(tmp_path / "texts")
    loaded = nb.load(tmp_path / "texts")
    assert (loaded.predict(SENTENCES[:4], features=embed) == texts.labels[:4]).all()
    with pytest.raises(ValueError, match="`features`"):
        loaded.predict(SENTENCES[:4])


def test_names_that_a_person_gave_are_used(clustered, flowers, tmp_path):
    clustered.save(tmp_path / "model")
    (tmp_path / "model" / "names.json").write_text(json.dumps({"1": "our best"}))
    loaded = nb.load(tmp_path / "model")
    assert loaded.names[1] == "our best"
    assert loaded.on(flowers).names[1] == "our best"
    (tmp_path / "model" / "names.json").write_text(json.dumps({"7": "nobody"}))
    with pytest.raises(ValueError, match=r"names\.json"):
        nb.load(tmp_path / "model")


def test_a_model_opens_nothing_that_it_names(clustered, tmp_path):
    clustered.save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    known = json.loads(path.read_text())
    known["about"]["recipe"] |= {"features": "evil.py:run", "data": str(tmp_path / "secret.csv")}
    path.write_text(json.dumps(known))
    nb.load(tmp_path / "model")
    path.write_text(json.dumps(known | {"about": {"names": 5}}))
    with pytest.raises(ValueError, match=r"model\.json"):
        nb.load(tmp_path / "model")


def test_a_function_names_the_clusters_from_their_cards(flowers):
    found = nb.cluster(flowers, 3, columns=["length"], namer=lambda cards: [f"size {one['size']}" for one in cards])
    assert found.names == [f"size {size}" for size in found.clusters["size"]]
    assert found.named_by == "you"


def test_the_summary_is_the_same_json_for_rows_texts_and_images(clustered, texts, digits):
    summaries = [
        json.loads(json.dumps(one.summary(), default=lambda value: value.item())) for one in (clustered, texts, digits)
    ]
    assert len({tuple(summary) for summary in summaries}) == 1
    assert len({tuple(summary["clusters"][0]) for summary in summaries}) == 1
    assert [summary["kind"] for summary in summaries] == ["row", "text", "image"]
    for one in (clustered, texts, digits):
        assert len(one.coordinates()[0]) == len(one.coordinates()[1]) == len(one.labels)


@pytest.mark.parametrize(
    ("data", "options", "name"),
    [
        ([], {}, "data"),
        (np.zeros(5), {}, "data"),
        ([[1.0, 2.0]] * 9, {"n_clusters": 0}, "n_clusters"),
        ([[1.0, 2.0]] * 9, {"method": "best"}, "method"),
        ([[1.0, 2.0]] * 9, {"text": "body"}, "text"),
        ([[1.0, 2.0]] * 9, {"known": "kind"}, "known"),
        ([[1.0, 2.0]] * 9, {"read": {"split": "test"}}, "read"),
        ([[1.0, 2.0]] * 9, {"read": {"root": "/"}}, "read"),
        (np.zeros((9, 8, 8)), {"read": {"limit": "-1"}}, "read"),
        ([[1.0, 2.0]], {}, "data"),
        (["", " "], {}, "data"),
        ([[1.0, np.inf], [2.0, 3.0]], {}, "data"),
        ([[1.0, 2.0]] * 9, {"features": "wordllama"}, "features"),
        ([[1.0, 2.0]] * 9, {"features": np.zeros((3, 2))}, "features"),
        (pd.DataFrame({"a": [1.0, 2.0]}), {"columns": ["b"]}, "columns"),
        (SENTENCES, {"columns": ["a"], "features": embed}, "columns"),
        (SENTENCES, {"method": "manifolds", "features": embed}, "method"),
    ],
)
def test_bad_input_names_the_parameter(data, options, name):
    with pytest.raises(ValueError, match=f"`{name}`"):
        nb.cluster(data, **options)
