"""Write metrics for TensorBoard, in addition to metrics.jsonl."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from neuralbayes.system.files import named_errors
from neuralbayes.training.callbacks import Callback
from neuralbayes.training.state import TrainingState

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class TensorBoard(Callback):
    """Write each line of metrics as scalars, which ``tensorboard --logdir FOLDER`` shows during a run.

    It needs the extra `track`. Steps that a resumed run repeats are shown once.

    Parameters
    ----------
    folder : path

    Examples
    --------
    >>> callback = TensorBoard("run/tensorboard")  # for `callbacks` of `train` or of `pretrain`
    >>> callback.folder.as_posix()
    'run/tensorboard'
    """

    def __init__(self, folder: str | Path) -> None:
        if find_spec("tensorboard") is None:
            raise ImportError("TensorBoard needs tensorboard: pip install 'neuralbayes[track]'")
        self.folder = Path(folder)
        self._first_step: int | None = None
        self._writer: SummaryWriter | None = None

    def on_step_end(self, state: TrainingState, metrics: Mapping[str, float]) -> None:
        if self._first_step is None:
            self._first_step = state.step

    def on_log(self, state: TrainingState, line: Mapping[str, float]) -> None:
        with named_errors(self.folder):  # a full disk
            if self._writer is None:
                from torch.utils.tensorboard import SummaryWriter

                # Ignore what an interrupted run wrote after its last checkpoint.
                self._writer = SummaryWriter(self.folder, purge_step=self._first_step)
            for name, value in line.items():
                if name != "step":
                    self._writer.add_scalar(name, value, int(line["step"]))
            self._writer.flush()
            if state.finished:
                self._writer.close()
