"""A page on a run or a model: what was learnt, in words and pictures, and an explorer of its states or clusters."""

from neuralbayes.report.explorer.clusters import clusters_side
from neuralbayes.report.explorer.page import write_page
from neuralbayes.report.explorer.runs import encoder_side, image_model_side
from neuralbayes.report.explorer.samples import Samples, chosen, image_samples, row_samples, text_samples
from neuralbayes.report.explorer.side import Side
from neuralbayes.report.explorer.tables import rows_side

__all__ = [
    "Samples",
    "Side",
    "chosen",
    "clusters_side",
    "encoder_side",
    "image_model_side",
    "image_samples",
    "row_samples",
    "rows_side",
    "text_samples",
    "write_page",
]
