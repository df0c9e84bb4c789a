"""Summary of ``neuralbayes label`` on images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from neuralbayes.cli.label_outliers import rejected_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Cluster:
    """One line of the summary."""

    cluster: int
    images: int
    share: float
    separation: float
    stability: float | None


@dataclass(frozen=True)
class Agreement:
    """Agreement of the clusters with the known classes, which nothing else has used."""

    accuracy: float
    nmi: float
    ari: float


@dataclass(frozen=True)
class ImagesSummary:
    """Summary of clusters of images."""

    input: str
    images: int
    size: list[int]  # (H, W, C) of one
    features: str | None
    n_clusters: int
    result: str
    verdict: str | None
    stability: float | None
    clusters: list[Cluster]
    trained: bool
    agreement: Agreement | None
    out: str
    picture: str | None
    model: str | None
    skipped: int
    skipped_list: str | None
    sorted_into: str | None
    notes: list[str]
    rejected: int | None = None  # outliers, with --reject

    def print(self, stdout: Console, stderr: Console) -> None:
        """Print the summary to `stdout` and the notes to `stderr`."""
        from neuralbayes.plot.style import state_color

        seen = f"of {self.size[0]}x{self.size[1]} pixels" if self.features is None else f"by {self.features}"
        stdout.print(Text(f"{self.input}: {self.images:,} images {seen}", style="bold"), soft_wrap=True)
        grid = Grid(box=box.SIMPLE_HEAD)
        for heading in ("cluster", "images", "share", "separation (0-100)"):
            grid.add_column(heading, justify="right")
        for line in self.clusters:
            grid.add_row(
                Text(str(line.cluster), style=f"bold {state_color(line.cluster)}"),
                f"{line.images:,}",
                f"{100 * line.share:.1f} %",
                f"{100 * line.separation / math.log(2):.0f}",
            )
        stdout.print(grid)
        stdout.print(f"{self.result}. The separation is 100 if no neighbour of an image is in another cluster.")
        if self.agreement is not None:
            a = self.agreement
            text = f"{100 * a.accuracy:.2f} % match the classes (NMI {a.nmi:.3f}, ARI {a.ari:.3f})"
            stdout.print(
                Text(f"{text}; training did not use the classes", style="bold green"), soft_wrap=not stdout.is_terminal
            )
        rejected = rejected_words(self.rejected, self.images, "images")
        written = {"rejected": rejected, "labels": self.out, "picture": self.picture, "model": self.model}
        written |= {"skipped": self.skipped_list, "sorted": self.sorted_into}
        for key, value in written.items():
            if value:
                stdout.print(Text.assemble((f"{key:<9}", "dim"), value), soft_wrap=True)
        for note in self.notes:
            stderr.print(Text.assemble(("note: ", "bold"), note, style="yellow"), soft_wrap=not stderr.is_terminal)


def agreement(labels: NDArray[Any], classes: NDArray[np.int64]) -> Agreement:
    """Compare labels with classes."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    from neuralbayes.clusters.accuracy import clustering_accuracy

    return Agreement(
        clustering_accuracy(labels, classes),
        float(normalized_mutual_info_score(classes, labels)),
        float(adjusted_rand_score(classes, labels)),
    )
