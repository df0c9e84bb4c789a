"""Saved estimators: complete, safe, and with clear errors."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from torch import nn

import neuralbayes as nb
from neuralbayes.data import toys
from neuralbayes.system.files import read_tensors, write_tensors

X, _ = toys.make_moons(300, random_state=0)
FRAME = pd.DataFrame(X, columns=["a", "b"])
BLOBS = np.random.default_rng(0).normal(size=(60, 2)) + 8 * (np.arange(60) % 2)[:, None]


@pytest.fixture(scope="module")
def labeler():
    return nb.ManifoldLabeler("auto", random_state=0).fit(FRAME)


@pytest.fixture(scope="module")
def clusterer():
    return nb.InformationClusterer(random_state=0).fit(pd.DataFrame(BLOBS, columns=["a", "b"]))


@pytest.fixture(scope="module")
def encoder():
    return nb.MIMEncoder((4, 3), max_epochs=1, random_state=0).fit(BLOBS)


@pytest.fixture
def saved(labeler, clusterer, encoder, tmp_path):
    """Folder of a model."""

    def save(name):
        {"labeler": labeler, "clusterer": clusterer, "encoder": encoder}[name].save(tmp_path / name)
        return tmp_path / name

    return save


@pytest.fixture
def folder(saved):
    return saved("labeler")


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


@pytest.mark.parametrize("name", ["labeler", "clusterer"])
def test_a_loaded_model_is_the_saved_one(saved, request, name):
    fitted = request.getfixturevalue(name)
    frame = pd.DataFrame(X if name == "labeler" else BLOBS, columns=["a", "b"])
    loaded = nb.load(saved(name))
    assert_array_equal(loaded.transform(frame), fitted.transform(frame))
    assert loaded.get_params() == fitted.get_params()
    assert vars(loaded).keys() == vars(fitted).keys()
    for attribute in {*vars(fitted)} - {"module_", "frame_", "posterior_", "typicality_"}:
        assert_array_equal(getattr(loaded, attribute), getattr(fitted, attribute))
    assert loaded.selection_ == fitted.selection_
    if name == "clusterer":
        assert_array_equal(loaded.predict(frame, reject=0.1), fitted.predict(frame, reject=0.1))


def test_a_loaded_model_can_be_saved_and_fitted_again(folder, tmp_path):
    loaded = nb.load(folder)
    loaded.save(tmp_path / "copy")
    assert_array_equal(nb.load(tmp_path / "copy").labels_, loaded.labels_)
    loaded.fit(X)


def test_saving_again_replaces_the_model_and_leaves_no_stale_files(folder, clusterer):
    for name in ("weights-0123456789abcdef.safetensors", ".weights.x1.tmp.safetensors", ".model.x2.tmp.json"):
        (folder / name).write_text("half")  # of a save that was killed
    clusterer.save(folder)
    assert_array_equal(nb.load(folder).labels_, clusterer.labels_)
    assert len(list(folder.iterdir())) == 2


def test_an_unfitted_estimator_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        nb.ManifoldLabeler().save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_folder_with_other_files_is_left_alone(labeler, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match="other files"):
        labeler.save(tmp_path)


def test_a_missing_or_damaged_model_is_named(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"model\.json"):
        nb.load(tmp_path)
    (weights,) = folder.glob("weights-*")
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(ValueError, match="missing or damaged"):
        nb.load(folder)
    (folder / "model.json").write_text('{"format": 3, ')
    with pytest.raises(ValueError, match="not a valid JSON file"):
        nb.load(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"format": 2, "library": "0.2.0"},
            "has format 2 of version 0.2.0, but .* reads format 3: fit the model again",
        ),
        ({"estimator": "os.system"}, "names the estimator 'os.system'"),
        ({"weights": "../../etc/passwd"}, "missing or damaged"),
        ({"attributes": {}}, "does not fit its weights"),
        ({"params": {"shell": "rm"}}, "does not fit its weights"),
        ({"params": []}, "does not fit its weights"),
    ],
)
def test_a_description_from_elsewhere_is_refused(folder, changes, message):
    edit(folder, **changes)
    with pytest.raises(ValueError, match=message):
        nb.load(folder)


def test_a_random_state_object_is_not_kept(tmp_path):
    nb.InformationClusterer(2, random_state=np.random.RandomState(0)).fit(BLOBS).save(tmp_path / "model")
    assert nb.load(tmp_path / "model").random_state is None


@pytest.mark.parametrize("name", ["labeler", "clusterer"])
def test_attributes_that_no_fit_makes_are_refused_by_name(saved, name):
    folder = saved(name)
    with_attributes(folder, predict="x")
    with pytest.raises(ValueError, match="'predict' is not a fitted attribute of"):
        nb.load(folder)
    folder = saved(name)
    with_weights(folder, lambda tensors: tensors.update(transform=torch.ones(2)))
    with pytest.raises(ValueError, match="'transform' is not a fitted attribute of"):
        nb.load(folder)


WRONG = {
    "labeler": {
        "n_clusters_": ["2", 3, True],
        "n_hidden_": [-1],
        "n_features_in_": [10**30],
        "loss_curve_": [["x"], [float("nan")]],
        "objective_": [None, float("inf")],
        "selection_": [{"n_clusters": [1, 2], "ratio": [1.0]}, []],
        "image_shape_": [[2, 1], [8, 8, 3]],
        "feature_names_in_": [["a"], ["a", 3]],
    },
    "clusterer": {
        "verdict_": ["maybe"],
        "kind_": ["rows"],
        "posterior_kind_": ["network"],
        "stability_": ["high"],
        "n_states_": [3],
        "n_dimensions_": [3],
        "class_names_": ["ab"],
    },
}


@pytest.mark.parametrize(("model", "name"), [(model, name) for model, names in WRONG.items() for name in names])
def test_attributes_that_hold_something_else_are_refused(saved, model, name):
    for value in WRONG[model][name]:
        folder = saved(model)
        with_attributes(folder, **{name: value})
        with pytest.raises(ValueError, match="does not fit its weights"):
            nb.load(folder)


@pytest.mark.parametrize("name", ["n_iter_", "loss_curve_", "n_dimensions_"])
def test_a_missing_attribute_is_named(folder, name):
    edit(folder, attributes={k: v for k, v in description(folder)["attributes"].items() if k != name})
    with pytest.raises(ValueError, match=f"'{name}' is missing"):
        nb.load(folder)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["module_.head", "module_.center", "separation_"])
def test_numbers_that_are_not_finite_are_refused_by_name(folder, name, bad):
    with_weights(folder, lambda tensors: tensors[name].view(-1)[:1].fill_(bad))
    with pytest.raises(ValueError, match=f"{name.removeprefix('module_.')}' must be finite, got 1 value"):
        nb.load(folder)


@pytest.mark.parametrize(
    ("model", "name", "tensor"),
    [
        ("labeler", "prior_", torch.ones(5)),
        ("labeler", "separation_", torch.ones(2, 2)),
        ("labeler", "disjoint_", torch.ones(2)),
        ("labeler", "labels_", torch.tensor([0, 7])),
        ("labeler", "labels_", torch.tensor([0, -1])),
        ("encoder", "mean_", torch.ones(3)),
        ("encoder", "std_", torch.ones(2, 1)),
        ("encoder", "mutual_information_", torch.ones(3)),
    ],
)
def test_arrays_that_do_not_fit_each_other_are_refused_by_name(saved, model, name, tensor):
    folder = saved(model)
    with_weights(folder, lambda tensors: tensors.update({name: tensor}))
    with pytest.raises(ValueError, match=f"'{name}'"):
        nb.load(folder)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("frame_.center", lambda t: t[:1]),
        ("frame_.basis", lambda t: t.fill_(float("nan"))),
        ("frame_.lower", lambda t: t + 1e9),
        ("posterior_.offsets", lambda t: t.fill_(float("inf"))),
        ("posterior_.roots", lambda t: t[:1]),
        ("typicality_.0.scores", lambda t: t.flip(0)),
        ("typicality_.1.reference", lambda t: t[:-1]),
        ("typicality_.2.center", lambda t: t.fill_(float("nan"))),
        ("hierarchy_", lambda t: t[:0]),
        ("hierarchy_", lambda t: t - 5),
        ("states_", lambda t: t + 12),
        ("states_", lambda t: t[:-1]),
        ("membership_", lambda t: t[:1]),
        ("cluster_stability_", lambda t: t[:1]),
        ("reservoir_", lambda t: t[:, :1]),
        ("reservoir_rows_", lambda t: t[:-1]),
        ("prototypes_", lambda t: t + 1000),
        ("another_", lambda t: torch.ones(2)),
    ],
)
def test_damaged_parts_of_a_clusterer_are_refused(saved, name, change):
    folder = saved("clusterer")
    with_weights(folder, lambda tensors: tensors.update({name: change(tensors.get(name))}))
    with pytest.raises(ValueError, match="does not fit its weights"):
        nb.load(folder)


def test_layers_without_weights_are_refused_before_they_are_made(saved, monkeypatch):
    folder = saved("encoder")
    with_attributes(folder, n_states_=[2] * 100_000)
    monkeypatch.setattr("neuralbayes.features.rows_network", lambda *_: pytest.fail("layers were made"))
    with pytest.raises(ValueError, match="'n_states_' must be of layers with weights, got 100000 layers"):
        nb.load(folder)


def with_network(n_clusters=2, **settings):
    return nb.InformationClusterer(n_clusters, n_hidden=8, max_iter=4, random_state=0, **settings)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("later", [None, nn.Linear(2, 3)])
@pytest.mark.parametrize("fitted", [None, nn.Linear(2, 3)])
def test_what_is_loaded_is_what_was_fitted_whatever_the_parameters_say_since(tmp_path, fitted, later):
    clusterer = with_network(network=fitted).fit(BLOBS)
    expected = clusterer.predict_proba(BLOBS)
    clusterer.set_params(network=later).save(tmp_path / "model")
    loaded = nb.load(tmp_path / "model", network=None if fitted is None else nn.Linear(2, 3))
    assert_array_equal(loaded.predict_proba(BLOBS), expected)


@pytest.mark.parametrize("make", [nb.ManifoldLabeler(2, n_hidden=8), with_network()])
def test_a_model_that_was_fitted_with_an_objective_is_loaded_without_it(tmp_path, make):
    fitted = make.set_params(objective=nb.MIM(1.0), random_state=0).fit(BLOBS)
    fitted.save(tmp_path / "model")
    loaded = nb.load(tmp_path / "model")
    assert "MIM" in loaded.objective  # as text, because only training needs it
    assert_array_equal(loaded.predict_proba(BLOBS), fitted.predict_proba(BLOBS))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_network_of_ones_own_may_hold_infinity_but_no_nan(tmp_path):
    class Masked(nn.Linear):
        def __init__(self):
            super().__init__(2, 3)
            self.register_buffer("mask", torch.tensor([0.0, float("-inf")]))

    with_network(network=Masked()).fit(BLOBS).save(tmp_path)
    assert nb.load(tmp_path, network=Masked()).n_clusters_ == 2
    with_weights(tmp_path, lambda tensors: tensors["posterior_.body.mask"].fill_(float("nan")))
    with pytest.raises(ValueError, match=r"body\.mask' must be finite"):
        nb.load(tmp_path, network=Masked())


@pytest.mark.parametrize("make", [nb.ManifoldLabeler, nb.InformationClusterer])
def test_a_refit_forgets_all_that_the_earlier_fit_found(make):
    """Afterwards, it has the same attributes as a new estimator."""
    clusterer = make("auto", n_hidden=8, random_state=0).fit(pd.DataFrame(BLOBS, columns=["a", "b"]))
    clusterer.set_params(n_clusters=2).fit(BLOBS)
    assert vars(clusterer).keys() == vars(make(2, n_hidden=8, random_state=0).fit(BLOBS)).keys()
    assert not hasattr(clusterer, "selection_")


def test_an_attribute_that_would_not_be_saved_is_an_error(tmp_path):
    fitted = nb.MIMEncoder((4,), max_epochs=1).fit(BLOBS)
    fitted.another_ = 1
    with pytest.raises(TypeError, match="'another_'"):
        fitted.save(tmp_path)
