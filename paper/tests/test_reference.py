"""paper/reference.py against hand values, and the library against paper/reference.py, in float64."""

import copy
import math

import pytest
import torch
from paper import reference
from paper.mnist_dml import labeling_network
from torch import nn

import neuralbayes as nb
from neuralbayes.networks.encoders import convolutional_encoder, mlp
from neuralbayes.networks.hidden import HiddenStates

LOG2, LOG3 = math.log(2.0), math.log(3.0)
HAND = torch.tensor([[0.5, 0.25, 0.25], [1e-300, 0.25, 0.75]], dtype=torch.float64)  # E = (1/4, 1/4, 1/2)
RELUS = ["relu1", "relu2", "relu3", "relu4"]
VECTOR, MAP = (40, 10), (12, 6, 3, 3)
vector_and_map = pytest.mark.parametrize("shape", [VECTOR, MAP], ids=["vector", "map"])


def random_logits(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_()


def assert_same(ours, papers, x):
    """Equal values and gradients."""
    a, b = ours(x), papers(x)
    torch.testing.assert_close(a, b, rtol=0, atol=1e-9)
    gradients = [torch.autograd.grad(value, x)[0] for value in (a, b)]
    assert float(gradients[1].abs().max()) > 1e-3
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-9)


# By hand


def test_lemma_1_by_hand():
    L = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    assert reference.E(L).tolist() == [0.75, 0.25]
    torch.testing.assert_close(reference.density_ratio(L), torch.tensor([[4 / 3, 0.0], [2 / 3, 2.0]]))


def test_mim_by_hand():
    h_zx = (3.5 * LOG2 - 0.75 * LOG3) / 2  # 3/2 log 2 and 2 log 2 - 3/4 log 3
    h_z = 1.5 * LOG2
    assert float(reference.mutual_information(HAND)) == pytest.approx(h_z - h_zx)
    assert float(reference.J_hat(HAND)) == pytest.approx(h_zx - h_z)
    assert float(reference.mim_v1(HAND)) == pytest.approx(h_zx - h_z)
    assert float(reference.mim_v1(HAND, alpha=4.0)) == pytest.approx(h_zx - 5 * h_z)
    # 1/3 (2 + 2 + 1) log 2 - 2/3 (2 log 3/4 + log 1/2)
    assert float(reference.R_p(HAND)) == pytest.approx(5 * LOG2 - 4 / 3 * LOG3)
    assert float(reference.mim_v2(HAND, alpha=2.0)) == pytest.approx(h_zx + 3 * (5 * LOG2 - 4 / 3 * LOG3), abs=1e-6)


def test_dml_by_hand():
    """q_1 = (2/3, 1/3), q_0 = (0, 1): their divergence is 1/2 [2/3 log 2 - 1/3 log 2 + log(3/2)]."""
    L = torch.tensor([[1.0 - 1e-15, 1e-15], [0.5, 0.5]], dtype=torch.float64)
    js = 0.5 * (1 / 3 * LOG2 + math.log(1.5))
    assert float(reference.jensen_shannon(L[:, 0])) == pytest.approx(js)
    assert float(reference.dml_binary(L[:, 0])) == pytest.approx(LOG2 - js, abs=1e-5)
    assert float(reference.dml(L)) == pytest.approx(LOG2 - js, abs=1e-5)
    assert float(reference.theorem_3(L)) == pytest.approx(2 * js - LOG2)  # log 2 once, not once per state


def test_smoothness_of_a_linear_map_is_the_mean_square_of_its_stretch():
    x = random_logits(20, 3).detach()
    for smoothness in (reference.R_c, reference.R_c_authors):
        assert float(smoothness(lambda x: 3.0 * x, x)) == pytest.approx(9.0)


def test_a_state_smaller_than_the_pooling_is_averaged_as_a_whole():
    h = torch.arange(9.0).reshape(1, 1, 3, 3)
    assert reference.P(h).item() == 2.0  # of 0, 1, 3, 4: the other five positions are left out
    assert reference.P_authors(h).item() == 4.0
    assert reference.P(h[..., :1, :1]).item() == 0.0
    assert len(reference.all_scales([h, h[:, :, 0, 0]])) == 3


# Equation against equation


S = reference.S
IDENTITIES = {
    "Theorem 1": (lambda x: reference.J_hat(S(x)), lambda x: reference.J(S(x))),
    "Eq. 5 without alpha": (lambda x: reference.mim_v1(S(x)), lambda x: reference.J(S(x))),
    "two states": (lambda x: reference.dml(S(x[:, :2])), lambda x: reference.dml_binary(S(x[:, :2])[:, 1])),
    "their divergence": (
        lambda x: LOG2 - reference.jensen_shannon(S(x[:, :2])[:, 1]),
        lambda x: reference.dml(S(x[:, :2]), epsilon=0.0),
    ),
    "Theorem 3": (lambda x: LOG2 - reference.theorem_3(S(x)), lambda x: 5 * reference.dml(S(x), epsilon=0.0)),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_equations_that_say_the_same_have_the_same_value_and_gradient(name):
    assert_same(*IDENTITIES[name], random_logits(30, 5))


# The library


@vector_and_map
def test_the_functions_of_lemma_1_are_the_papers(shape):
    logits = random_logits(*shape).detach()
    L = reference.S(logits)
    torch.testing.assert_close(nb.posterior(logits), L, rtol=0, atol=1e-12)
    torch.testing.assert_close(nb.prior(L), reference.E(L), rtol=0, atol=1e-12)
    torch.testing.assert_close(nb.density_ratio(L), reference.density_ratio(L), rtol=0, atol=1e-12)
    torch.testing.assert_close(nb.mutual_information(L), reference.mutual_information(L), rtol=0, atol=1e-12)


@vector_and_map
@pytest.mark.parametrize("alpha", [0.0, 4.0])
def test_mim_is_the_papers(shape, alpha):
    logits = random_logits(*shape)
    assert_same(nb.MIM(alpha, version=1), lambda x: reference.mim_v1(reference.S(x), alpha), logits)
    assert_same(nb.MIM(alpha, version=2), lambda x: reference.mim_v2(reference.S(x), alpha, epsilon=0.0), logits)


@pytest.mark.parametrize("n_states", [2, 3, 10])
def test_dml_is_the_papers_with_the_mean_over_states_and_half_the_authors(n_states):
    logits = random_logits(40, n_states)
    assert_same(nb.DML(), lambda x: reference.dml(reference.S(x), epsilon=0.0), logits)
    assert_same(lambda x: 2 * nb.DML()(x), lambda x: reference.dml_authors(reference.S(x), epsilon=0.0), logits)


def test_the_divergence_is_the_papers():
    logits = random_logits(40, 4).detach()
    L = reference.S(logits)
    expected = torch.stack([reference.jensen_shannon(L[:, k]) for k in range(4)])
    torch.testing.assert_close(nb.js_divergence(L), expected, rtol=0, atol=1e-12)
    assert float(nb.js_divergence(L).sum()) == pytest.approx(float(reference.theorem_3(L)) + 3 * LOG2)


def test_smoothness_is_the_papers_or_the_authors():
    x, weight = random_logits(30, 5, seed=1).detach(), random_logits(5, 3, seed=2)

    def seeded(smoothness, **options):
        def of(weight):
            torch.manual_seed(3)
            return smoothness(lambda x: torch.tanh(x @ weight), x, **options)

        return of

    assert_same(seeded(nb.smoothness), seeded(reference.R_c), weight)
    theirs = seeded(nb.smoothness, center=True, coefficients="binary")
    assert_same(theirs, seeded(reference.R_c_authors), weight)


# Networks and loops


def test_the_encoder_is_the_papers():
    torch.manual_seed(0)
    ours, papers = HiddenStates(convolutional_encoder(), RELUS, scales=(1, 2)), reference.Enc()
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        h = reference.all_scales(papers(x))
        assert [tuple(h_i.shape) for h_i in ours(x).values()] == [tuple(h_i.shape) for h_i in h]
    assert h[3].shape == (2, 1000, 3, 3)  # 2x2 in the paper
    weights, theirs = ([w for w in network.parameters() if w.ndim == 4] for network in (ours, papers))
    assert [w.shape for w in weights] == [w.shape for w in theirs]
    for weight in (*weights, *theirs):
        rows = weight.flatten(1) if len(weight) < weight[0].numel() else weight.flatten(1).T
        torch.testing.assert_close(rows @ rows.T, torch.eye(len(rows)), rtol=0, atol=1e-4)


def test_the_network_for_mnist_has_the_layers_of_appendix_h():
    kinds = (nn.Conv2d, nn.MaxPool2d, nn.AdaptiveAvgPool2d, nn.Linear)
    layers = [module for module in labeling_network().modules() if isinstance(module, kinds)]
    names = [getattr(layer, "out_channels", None) or getattr(layer, "out_features", "P") for layer in layers]
    assert names == [100, "P", 100, 200, "P", 500, "P", 10]
    assert {layer.kernel_size for layer in layers if isinstance(layer, nn.Conv2d)} == {(3, 3)}


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    network = convolutional_encoder((4, 5, 6, 7), in_channels=1, batch_norm=False)
    return HiddenStates(network.double(), RELUS, scales=(1, 2))


class Unscaled(nn.Module):
    """The hidden states at scale 1 as the list that paper/reference.py takes."""

    def __init__(self, states):
        super().__init__()
        self.states = states

    def forward(self, x):
        return list(self.states(x).values())[:4]


def gradient(network, step):
    network.zero_grad()
    step()
    return torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None])


IMAGES = torch.rand(12, 1, 24, 24, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("MBS", [12, 4])
def test_the_accumulation_of_the_paper_is_that_with_the_marginal_of_the_minibatch(encoder, MBS):
    papers = gradient(encoder, lambda: reference.accumulate(Unscaled(encoder), IMAGES, MBS, alpha=2.0, beta=0.0))
    options = {"microbatch_size": MBS, "marginal": "minibatch"}
    ours = gradient(encoder, lambda: nb.backward(nb.MIM(2.0), encoder, IMAGES, **options))
    torch.testing.assert_close(ours, papers, rtol=0, atol=1e-6)  # epsilon
    whole = gradient(encoder, lambda: nb.backward(nb.MIM(2.0), encoder, IMAGES))
    assert torch.allclose(whole, papers, rtol=0, atol=1e-6) == (len(IMAGES) == MBS)


def test_accumulation_with_the_mean_of_the_batch_is_the_gradient_of_the_batch(encoder):
    """The remark below Eq. 6: exact for any size of the mini-batches, and what marginal="exact" does for MIM."""

    def accumulate():
        with torch.no_grad():
            E_x = [reference.E(reference.S(h)) for h in encoder(IMAGES).values()]
        for x in torch.split(IMAGES, 3):
            terms = zip(encoder(x).values(), E_x, strict=True)
            losses = [reference.mim_v2_given_E(reference.S(h), E, alpha=2.0, epsilon=0.0) for h, E in terms]
            torch.autograd.backward(torch.stack(losses).mean() / 4)

    def batch():
        torch.autograd.backward(reference.mim(list(encoder(IMAGES).values()), alpha=2.0, epsilon=0.0))

    accumulated, whole = gradient(encoder, accumulate), gradient(encoder, batch)
    exact = gradient(encoder, lambda: nb.backward(nb.MIM(2.0), encoder, IMAGES, microbatch_size=3))
    torch.testing.assert_close(accumulated, whole, rtol=0, atol=1e-9)
    torch.testing.assert_close(exact, whole, rtol=0, atol=1e-9)


@pytest.mark.parametrize("authors", [False, True])
def test_the_step_of_mim_with_smoothness_is_the_librarys(encoder, authors):
    """P(h^3) is the last state of HiddenStates with scales (1, 2); the authors average h^3 over all positions."""

    def papers():
        torch.manual_seed(5)
        reference.accumulate(Unscaled(encoder), IMAGES, len(IMAGES), alpha=2.0, beta=4.0, authors=authors)

    def ours():
        objective(encoder(IMAGES)).backward()
        torch.manual_seed(5)
        smoothness(encoder, IMAGES).backward()

    objective, smoothness = nb.WeightedSum(nb.MIM(2.0)), nb.Smoothness(4.0)
    if authors:
        smoothness = nb.Smoothness(4.0, of=lambda h: h["relu4"].mean(dim=(2, 3)), center=True, coefficients="binary")
    torch.testing.assert_close(gradient(encoder, ours), gradient(encoder, papers), rtol=0, atol=1e-6)


@pytest.mark.parametrize("authors", [False, True])
def test_the_step_of_dml_is_the_librarys(authors):
    torch.manual_seed(0)
    ours, x = mlp((2, 20, 20, 3)).double(), random_logits(40, 2).detach()
    papers = copy.deepcopy(ours)
    torch.manual_seed(7)
    reference.train_dml(papers, x, epochs=1, B=40, beta=1.5, authors=authors)
    optimizer = torch.optim.Adam(ours.parameters(), lr=0.001)
    torch.manual_seed(7)
    x = x[torch.randperm(40)]
    if authors:
        (2 * nb.DML()(ours(x))).backward()
        nb.Smoothness(1.0, of="logits", center=True, coefficients="binary")(ours, x).backward()
    else:
        nb.DML()(ours(x)).backward()
        nb.Smoothness(1.5, of="posterior")(ours, x).backward()
    optimizer.step()
    for a, b in zip(ours.parameters(), papers.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


def test_training_reduces_the_objective():
    torch.manual_seed(0)
    network = reference.Enc((1, 4, 5, 6, 7)).double()

    @torch.no_grad()
    def value():
        return float(reference.mim(reference.all_scales(network(IMAGES)), alpha=2.0))

    before = value()
    reference.train_mim(network, IMAGES, epochs=10, MBS=12, BS=12, alpha=2.0, beta=0.1)
    assert value() < before
