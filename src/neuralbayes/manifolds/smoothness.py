"""R_c on the graph of neighbours: the squared change of the logits along its edges, and the functions of least R_c."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from neuralbayes.manifolds.graph import Array, NeighborGraph


def smooth_functions(hidden: Array, graph: NeighborGraph) -> tuple[Array, Array]:
    """Combinations of the hidden units from smooth to rough, and the R_c of each at unit variance.

    Returns
    -------
    modes : ndarray of shape (n_hidden + 1, n_modes)
    roughness : ndarray of shape (n_modes,), ascending; the first is the constant's, 0.
    """
    second = hidden.T @ hidden / len(hidden)
    edges = hidden.T @ (graph.laplacian() @ hidden) / graph.degree.sum()
    # The ridge keeps weights of no use small; the constant, last, is to be free.
    ridge = np.full(len(edges), 1e-5)
    ridge[-1] = 1e-9
    smoothness, modes = scipy.linalg.eigh(second, (edges + edges.T) / 2.0 + np.diag(ridge))
    kept = smoothness > 1e-6
    roughness = 1.0 / smoothness[kept][::-1]
    modes = modes[:, kept][:, ::-1] * np.sqrt(roughness)
    roughness[0] = 0.0
    return modes, roughness
