"""The methods that the paper compares with, on its own encoder.

Each takes images and a config and returns an encoder: `random` weights, `rotation` prediction and `infomax` (Deep
InfoMax). `imsat_rows` clusters rows of numbers.
"""

from paper.baselines.imsat import ImsatRowsConfig, imsat_rows
from paper.baselines.infomax import InfoMaxConfig, infomax
from paper.baselines.random import RandomConfig, random
from paper.baselines.rotation import RotationConfig, rotation

__all__ = [
    "ImsatRowsConfig",
    "InfoMaxConfig",
    "RandomConfig",
    "RotationConfig",
    "imsat_rows",
    "infomax",
    "random",
    "rotation",
]
