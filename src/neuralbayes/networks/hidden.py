"""Hidden states of any module, at any scales."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor, nn


class HiddenStates(nn.Module):
    """A network that returns its hidden states, average-pooled to several scales (appendix B).

    Parameters
    ----------
    network : nn.Module
        Any module, for example from timm or torchvision.
    names : sequence of str
        Names of submodules of `network`, as in `named_modules`. Each returns a hidden state of shape (n_samples,
        channels, *spatial). If a module is called several times, its last call counts.
    scales : sequence of int, default=(1, 2)
        Sizes and strides of the average pooling; 1 is the state itself. A state smaller than the pooling window is
        averaged as a whole; a state without positions has only scale 1.

    Returns
    -------
    On call, a dict from ``name`` (scale 1) or ``name/2`` (scale 2) to tensors: all states at the first scale, then
    all at the second, in the paper's order.

    Examples
    --------
    >>> import torch
    >>> from neuralbayes.networks.encoders import convolutional_encoder
    >>> states = HiddenStates(convolutional_encoder((16, 16, 16, 16)), ["relu1", "relu4"])
    >>> {name: tuple(h.shape) for name, h in states(torch.zeros(2, 3, 32, 32)).items()}
    {'relu1': (2, 16, 30, 30), 'relu4': (2, 16, 3, 3), 'relu1/2': (2, 16, 15, 15), 'relu4/2': (2, 16, 1, 1)}
    """

    def __init__(self, network: nn.Module, names: Sequence[str], scales: Sequence[int] = (1, 2)) -> None:
        super().__init__()
        known = dict(network.named_modules())
        missing = [name for name in names if name not in known]
        if missing or not names:
            raise ValueError(
                f"`names` must be submodules of `network`, one of {[k for k in known if k]}, got {missing}"
            )
        if not scales or min(scales) < 1:
            raise ValueError(f"`scales` must be positive integers, got {list(scales)}")
        self.network = network
        self.names = list(names)
        self.scales = list(scales)
        self._order = [(name, scale) for scale in scales for name in names]

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        states: dict[str, dict[int, Tensor]] = {}

        def record(name: str, output: Tensor) -> None:
            # Pool here, not after the network, so that the backward pass reaches the pooling together with the state.
            states[name] = {scale: _average_pool(output, scale) for scale in self._scales_of(output)}

        with self._recorded(record):
            self.network(x)
        found = [(name, scale) for name, scale in self._order if scale in states[name]]
        return {name if scale == 1 else f"{name}/{scale}": states[name][scale] for name, scale in found}

    def last_state(self, x: Tensor) -> Tensor:
        """The last of the states that a call returns, without keeping the others: (n_samples, channels, *spatial)."""
        states: dict[str, Tensor] = {}
        with self._recorded(states.__setitem__):
            self.network(x)
        found = ((name, scale) for name, scale in reversed(self._order) if scale in self._scales_of(states[name]))
        name, scale = next(found)
        return _average_pool(states[name], scale)

    def _scales_of(self, state: Tensor) -> list[int]:
        return [scale for scale in self.scales if scale == 1 or state.ndim == 4]

    @contextmanager
    def _recorded(self, record: Callable[[str, Tensor], None]) -> Iterator[None]:
        """Call `record` with each hidden state and its name inside the block."""
        modules = dict(self.network.named_modules())
        hooks = [
            modules[name].register_forward_hook(lambda _module, _inputs, output, name=name: record(name, output))
            for name in set(self.names)
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()


def _average_pool(state: Tensor, scale: int) -> Tensor:
    """P(scale, scale, 0, avg), with windows no larger than the state: (n, C, H, W) -> (n, C, H', W')."""
    if scale == 1:
        return state
    return nn.functional.avg_pool2d(state, (min(scale, state.shape[2]), min(scale, state.shape[3])))
