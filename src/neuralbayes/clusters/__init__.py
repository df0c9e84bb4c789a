"""Clusters that may touch: space, votes, consensus, p(z|x), number, merging, known rows, typicality, update."""
