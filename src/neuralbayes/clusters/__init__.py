"""Clusters that may touch: states, merging, training."""
