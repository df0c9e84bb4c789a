"""Settings of the tests of commands."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def few_steps() -> Iterator[None]:
    """Clusters are trained for few steps where a command does not say how many: how well is tested elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neuralbayes.clusters.from_consensus.consensus_steps", lambda *_: 12)
        patch.setattr("neuralbayes.clusters.default_steps", lambda *_: 20)
        yield
