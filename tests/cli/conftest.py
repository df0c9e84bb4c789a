"""Settings for tests of commands."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def few_steps() -> Iterator[None]:
    """Train clusters for few steps unless a command says how many; other tests check the quality."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neuralbayes.clusters.training.consensus_steps", lambda *_: 12)
        patch.setattr("neuralbayes.clusters.images.default_steps", lambda *_: 20)
        yield
