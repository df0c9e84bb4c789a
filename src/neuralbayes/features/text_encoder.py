"""Convert text of any language to a few numbers: latent semantic analysis of character n-grams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.column_cells import as_words
from neuralbayes.features.column_encoders import Encoded, Encoder

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_matrix

N_HASHES = 4096
"""Number of hash buckets for the n-grams."""

N_PARTS, MOST_PARTS = 10, 100
"""Number of components next to other columns, and if the text is the only column."""

FIT_ROWS = 20_000
"""Number of evenly spaced texts for learning the components."""


@dataclass(frozen=True, eq=False)
class TextEncoder(Encoder):
    """Latent semantic analysis of character 3-grams and 4-grams, hashed, without a dictionary."""

    kind: ClassVar[str] = "text"
    weights: NDArray[np.float32]  # (N_HASHES,): rare n-grams have larger weights
    components: NDArray[np.float32]  # (n_parts, N_HASHES)
    center: NDArray[np.float32]  # (n_parts,)

    @classmethod
    def fit(cls, values: pd.Series[Any], unit: float, n_parts: int = N_PARTS) -> Self:
        """Learn at most `n_parts` components; `unit` is their joint standard deviation."""
        from sklearn.decomposition import TruncatedSVD

        words = as_words(values).dropna()
        words = words.iloc[:: max(1, len(words) // FIT_ROWS)]
        counts = _counts(words)
        present = np.asarray((counts > 0).sum(axis=0)).ravel()
        weights = np.log((1.0 + counts.shape[0]) / (1.0 + present)) + 1.0
        weighted = _normalized(counts, weights)
        n_parts = max(1, min(n_parts, counts.shape[0] - 1))
        components = TruncatedSVD(n_parts, random_state=0).fit(weighted).components_
        parts = weighted @ components.T
        scale = unit / (np.sqrt(parts.var(axis=0).sum()) or 1.0)
        center = scale * parts.mean(axis=0)
        return cls(weights.astype(np.float32), (scale * components).astype(np.float32), center.astype(np.float32))

    def names(self, column: str) -> list[str]:
        return [f"{column}, part {i}" for i in range(len(self.components))]

    def transform(self, values: pd.Series[Any]) -> Encoded:
        words = as_words(values)
        present = np.array(words.notna(), dtype=bool)
        parts = np.full((len(words), len(self.components)), np.nan)
        if present.any():
            parts[present] = _normalized(_counts(words[present]), self.weights) @ self.components.T - self.center
        return Encoded(parts)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {}, {"weights": self.weights, "components": self.components, "center": self.center}

    def check(self) -> None:
        n_parts = len(self.components)
        shapes = {"weights": (N_HASHES,), "components": (n_parts, N_HASHES), "center": (n_parts,)}
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array.dtype != np.float32 or array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"{name!r} of a column of text must be finite float32 of shape {shape}")
        if not 1 <= n_parts <= MOST_PARTS:
            raise ValueError(f"'components' must be from 1 to {MOST_PARTS}, got {n_parts}")


def _counts(words: pd.Series[Any]) -> csr_matrix:
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(
        analyzer="char_wb", ngram_range=(3, 4), n_features=N_HASHES, norm=None, alternate_sign=False
    )
    counts: csr_matrix = hashing.transform(words)
    return counts


def _normalized(counts: csr_matrix, weights: NDArray[Any]) -> csr_matrix:
    """Weighted logarithms of counts, with every row scaled to length 1."""
    from sklearn.preprocessing import normalize

    weighted = counts.astype(np.float64)
    weighted.data = np.log1p(weighted.data) * weights[weighted.indices]
    rows: csr_matrix = normalize(weighted, copy=False)
    return rows
