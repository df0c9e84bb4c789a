from .pretraining import PRESETS as PRESETS
from .pretraining import pretrain as pretrain
from .tables import LossCurve as LossCurve
from .tables import RowsEncoder as RowsEncoder
from .tables import even_batches as even_batches
from .tables import rows_network as rows_network
from .tables import train_rows as train_rows
