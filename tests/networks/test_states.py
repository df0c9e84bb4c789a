"""Networks of the clusterer: rows, and states that are merged into clusters."""

import torch
from numpy.testing import assert_allclose
from torch import nn
from torch.testing import assert_close

from neuralbayes.networks.states import MergedStates, RowLayer


def test_merged_states_are_the_sum_over_members_and_have_its_gradient():
    network, membership = nn.Linear(4, 5).double(), torch.eye(2)[[0, 1, 1, 0, 1]].double()
    merged = MergedStates(network, membership)
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    p_zx = network(x).softmax(dim=1)
    slow = [[sum(p[s] for s in range(5) if membership[s, k]).log().item() for k in range(2)] for p in p_zx]
    assert_allclose(merged(x).detach(), slow, rtol=1e-12)
    assert torch.autograd.gradcheck(merged, (x,))
    far = MergedStates(nn.Identity(), torch.eye(2))(torch.tensor([[0.0, 500.0]]))  # exp(-500) is 0 in float32
    assert torch.isfinite(far).all()


def test_by_default_rows_stay_what_they_are():
    x = torch.randn(3, 2, 4)
    assert RowLayer()(x) is x
    assert_close(RowLayer()(torch.eye(3).to_sparse()), torch.eye(3))


def test_sparse_and_dense_rows_are_reduced_alike():
    x = torch.randn(5, 7, dtype=torch.float64) * (torch.rand(5, 7) < 0.4)
    layer = RowLayer(torch.randn(7, 3, dtype=torch.float64), unit=True)
    assert_close(layer(x.to_sparse()), layer(x))
    assert_close(layer(3.0 * x), layer(x))


def test_rows_of_zeros_stay_finite():
    assert_close(RowLayer(unit=True)(torch.zeros(1, 4)), torch.zeros(1, 4, dtype=torch.float64))
