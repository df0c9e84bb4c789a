"""Key phrases of texts: inflections are one, phrases are written as people wrote them, names differ."""

import numpy as np
import pytest

from neuralbayes.explain.phrases import fold, key_phrases, phrase_names

TOPICS = [
    ["top up my phone", "How do I top up?", "topped up but no credit", "Can you top up 10 euros", "top-up failed"],
    ["I lost my credit card", "my credit card is lost", "Lost credit cards", "a lost credit card", "credit card lost!"],
    ["flights to Paris", "book a flight to Paris", "a cheap flight", "When is the flight to Paris?", "Paris flights"],
]


def phrases_of(topics, times=4, n=3):
    texts = [text for topic in topics for _ in range(times) for text in topic]
    labels = np.repeat(np.arange(len(topics)), [times * len(topic) for topic in topics])
    return key_phrases(texts, labels, len(topics), n)


def test_phrases_keep_their_particle_their_words_and_their_capitals():
    top_up, card, flight = ([claim.words for claim in found] for found in phrases_of(TOPICS))
    assert top_up[0] == "top up"
    assert "credit card" in " ".join(card)
    assert {"Paris", "flight"} & set(" ".join(flight).replace("flights", "flight").split())


def test_no_phrase_ends_in_a_preposition_that_belongs_to_what_follows():
    travel = ["I am returning on Monday", "returning on the 5th", "she is returning on May 3", "when am I returning"]
    signing = ["I cannot log in", "log in to my account", "why can I not log in?", "can't log in again"]
    found = phrases_of([travel, signing])
    words = [[claim.words for claim in phrases] for phrases in found]
    assert "returning" in words[0]
    assert "log in" in words[1]
    assert not any(phrase.endswith((" on", " the")) for phrases in words for phrase in phrases)


def test_words_that_all_clusters_share_name_none():
    texts = [f"hello please help with my {thing}" for thing in ("laptop", "bicycle") for _ in range(10)]
    names = phrase_names(key_phrases(texts, np.repeat([0, 1], 10), 2))
    assert names == ["laptop", "bicycle"]


@pytest.mark.parametrize("texts", [[""] * 6, ["the of and"] * 6, ["12 34"] * 6, ["\x00 \ud83d"] * 6])
def test_texts_without_words_have_names_that_differ(texts):
    found = key_phrases(texts, np.repeat([0, 1], 3), 2)
    assert found == [[], []]
    assert phrase_names(found) == ["no common words", "no common words (2)"]


def test_texts_in_no_cluster_and_empty_clusters():
    found = key_phrases(["red car"] * 4 + ["blue boat"] * 4, np.repeat([0, -1], 4), 2, 1)
    assert found[0][0].share_outside == 0.0
    assert found[1] == []


def test_a_phrase_is_not_repeated_in_other_words():
    for found in phrases_of(TOPICS, n=6):
        stems = [frozenset(map(fold, claim.words.lower().replace("-", " ").split())) for claim in found]
        assert not any(a < b for a in stems for b in stems)


@pytest.mark.parametrize(
    "words",
    [
        ("cancel", "cancels", "cancelled", "canceled", "cancelling"),
        ("charge", "charges", "charged", "charging"),
        ("stop", "stopped", "stopping"),
        ("pass", "passed", "passing"),
        ("country", "countries"),
        ("customer", "customers", "customer's"),
    ],
)
def test_inflections_have_one_stem(words):
    assert len(set(map(fold, words))) == 1
