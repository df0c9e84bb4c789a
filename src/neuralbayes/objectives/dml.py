"""Disjoint manifold labelling (section 4 and appendix G of the paper), with terms that avoid very unequal states."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from neuralbayes.bayes import complement, guard, js_overlap
from neuralbayes.objectives.base import Objective
from neuralbayes.objectives.mim import uniform_prior

Weights = Literal["equal", "prior"]


class DML(Objective):
    r"""Maximise the Jensen-Shannon divergence of each p(x|z=k) from the rest.

    .. math::
        J = \mathbb{E}_x \frac1K \sum_k \tfrac12 \Big[ f_k \log\Big(1 + \frac{g_k}{f_k}\Big)
            + g_k \log\Big(1 + \frac{f_k}{g_k}\Big) \Big] + \alpha R_p(E),
        \qquad f_k = \frac{L_k}{E_k}, \quad g_k = \frac{1 - L_k}{1 - E_k}

    Without :math:`R_p`, the objective equals :math:`\log 2 - \operatorname{mean}_k JS(q_k \| \bar q_k)` and lies in [0,
    log 2]. It is 0 if no two states share a sample. For K = 2 it is the paper's binary objective.

    Parameters
    ----------
    alpha : float, default=0.0
        Weight of :math:`R_p`, the prior term of :class:`MIM` in version 2, which is smallest if all states have the
        same mass. The paper's objective does not have this term.
    weights : {"equal", "prior"}, default="equal"
        Weights of the two distributions in each divergence. "equal" is the paper's, 1/2 and 1/2. With "prior" they are
        :math:`E_k` and :math:`1 - E_k`; the divergence is then :math:`I(x; 1[z{=}k])`, and the objective
        :math:`-\sum_k I(x; 1[z{=}k]) + \alpha R_p(E)`.

    Notes
    -----
    Theorem 3 uses the sum over k, without the 1/K of Eq. 64, and the authors' code uses twice the mean. This class uses
    the mean, so `beta` has the same meaning for any K. Without the smoothness term R_c, any sharp partition that the
    network can represent is optimal, so combine it with :class:`Smoothness`.

    *When it fails.* The divergence of two distributions with equal weights does not depend on their masses. A state
    with one sample in a thousand counts as much as a state with half of the samples, so a partition with nearly all
    samples in one state and slivers in the others is as good as any other. If the manifolds are far apart and there are
    as many states as manifolds, R_c makes slivers expensive, because they cut through a manifold. If manifolds touch,
    as images of digits do, a sliver at the edge of the data is the cheapest cut, and training ends there: on MNIST with
    ten states, three or four states end with hardly any images (:doc:`/results`). ``DML(alpha=2.0)``
    makes slivers expensive and keeps all ten states. With ``DML(weights="prior")``, slivers gain nothing, but states
    may still end empty. It is best to start with more states than clusters and to merge them, as
    ``InformationClusterer(objective=...)`` does: with its recipe, DML labels MNIST about as well as MIM
    (:doc:`/results`).

    Examples
    --------
    >>> import torch
    >>> DML()(torch.tensor([[20.0, -20.0], [-20.0, 20.0]])) < 1e-6
    tensor(True)
    >>> DML()(torch.zeros(2, 2))
    tensor(0.6931)

    One sample of four in a state of its own is as good as two, but not where masses count:

    >>> uneven, even = (torch.tensor([[20.0 * s, 0.0] for s in signs]) for signs in ([1, -1, -1, -1], [1, 1, -1, -1]))
    >>> bool(torch.isclose(DML()(uneven), DML()(even), atol=1e-6))
    True
    >>> bool(DML(weights="prior")(uneven) > DML(weights="prior")(even) + 0.1)
    True
    """

    def __init__(self, alpha: float = 0.0, weights: Weights = "equal") -> None:
        super().__init__()
        if not alpha >= 0.0:
            raise ValueError(f"`alpha` must be at least 0, got {alpha!r}")
        if weights not in ("equal", "prior"):
            raise ValueError(f'`weights` must be "equal" or "prior", got {weights!r}')
        self.alpha = alpha
        self.weights: Weights = weights

    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        """The bracket above, averaged over the states, or minus the information about each state."""
        if self.weights == "equal":
            return js_overlap(p_zx, p_z).mean(dim=1)
        rest_x, rest = guard(complement(p_zx, dim=1)), guard(complement(p_z, dim=0))
        return -(p_zx * (guard(p_zx) / guard(p_z)).log() + rest_x * (rest_x / rest).log()).sum(dim=1)

    def prior_term(self, p_z: Tensor) -> Tensor:
        """R_p, Eq. 6."""
        return self.alpha * uniform_prior(p_z) if self.alpha else torch.zeros_like(p_z[0])

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}, weights={self.weights!r}"
