"""The verdict of every rule on made-up records: that hold, that show the opposite, and that are too few."""

import pytest
from made_up import JITTER, batches, cell, digits, filters, manifold, random_encoders
from paper import NAMES, load_experiment
from paper.authors_manifolds import BATCHES, WHOLE
from paper.fig_ablation import FRESH
from paper.fig_filters import SETTINGS

ONE, TWO = [1], [1, 2]


def claims(name, results):
    return load_experiment(name).claims(results)


def verdicts(name, results):
    return [claim.verdict for claim in claims(name, results)]


@pytest.mark.parametrize("name", NAMES)
def test_without_records_no_claim_was_run(name):
    assert set(verdicts(name, [])) == {"not run"}


def classified(mim=0.6, rotation=(0.3, 0.7), epochs=8, seeds=3):
    rows = {
        "random": ({"batch_norm": False}, 0.4, 0.4),
        "random-bn": ({"batch_norm": True}, 0.4, 0.4),
        "rotation": ({"epochs": epochs}, *rotation),
        "infomax": ({"epochs": epochs}, 0.5, 0.5),
        "mim": ({"epochs": 8}, mim, 0.6),
    }
    return [
        cell({"relu4": last + jitter, "relu2": second + jitter}, seed, key.split("-")[0], **training)
        for key, (training, last, second) in rows.items()
        for seed, jitter in enumerate(JITTER[:seeds])
    ]


def test_table_2_compares_after_equally_many_epochs():
    assert verdicts("table-classification", classified()) == ["holds"] * 5
    assert verdicts("table-classification", classified(mim=0.2, rotation=(0.7, 0.3))) == ["reversed"] * 5
    assert verdicts("table-classification", classified(seeds=2)) == ["undecided"] * 5
    unequal = claims("table-classification", classified(epochs=3))
    assert [claim.verdict for claim in unequal] == ["holds", "undecided", "undecided", "holds", "undecided"]
    assert "2nd minus last layer" in unequal[3].numbers
    assert "minus rotation prediction, 8 and 3 epochs" in unequal[2].numbers


def test_table_1():
    small = {("minibatch", 10, b): v for b, v in ((100, 0.3), (50, 0.2))}
    large = {("minibatch", 50, b): v for b, v in ((100, 0.5), (50, 0.4))}
    exact = {("exact", size, batch): 0.5 for size in (10, 50) for batch in (50, 100) if size < batch}
    good = batches(small | large | exact) + random_encoders(0.35)
    assert verdicts("table-batch", good) == ["holds"] * 4
    flipped = {key: 0.9 - value for key, value in (small | large).items()} | exact
    assert verdicts("table-batch", batches(flipped) + random_encoders(0.1)) == ["reversed"] * 4
    assert verdicts("table-batch", batches(small | large | exact, seeds=2) + random_encoders(0.35)) == ["undecided"] * 4


def ablated(n, first, *, alpha=0.1, beta=0.1, scaling=0.1, version=0.0):
    """Draws of both, with version 1, without alpha, without beta, without scaling, and with none of them."""
    arms = [(1, 1, TWO, 2), (1, 1, TWO, 1), (0, 1, TWO, 2), (1, 0, TWO, 2), (1, 1, ONE, 2), (0, 0, ONE, 2)]
    return [
        cell(
            0.4 + scaling * (s == TWO) + alpha * a + beta * b + version * (v == 2) + 0.001 * i,
            first + i,
            **{"alpha": a * (1.0 + i), "beta": b * (2.0 + i), "scales": s, "version": v},
        )
        for i in range(n)
        for a, b, s, v in arms
    ]


def test_figure_2_prefers_draws_of_their_own_and_counts_repeats_once():
    assert verdicts("fig-ablation", ablated(3, FRESH)) == ["holds"] * 4
    worse = {"alpha": -0.1, "beta": -0.1, "scaling": -0.1}
    assert verdicts("fig-ablation", ablated(3, FRESH, **worse)) == ["reversed"] * 4
    assert verdicts("fig-ablation", ablated(2, FRESH)) == ["undecided"] * 4
    assert verdicts("fig-ablation", ablated(8, FRESH) + ablated(5, 0, **worse))[:2] == ["holds"] * 2
    assert verdicts("fig-ablation", ablated(7, FRESH) + ablated(5, 0, **worse))[:2] == ["reversed"] * 2
    repeats = [record for seed in (0, 1000, 2000) for record in ablated(1, seed)]
    assert "(n = 1)" in claims("fig-ablation", repeats)[0].numbers
    assert verdicts("fig-ablation", repeats)[:2] == ["undecided"] * 2


def test_figure_7_pairs_versions_by_draw():
    assert verdicts("fig-v1-v2", ablated(3, 0, version=0.1)) == ["holds"]
    assert verdicts("fig-v1-v2", ablated(3, 0, version=-0.1)) == ["reversed"]
    assert verdicts("fig-v1-v2", ablated(2, 0, version=0.1)) == ["undecided"]


def curves(learnt, random, n=3):
    found = [cell(0.6, i, curve=learnt, alpha=1.0 + i) for i in range(n)]
    return found + [cell(0.4, i, "random", curve=random) for i in range(n)]


def test_figure_3_is_where_curves_start_and_when_they_arrive():
    good, bad = [0.55, 0.6, 0.6], [0.1, 0.3, 0.39, 0.4]
    assert verdicts("fig-convergence", curves(good, bad)) == ["holds"] * 2
    assert verdicts("fig-convergence", curves(bad, good)) == ["reversed"] * 2
    assert verdicts("fig-convergence", curves(good, bad, n=2)) == ["undecided"] * 2


def filtered(no_alpha, full, first, like, seeds=3):
    settings = zip(SETTINGS, (no_alpha, 0.1, full, first), (0.3, like, 0.3, 0.3), strict=True)
    return [
        filters(*setting, dead + jitter, likeness + jitter, seed, norm)
        for setting, dead, likeness in settings
        for norm in (False, True)
        for seed, jitter in enumerate(JITTER[:seeds])
    ]


def test_figures_1_and_5_want_a_majority_of_dead_filters_and_a_fall_that_matters():
    assert verdicts("fig-filters", filtered(0.9, 0.1, 0.8, 0.9)) == ["holds"] * 4
    short = verdicts("fig-filters", filtered(0.1, 0.2, 0.3, 0.31))
    assert short == ["does not hold here", "reversed", "does not hold here", "does not hold here"]
    assert verdicts("fig-filters", filtered(0.9, 0.1, 0.8, 0.9, seeds=2)) == ["undecided"] * 4


def labelled(counts, in_batches=0, seeds=20):
    return [
        manifold(name, 1.0 if seed < n else 0.6 + 0.001 * seed, seed, setting)
        for name, solved in counts.items()
        for setting, n in ((WHOLE, solved), (BATCHES, in_batches))
        for seed in range(seeds)
    ]


def test_figure_4_wants_nine_of_ten_seeds_on_each_set():
    easy = dict.fromkeys(("circles", "moons", "blobs", "spirals"), 19)
    assert verdicts("fig-manifolds", labelled(easy)) == ["holds"] * 2
    assert verdicts("fig-manifolds", labelled(easy | {"blobs": 8, "spirals": 14}))[0] == "holds in part"
    none = labelled({"circles": 3, "blobs": 8}, in_batches=20)
    assert verdicts("fig-manifolds", none) == ["does not hold here", "reversed"]
    assert verdicts("fig-manifolds", labelled({"circles": 2}, seeds=2)) == ["undecided"] * 2


def learnt(accuracy, seeds=3, width=1.0):
    return [
        digits(kind, value + jitter, seed, width)
        for kind, value in (("logits", accuracy), ("random", 0.4))
        for seed, jitter in enumerate(JITTER[:seeds])
    ]


def test_appendix_h_wants_the_papers_width_and_three_seeds():
    assert verdicts("mnist-dml", learnt(0.99)) == ["holds", "holds"]
    assert verdicts("mnist-dml", learnt(0.80)) == ["does not hold here", "holds"]
    assert verdicts("mnist-dml", learnt(0.30)) == ["does not hold here", "reversed"]
    assert verdicts("mnist-dml", learnt(0.99, seeds=1)) == ["undecided", "undecided"]
    assert verdicts("mnist-dml", learnt(0.99, width=0.3)) == ["undecided", "holds"]
    assert verdicts("mnist-dml", [digits("merged", 0.99, seed) for seed in range(3)]) == ["not run", "not run"]
