"""Saved estimators: whole, safe, and clear about what is wrong."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

import neuralbayes as nb
from neuralbayes.data import toys

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
        ({"format": 2}, "has format 2, this version of neuralbayes reads format 1"),
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
