from .manifold_labeler import ManifoldLabeler as ManifoldLabeler
from .mim_encoder import MIMEncoder as MIMEncoder
from .persistence import load as load
