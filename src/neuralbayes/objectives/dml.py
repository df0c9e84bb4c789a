"""Disjoint manifold labelling, section 4 and appendix E of the paper."""

from __future__ import annotations

from torch import Tensor

from neuralbayes.bayes import js_overlap
from neuralbayes.objectives.base import Objective


class DML(Objective):
    r"""Maximise the Jensen-Shannon divergence of each p(x|z=k) from the rest.

    .. math::
        J = \mathbb{E}_x \frac1K \sum_k \tfrac12 \Big[ f_k \log\Big(1 + \frac{g_k}{f_k}\Big)
            + g_k \log\Big(1 + \frac{f_k}{g_k}\Big) \Big],
        \qquad f_k = \frac{L_k}{E_k}, \quad g_k = \frac{1 - L_k}{1 - E_k}

    It equals :math:`\log 2 - \operatorname{mean}_k JS(q_k \| \bar q_k)` and lies in [0, log 2]; 0 means that no two
    states share a sample. For K = 2 it is the paper's binary objective.

    Notes
    -----
    Theorem 3 writes the sum over k, dropping the 1/K of the problem it starts from (Eq. 63), and the authors' code
    takes twice the mean; here it is the mean, so that `beta` means the same at any K. Without the smoothness term R_c
    any partition that the network can draw sharply is optimal: use it with :class:`Smoothness`.

    Examples
    --------
    >>> import torch
    >>> DML()(torch.tensor([[20.0, -20.0], [-20.0, 20.0]])) < 1e-6
    tensor(True)
    >>> DML()(torch.zeros(2, 2))
    tensor(0.6931)
    """

    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        """The bracket above, averaged over the states."""
        return js_overlap(p_zx, p_z).mean(dim=1)


def dml_loss(logits: Tensor, sample_weight: Tensor | None = None) -> Tensor:
    """:class:`DML` as a function of logits of shape (n_samples, n_states, *spatial).

    Examples
    --------
    >>> import torch
    >>> dml_loss(torch.zeros(4, 3))
    tensor(0.6931)
    """
    return DML()(logits, sample_weight)  # type: ignore[no-any-return]
