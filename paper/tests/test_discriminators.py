"""Discriminators: scores of all pairs equal the scores of each pair."""

import pytest
import torch
from paper.discriminators import ConcatDiscriminator, DotDiscriminator, Projection


@pytest.mark.parametrize("kind", [DotDiscriminator, ConcatDiscriminator])
def test_a_score_is_that_of_its_own_code_and_vector(kind):
    discriminator = kind(n_features=5, n_code=3, units=8).double()
    features, codes = torch.randn(4, 6, 5).double(), torch.randn(4, 3).double()
    scores = discriminator(features, codes)
    assert scores.shape == (4, 4, 6)
    for i in range(4):
        for j in range(4):
            alone = discriminator(features[j : j + 1], codes[i : i + 1])
            torch.testing.assert_close(scores[i, j], alone[0, 0])


def test_dot_is_the_scalar_product_over_the_root_of_its_dimensions():
    discriminator = DotDiscriminator(n_features=5, n_code=3, units=16)
    features, codes = torch.randn(1, 1, 5), torch.randn(1, 3)
    expected = (discriminator.of_code(codes)[0] @ discriminator.of_features(features)[0, 0]) / 4.0
    torch.testing.assert_close(discriminator(features, codes)[0, 0, 0], expected)


def test_concat_is_a_network_on_the_concatenation():
    discriminator = ConcatDiscriminator(n_features=5, n_code=3, units=8)
    joined = torch.nn.Linear(8, 8)
    with torch.no_grad():
        joined.weight.copy_(torch.cat([discriminator.of_features.weight, discriminator.of_code.weight], dim=1))
        joined.bias.copy_(discriminator.of_features.bias)
    x, y = torch.randn(1, 1, 5), torch.randn(1, 3)
    expected = discriminator.score(joined(torch.cat([x[:, 0], y], dim=1)))
    torch.testing.assert_close(discriminator(x, y)[0], expected)


def test_a_projection_of_a_feature_map_is_that_of_each_position():
    project = Projection(5, 8)
    x = torch.randn(2, 7, 5)
    torch.testing.assert_close(project(x)[1, 3], project(x[1, 3]))
    torch.testing.assert_close(project(x).mean(dim=-1), torch.zeros(2, 7), atol=1e-5, rtol=0)
