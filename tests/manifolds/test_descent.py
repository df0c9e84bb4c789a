"""Adam without an optimiser of torch gives the same bits."""

import subprocess
import sys

import pytest
import torch

from neuralbayes.manifolds.descent import Adam


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_steps_are_those_of_torch_bit_for_bit(dtype):
    torch.manual_seed(0)
    start, target = torch.randn(7, 3, 4, dtype=dtype), torch.randn(7, 3, 4, dtype=dtype)
    ours, theirs = start.clone(), start.clone().requires_grad_()
    adam, optimizer = Adam(ours, lr=0.1), torch.optim.Adam([theirs], lr=0.1)
    for _ in range(30):
        optimizer.zero_grad()
        (theirs - target).pow(4).sum().backward()
        optimizer.step()
        adam.step(theirs.grad)
        assert torch.equal(ours, theirs)


def test_a_fit_does_not_load_the_compiler_of_torch():
    code = (
        "import sys, numpy as np, neuralbayes as nb\n"
        "X = np.random.default_rng(0).normal(size=(60, 2)); X[:30] += 20\n"
        "nb.ManifoldLabeler(2, max_iter=2, n_init=1, random_state=0).fit(X)\n"
        "print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
