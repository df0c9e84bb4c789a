"""How fast this machine trains, from a few seconds of training on made-up images."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from neuralbayes.data.catalog import CATALOG
from neuralbayes.features.pretraining import PRESETS, pretrain
from neuralbayes.training import Callback

ENOUGH = 1000  # epochs; the clock ends training


@dataclass(frozen=True)
class Speed:
    """How fast it is.

    Attributes
    ----------
    gflops : float
        Of a large convolution, in thousands of millions of operations a second.
    images_per_second : float
        Of `neuralbayes pretrain` with its usual settings on images of 32 x 32 pixels.
    cifar10_seconds : float
        What `neuralbayes pretrain cifar10` would take.
    """

    gflops: float
    images_per_second: float
    cifar10_seconds: float


def measure_speed(seconds: float = 6.0) -> Speed:
    """Train for so many seconds, and for two steps at least."""
    rate = training_rate(seconds)
    n_images = CATALOG["cifar10"].parts["train"].n * PRESETS["laptop"].epochs
    return Speed(convolution_gflops(), rate, n_images / rate)


def training_rate(seconds: float, **settings: Any) -> float:
    """Images a second of `pretrain` with the preset "laptop", or with other settings."""
    from lightning_fabric import Fabric

    config = replace(PRESETS["laptop"], epochs=ENOUGH, **settings)
    images = np.random.default_rng(0).integers(0, 256, (4 * config.batch_size, 32, 32, 3), dtype=np.uint8)
    clock = _Clock(seconds)
    fabric = Fabric(accelerator="auto", devices=1)
    fabric.launch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # noise has no structure to find, which training may say
        pretrain(images, config, callbacks=(clock,), fabric=fabric)
    return config.batch_size / clock.seconds_per_step


class _Clock(Callback):
    """Ends training after some seconds; the first step, in which memory is still being found, does not count."""

    def __init__(self, seconds: float) -> None:
        self.seconds_per_step = 0.0
        self._seconds = seconds
        self._start = 0.0

    def on_step_end(self, state: Any, metrics: Mapping[str, float]) -> None:
        now = time.perf_counter()
        if state.step == 1:
            self._start = now
            return
        self.seconds_per_step = (now - self._start) / (state.step - 1)
        if now - self._start >= self._seconds:
            state.stop("measured")


def convolution_gflops() -> float:
    """Of a large convolution, forward, where training takes place: the best of a few."""
    device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    device = torch.device("cpu") if device is None else device
    channels, side, n_images = 512, 14, 8
    layer = nn.Conv2d(channels, channels, 3).to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    x = torch.randn(n_images, channels, side, side, device=device).contiguous(memory_format=torch.channels_last)
    operations = 2 * 9 * channels**2 * (side - 2) ** 2 * n_images
    best = float("inf")
    with torch.no_grad():
        for _ in range(5):
            start = time.perf_counter()
            float(layer(x)[0, 0, 0, 0])  # waits for the device
            best = min(best, time.perf_counter() - start)
    return operations / best / 1e9
