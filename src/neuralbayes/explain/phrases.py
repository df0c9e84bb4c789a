r"""Key phrases of clusters of texts: one to three words by class-based TF-IDF, written as people wrote them.

The score of a phrase is :math:`f_{wk} \log(1 + \bar n / n_w)`, where :math:`f_{wk}` is the share of the texts of
cluster k that contain it, :math:`n_w` the number of all texts that do, and :math:`\bar n` the mean number of texts of a
cluster: TF-IDF with clusters as documents (Grootendorst 2022). Inflections are folded: "cards" and "card" are one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from neuralbayes.explain.claims import Claim, half_of_each
from neuralbayes.explain.names import numbered
from neuralbayes.explain.prototypes import at_most

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_TEXTS, MAX_TOKENS, MAX_PHRASES = 50_000, 300, 100_000
"""Maximum number of texts, drawn at random, of words of a text, and of phrases, the most common, that are counted."""

LONGEST, N_PHRASES, N_NAMED = 3, 6, 3
"""Maximum number of words of a phrase, number of phrases of a cluster, and maximum number of phrases in its name."""

N_CONSIDERED, LIFT = 60, 2.0
"""Number of phrases of a cluster to choose from, and minimum ratio of the shares of texts inside and outside."""

LONGER, FIXED = 0.5, 0.65
"""Minimum share of the texts with a phrase for a longer one to replace it, or for a particle to end it: "top up"."""

RARE, RAREST = 0.3, 0.05
"""Minimum share of texts with a further phrase in a name, relative to the most common phrase, and in all."""

STOP = """
a about actually after again all also am an and another any anything are as at b be because been before being both but
by c can can't cannot could couldn't d did didn't do does doesn't doing don't done each else ever every for from get
getting gets give go going gonna got had has hasn't have haven't having he her here hers him his hi hello hey how's i
i'd i'll i'm i've if im into is isn't it it's its itself just kind know let let's like ll m made make makes making
many may me might mine more most much must my myself need needed needs no nor not now of ok okay one only or other our
ours own please possible put quite rather re really s same say see shall she should so some something still such sure
t take tell than thank thanks that that's the their them then there these they thing things this those to too try
trying use used using ve very wanna want wanted wants was wasn't we were what what's whats when where where's which
while who whom whose why will with won't would yes yet you you'd you'll you're your yours yourself
"""
STOP_WORDS = frozenset(STOP.split())
"""Words that neither begin nor end a phrase."""

OF_PLACE = {"across", "against", "along", "around", "between", "in", "on", "through", "under"}
PREPOSITIONS = OF_PLACE | {"during", "how", "until"}
PARTICLES = PREPOSITIONS | {"away", "back", "down", "off", "out", "over", "up"}
"""Words that may end a phrase, as in "top up", but neither begin one nor stand alone. Prepositions end it only where
nothing follows that they could belong to: "I cannot log in", "log in to it", "carry-on bag", not "arrive in Rome"."""

FOLLOWING = {"again", "and", "because", "but", "if", "or", "to", "when", "with"}
"""Words before which a preposition belongs to the verb."""

TOKEN = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
JOINT = re.compile(r"[ \-/]{1,2}")
"""What may stand between two words of a phrase."""


def key_phrases(
    texts: Sequence[str],
    labels: NDArray[np.integer],
    n_clusters: int,
    n_phrases: int = N_PHRASES,
) -> list[list[Claim]]:
    """Phrases that are more common in the texts of each cluster than in others, the most characteristic first.

    At most `n_phrases` for each cluster, chosen on one half of the texts and kept if the other half confirms them, with
    the shares of texts that contain them; labels of -1 are in no cluster.

    Examples
    --------
    >>> texts = ["I topped up my phone", "how to top up", "Top up, please", "a top-up"] * 2
    >>> texts += ["lost my card", "Lost cards", "the card was lost", "Is my card lost?"] * 2
    >>> [[str(phrase) for phrase in found] for found in key_phrases(texts, np.repeat([0, 1], 8), 2, 1)]
    [['top up (100 %, others 0 %)'], ['lost (100 %, others 0 %)']]
    """
    from scipy.sparse import csr_array

    rng = np.random.default_rng(0)
    rows = at_most(np.arange(len(texts)), MAX_TEXTS, rng)
    own = np.where(labels[rows] < 0, n_clusters, labels[rows])
    counts, numbers = _counts([texts[i] for i in rows])
    chooses = half_of_each(own, rng)
    halves = []
    for half in (chooses, ~chooses):
        member = csr_array((half.astype(float), (own, np.arange(len(own)))), shape=(n_clusters + 1, len(own)))
        sizes = np.bincount(own[half], minlength=n_clusters + 1)[:, None]
        hits = (member @ counts).toarray()  # (n_clusters + 1, n_phrases)
        outside = (hits.sum(axis=0) - hits) / np.maximum(sizes.sum() - sizes, 1)
        halves.append((hits / np.maximum(sizes, 1), outside, hits.sum(axis=0)))
    (inside, outside, total), (checked, elsewhere, _) = halves
    score = inside * np.log1p(chooses.sum() / n_clusters / np.maximum(total, 1.0))
    score[(inside < LIFT * outside) | (checked < LIFT * elsewhere) | (checked == 0)] = 0.0
    keys, found = list(numbers), []
    for k in range(n_clusters):
        chosen = _chosen(score[k], inside[k], numbers, n_phrases)
        written = _written([texts[i] for i in rows[own == k]], [keys[j] for j in chosen])
        shares = [(float(checked[k, j]), float(elsewhere[k, j])) for j in chosen]
        found.append([Claim(words, None, *both) for words, both in zip(written, shares, strict=True)])
    return found


def phrase_names(phrases: Sequence[Sequence[Claim]]) -> list[str]:
    """Name each cluster by its phrases; all names are different.

    Examples
    --------
    >>> card, lost = (Claim(words, None, 0.5, 0.0) for words in ("card", "lost"))
    >>> phrase_names([[card, lost], [card, lost], []])
    ['card, lost', 'card, lost (2)', 'no common words']
    """
    short, longer = [], []
    for own in phrases:
        least = max(RAREST, RARE * max((claim.share_inside for claim in own), default=0.0))
        common = [claim.words for i, claim in enumerate(own) if claim.share_inside >= least or i == 0]
        short.append(", ".join(common[:N_NAMED]) or "no common words")
        longer.append(", ".join(claim.words for claim in own[:N_NAMED]) or "no common words")
    return numbered([every if short.count(name) > 1 else name for name, every in zip(short, longer, strict=True)])


def fold(word: str) -> str:
    """The stem of a word: a key under which its inflections are counted, not a word by itself.

    Examples
    --------
    >>> [fold(word) for word in ("cards", "Cancelled", "cancel", "charging", "charge", "replies", "reply", "bus")]
    ['card', 'cancel', 'cancel', 'charg', 'charg', 'repli', 'repli', 'bus']
    """
    word = word.lower().replace("\u2019", "'").removesuffix("'s")
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2 and re.search("[aeiouy]", stem) and not word.endswith("eed"):
            doubled = stem[-1] == stem[-2] and (stem[-1] not in "aeioulsz" or stem.endswith("ell"))
            word = stem[:-1] if doubled else stem
            break
    if len(word) > 3:
        word = word.removesuffix("e")
    return f"{word[:-1]}i" if len(word) > 3 and word.endswith("y") else word


def _phrases(text: str) -> Iterator[tuple[str, str]]:
    """The phrases of a text: the key of each, with inflections folded, and the phrase as it is written."""
    tokens = [match for _, match in zip(range(MAX_TOKENS), TOKEN.finditer(text), strict=False)]
    words = [token[0].lower().replace("\u2019", "'") for token in tokens]
    stems = [fold(word) for word in words]
    free = [word in STOP_WORDS or word in PARTICLES or word.isdigit() or len(word) < 2 for word in words]
    joined = [JOINT.fullmatch(text, a.end(), b.start()) is not None for a, b in pairwise(tokens)]
    for i, first in enumerate(tokens):
        if free[i]:
            continue
        starts = not joined[i - 1] if i else True
        for j in range(i, min(i + LONGEST, len(tokens))):
            if j > i and not joined[j - 1]:
                break
            phrase = text[first.start() : tokens[j].end()]
            alone = j + 1 == len(tokens) or not joined[j] or words[j + 1] in FOLLOWING or "-" in phrase
            if not free[j] or (j == i + 1 and words[j] in PARTICLES and (alone or words[j] not in PREPOSITIONS)):
                # The capital at the beginning of a sentence is not part of the phrase.
                yield " ".join(stems[i : j + 1]), phrase[0].lower() + phrase[1:] if starts else phrase


def _counts(texts: Sequence[str]) -> tuple[csr_array, dict[str, int]]:
    """Which text contains which phrase, (n_texts, n_phrases) of 0 and 1, and the number of each phrase by its key."""
    from scipy.sparse import csr_array

    numbers: dict[str, int] = {}
    places, ends = [], [0]
    for text in texts:
        places += [numbers.setdefault(key, len(numbers)) for key in dict.fromkeys(key for key, _ in _phrases(text))]
        ends.append(len(places))
    counts = csr_array((np.ones(len(places)), np.array(places, np.intp), ends), shape=(len(texts), len(numbers)))
    common = np.asarray(counts.sum(axis=0)).ravel()
    kept = np.argsort(-common, kind="stable")[: min(MAX_PHRASES, int((common > 1).sum()))]
    keys = list(numbers)
    return counts[:, kept], {keys[j]: i for i, j in enumerate(kept)}


def _chosen(score: NDArray[np.float64], share: NDArray[np.float64], numbers: dict[str, int], n: int) -> list[int]:
    """The phrases with the highest scores, the longer ones where they are nearly as common, without repeated words."""
    keys = list(numbers)
    best = {keys[j]: int(j) for j in np.argsort(-score, kind="stable")[:N_CONSIDERED] if score[j] > 0}
    for key in list(best):
        start, _, end = key.rpartition(" ")
        if end in PARTICLES and start in numbers and share[best[key]] < FIXED * share[numbers[start]]:
            del best[key]
    found: list[int] = []
    said: set[str] = set()
    for key, j in best.items():
        longer = [other for other, i in best.items() if f" {key} " in f" {other} " and share[i] >= LONGER * share[j]]
        longest = max(longer, key=lambda other: (len(other.split()), share[best[other]]))
        stems = set(longest.split()) - STOP_WORDS - PARTICLES
        if len(found) < n and 2 * len(stems & said) < len(stems):
            found.append(best[longest])
            said |= stems
    return found


def _written(texts: Sequence[str], keys: Sequence[str]) -> list[str]:
    """The most common way in which each phrase is written in some texts."""
    wanted = {key: Counter[str]() for key in keys}
    for text in texts:
        for key, phrase in _phrases(text):
            if key in wanted:
                wanted[key][phrase] += 1
    return [counter.most_common(1)[0][0] for counter in wanted.values()]
