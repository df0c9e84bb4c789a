"""Networks whose states are merged into clusters."""

import torch
from numpy.testing import assert_allclose
from torch import nn

from neuralbayes.networks.states import MergedStates


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
