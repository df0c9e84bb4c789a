"""Discrete latent structure from unlabelled data."""
