"""Saved estimators: complete, safe, and with clear errors."""

import hashlib
import json
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from torch import nn

import neuralbayes as nb
from neuralbayes.data import toys
from neuralbayes.estimators import load
from neuralbayes.system.files import read_tensors, write_tensors

X, _ = toys.make_moons(300, random_state=0)
BLOBS = np.random.default_rng(0).normal(size=(60, 2)) + 8 * (np.arange(60) % 2)[:, None]
ROWS = {"labeler": pd.DataFrame(X, columns=["a", "b"]), "clusterer": pd.DataFrame(BLOBS, columns=["a", "b"])}


@pytest.fixture(scope="module")
def models():
    return {
        "labeler": nb.ManifoldLabeler("auto", random_state=0).fit(ROWS["labeler"]),
        "clusterer": nb.InformationClusterer(random_state=0).fit(ROWS["clusterer"]),
        "encoder": nb.MIMEncoder((4, 3), max_epochs=1, random_state=0).fit(BLOBS),
    }


@pytest.fixture
def saved(models, tmp_path):
    """Folder of a model."""

    def save(name):
        models[name].save(tmp_path / name)
        return tmp_path / name

    return save


def description(folder):
    return json.loads((folder / "model.json").read_text())


def edit(folder, **changes):
    (folder / "model.json").write_text(json.dumps(description(folder) | changes))


def with_attributes(folder, **changes):
    edit(folder, attributes=description(folder)["attributes"] | changes)


def with_weights(folder, change):
    """The model with other tensors, and a matching checksum."""
    path = folder / description(folder)["weights"]
    tensors, _ = read_tensors(path)
    change(tensors)
    write_tensors(path, {name: tensor.contiguous() for name, tensor in tensors.items()}, {})
    edit(folder, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


def refused(folder, words="does not fit its weights", **settings):
    with pytest.raises(ValueError, match=words):
        load(folder, **settings)


def test_saving_again_replaces_the_model_and_leaves_no_stale_files(saved, models):
    folder = saved("labeler")
    for name in ("weights-0123456789abcdef.safetensors", ".weights.x1.tmp.safetensors", ".model.x2.tmp.json"):
        (folder / name).write_text("half")  # of a save that was killed
    models["clusterer"].save(folder)
    assert_array_equal(load(folder).labels_, models["clusterer"].labels_)
    assert len(list(folder.iterdir())) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no locks there")
def test_saving_twice_at_once_leaves_one_of_the_models(models, tmp_path):
    def save(name):
        for _ in range(10):
            models[name].save(tmp_path / "model")

    with ThreadPoolExecutor() as pool:
        list(pool.map(save, ["labeler", "clusterer"]))
    load(tmp_path / "model")
    assert len(list((tmp_path / "model").iterdir())) == 2


def test_what_cannot_be_saved_is_refused_and_other_files_are_left_alone(models, tmp_path):
    with pytest.raises(NotFittedError):
        nb.ManifoldLabeler().save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match="other files"):
        models["labeler"].save(tmp_path)
    fitted = nb.MIMEncoder((4,), max_epochs=1).fit(BLOBS)
    fitted.another_ = 1
    with pytest.raises(TypeError, match="'another_'"):
        fitted.save(tmp_path / "model")


def test_a_missing_or_damaged_model_is_named(saved, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"model\.json"):
        load(tmp_path)
    folder = saved("labeler")
    (weights,) = folder.glob("weights-*")
    weights.write_bytes(weights.read_bytes()[:-1])
    refused(folder, "missing or damaged")
    (folder / "model.json").write_text('{"format": 4, ')
    refused(folder, "not a valid JSON file")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": 3, "library": "0.2.0"}, "has format 3 of version 0.2.0, but .* fit the model again"),
        ({"estimator": "os.system"}, "names the estimator 'os.system'"),
        ({"weights": "../../etc/passwd"}, "missing or damaged"),
        ({"weights": "x" * 300}, "missing or damaged"),
        ({"attributes": {}}, "does not fit its weights"),
        ({"params": {"shell": "rm"}}, "does not fit its weights"),
        ({"params": []}, "does not fit its weights"),
    ],
)
def test_a_description_from_elsewhere_is_refused(saved, changes, words):
    folder = saved("labeler")
    edit(folder, **changes)
    refused(folder, words)


@pytest.mark.parametrize("name", ["predict", "_block", "transform_", "fit_"])
@pytest.mark.parametrize("model", ROWS)
def test_attributes_that_no_fit_makes_are_refused_by_name(saved, model, name):
    folder = saved(model)
    with_attributes(folder, **{name: "x"})
    refused(folder, f"'{name}' is not a fitted attribute")
    folder = saved(model)
    with_weights(folder, lambda tensors: tensors.update({name: torch.ones(2)}))
    refused(folder, f"'{name}' is not a fitted attribute")


WRONG = {
    "labeler": {
        "n_clusters_": ["2", 3, True],
        "n_features_in_": [10**30, 3],
        "loss_curve_": [["x"], [float("nan")]],
        "objective_": [None, float("inf")],
        "selection_": [{"n_clusters": [1, 2], "ratio": [1.0]}, []],
        "image_shape_": [[2, 1], [8, 8, 3]],
        "feature_names_in_": [["a"], ["a", 3]],
    },
    "clusterer": {
        "verdict_": ["maybe"],
        "kind_": ["rows"],
        "stability_": ["high"],
        "n_states_": [3],
        "n_dimensions_": [3],
        "class_names_": ["ab"],
    },
    "encoder": {"n_states_": [[2] * 100_000], "encoder_": ["huge"]},
}


@pytest.mark.parametrize(("model", "name"), [(model, name) for model, names in WRONG.items() for name in names])
def test_attributes_that_hold_something_else_are_refused(saved, model, name):
    for value in WRONG[model][name]:
        folder = saved(model)
        with_attributes(folder, **{name: value})
        refused(folder)


DAMAGED = [
    ("labeler", "prior_", lambda t: torch.ones(5)),
    ("labeler", "disjoint_", lambda t: torch.ones(2)),
    ("labeler", "labels_", lambda t: t + 7),
    ("labeler", "module_.head", lambda t: t * float("inf")),
    ("encoder", "mean_", lambda t: torch.ones(3)),
    ("encoder", "mutual_information_", lambda t: torch.ones(3)),
    ("clusterer", "frame_.basis", lambda t: t * float("nan")),
    ("clusterer", "frame_.lower", lambda t: t + 1e9),
    ("clusterer", "posterior_.offsets", lambda t: t * float("inf")),
    ("clusterer", "typicality_.0.scores", lambda t: t.flip(0)),
    ("clusterer", "hierarchy_", lambda t: t[:0]),
    ("clusterer", "states_", lambda t: t + 12),
    ("clusterer", "membership_", lambda t: t[:1]),
    ("clusterer", "cluster_stability_", lambda t: t[:1]),
    ("clusterer", "reservoir_", lambda t: t[:, :1]),
    ("clusterer", "reservoir_rows_", lambda t: t[:-1]),
    ("clusterer", "prototypes_", lambda t: t + 1000),
    ("clusterer", "another_", lambda t: torch.ones(2)),
    ("clusterer", "another_.center", lambda t: torch.ones(2)),
    ("labeler", "another_.center", lambda t: torch.ones(2)),
    ("encoder", "another_.center", lambda t: torch.ones(2)),
]


@pytest.mark.parametrize(("model", "name", "change"), DAMAGED)
def test_damaged_arrays_are_refused(saved, model, name, change):
    folder = saved(model)
    with_weights(folder, lambda tensors: tensors.update({name: change(tensors.get(name, torch.ones(1)))}))
    refused(folder)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@settings(max_examples=60)
@given(data=st.data(), model=st.sampled_from(["labeler", "clusterer", "encoder"]))
def test_any_other_value_in_a_description_is_refused_with_an_error_that_names_the_file(
    models, tmp_path_factory, data, model
):
    folder = tmp_path_factory.mktemp("model") / model
    models[model].save(folder)
    whole = description(folder)
    place = data.draw(st.sampled_from(["whole", "attributes", "params"]))
    inside = whole if place == "whole" else whole[place]
    inside[data.draw(st.sampled_from(sorted(inside)))] = data.draw(VALUES)
    (folder / "model.json").write_text(json.dumps(whole))
    try:
        found = load(folder)
    except ValueError as error:
        found = str(error)
    assert (
        str(folder) in found or "`network`" in found if isinstance(found, str) else type(found) is type(models[model])
    )


def with_network(n_clusters=2, **settings):
    return nb.InformationClusterer(n_clusters, n_hidden=8, max_iter=4, random_state=0, **settings)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("later", [None, nn.Linear(2, 3)])
@pytest.mark.parametrize("fitted", [None, nn.Linear(2, 3)])
def test_what_is_loaded_is_what_was_fitted_whatever_the_parameters_say_since(tmp_path, fitted, later):
    clusterer = with_network(network=fitted, objective=nb.MIM(1.0)).fit(BLOBS)
    expected = clusterer.predict_proba(BLOBS)
    clusterer.set_params(network=later, random_state=np.random.RandomState(0)).save(tmp_path / "model")
    loaded = load(tmp_path / "model", network=None if fitted is None else nn.Linear(2, 3))
    assert_array_equal(loaded.predict_proba(BLOBS), expected)
    assert loaded.random_state is None
    assert "MIM" in loaded.objective  # as text, because only training needs it
    refused(tmp_path / "model", "`network`", network=nn.Linear(2, 3) if fitted is None else None)
