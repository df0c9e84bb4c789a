"""The paper's equations as slow loops over Python floats, one position at a time, with nothing taken from the library.

`L` is a list of n rows of K probabilities: L[i][k] = p(z=k|x_i). 0 log 0 is 0.
"""

import math
from collections.abc import Callable, Iterator, Sequence

from torch import Tensor

Rows = list[list[float]]


def positions(p: Tensor) -> Iterator[Rows]:
    """(n, K, *spatial) as one (n, K) list for each spatial position."""
    yield from p.flatten(2).permute(2, 0, 1).tolist() if p.ndim > 2 else [p.tolist()]


def average_over_positions(loop: Callable[[Rows], float], p: Tensor) -> float:
    """Appendix B: the objective is applied to each (h, w) separately and averaged."""
    values = [loop(L) for L in positions(p)]
    return sum(values) / len(values)


def softmax(row: Sequence[float]) -> list[float]:
    exps = [math.exp(value - max(row)) for value in row]
    return [value / sum(exps) for value in exps]


def xlogy(x: float, y: float) -> float:
    return x * math.log(y) if x > 0 else 0.0


def prior(L: Rows) -> list[float]:
    """Lemma 1: p(z=k) = E_x[L_k(x)]."""
    return [sum(row[k] for row in L) / len(L) for k in range(len(L[0]))]


def density_ratio(L: Rows) -> Rows:
    """Lemma 1: p(x|z=k) / p(x) = L_k(x) / E_x[L_k(x)]."""
    E = prior(L)
    return [[row[k] / E[k] for k in range(len(E))] for row in L]


def conditional_entropy(L: Rows) -> float:
    """First term of Eq. 5."""
    return sum(-sum(xlogy(p, p) for p in row) for row in L) / len(L)


def marginal_entropy(L: Rows) -> float:
    """Second term of Eq. 5, with the opposite sign."""
    return -sum(xlogy(e, e) for e in prior(L))


def mutual_information(L: Rows) -> float:
    """Proposition 1, Eq. 2."""
    E = prior(L)
    return sum(sum(xlogy(row[k], row[k] / E[k]) for k in range(len(E)) if row[k] > 0) for row in L) / len(L)


def js_divergence(L: Rows) -> list[float]:
    """Theorem 3, one value for each state: with f_k, fbar_k and + log 2 inside the sum over k."""
    E = prior(L)
    result = []
    for k, e in enumerate(E):
        total = 0.0
        for row in L:
            f, fbar = row[k] / e, (1.0 - row[k]) / (1.0 - e)
            total += xlogy(f, f / (f + fbar)) + xlogy(fbar, fbar / (f + fbar))
        result.append(0.5 * total / len(L) + math.log(2.0))
    return result


def state_information(L: Rows) -> list[float]:
    """I(x; 1[z=k]) for each state: Proposition 1 with the two states "k" and "any other"."""
    return [mutual_information([[row[k], 1.0 - row[k]] for row in L]) for k in range(len(L[0]))]


def js_from_definition(q0: Sequence[float], q1: Sequence[float]) -> float:
    """Jensen-Shannon divergence of two distributions on a finite space, as in the proof of Proposition 2."""
    pairs = list(zip(q0, q1, strict=True))
    return 0.5 * sum(xlogy(a, a / (0.5 * (a + b))) + xlogy(b, b / (0.5 * (a + b))) for a, b in pairs if a + b > 0)


def prior_entropy_term(E: Sequence[float], target: Sequence[float] | None = None) -> float:
    """R_p of version 1: sum_k E_k log E_k, or sum_k E_k log(E_k / (K pi_k))."""
    K = len(E)
    pi = target or [1.0 / K] * K
    return sum(xlogy(E[k], E[k] / (K * pi[k])) for k in range(K))


def prior_cross_entropy_term(E: Sequence[float], target: Sequence[float] | None = None) -> float:
    """R_p of version 2, Eq. 6, with pi_k instead of 1/K."""
    K = len(E)
    pi = target or [1.0 / K] * K
    return -sum(pi[k] * math.log(E[k]) + (1.0 - pi[k]) * math.log(1.0 - E[k]) for k in range(K))


def mim(L: Rows, alpha: float, version: int, target: Sequence[float] | None = None) -> float:
    """Eq. 5 (version 1, with the coefficient 1 + alpha) and Eq. 7 (version 2)."""
    R_p = prior_entropy_term if version == 1 else prior_cross_entropy_term
    return conditional_entropy(L) + (1.0 + alpha) * R_p(prior(L), target)


def dml(L: Rows) -> float:
    """Eq. 13 without epsilon for each state and the rest, averaged over the states (Eq. 64)."""
    E = prior(L)
    total = 0.0
    for row in L:
        for k, e in enumerate(E):
            f, fbar = row[k] / e, (1.0 - row[k]) / (1.0 - e)
            total += 0.5 * (f * math.log(1.0 + fbar / f) if f > 0 else 0.0)
            total += 0.5 * (fbar * math.log(1.0 + f / fbar) if fbar > 0 else 0.0)
    return total / (len(L) * len(E))
