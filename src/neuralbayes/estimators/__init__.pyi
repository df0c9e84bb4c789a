from .information_clusterer import InformationClusterer as InformationClusterer
from .manifold_labeler import ManifoldLabeler as ManifoldLabeler
from .mim_encoder import MIMEncoder as MIMEncoder
from .saving import load as load
