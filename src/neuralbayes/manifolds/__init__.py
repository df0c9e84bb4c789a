r"""Rows on disjoint manifolds: DML with a smoothness term that adapts to the data, and a certificate.

1. :mod:`~neuralbayes.manifolds.geometry`: the rows are taken into their span and divided by one number, an isometry up
   to scale. The network is a :class:`~neuralbayes.networks.sines.SineNetwork`, whose units are combined into functions
   from smooth to rough.
2. :mod:`~neuralbayes.manifolds.graph`: the smoothness term is
   :math:`R_c = \sum_{ij} w_{ij} \lVert F(x_i) - F(x_j) \rVert^2` over the edges between neighbours: finite differences
   as in the paper's Eq. 11, in directions that stay on the manifold.
3. :mod:`~neuralbayes.manifolds.descent`: DML + beta R_c is minimised from several starts, which share the hidden layer.
4. :mod:`~neuralbayes.manifolds.linkage`: a spanning tree finds gaps that are narrow beside the manifolds. If the fit is
   not certified but a gap is proven, the network is trained with waves of its length and no edges across it.
5. :mod:`~neuralbayes.manifolds.certificate`: which states are disjoint, and how many manifolds there are.
"""
