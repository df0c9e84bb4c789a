r"""Rows on disjoint manifolds: DML with a smoothness term that adapts to the data, and a certificate.

1. The rows are taken into their span and divided by one number, an isometry up to scale: 512 columns of which two
   carry anything cost as much as two (:mod:`~neuralbayes.manifolds.geometry`).
2. A neighbourhood graph joins a sample of the rows (:mod:`~neuralbayes.manifolds.graph`). The smoothness term is
   :math:`R_c = \sum_{ij} w_{ij} \lVert F(x_i) - F(x_j) \rVert^2`, the squared change of the logits along its edges: the
   finite differences of the paper's Eq. 11 in directions that stay on the manifold, so neither a noise scale nor the
   gap between manifolds has to be known (:mod:`~neuralbayes.manifolds.smoothness`).
3. The network is a :class:`~neuralbayes.networks.sines.SineNetwork`. In the basis of the functions that change least
   along the edges R_c is a weighted sum of squared coefficients, and smooth functions come first.
4. `n_init` starts are heads on one hidden layer and train together. Random walks from seeds far from each other divide
   the sample between the states, one start takes the clusters of k-means, and DML + beta R_c is minimised from each by
   the gradient of the whole sample. Held-out rows tell when to stop and which start to keep
   (:mod:`~neuralbayes.manifolds.descent`).
5. The certificate says which states are disjoint (:mod:`~neuralbayes.manifolds.certificate`).
"""
