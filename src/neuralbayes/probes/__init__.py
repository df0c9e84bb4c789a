"""Evaluate features: compute them once, train a small classifier on them, and test it."""

from neuralbayes.probes.probing import probe
from neuralbayes.probes.protocol import PAPER_IMAGES, ProbeResult
from neuralbayes.probes.random import random_encoder

__all__ = ["PAPER_IMAGES", "ProbeResult", "probe", "random_encoder"]
