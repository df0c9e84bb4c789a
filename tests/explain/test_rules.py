"""Rules of at most three conditions: the known rule is found, thresholds are readable, the cost is bounded."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

from neuralbayes.explain.columns import as_cells
from neuralbayes.explain.conditions import Condition
from neuralbayes.explain.rules import MAX_CONDITIONS, Rule, find_rules


def rules_of(frame, members):
    columns = as_cells(frame)
    rules = find_rules(columns, np.asarray(members).astype(int), 2)
    for cluster, rule in enumerate(rules):
        holds = rule.holds(columns)
        wanted = np.asarray(members) == cluster
        assert rule.f1 == pytest.approx(f1_score(wanted, holds)), "precision and recall are those of the rows"
        assert len(rule.conditions) <= MAX_CONDITIONS
    return rules


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    n = 2000
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "income": rng.lognormal(10, 0.5, n).round(2),
            "city": rng.choice(["Bonn", "Köln", "Mainz", "Trier"], n),
            "active": rng.random(n) < 0.4,
            "since": pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3000, n), unit="D"),
            "noise": rng.normal(size=n),
        }
    )


def test_a_threshold_is_found_and_rounded_where_no_row_changes_sides(table):
    assert [str(rule) for rule in rules_of(table, table["age"] > 42)] == ["age ≤ 42", "age > 42"]


def test_three_conditions_of_different_kinds(table):
    inside = (table["age"] > 40) & table["city"].isin(["Bonn", "Trier"]) & table["active"]
    rule = rules_of(table, inside)[1]
    assert {condition.column for condition in rule.conditions} == {"age", "city", "active"}
    assert rule.f1 == 1.0
    assert "city is Bonn or Trier" in str(rule) or "city is Trier or Bonn" in str(rule)
    assert "active is true" in str(rule)


def test_a_date_divides_at_the_beginning_of_a_year_where_it_may(table):
    rule = rules_of(table, table["since"] > "2019-01-01")[1]
    assert str(rule) == "since > 2019-01-01"
    assert rule.f1 == 1.0


def test_missing_cells_are_a_condition(table):
    table.loc[::3, "age"] = np.nan
    rules = rules_of(table, table["age"].isna())
    assert [str(rule) for rule in rules] == ["age is not missing", "age is missing"]
    table.loc[::3, "city"] = None
    assert str(rules_of(table, table["city"].isna())[1]) in ("age is missing", "city is missing")


def test_the_best_interval_is_that_of_a_slow_loop():
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, members = rng.integers(0, 12, 80), rng.random(80) < 0.4
        rule = find_rules(as_cells(pd.DataFrame({"x": x.astype(float)})), members.astype(int), 2)[1]
        inside = [(x >= low) & (x <= high) for low in range(12) for high in range(low, 12)]
        slow = max(2 * (one & members).sum() / (one.sum() + members.sum()) for one in inside)
        assert rule.f1 >= slow - 0.002  # what a rounder threshold may cost


def test_clusters_that_no_rule_can_tell_have_none():
    columns = as_cells(pd.DataFrame({"x": np.linspace(0, 1, 20), "same": ["a"] * 20}))
    assert find_rules(columns, np.zeros(20, int), 2) == [None, None]
    labels = np.repeat([0, 1], 10)
    assert find_rules(columns[1:], labels, 2) == [None, None]


def test_words_of_conditions():
    assert str(Condition("x", "number", low=0.25)) == "x > 0.25"
    assert str(Condition("x", "number", high=12500.0)) == "x ≤ 12,500"
    assert str(Condition("c", "category", values=("a", "b", "d"))) == "c is a, b or d"
    assert str(Condition("c", "category", values=("a",), excluded=True, missing=True)) == "c is not a"
    assert str(Condition("c", "category", values=("a",), excluded=True)) == "c is not a or missing"
    assert str(Condition("c", "category", values=("a",), missing=True)) == "c is a or missing"
    assert str(Condition("c", "category", missing=True)) == "c is missing"
    assert Rule((), 0.0, 0.0).f1 == 0.0
