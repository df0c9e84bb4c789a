"""The paper's network for MNIST."""

import torch
from torch import nn

from neuralbayes.networks.encoders import labeling_network


def test_it_has_the_layers_of_appendix_h() -> None:
    network = labeling_network()
    kinds = (nn.Conv2d, nn.MaxPool2d, nn.AdaptiveAvgPool2d, nn.Linear)
    layers = [module for module in network.modules() if isinstance(module, kinds)]
    names = [getattr(layer, "out_channels", None) or getattr(layer, "out_features", "P") for layer in layers]
    assert names == [100, "P", 100, 200, "P", 500, "P", 10]
    assert all(
        layer.kernel_size == (3, 3) and layer.padding == (0, 0) for layer in layers if isinstance(layer, nn.Conv2d)
    )
    assert sum(isinstance(module, nn.BatchNorm2d) for module in network.modules()) == 4


def test_width_and_colours_are_free() -> None:
    network = labeling_network(3, in_channels=3, width=0.2, batch_norm=False)
    assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 3)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in network.modules())
