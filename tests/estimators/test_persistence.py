"""Saved estimators: complete, safe, and with clear errors."""

import hashlib
import json
from functools import partial

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


@pytest.fixture(scope="module")
def labeler():
    return nb.ManifoldLabeler("auto", random_state=0).fit(pd.DataFrame(X, columns=["a", "b"]))


@pytest.fixture
def folder(labeler, tmp_path):
    labeler.save(tmp_path / "model")
    return tmp_path / "model"


def edit(folder, **changes):
    path = folder / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_loaded_model_is_the_saved_one(labeler, folder):
    loaded = nb.load(folder)
    frame = pd.DataFrame(X, columns=["a", "b"])
    assert_array_equal(loaded.transform(frame), labeler.transform(frame))
    assert loaded.get_params() == labeler.get_params()
    for name in ("labels_", "prior_", "separation_", "disjoint_", "feature_names_in_"):
        assert_array_equal(getattr(loaded, name), getattr(labeler, name))
    assert loaded.selection_ == labeler.selection_
    assert loaded.n_clusters_ == labeler.n_clusters_


def test_a_loaded_model_can_be_saved_and_fitted_again(folder, tmp_path):
    loaded = nb.load(folder)
    loaded.save(tmp_path / "copy")
    assert_array_equal(nb.load(tmp_path / "copy").labels_, loaded.labels_)
    loaded.fit(X)


def test_saving_again_replaces_the_model_and_leaves_no_stale_files(folder):
    other = nb.ManifoldLabeler(2, n_hidden=64, random_state=1).fit(X)
    other.save(folder)
    assert_array_equal(nb.load(folder).labels_, other.labels_)
    assert len(list(folder.iterdir())) == 2


def test_a_save_that_fails_leaves_the_old_model(labeler, folder, monkeypatch):
    def full_disk(*args, **kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr("neuralbayes.estimators.persistence.write_json", full_disk)
    with pytest.raises(OSError, match="no space"):
        nb.ManifoldLabeler(2, n_hidden=64, random_state=1).fit(X).save(folder)
    assert_array_equal(nb.load(folder).labels_, labeler.labels_)


def test_a_save_that_was_killed_is_no_hindrance_to_the_next(labeler, tmp_path):
    for name in ("weights-0123456789abcdef.safetensors", ".weights.x1.tmp.safetensors", ".model.x2.tmp.json"):
        (tmp_path / name).write_text("half")
    labeler.save(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    nb.load(tmp_path)


def test_an_unfitted_estimator_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        nb.ManifoldLabeler().save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_folder_with_other_files_is_left_alone(labeler, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match="other files"):
        labeler.save(tmp_path)


def test_a_missing_model_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"model\.json"):
        nb.load(tmp_path)


def test_damaged_weights_are_noticed(folder):
    (weights,) = folder.glob("weights-*")
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(ValueError, match="missing or damaged"):
        nb.load(folder)


def test_a_truncated_description_is_named(folder):
    (folder / "model.json").write_text('{"format": 1, ')
    with pytest.raises(ValueError, match="not a valid JSON file"):
        nb.load(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"format": 1},
            "has format 1 of version .* reads format 2: fit the model again",
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
    nb.ManifoldLabeler(2, random_state=np.random.RandomState(0)).fit(X).save(tmp_path / "model")
    assert nb.load(tmp_path / "model").random_state is None


BLOBS = np.random.default_rng(0).normal(size=(60, 2)) + 8 * (np.arange(60) % 2)[:, None]


def description(folder):
    return json.loads((folder / "model.json").read_text())


def with_attributes(folder, **changes):
    edit(folder, attributes=description(folder)["attributes"] | changes)


def with_weights(folder, change):
    """The model with other tensors, and a matching checksum."""
    path = folder / description(folder)["weights"]
    tensors, _ = read_tensors(path)
    change(tensors)
    write_tensors(path, tensors, {})
    edit(folder, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.fixture(scope="module")
def encoder():
    return nb.MIMEncoder((4, 3), max_epochs=1, random_state=0).fit(BLOBS)


def test_attributes_that_no_fit_makes_are_refused_by_name(folder):
    with_attributes(folder, predict="x")
    with pytest.raises(ValueError, match="'predict' is not a fitted attribute of ManifoldLabeler"):
        nb.load(folder)


def test_arrays_that_no_fit_makes_are_refused_by_name(folder):
    with_weights(folder, lambda tensors: tensors.update(transform=torch.ones(2)))
    with pytest.raises(ValueError, match="'transform' is not a fitted attribute of ManifoldLabeler"):
        nb.load(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_clusters_", "2"),
        ("n_clusters_", 3),
        ("n_clusters_", True),
        ("n_hidden_", -1),
        ("n_features_in_", 10**30),
        ("loss_curve_", ["x"]),
        ("loss_curve_", [float("nan")]),
        ("objective_", None),
        ("objective_", float("inf")),
        ("selection_", {"n_clusters": [1, 2], "ratio": [1.0]}),
        ("selection_", []),
        ("image_shape_", [2, 1]),
        ("image_shape_", [8, 8, 3]),
        ("feature_names_in_", ["a"]),
        ("feature_names_in_", ["a", 3]),
    ],
)
def test_attributes_that_hold_something_else_are_refused_by_name(folder, name, value):
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
    with pytest.raises(ValueError, match=f"'{name}' must be finite, got 1 value"):
        nb.load(folder)


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("prior_", torch.ones(5)),
        ("separation_", torch.ones(2, 2)),
        ("disjoint_", torch.ones(2)),
        ("labels_", torch.tensor([0, 7])),
        ("labels_", torch.tensor([0, -1])),
    ],
)
def test_arrays_that_do_not_fit_each_other_are_refused_by_name(folder, name, tensor):
    with_weights(folder, lambda tensors: tensors.update({name: tensor}))
    with pytest.raises(ValueError, match=f"'{name}' (must|has an invalid value)"):
        nb.load(folder)


def test_layers_without_weights_are_refused_before_they_are_made(encoder, tmp_path, monkeypatch):
    encoder.save(tmp_path / "model")
    with_attributes(tmp_path / "model", n_states_=[2] * 100_000)
    monkeypatch.setattr("neuralbayes.features.rows_network", lambda *_: pytest.fail("layers were made"))
    with pytest.raises(ValueError, match="'n_states_' must be of layers with weights, got 100000 layers"):
        nb.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "tensor"), [("mean_", torch.ones(3)), ("std_", torch.ones(2, 1)), ("mutual_information_", torch.ones(3))]
)
def test_arrays_of_an_encoder_that_do_not_fit_are_refused_by_name(encoder, tmp_path, name, tensor):
    encoder.save(tmp_path / "model")
    with_weights(tmp_path / "model", lambda tensors: tensors.update({name: tensor.double()}))
    with pytest.raises(ValueError, match=f"'{name}'"):
        nb.load(tmp_path / "model")


NETWORKS = {"mlp": "mlp", "own": nn.Linear(2, 3)}


@pytest.mark.parametrize("later", NETWORKS)
@pytest.mark.parametrize("fitted", NETWORKS)
def test_what_is_loaded_is_what_was_fitted_whatever_the_parameters_say_since(tmp_path, fitted, later):
    clusterer = nb.InformationClusterer(2, network=NETWORKS[fitted], n_hidden=8, max_iter=4, random_state=0).fit(BLOBS)
    expected = clusterer.predict_proba(BLOBS)
    clusterer.set_params(network=NETWORKS[later]).save(tmp_path / "model")
    loaded = nb.load(tmp_path / "model", network=NETWORKS["own"] if fitted == "own" else None)
    assert_array_equal(loaded.predict_proba(BLOBS), expected)
    if later != "own":
        assert loaded.network == NETWORKS[later]


@pytest.mark.parametrize("make", [nb.ManifoldLabeler, partial(nb.InformationClusterer, max_iter=4)])
def test_a_model_that_was_fitted_with_an_objective_is_loaded_without_it(tmp_path, make):
    fitted = make(2, objective=nb.MIM(1.0), n_hidden=8, random_state=0).fit(BLOBS)
    fitted.save(tmp_path / "model")
    loaded = nb.load(tmp_path / "model")
    assert "MIM" in loaded.objective  # as text, because only training needs it
    assert_array_equal(loaded.predict_proba(BLOBS), fitted.predict_proba(BLOBS))


def test_a_network_of_ones_own_may_hold_infinity_but_no_nan(tmp_path):
    class Masked(nn.Linear):
        def __init__(self):
            super().__init__(2, 3)
            self.register_buffer("mask", torch.tensor([0.0, float("-inf")]))

    nb.InformationClusterer(2, network=Masked(), max_iter=4, random_state=0).fit(BLOBS).save(tmp_path)
    assert nb.load(tmp_path, network=Masked()).n_clusters_ == 2
    with_weights(tmp_path, lambda tensors: tensors["module_.network.body.mask"].fill_(float("nan")))
    with pytest.raises(ValueError, match=r"network\.body\.mask' must be finite"):
        nb.load(tmp_path, network=Masked())


@pytest.mark.parametrize("make", [nb.ManifoldLabeler, partial(nb.InformationClusterer, max_iter=4)])
def test_a_refit_forgets_all_that_the_earlier_fit_found(make):
    """Afterwards, it has the same attributes as a new estimator."""
    clusterer = make("auto", n_hidden=8, random_state=0).fit(pd.DataFrame(BLOBS, columns=["a", "b"]))
    clusterer.set_params(n_clusters=2).fit(BLOBS)
    new = make(2, n_hidden=8, random_state=0).fit(BLOBS)
    assert vars(clusterer).keys() == vars(new).keys()
    assert not hasattr(clusterer, "selection_")


def test_every_fitted_attribute_is_among_those_that_are_saved(labeler, encoder):
    for estimator in (labeler, encoder):
        fitted = {name for name in vars(estimator) if name.endswith("_")} - {"module_"}
        assert fitted <= {*estimator._fitted, *estimator._fitted_sometimes}
    encoder.another_ = 1
    try:
        with pytest.raises(TypeError, match="'another_'"):
            encoder.save("nowhere")
    finally:
        del encoder.another_
