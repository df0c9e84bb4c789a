"""Names say what is true of rows that did not choose them; names of one description differ."""

import numpy as np
import pandas as pd
import pytest

from neuralbayes.explain.claims import check_claims
from neuralbayes.explain.columns import as_cells
from neuralbayes.explain.names import FEW, NOTHING, TOO_FEW, name_clusters


def named(frame, labels, n_clusters=None):
    labels = np.asarray(labels)
    columns = as_cells(pd.DataFrame(frame))
    return name_clusters(check_claims(columns, labels, n_clusters or int(labels.max()) + 1))


def names_of(frame, labels, n_clusters=None):
    return [name for name, _ in named(frame, labels, n_clusters)]


def test_values_categories_and_missing_cells_are_claims():
    labels = np.repeat([0, 1, 2, 3], 100)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "city": np.where(labels == 0, "Bonn", rng.choice(["Köln", "Trier", "Mainz"], 400)),
            "children": np.where(labels == 1, 0.0, rng.integers(1, 5, 400)),
            "active": labels == 2,
            "age": np.where(labels == 3, np.nan, rng.normal(40, 5, 400)),
        }
    )
    assert names_of(frame, labels) == ["Bonn", "children 0", "active", "age missing"]


def test_siblings_are_told_apart_by_what_differs_between_them():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [200, 200, 600])
    mass = np.where(labels < 2, 9.0, 1.0) + rng.normal(size=1000)
    depth = np.choose(labels, [1.0, 9.0, 5.0]) + rng.normal(size=1000)
    names = names_of({"mass": mass, "depth": depth}, labels)
    assert len(set(names)) == 3
    assert "depth" in names[0]
    assert "depth" in names[1]


def test_clusters_of_noise_are_said_to_be_alike_and_numbered():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 8)))
    assert names_of(frame, rng.integers(0, 3, 400)) == [NOTHING, f"{NOTHING} (2)", f"{NOTHING} (3)"]


def test_hardly_any_claim_about_random_labels_survives_the_check():
    claims = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(rng.normal(size=(300, 40)))
        claims += sum(len(found) for _, found in named(frame, rng.integers(0, 6, 300)))
    assert claims <= 1


def test_claims_hold_on_rows_that_nobody_has_seen():
    rng = np.random.default_rng(1)
    centers = rng.normal(0, 1.5, (8, 12))
    labels = rng.integers(0, 8, 3000)
    frame = pd.DataFrame(centers[labels] + rng.normal(size=(3000, 12)))
    columns = as_cells(frame)
    seen = np.arange(3000) < 1500
    found = named(frame[seen], labels[seen])
    assert len({name for name, _ in found}) == 8
    for k, (_, claims) in enumerate(found):
        assert claims
        for claim in claims:
            holds = claim.condition.holds(columns[int(claim.condition.column)])
            inside, outside = holds[~seen & (labels == k)].mean(), holds[~seen & (labels != k)].mean()
            assert inside > outside + 0.1
            assert inside == pytest.approx(claim.share_inside, abs=0.15)


def test_few_rows_no_rows_and_all_rows_are_called_so():
    x = np.random.default_rng(0).normal(size=200)
    labels = np.zeros(200, int)
    labels[: FEW - 7] = 1
    assert names_of({"x": x}, labels, 3)[1:] == [TOO_FEW, "no rows"]
    assert names_of({"x": x}, np.zeros(200, int)) == ["all rows"]
