"""Running average of p(z) over past batches."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class RunningPrior(nn.Module):
    r"""Exponential moving average of p(z) for each output of a network.

    .. math:: E \leftarrow E + a_t (E_\text{batch} - E), \qquad a_t = \frac{1 - m}{1 - m^t}

    The average is bias-corrected: after one batch it equals the prior of that batch.

    Parameters
    ----------
    momentum : float, default=0.9
        m, in [0, 1); 0 keeps only the latest batch.

    Examples
    --------
    >>> running = RunningPrior(momentum=0.5)
    >>> running.update(0, torch.tensor([1.0, 0.0]))
    tensor([1., 0.])
    >>> running.update(0, torch.tensor([0.0, 1.0]))
    tensor([0.3333, 0.6667])
    """

    def __init__(self, momentum: float = 0.9) -> None:
        super().__init__()
        if not 0.0 <= momentum < 1.0:
            raise ValueError(f"`momentum` must be in [0, 1), got {momentum!r}")
        self.momentum = momentum

    def update(self, output: int, p_z: Tensor) -> Tensor:
        """Update with the prior of a batch, without its gradient, and return the average.

        Parameters
        ----------
        output : int
            Index of the network output.
        p_z : Tensor of shape (n_states, *spatial)
        """
        p_z = p_z.detach()
        name, counter = f"p_z_{output}", f"n_updates_{output}"
        if name not in self._buffers:
            self.register_buffer(name, torch.zeros_like(p_z, memory_format=torch.contiguous_format))
            self.register_buffer(counter, torch.zeros((), dtype=torch.int64, device=p_z.device))
        average, count = self.get_buffer(name), self.get_buffer(counter)
        if average.shape != p_z.shape:
            raise ValueError(
                f"output {output} had a prior of shape {tuple(average.shape)} before, got {tuple(p_z.shape)}; "
                "a running prior belongs to one network and one input size"
            )
        count += 1
        rate = (1.0 - self.momentum) / (1.0 - self.momentum ** int(count))
        average += rate * (p_z.to(average) - average)
        return average.clone()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        # Buffers are created by the first batch, so loading has to create those of the file.
        self._buffers.clear()
        for key in [k for k in state_dict if k.startswith(prefix)]:
            self.register_buffer(key.removeprefix(prefix), torch.empty_like(state_dict[key]))
        super()._load_from_state_dict(state_dict, prefix, *args)
