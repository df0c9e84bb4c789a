"""Words that tell clusters of texts apart, and the names that they make."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MAX_TEXTS = 100_000
"""Texts, drawn at random, whose words are counted."""

MAX_WORDS = 50_000
"""Words that are counted, the commonest."""

N_WORDS, N_NAMED = 6, 3
"""Words of a cluster, and those that its name has."""


def cluster_words(
    texts: Sequence[str], labels: NDArray[np.integer], n_clusters: int, n_words: int = N_WORDS
) -> list[list[str]]:
    r"""The words that are commoner in each cluster than in the others, the most telling first.

    A word counts by :math:`f_{wk} \log(1 + \bar n / f_w)`, where :math:`f_{wk}` is its share of the words of cluster k,
    :math:`f_w` how often all texts have it, and :math:`\bar n` the mean number of words of a cluster: TF-IDF with a
    cluster in the place of a document (Grootendorst 2022). Of two words that are nearly the same, such as a singular
    and its plural, one is taken.

    Parameters
    ----------
    texts : sequence of str
    labels : ndarray of shape (n_texts,)
        Cluster of each text; others than 0 to n_clusters - 1 are left out.
    n_clusters, n_words : int

    Returns
    -------
    list of lists of str
        For each cluster at most `n_words`; none where its texts have no words.

    Examples
    --------
    >>> texts = ["reset my password", "the password", "where is my parcel", "the parcel is late", "parcels from China"]
    >>> cluster_words(texts, np.array([0, 0, 1, 1, 1]), 2, 2)
    [['password', 'reset'], ['parcel', 'china']]
    """
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import CountVectorizer

    rows = np.flatnonzero((labels >= 0) & (labels < n_clusters))
    if len(rows) > MAX_TEXTS:
        rows = np.sort(np.random.default_rng(0).choice(rows, MAX_TEXTS, replace=False))
    counter = CountVectorizer(stop_words="english", max_features=MAX_WORDS, token_pattern=r"(?u)\b[^\W\d]\w+\b")
    try:
        counts = counter.fit_transform([texts[int(i)] for i in rows])
    except ValueError:  # no words at all
        return [[] for _ in range(n_clusters)]
    vocabulary = counter.get_feature_names_out()
    membership = csr_array((np.ones(len(rows)), (labels[rows], np.arange(len(rows)))), shape=(n_clusters, len(rows)))
    of_clusters = (membership @ counts).toarray().astype(np.float64)  # (n_clusters, n_vocabulary)
    sizes = of_clusters.sum(axis=1)
    weights = np.log1p(sizes.mean() / of_clusters.sum(axis=0))
    telling = of_clusters / np.maximum(sizes, 1.0)[:, None] * weights
    found = []
    for k in range(n_clusters):
        words: list[str] = []
        for j in np.argsort(-telling[k], kind="stable"):
            if not telling[k, j] or len(words) == n_words:
                break
            word = str(vocabulary[j])
            if not any(_alike(word, other) for other in words):
                words.append(word)
        found.append(words)
    return found


def text_names(words: Sequence[Sequence[str]], n_words: int = N_NAMED) -> list[str]:
    """A name for each cluster from its words; no two are the same.

    Examples
    --------
    >>> text_names([["card", "lost"], ["card", "lost"], []])
    ['card, lost', 'card, lost (2)', 'no words']
    """
    names: list[str] = []
    for own in words:
        name = ", ".join(own[:n_words]) or "no words"
        same = sum(other == name or other.startswith(f"{name} (") for other in names)
        names.append(f"{name} ({same + 1})" if same else name)
    return names


def _alike(a: str, b: str) -> bool:
    """Whether one word is the beginning of the other, but for a few letters."""
    short, long = sorted((a, b), key=len)
    return len(short) > 3 and long.startswith(short) and len(long) - len(short) <= 3
