"""Find the words that set clusters of texts apart, and name clusters by them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MAX_TEXTS = 100_000
"""Maximum number of texts, drawn at random, to count words in."""

MAX_WORDS = 50_000
"""Maximum number of different words to count, the most common first."""

N_WORDS, N_NAMED = 6, 3
"""Number of words of a cluster, and of words in its name."""


def cluster_words(
    texts: Sequence[str], labels: NDArray[np.integer], n_clusters: int, n_words: int = N_WORDS
) -> list[list[str]]:
    r"""Find the words that are more common in each cluster than in the others, the most characteristic first.

    The score of a word is :math:`f_{wk} \log(1 + \bar n / f_w)`, where :math:`f_{wk}` is its share of the words of
    cluster k, :math:`f_w` its count in all texts, and :math:`\bar n` the mean number of words per cluster. This is
    TF-IDF with clusters as documents (Grootendorst 2022). Of two nearly equal words, such as a singular and its plural,
    only one is kept.

    Parameters
    ----------
    texts : sequence of str
    labels : ndarray of shape (n_texts,)
        Cluster of each text; texts with labels outside 0 to n_clusters - 1 are skipped.
    n_clusters, n_words : int

    Returns
    -------
    list of lists of str
        At most `n_words` for each cluster; an empty list if its texts have no words.

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
    """Name each cluster by its words; all names are different.

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
    """Whether the longer word is the shorter one, of at least four letters, plus at most three letters."""
    short, long = sorted((a, b), key=len)
    return len(short) > 3 and long.startswith(short) and len(long) - len(short) <= 3
