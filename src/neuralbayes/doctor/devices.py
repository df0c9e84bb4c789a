"""Graphics cards and the like, and whether torch can compute on them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Device:
    """A device that torch knows, and why it does not work if it does not."""

    name: str
    problem: str = ""


def accelerators() -> list[Device]:
    """What torch can train on besides the processor."""
    if not torch.accelerator.is_available():
        return []
    kind = torch.accelerator.current_accelerator()
    if kind is None:
        return []
    return [_tried(f"{kind.type}:{index}") for index in range(torch.accelerator.device_count())]


def _tried(device: str) -> Device:
    name = f"{device} {torch.cuda.get_device_name(device)}" if device.startswith("cuda") else device
    try:
        x = torch.ones(64, 64, device=device)
        right = float((x @ x).sum()) == 64.0**3
    except RuntimeError as error:
        return Device(name, str(error).splitlines()[0])
    return Device(name, "" if right else "a product comes out wrong")


def idle_nvidia_card() -> bool:
    """Whether there is a driver of NVIDIA, and a torch that cannot use it."""
    return shutil.which("nvidia-smi") is not None and not torch.cuda.is_available()
