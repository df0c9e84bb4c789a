"""Rows on disjoint manifolds: graph, modes, descent, certificate, choice of K."""
