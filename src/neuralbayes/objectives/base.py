"""`Objective`, the base class of all objectives, its running p(z), and weighted sums over several outputs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from neuralbayes.bayes import check_states, posterior, prior, sample_mean
from neuralbayes.system.devices import without_autocast

Outputs = Tensor | Sequence[Tensor] | Mapping[str, Tensor]


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


class Objective(nn.Module):
    r"""An objective written in p(z|x) and p(z).

    .. math:: J = \operatorname{mean}_i \varphi(L(x_i), E) + \psi(E), \qquad E = \operatorname{mean}_i L(x_i)

    A subclass implements :math:`\varphi` as `sample_term` and, optionally, :math:`\psi` as `prior_term`; p(x|z)/p(x) is
    ``p_zx / p_z``. Call an objective on logits to get a scalar with the gradient of that batch. Use
    :func:`neuralbayes.backward` to get the exact gradient of a batch of any size (except through batch normalisation in
    training mode).

    The values of both tensors lie strictly inside (0, 1), so logarithms, quotients and their gradients stay finite even
    if one state is dead or takes all samples.

    Attributes
    ----------
    running_prior : RunningPrior
        The estimate of p(z) over past batches that ``backward(..., marginal="running")`` updates. It is part of
        `state_dict`, like the running statistics of batch normalisation.

    Examples
    --------
    Mutual information, written from the definition:

    >>> class NegativeInformation(Objective):
    ...     def sample_term(self, p_zx, p_z):
    ...         return -(p_zx * (p_zx / p_z).log()).sum(1)
    >>> NegativeInformation()(torch.tensor([[9.0, -9.0], [-9.0, 9.0]]))
    tensor(-0.6931)
    """

    def __init__(self) -> None:
        super().__init__()
        self.running_prior = RunningPrior()
        self._logits_checked = self._independence_checked = False

    def __getattr__(self, name: str) -> Any:
        if "_modules" not in vars(self):
            raise TypeError(f"`{type(self).__name__}.__init__` must call `super().__init__()` before anything else")
        return super().__getattr__(name)

    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        r"""The term of each sample, :math:`\varphi(L(x_i), E)`.

        Parameters
        ----------
        p_zx : Tensor of shape (n_samples, n_states, *spatial)
        p_z : Tensor of shape (n_states, *spatial)

        Returns
        -------
        Tensor of shape (n_samples, *spatial). The term of a sample must not depend on other samples.
        """
        raise NotImplementedError(f"{type(self).__name__} must define `sample_term(p_zx, p_z)`")

    def prior_term(self, p_z: Tensor) -> Tensor:
        r"""The term of the prior alone, :math:`\psi(E)`; 0 by default.

        Parameters
        ----------
        p_z : Tensor of shape (n_states, *spatial)

        Returns
        -------
        Tensor of shape (*spatial).
        """
        return torch.zeros_like(p_z[0])

    def forward(self, logits: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """The objective on one batch, with p(z) of that batch, averaged over spatial positions.

        Parameters
        ----------
        logits : Tensor of shape (n_samples, n_states, *spatial)
        sample_weight : Tensor of shape (n_samples,), optional

        Returns
        -------
        Scalar tensor.
        """
        p_zx = interior_posterior(logits)
        self.check_logits(logits)
        with without_autocast(p_zx.device):
            p_z = prior(p_zx, sample_weight=sample_weight)
            return sample_mean(self.per_sample(p_zx, p_z), sample_weight) + self.of_prior(p_z)

    def per_sample(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        """`sample_term` of `p_zx` inside (0, 1), checked and averaged over positions: (n_samples,)."""
        check_finite(p_z)
        value = self.sample_term(p_zx, interior(p_z))
        self._check_shape("sample_term", value, "n_samples, *spatial", p_zx.shape[:1] + p_zx.shape[2:])
        return value.reshape(len(p_zx), -1).mean(dim=1)

    def of_prior(self, p_z: Tensor) -> Tensor:
        """`prior_term`, checked and averaged over positions: a scalar."""
        value = self.prior_term(interior(p_z))
        self._check_shape("prior_term", value, "*spatial", p_z.shape[1:])
        return value.mean()

    def check_logits(self, logits: Tensor) -> None:
        """Raise if logits have a wrong shape, and warn once if they are probabilities, which the softmax would blur."""
        check_states(logits, "logits")
        if self._logits_checked:
            return
        self._logits_checked = True
        some = logits[:8].detach().float()
        if bool((some >= 0).all()) and bool(((some.sum(dim=1) - 1.0).abs() < 1e-3).all()):
            warnings.warn(
                "`logits` look like probabilities: none is negative, and they sum to 1 over the states. An objective "
                "applies the softmax itself, so leave it out of the network",
                stacklevel=3,
            )

    def check_independence(self, logits: Tensor) -> None:
        """Refuse a `sample_term` that couples samples, unless it draws random numbers; look once."""
        if self._independence_checked:
            return
        # Made-up posteriors: those of an untrained network are too similar to show it.
        noise = torch.randn(4, *logits.shape[1:], generator=torch.Generator().manual_seed(0))
        p_zx = interior_posterior(2.0 * noise.to(logits))
        p_z = prior(p_zx)
        devices = [logits.device] if logits.device.type == "cuda" else []
        with torch.no_grad(), torch.random.fork_rng(devices=devices):
            whole, again = (self.per_sample(p_zx, p_z) for _ in range(2))
            halves = torch.cat([self.per_sample(half, p_z) for half in torch.split(p_zx, 2)])
        largest = float(whole.abs().max())
        coupled = torch.equal(whole, again) and not torch.allclose(whole, halves, rtol=1e-4, atol=1e-4 * largest)
        self._independence_checked = not coupled
        if coupled:
            raise ValueError(
                f"`{type(self).__name__}.sample_term` must give each sample a term that does not depend on other "
                "samples, got other terms for a batch than for its halves. Use `p_z` instead of a mean over `p_zx`, "
                "or, for a loss that needs the whole batch at once, `objective(network(batch)).backward()`"
            )

    def _check_shape(self, method: str, value: Any, meaning: str, expected: torch.Size) -> None:
        got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        if got != tuple(expected):
            raise ValueError(
                f"`{type(self).__name__}.{method}` must return a tensor of shape ({meaning}), here {tuple(expected)}, "
                f"got {got}"
            )


class WeightedSum(nn.Module):
    """A weighted sum of objectives over several outputs, such as hidden states at several scales (appendix B).

    Parameters
    ----------
    objectives : Objective or sequence of Objective
        One for all outputs, or one per output.
    weights : sequence of float, optional
        One per output. The default, 1 / n_outputs, gives the mean of the paper.

    Examples
    --------
    >>> from neuralbayes.objectives import MIM
    >>> both = WeightedSum(MIM(), weights=[0.25, 0.75])
    >>> both([torch.zeros(8, 4, 5, 5), torch.zeros(8, 4)])
    tensor(8.1343)
    """

    def __init__(self, objectives: Objective | Sequence[Objective], weights: Sequence[float] | None = None) -> None:
        super().__init__()
        self._shared = isinstance(objectives, Objective)
        self.objectives = nn.ModuleList([objectives] if isinstance(objectives, Objective) else objectives)
        self.weights = None if weights is None else [float(w) for w in weights]
        self.running_prior = RunningPrior()
        if not self.objectives or not all(isinstance(o, Objective) for o in self.objectives):
            raise TypeError("`objectives` must be an Objective or a non-empty sequence of them")
        if self.weights is not None and not all(math.isfinite(w) and w >= 0 for w in self.weights):
            raise ValueError(f"`weights` must be finite and non-negative, got {self.weights}")

    def forward(self, outputs: Outputs, sample_weight: Tensor | None = None) -> Tensor:
        """The weighted sum on one batch, with p(z) of that batch."""
        tensors = as_list(outputs)
        terms = zip(self.terms(len(tensors)), tensors, strict=True)
        return torch.stack([w * objective(x, sample_weight) for (w, objective), x in terms]).sum()

    def terms(self, n_outputs: int) -> list[tuple[float, Objective]]:
        """Weight and objective of each of `n_outputs` outputs."""
        objectives = list(self.objectives) * (n_outputs if self._shared else 1)
        weights = self.weights if self.weights is not None else [1.0 / n_outputs] * n_outputs
        for name, values in (("objectives", objectives), ("weights", weights)):
            if len(values) != n_outputs:
                raise ValueError(
                    f"`{name}` must have one entry for each of the network's {n_outputs} outputs, got {len(values)}"
                )
        return [(w, o) for w, o in zip(weights, objectives, strict=True) if isinstance(o, Objective)]


def as_list(outputs: Outputs, n_samples: int | None = None) -> list[Tensor]:
    """The outputs of a network as tensors that all have `n_samples` samples, by default as many as the first."""
    tensors = _members(outputs)
    tensors_only = bool(tensors) and all(isinstance(t, Tensor) for t in tensors)
    if tensors_only and n_samples is None and tensors[0].ndim > 0:
        n_samples = len(tensors[0])
    if not tensors_only or any(t.shape[:1] != (n_samples,) for t in tensors):
        number = "" if n_samples is None else f" with n_samples = {n_samples}"
        raise (ValueError if tensors_only else TypeError)(
            "`network` must return a tensor of logits, or a sequence or mapping of them, each of shape (n_samples, "
            f"n_states, *spatial){number}, got {_described(outputs)}; wrap it in a module that only returns logits"
        )
    return tensors


def _members(outputs: Any) -> list[Any]:
    if isinstance(outputs, Tensor):
        return [outputs]
    values = outputs.values() if isinstance(outputs, Mapping) else outputs
    return list(values) if isinstance(values, Iterable) else []


def _described(outputs: Any) -> str:
    """The type of a network's output and the shapes of its tensors, for messages."""
    kind = type(outputs).__name__
    if isinstance(outputs, Tensor):
        return f"{kind} of {tuple(outputs.shape)}"
    if not isinstance(outputs, Mapping | list | tuple) or not outputs:
        return kind
    shapes = (str(tuple(x.shape)) if isinstance(x, Tensor) else _described(x) for x in _members(outputs))
    return f"{kind} of {', '.join(shapes)}"


def interior_posterior(logits: Tensor) -> Tensor:
    """p(z|x) strictly inside (0, 1), with the gradient of softmax, so that a state below the floor can recover."""
    check_states(logits, "logits")
    p_zx: Tensor = _InteriorSoftmax.apply(logits)  # type: ignore[no-untyped-call]
    return p_zx


def interior(p: Tensor) -> Tensor:
    """Clamp probabilities strictly inside (0, 1), without changing the gradient."""
    value = p.detach()
    return p + (value.clamp(*_bounds(p.dtype)) - value)


class _InteriorSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        p = posterior(logits)
        p.clamp_(*_bounds(p.dtype))
        ctx.save_for_backward(p)
        ctx.dtype = logits.dtype
        return p

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (p,) = ctx.saved_tensors
        return through_softmax(p, grad).to(ctx.dtype)


def through_softmax(p_zx: Tensor, grad: Tensor) -> Tensor:
    """The gradient of logits from that of their posteriors, p * (grad - sum_k p_k grad_k), in one pass."""
    # over the last dimension if p is laid out that way in memory
    dim = -1 if p_zx.movedim(1, -1).is_contiguous() else 1
    result: Tensor = torch.ops.aten._softmax_backward_data(
        grad.movedim(1, dim).contiguous(), p_zx.movedim(1, dim), dim, p_zx.dtype
    )
    return result.movedim(dim, 1)


def _bounds(dtype: torch.dtype) -> tuple[float, float]:
    """The square root of the smallest normal number, whose inverse can be squared, and the largest number below 1."""
    limits = torch.finfo(dtype)
    return limits.tiny**0.5, 1.0 - limits.eps / 2


def check_finite(p_z: Tensor) -> None:
    """Raise if a prior shows that the logits were NaN or infinite (checking the logits would cost a pass)."""
    if not bool(torch.isfinite(p_z.detach().sum())):
        raise ValueError("`logits` must be finite, got NaN or infinity; check the input and the learning rate")


def described(module: nn.Module) -> str:
    """The class and plain attributes of an objective, as recorded in a run folder: module.MIM(alpha=4.0, version=2)."""
    values = {name: value for name, value in vars(module).items() if name != "training" and not name.startswith("_")}
    plain = [f"{name}={value!r}" for name, value in values.items() if _is_plain(value)]
    parts = [described(part) for part in module.modules() if isinstance(part, Objective) and part is not module]
    return f"{type(module).__module__}.{type(module).__qualname__}({', '.join([*parts, *plain])})"


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return isinstance(value, bool | int | float | str | None)
