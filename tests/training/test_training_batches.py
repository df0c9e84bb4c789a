import pytest
import torch

from neuralbayes.training import Batches


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize(("n_samples", "batch_size"), [(10, 3), (9, 3), (2, 5)])
def test_every_sample_is_seen_once_an_epoch(n_samples, batch_size, shuffle):
    batches = Batches(n_samples, batch_size, seed=1, shuffle=shuffle)
    for epoch in range(3):
        steps = range(epoch * len(batches), (epoch + 1) * len(batches))
        seen = torch.cat([batches.indices(step) for step in steps])
        assert sorted(seen.tolist()) == list(range(n_samples))


def test_order_depends_on_seed_and_epoch_only():
    batches = Batches(50, 10, seed=3)
    first, second = (torch.cat([batches.indices(s) for s in range(k, k + 5)]) for k in (0, 5))
    assert not torch.equal(first, second)
    assert not torch.equal(Batches(50, 50, seed=4).indices(0), Batches(50, 50, seed=3).indices(0))
    torch.manual_seed(99)
    # Requested out of order, from a new object, after other draws: the same batches.
    again = Batches(50, 10, seed=3)
    for step in (7, 2, 9, 0):
        assert torch.equal(again.indices(step), batches.indices(step))


def test_changing_a_batch_leaves_later_ones_alone():
    batches = Batches(6, 3, seed=0)
    batches.indices(0).zero_()
    assert sorted(torch.cat([batches.indices(0), batches.indices(1)]).tolist()) == list(range(6))


def test_drop_last_leaves_out_the_small_batch():
    batches = Batches(10, 3, drop_last=True)
    assert len(batches) == 3
    assert all(len(batches.indices(step)) == 3 for step in range(7))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_samples": 0, "batch_size": 1}, ValueError, "`n_samples`"),
        ({"n_samples": 5, "batch_size": -2}, ValueError, "`batch_size`"),
        ({"n_samples": 5, "batch_size": 2.0}, TypeError, "`batch_size`"),
        ({"n_samples": 5, "batch_size": 2, "seed": -1}, ValueError, "`seed`"),
        ({"n_samples": 5, "batch_size": 6, "drop_last": True}, ValueError, "at most n_samples = 5"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        Batches(**arguments)
