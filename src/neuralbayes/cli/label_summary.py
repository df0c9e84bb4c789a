"""Summary of ``neuralbayes label``, as a table for people and as JSON for programs."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich import box
from rich.table import Table as Grid
from rich.text import Text

from neuralbayes.cli.label_columns import column_records
from neuralbayes.cli.label_outliers import rejected_words
from neuralbayes.cli.outputs import check_model_folder, check_target
from neuralbayes.cli.standard_streams import stream_names

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    from neuralbayes.data.column_kinds import Column
    from neuralbayes.data.parquet_rows import ParquetRows
    from neuralbayes.data.tables import Table


@dataclass(frozen=True)
class Labeling:
    """A table with its labels (n_rows,), their probabilities (n_rows, n_states), and the model they come from."""

    estimator: Any
    table: Table
    labels: NDArray[np.integer[Any]]
    proba: NDArray[np.floating[Any]]
    trained: bool  # on this table
    counts: NDArray[np.int64] | None = None  # rows with the label -1, 0, 1, ..., if the table is a sample
    blocks: list[NDArray[Any]] | None = None  # labels and probabilities of all rows, if the table is a sample
    rows: ParquetRows | None = None  # source of the sample
    columns: Sequence[Column] = ()  # all columns of the input
    told: list[tuple[str, str]] | None = None  # name and main difference of each cluster, if known
    scaled: bool = False  # whether the picture shows standardised columns
    typicality: NDArray[np.floating[Any]] | None = None  # with --reject; outliers have the label -1

    def label_counts(self) -> NDArray[np.int64]:
        """Number of rows with the label -1, 0, 1, ..."""
        import numpy as np

        return np.bincount(self.labels + 1, minlength=1 + self.proba.shape[1]) if self.counts is None else self.counts

    @property
    def n_rows(self) -> int:
        """Number of rows, with outliers."""
        return int(self.label_counts().sum())


@dataclass(frozen=True)
class LabelOutputs:
    """The files that a labelling writes."""

    table: Path
    picture: Path | None
    model: Path | None


def label_outputs(
    table: Path, source: Path | None, save: Path | None, picture: Path | None, *, draw: bool, force: bool
) -> LabelOutputs:
    """Output paths, checked before anything is computed; `source` is the input, which is not changed."""
    from neuralbayes.data.table_formats import check_format, unpacked_name

    check_format(table)
    check_target(table, option="--out", force=force, source=source)
    if picture is not None:
        from neuralbayes.plot.style import check_picture

        check_picture(picture)
    elif draw:
        picture = unpacked_name(table).with_suffix(".png")
    if picture is not None:
        check_target(picture, option="--picture", force=force, source=source)
    if save is not None:
        check_model_folder(save, option="--save", force=force)
    return LabelOutputs(table, picture, save)


def with_picture(outputs: LabelOutputs, draw: Callable[[Path], None], notes: list[str]) -> LabelOutputs:
    """Draw the picture last. If this fails, a note says why, and the other outputs are kept."""
    if outputs.picture is None:
        return outputs
    from neuralbayes.plot.style import problem_of

    path = outputs.picture
    problem = problem_of(lambda: draw(path))
    if problem is None:
        return outputs
    notes.append(f"No picture was drawn ({problem}). The labels are complete.")
    return replace(outputs, picture=None)


@dataclass(frozen=True)
class State:
    """One line of the summary; `separation` is in nats, None if it could not be measured.

    `name` and `difference` describe the cluster; empty if it is the only one.
    """

    state: int
    rows: int
    share: float
    separation: float | None
    separation_percent: float | None
    disjoint: bool
    stability: float | None
    name: str
    difference: str


@dataclass(frozen=True)
class LabelSummary:
    """Summary of one labelling."""

    input: str
    rows: int
    method: Literal["manifolds", "information"]
    n_clusters: int
    disjoint: bool
    result: str
    verdict: str | None  # clusters, segments or none, if --method information chose the number
    stability: float | None  # how far two halves of the rows agree
    states: list[State]
    trained: bool
    columns: list[dict[str, Any]]
    used: list[str]
    new_columns: list[str]
    out: str
    picture: str | None
    model: str | None
    notes: list[str]
    rejected: int | None = None  # outliers, with --reject

    def print(self, stdout: Console, stderr: Console) -> None:
        """Print the summary to `stdout` and the notes to `stderr`."""
        from neuralbayes.plot.style import state_color

        if not self.trained:  # otherwise shown in the table of columns
            stdout.print(Text(f"{self.input}: {self.rows:,} rows", style="bold"), soft_wrap=True)
        grid = Grid(box=box.SIMPLE_HEAD)
        for heading in ("cluster", "rows", "share", "separation (0-100)"):
            grid.add_column(heading, justify="right")
        certifies = self.method == "manifolds"
        if certifies:
            grid.add_column("certified")
        for state in self.states:
            percent = state.separation_percent
            grid.add_row(
                Text(str(state.state), style=f"bold {state_color(state.state)}"),
                str(state.rows),
                f"{100 * state.share:.1f} %",
                "unknown" if percent is None else f"{percent:.1f}",
                *([Text("yes", style="green") if state.disjoint else Text("no", style="yellow")] if certifies else []),
            )
        stdout.print(grid)
        for state in self.states if self.n_clusters > 1 else ():
            told = f"{state.rows:,} rows" + (f"; {state.difference}" if state.difference else "")
            name = (f"{state.state} {state.name}", f"bold {state_color(state.state)}")
            stdout.print(Text.assemble(name, ": ", told), soft_wrap=not stdout.is_terminal)
        result = Text(self.result, style="bold green" if self.disjoint else "bold yellow")
        stdout.print(result, soft_wrap=not stdout.is_terminal)
        if not self.trained:
            stdout.print("The separation refers to the training rows.")
        for key, value in self._details().items():
            # soft_wrap: a path on two lines cannot be copied
            stdout.print(Text.assemble((f"{key:<9}", "dim"), value), soft_wrap=True)
        for note in self.notes:
            stderr.print(Text.assemble(("note: ", "bold"), note, style="yellow"), soft_wrap=not stderr.is_terminal)

    def _details(self) -> dict[str, str]:
        names = shortened(self.new_columns)
        left_out = {column["name"]: column["reason"] for column in self.columns if not column["used"]}
        details = {
            "used": shortened(self.used),
            "left out": "" if self.trained else "; ".join(_by_reason(left_out)),  # already shown in a table
            "rejected": rejected_words(self.rejected, self.rows, "rows"),
            "labels": f"{self.out} ({names})" if names else self.out,
            "picture": self.picture,
            "model": self.model,
        }
        return {key: value for key, value in details.items() if value}


def summarize(labeling: Labeling, outputs: LabelOutputs, new_columns: list[str], notes: list[str]) -> LabelSummary:
    """Count the rows of each cluster, and describe whether the clusters are disjoint."""
    from neuralbayes.report.verdict import cluster_stability_of, stability_of

    table = labeling.table
    states = _states(labeling, cluster_stability_of(labeling.estimator))
    certifies = hasattr(labeling.estimator, "disjoint_")
    return LabelSummary(
        input=stream_names(str(table.path)),
        rows=labeling.n_rows,
        method="manifolds" if certifies else "information",
        n_clusters=len(states),
        disjoint=len(states) > 1 and all(state.disjoint for state in states),
        result=_result(labeling, states),
        verdict=getattr(labeling.estimator, "verdict_", None),
        stability=stability_of(labeling.estimator),
        states=states,
        trained=labeling.trained,
        columns=column_records(labeling.columns),
        used=used_columns(labeling.estimator, labeling.columns),
        new_columns=new_columns,
        out=stream_names(str(outputs.table)),
        picture=None if outputs.picture is None else str(outputs.picture),
        model=None if outputs.model is None else str(outputs.model),
        notes=notes,
        rejected=None if labeling.typicality is None else int(labeling.label_counts()[0]),
    )


def used_columns(estimator: Any, columns: Sequence[Column]) -> list[str]:
    """The used columns; for a certificate, only the numbers."""
    vectorizer = getattr(estimator, "vectorizer_", None)
    return [column.name for column in columns if column.used] if vectorizer is None else list(vectorizer.encoders_)


def next_step(summary: LabelSummary, model: Path | None, file: Path, options: Sequence[str]) -> str:
    """The next command to type; `options` are those for reading the file."""
    if model is not None:
        return shlex.join(["neuralbayes", "report", str(model), str(file), *options, "--open"])
    if summary.n_clusters == 1:
        step = shlex.join(["neuralbayes", "label", str(file), *options, "--clusters", "2", "--force"])
        left_out = not all(column["used"] for column in summary.columns)
        return f"{step} divides them anyway{'; --as COLUMN=KIND uses a column that was left out' if left_out else ''}"
    step = shlex.join(["neuralbayes", "report", "model/", str(file), *options, "--open"])
    return f"add --save model/ --force to keep the model; then {step} explains the clusters"


def _states(labeling: Labeling, stability: NDArray[np.floating[Any]] | None) -> list[State]:
    import numpy as np

    estimator = labeling.estimator
    counts, n_rows = labeling.label_counts()[1:], labeling.n_rows
    disjoint = getattr(estimator, "disjoint_", np.zeros(len(counts), bool))  # only ManifoldLabeler certifies
    states = []
    told = _told(labeling)
    for k, (rows, js) in enumerate(zip(counts, estimator.separation_, strict=True)):
        separation = float(js) if np.isfinite(js) else None
        percent = None if separation is None else 100 * separation / math.log(2)
        agreed = None if stability is None else float(stability[k])
        states.append(State(k, int(rows), int(rows) / n_rows, separation, percent, bool(disjoint[k]), agreed, *told[k]))
    return states


def _told(labeling: Labeling) -> list[tuple[str, str]]:
    """Name and main difference of each cluster, by all columns of the table; empty for a single cluster."""
    n = labeling.proba.shape[1]
    if labeling.told is not None:
        return labeling.told
    if n < 2:
        return [("", "")] * n
    from neuralbayes.explain.description import describe

    found = describe(labeling.table.frame, labeling.labels, n_clusters=n).clusters
    return [(one.name, str(one.differences[0]) if one.differences else "") for one in found]


def _result(labeling: Labeling, states: list[State]) -> str:
    """A sentence on the result."""
    if not any(column.used for column in labeling.columns):
        return "one cluster: all rows are equal in the columns that can be used"
    if not hasattr(labeling.estimator, "disjoint_"):
        from neuralbayes.report.verdict import result_words

        return result_words(labeling.estimator)
    overlapping = [state for state in states if not state.disjoint]
    if len(states) == 1:
        return "one cluster: no disjoint manifolds were found"
    if not overlapping:
        return f"{len(states)} disjoint manifolds, certified; --method information looks for more clusters within them"
    found = shortened(
        [
            f"cluster {state.state}"
            + ("" if state.separation_percent is None else f" (separation {state.separation_percent:.1f} of 100)")
            for state in overlapping
        ]
    )
    return f"the clusters are not disjoint: {found} cannot be separated from the rest with certainty"


def _by_reason(ignored: dict[str, str]) -> list[str]:
    """The ignored columns, grouped by reason."""
    together: dict[str, list[str]] = {}
    for name, reason in ignored.items():
        together.setdefault(reason, []).append(name)
    return [f"{shortened(names)} ({reason})" for reason, names in together.items()]


def shortened(items: list[str], most: int = 12) -> str:
    """The items on one line; if there are many, the first ones and their number.

    Examples
    --------
    >>> shortened(["a", "b", "c"], most=2)
    'a, b, ... (3 in all)'
    """
    more = f", ... ({len(items)} in all)" if len(items) > most else ""
    return ", ".join(items[:most]) + more
