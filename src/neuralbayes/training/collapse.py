"""A guard against collapse: layers without information, and dead states."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from neuralbayes.training.callbacks import Callback
from neuralbayes.training.checks import check_integer, check_number
from neuralbayes.training.state import TrainingState


class WarnOnCollapse(Callback):
    """Warn once per layer if a layer has collapsed and does not recover.

    It uses two metrics: ``mi/LAYER``, the mutual information in nats, and ``dead/LAYER``, the fraction of states with
    almost no mass. Layers without these metrics are ignored.

    Parameters
    ----------
    advice : str, default=""
        Last sentence of the warning, with suggestions.
    steps : int, default=100
        Number of consecutive steps after which a collapsed layer is reported. Many layers are collapsed at the start.
    min_information : float, default=0.01
        Information in nats below which a layer counts as collapsed.
    max_dead : float in [0, 1], default=0.9
        Fraction of dead states above which a layer counts as collapsed.

    Attributes
    ----------
    messages : dict of str to str
        The warnings so far, by layer.

    Examples
    --------
    >>> import torch
    >>> network = torch.nn.Linear(2, 3)
    >>> optimizer = torch.optim.SGD(network.parameters())
    >>> state = TrainingState(network, optimizer, steps_per_epoch=10, total_steps=50, step=7)
    >>> guard = WarnOnCollapse("Try a larger alpha.", steps=2)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     for _ in range(2):
    ...         guard.on_step_end(state, {"mi/relu1": 0.002, "mi/relu2": 1.4})
    >>> guard.messages
    {'relu1': 'relu1 has carried less than 0.01 nats about its input for 2 steps, up to step 7: ... a larger alpha.'}
    """

    def __init__(
        self, advice: str = "", *, steps: int = 100, min_information: float = 0.01, max_dead: float = 0.9
    ) -> None:
        self.advice = advice
        self.steps = check_integer("steps", steps, 1)
        self.min_information = check_number("min_information", min_information, low=0)
        self.max_dead = check_number("max_dead", max_dead, low=0, high=1)
        self.messages: dict[str, str] = {}
        self._bad_steps: dict[str, int] = {}  # consecutive steps, by metric

    def on_step_end(self, state: TrainingState, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            kind, _, layer = name.partition("/")
            if kind == "mi" and value < self.min_information:
                found = f"{layer} has carried less than {self.min_information:g} nats about its input"
            elif kind == "dead" and value > self.max_dead:
                found = f"more than {self.max_dead:.0%} of the states of {layer} have been dead"
            else:
                self._bad_steps.pop(name, None)
                continue
            self._bad_steps[name] = self._bad_steps.get(name, 0) + 1
            if self._bad_steps[name] >= self.steps and layer not in self.messages:
                message = f"{found} for {self.steps} steps, up to step {state.step}: it has collapsed. {self.advice}"
                self.messages[layer] = message.strip()
                warnings.warn(self.messages[layer], stacklevel=2)

    def state_dict(self) -> Mapping[str, Any]:
        return {"messages": dict(self.messages), "bad_steps": dict(self._bad_steps)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.messages, self._bad_steps = dict(state["messages"]), dict(state["bad_steps"])
