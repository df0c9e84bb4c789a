from .claims import Claim as Claim
from .description import ClusterDescription as ClusterDescription
from .description import Description as Description
from .description import describe as describe
from .phrases import key_phrases as key_phrases
from .phrases import phrase_names as phrase_names
from .rules import Rule as Rule
