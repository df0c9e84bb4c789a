"""Baselines for features and clusters: other methods on the same encoder, with the interface of `pretrain`.

Each takes images and a config and returns an encoder: `random` weights, `rotation` prediction, `infomax` (Deep
InfoMax), `imsat` (clusters) and `supervised` training. `imsat_rows` and `kmeans` cluster rows of numbers, and
`clustering_accuracy` compares clusters with classes.
"""

from neuralbayes.clusters.accuracy import clustering_accuracy
from neuralbayes.objectives.virtual_adversarial import virtual_adversarial
from paper.baselines.headed import HeadedEncoder
from paper.baselines.imsat import ImsatConfig, ImsatRowsConfig, RowsClusterer, imsat, imsat_rows
from paper.baselines.infomax import InfoMaxConfig, infomax, infonce_estimate, jsd_estimate
from paper.baselines.kmeans import KMeansClusters, kmeans
from paper.baselines.random import RandomConfig, random
from paper.baselines.rotation import RotationConfig, rotation
from paper.baselines.supervised import SupervisedConfig, supervised

__all__ = [
    "HeadedEncoder",
    "ImsatConfig",
    "ImsatRowsConfig",
    "InfoMaxConfig",
    "KMeansClusters",
    "RandomConfig",
    "RotationConfig",
    "RowsClusterer",
    "SupervisedConfig",
    "clustering_accuracy",
    "imsat",
    "imsat_rows",
    "infomax",
    "infonce_estimate",
    "jsd_estimate",
    "kmeans",
    "random",
    "rotation",
    "supervised",
    "virtual_adversarial",
]
