"""Labelers that split rows at zero instead of training, for tests of `neuralbayes label`."""

import json
import math
import warnings

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import neuralbayes


class SignLabeler:
    """State 1 if the first feature is positive; has the attributes of ManifoldLabeler that the command needs."""

    disjoint = True
    made = None

    def __init__(
        self, n_clusters=2, standardize=False, n_neighbors=15, random_state=None, max_clusters=8, vectorizer=None
    ):
        self.n_clusters, self.random_state, self.max_clusters = n_clusters, random_state, max_clusters
        self.standardize, self.n_neighbors, self.vectorizer = standardize, n_neighbors, vectorizer
        type(self).made = self

    def set_params(self, device):
        return self

    def fit(self, X):
        if self.vectorizer is not None:
            self.vectorizer_ = clone(self.vectorizer).fit(X)
        self.fitted_on = X
        self.n_clusters_ = 2 if self.n_clusters == "auto" else self.n_clusters
        self.n_features_in_ = np.shape(X)[1]
        self.labels_ = self.predict(X)
        self.separation_ = np.full(self.n_clusters_, math.log(2) * (1.0 if self.disjoint else 0.5))
        self.disjoint_ = np.full(self.n_clusters_, self.disjoint)
        if not self.disjoint:
            warnings.warn("no restart found disjoint states", ConvergenceWarning, stacklevel=2)
        return self

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)

    def predict_proba(self, X):
        first = np.asarray(X)[:, 0] if self.vectorizer is None else X[next(iter(self.vectorizer_.encoders_))]
        p = np.zeros((len(X), self.n_clusters_))
        p[np.arange(len(X)), (pd.to_numeric(first, errors="coerce") > 0).astype(int)] = 1.0
        return p

    def save(self, folder):
        folder.mkdir(parents=True)
        values, arrays = self.vectorizer_.state() if self.vectorizer is not None else (None, {})
        state = {"n": self.n_features_in_, "vectorizer": values}
        (folder / "model.json").write_text(json.dumps(state))
        np.savez(folder / "arrays.npz", **arrays)


class SignClusterer(SignLabeler):
    """The same without a certificate, like InformationClusterer."""

    def fit(self, X):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            super().fit(X)
        del self.disjoint_
        self.kind_, self.stability_ = "table", 0.75
        self.cluster_stability_ = np.full(self.n_clusters_, 0.75)
        return self


def load_sign_labeler(folder):
    state = json.loads((folder / "model.json").read_text())
    labeler = SignLabeler().fit(np.zeros((1, state["n"])))
    if state["vectorizer"] is not None:
        with np.load(folder / "arrays.npz") as arrays:
            labeler.vectorizer_ = neuralbayes.TableVectorizer.restored(state["vectorizer"], dict(arrays))
        labeler.vectorizer = labeler.vectorizer_
    return labeler


def said(capsys):
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.out, " ".join(captured.err.split())


def split_at_zero(monkeypatch):
    """Make the commands use these labelers."""
    monkeypatch.setattr(neuralbayes, "ManifoldLabeler", SignLabeler, raising=False)
    monkeypatch.setattr(neuralbayes, "InformationClusterer", SignClusterer, raising=False)
    monkeypatch.setattr(neuralbayes, "load", load_sign_labeler, raising=False)
    monkeypatch.setattr(SignLabeler, "disjoint", True)
