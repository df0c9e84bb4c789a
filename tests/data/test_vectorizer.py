"""Data frames as rows of numbers."""

import copy
import json
import operator
import warnings
from functools import reduce

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import neuralbayes as nb

HOW = ("in time, all well", "late and was broken")


def make_frame(n: int = 120, seed: int = 0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "customer_id": rng.permutation(10 * n)[:n],
            "income": np.exp(rng.normal(10.0 + group, 0.3)),
            "age": rng.normal(30 + 20 * group, 4.0),
            "plan": np.where(rng.random(n) < 0.8, np.array(["basic", "gold"])[group], "trial"),
            "member": rng.random(n) < 0.5,
            "since": pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "comment": [f"the parcel {i} came {HOW[g]}" for i, g in enumerate(group)],
            "country": "France",
        }
    )
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    frame.loc[rng.random(n) < 0.1, "plan"] = None
    return frame


def test_numbers_are_centred_at_their_median_and_have_unit_variance():
    rows = nb.TableVectorizer().fit_transform(pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0, 4.0]}))
    unit = 2.0 / 1.349  # between the quartiles
    drawn_in = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) / unit
    drawn_in /= np.sqrt(1.0 + (drawn_in / 4.0) ** 2)
    np.testing.assert_allclose(rows[:, 0], drawn_in / drawn_in.std(), rtol=1e-6)
    rows = nb.TableVectorizer().fit_transform(pd.DataFrame({"a": [*np.random.default_rng(0).normal(size=200), 1e9]}))
    assert (np.abs(rows[:-1]).std() > 0.5, np.abs(rows[-1]) < 5.0) == (True, True)  # an outlier moves no other


def test_two_values_are_one_column_and_equally_frequent_ones_two_apart():
    vectorizer = nb.TableVectorizer().fit(pd.DataFrame({"sex": ["f", "m"] * 5}))
    assert vectorizer.get_feature_names_out().tolist() == ["sex=f"]
    np.testing.assert_allclose(vectorizer.transform(pd.DataFrame({"sex": ["f", "m"]})), [[2.0], [0.0]])


def test_categories_are_at_one_distance_from_each_other_and_a_rare_one_is_no_farther_than_2_5():
    frame = pd.DataFrame({"kind": ["a"] * 96 + ["b"] * 2 + ["c"] * 2})
    rows = np.unique(nb.TableVectorizer().fit_transform(frame), axis=0)
    distances = np.sqrt(np.square(rows[:, None] - rows[None]).sum(axis=2))
    np.testing.assert_allclose(distances[~np.eye(3, dtype=bool)], 2.5, rtol=1e-6)


def test_many_categories_are_twenty_and_the_others_together():
    frame = pd.DataFrame({"city": [f"city {i}" for i in range(25) for _ in range(30 - i)]})
    vectorizer = nb.TableVectorizer().fit(frame)
    names = vectorizer.get_feature_names_out()
    assert len(names) == 21
    assert names[-1] == "city=(other)"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        unseen = vectorizer.transform(pd.DataFrame({"city": ["elsewhere"]}))
    assert unseen.argmax() == 20


def test_dates_keep_when_and_over_many_days_the_time_of_day():
    days = pd.DataFrame({"day": pd.date_range("2018-01-01", "2020-12-31", freq="D")})
    assert nb.TableVectorizer().fit(days).get_feature_names_out().tolist() == ["day"]
    hours = pd.DataFrame({"at": pd.date_range("2020-01-01", periods=1000, freq="h")})
    vectorizer = nb.TableVectorizer().fit(hours)
    assert vectorizer.get_feature_names_out().tolist() == ["at", "at, time of day"]
    rows = vectorizer.transform(hours)
    np.testing.assert_allclose(rows[0, 1], rows[24, 1], atol=1e-5)
    assert rows[24, 0] > rows[0, 0]


def test_a_day_begins_when_nothing_happens():
    rng = np.random.default_rng(0)
    hours = rng.integers(0, 90, 400) * 24 + rng.normal(0, 0.5, 400)
    night = pd.Timestamp("2020-01-01 23:30") + pd.to_timedelta(hours, "h")
    rows = nb.TableVectorizer().fit_transform(pd.DataFrame({"at": night}))
    assert np.ptp(rows[:, 1]) < 0.5 * np.sqrt(12)  # midnight does not divide the night


def test_regular_dates_are_no_clusters():
    """A ring of seasons, or a helix of years, has gaps that dates do not have."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 600)
    frame = pd.DataFrame({"a": rng.normal(6.0 * kind), "b": rng.normal(size=600)})
    frame["since"] = pd.date_range("2018-01-01", periods=600, freq="D")
    assert nb.InformationClusterer(random_state=0).fit(frame).n_clusters_ == 3
    assert nb.InformationClusterer(random_state=0).fit(frame[["b", "since"]]).verdict_ != "clusters"


def test_texts_of_one_kind_are_near_each_other():
    frame = make_frame()[["comment"]]
    rows = nb.TableVectorizer().fit_transform(frame)
    late = frame["comment"].str.contains("late").to_numpy()
    own, other = (np.linalg.norm(rows - rows[which].mean(axis=0), axis=1) for which in (late, ~late))
    assert ((own < other) == late).all()


def test_missing_cells_are_what_the_others_foretell():
    rng = np.random.default_rng(0)
    a = rng.normal(size=500)
    frame = pd.DataFrame({"a": a, "b": 2.0 * a + 0.1 * rng.normal(size=500)})
    whole = nb.TableVectorizer().fit_transform(frame)
    holes = frame.copy()
    holes.loc[::5, "b"] = np.nan
    filled = nb.TableVectorizer().fit_transform(holes)
    assert np.abs(filled[::5, 1] - whole[::5, 1]).mean() < 0.2  # the mean would differ by 0.8
    assert np.isfinite(filled).all()


def test_the_mask_says_where_cells_are_missing():
    frame = make_frame()
    vectorizer = nb.TableVectorizer(missing="mask").fit(frame)
    names = vectorizer.get_feature_names_out().tolist()
    assert [name for name in names if name.endswith("is missing")] == ["age is missing", "plan is missing"]
    mask = vectorizer.transform(frame)[:, names.index("age is missing")]
    np.testing.assert_array_equal(mask > 0, frame["age"].isna())


def restored(vectorizer):
    values, arrays = vectorizer.state()
    return nb.TableVectorizer.restored(json.loads(json.dumps(values, allow_nan=False)), arrays)


@pytest.mark.parametrize("missing", ["impute", "mask"])
@pytest.mark.parametrize("standardize", [True, False])
def test_json_and_arrays_give_the_same_rows_bit_for_bit(missing, standardize: bool):
    frame = make_frame()
    vectorizer = nb.TableVectorizer(missing=missing, standardize=standardize, kinds={"member": "ignore"}).fit(frame)
    again = restored(vectorizer)
    np.testing.assert_array_equal(again.transform(frame), vectorizer.transform(frame))
    assert again.columns_ == vectorizer.columns_
    assert again.get_params() == vectorizer.get_params()


@pytest.mark.parametrize(
    ("keys", "to"),
    [
        (("missing",), "guess"),
        (("standardize",), 3),
        (("encoders", 0, "scale"), -1.0),
        (("encoders", 0, "center"), "0"),
        (("encoders", 0, "kind"), "category"),
        (("encoders", 2, "levels"), ["a", "a"]),
        (("encoders", 2, "levels"), [str(i) for i in range(1000)]),
        (("encoders", 4, "cycles"), {"century": 0.5}),
        (("encoders", 4, "date_format"), "%Y" * 1000),
        (("columns", 0, "kind"), "number"),
        (("columns", 0, "missing"), 7),
        (("columns", 0, "name"), "age"),
        (("masked",), ["no such column"]),
        (("encoders",), []),
    ],
)
def test_what_a_damaged_file_says_is_refused(keys, to):
    values, arrays = nb.TableVectorizer().fit(make_frame()).state()
    changed = copy.deepcopy(values)
    reduce(operator.getitem, keys[:-1], changed)[keys[-1]] = to
    with pytest.raises((ValueError, TypeError, KeyError)):
        nb.TableVectorizer.restored(changed, arrays)


@pytest.mark.parametrize("name", ["mean", "covariance", "5.weights", "5.components"])
def test_arrays_of_another_shape_or_with_nan_are_refused(name):
    values, arrays = nb.TableVectorizer().fit(make_frame()).state()
    for array in (arrays[name][:-1], np.full_like(arrays[name], np.nan)):
        with pytest.raises((ValueError, TypeError)):
            nb.TableVectorizer.restored(values, {**arrays, name: array})


def test_columns_may_come_in_any_order_with_others_beside_them_but_none_may_be_missing():
    frame = make_frame()
    vectorizer = nb.TableVectorizer().fit(frame)
    other = frame[frame.columns[::-1]].drop(columns="country").assign(extra=1)
    np.testing.assert_array_equal(vectorizer.transform(other), vectorizer.transform(frame))
    with pytest.raises(ValueError, match=r"column 'age' is missing.*Add it, .* empty cells"):
        vectorizer.transform(frame.drop(columns="age"))


def test_cells_that_were_not_in_the_fit_are_counted_and_named():
    frame = make_frame()
    vectorizer = nb.TableVectorizer().fit(frame)
    with pytest.warns(UserWarning, match=r"'plan': 60 cells .* such as 'plat"):
        rows = vectorizer.transform(frame.assign(plan=["platinum", "basic"] * 60))
    plan = [name.startswith("plan=") for name in vectorizer.get_feature_names_out()]
    assert (rows[0, plan] == 0.0).all()
    with pytest.warns(UserWarning, match="'age': 'old' is not a number; counted as missing"):
        rows = vectorizer.transform(frame.astype({"age": object}).assign(age=["old", *frame["age"][1:]]))
    assert np.isfinite(rows).all()


def test_a_kind_that_the_cells_do_not_have_is_refused_with_the_row():
    with pytest.raises(ValueError, match="'plan' cannot be read as number: row 1 holds 'a'"):
        nb.TableVectorizer(kinds={"plan": "number"}).fit(pd.DataFrame({"plan": ["a", "b", "c"]}))


def test_columns_of_no_use_are_one_of_zeros_and_a_warning():
    with pytest.warns(UserWarning, match="No column .*'a': always 1, 'b': always 'x'"):
        rows = nb.TableVectorizer().fit_transform(pd.DataFrame({"a": [1, 1, 1], "b": ["x", "x", "x"]}))
    np.testing.assert_array_equal(rows, np.zeros((3, 1)))


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["a", "b", "2020-01-01", "1,5", " 7 ", ""]),
    st.dates(),
    st.datetimes(),
    st.lists(st.integers(), max_size=2),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(st.text(max_size=5), st.lists(CELLS, min_size=6, max_size=6), min_size=1, max_size=4),
    st.sampled_from(["impute", "mask"]),
)
def test_whatever_cells_hold_rows_are_finite_and_come_back_from_json(columns, missing):
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        vectorizer = nb.TableVectorizer(missing=missing).fit(frame)
        rows = vectorizer.transform(frame)
        assert rows.shape == (6, len(vectorizer.get_feature_names_out()))
        assert np.isfinite(rows).all()
        np.testing.assert_array_equal(restored(vectorizer).transform(frame), rows)


def test_it_is_a_step_of_a_pipeline_and_can_be_cloned():
    frame = make_frame()
    pipeline = make_pipeline(nb.TableVectorizer(), nb.InformationClusterer(2, max_iter=4, random_state=0))
    assert clone(pipeline).fit(frame).predict(frame).shape == (120,)
    assert "income" in nb.TableVectorizer().set_output(transform="pandas").fit_transform(frame)


def test_a_category_that_is_foretold_is_one_of_its_values():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 300)
    frame = pd.DataFrame({"x": group + 0.1 * rng.normal(size=300), "kind": np.array(["a", "b", "c"])[group]})
    frame["high"] = np.where(group == 2, "yes", "no")
    vectorizer = nb.TableVectorizer().fit(frame)
    holes = frame.assign(kind=None, high=None).astype({"kind": object, "high": object})
    filled, whole = vectorizer.transform(holes), vectorizer.transform(frame)
    names = vectorizer.get_feature_names_out().tolist()
    assert all(set(filled[:, j]) <= set(whole[:, j]) for j in range(1, len(names)))
    high = names.index("high=no")
    assert (filled[:, high] == whole[:, high]).mean() > 0.9
