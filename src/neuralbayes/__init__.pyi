from . import datasets as datasets
from .bayes import conditional_entropy as conditional_entropy
from .bayes import density_ratio as density_ratio
from .bayes import js_divergence as js_divergence
from .bayes import marginal_entropy as marginal_entropy
from .bayes import mutual_information as mutual_information
from .bayes import posterior as posterior
from .bayes import prior as prior
from .encoder import ImageEncoder as ImageEncoder
from .estimators import ManifoldLabeler as ManifoldLabeler
from .estimators import MIMEncoder as MIMEncoder
from .estimators import load as load
from .gradients import backward as backward
from .objectives import DML as DML
from .objectives import MIM as MIM
from .objectives import Objective as Objective
from .objectives import RunningPrior as RunningPrior
from .objectives import Smoothness as Smoothness
from .objectives import WeightedSum as WeightedSum
from .objectives import dml_loss as dml_loss
from .objectives import mim_loss as mim_loss
from .objectives import smoothness as smoothness
from .pretraining import PretrainConfig as PretrainConfig
from .pretraining import pretrain as pretrain

__version__: str
