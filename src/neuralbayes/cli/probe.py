"""``neuralbayes probe``: evaluate the features of an encoder."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from neuralbayes.cli.options import Device, Flag, on_device
from neuralbayes.cli.runs import (
    SKIPPED_FILE,
    DataChoice,
    data_name,
    layer_names,
    load_encoder,
    load_fitting,
    tell_skipped,
)

if TYPE_CHECKING:
    from neuralbayes.data.sources import Images

EXAMPLES = """Trains a small classifier on the features of the training images, which are computed once and kept in \
RUN/features, and reports its accuracy on all test images. Sub-folders are classes, or there are sub-folders train and \
test with classes in them. If there is no test part, a fixed fifth of each class is held out.

[bold]Examples[/bold]

  [cyan]neuralbayes probe run --baselines[/cyan]
  [cyan]neuralbayes probe run --layer all --head linear[/cyan]
  [cyan]neuralbayes probe run --data fashion-mnist --head knn --json[/cyan]
"""

app = App(name="probe", help_epilogue=EXAMPLES)


@app.default
@on_device
def probe(
    run: Path,
    /,
    *,
    data: str | None = None,
    limit: int | None = None,
    layer: Annotated[str, Parameter(metavar="last|1..4|relu1..relu4|all")] = "last",
    head: Literal["mlp", "linear", "knn"] = "mlp",
    seeds: int = 3,
    baselines: Flag = False,
    device: Device = "auto",
    json_: Annotated[Flag, Parameter(name="--json")] = False,
    quiet: Flag = False,
) -> None:
    """Measure how good the features of an encoder are.

    Parameters
    ----------
    run
        Folder of a finished run of pretrain.
    data
        Labelled images, with or without a test part. By default the data that the encoder was trained on.
    limit
        Use N images of the training part and N of the test part, spread evenly over them. Without a test part, use N
        images in all.
    layer
        Hidden layer: the last one, a number or name, or all of them in turn.
    head
        The classifier: one hidden layer of 200 units as in the paper, a linear one, or the 20 nearest neighbours.
    seeds
        Number of classifiers to train; a linear one and nearest neighbours are deterministic, so one is enough.
    baselines
        Also probe a random encoder of the same shape, and the pixels.
    device
        Device of the encoders: cpu, cuda, cuda:1 or mps; auto uses the best one available. Classifiers are small and
        stay on the CPU.
    json_
        Print one JSON object and nothing else.
    quiet
        Print errors only.
    """
    import neuralbayes
    from neuralbayes.features.encoder import random_encoder
    from neuralbayes.features.probe import HELD_OUT
    from neuralbayes.system.devices import torch_device
    from neuralbayes.system.files import inside, write_json

    states = layer_names(layer)
    encoder = load_encoder(run).to(torch_device())
    chosen, own = _data(run, data)
    shown = not (quiet or json_)
    train, test = _parts(encoder.shape, chosen, limit, shown)
    for part in (train,) if test is None else (train, test):
        tell_skipped(part, kept_in=run / f"probe-{part.split}-{SKIPPED_FILE}", quiet=not shown)
    rows: dict[str, tuple[Any, str]] = {f"encoder {state}": (encoder, state) for state in states}
    if baselines:
        untrained = random_encoder(encoder, train.source).to(torch_device())
        rows |= {f"random encoder {state}": (untrained, state) for state in states}
        rows["pixels"] = (None, states[0])
    results: list[dict[str, Any]] = []
    for name, (of, state) in rows.items():
        if shown:
            Console(highlight=False).print(Text(name, style="dim"))
        found = neuralbayes.probe(
            of, train, test=test, state=state, head=head, seeds=seeds, cache=inside(run, "features"), verbose=shown
        )
        results.append({"features": name, **found.to_dict()})
    division = None
    if test is None:
        division = (
            f"{chosen} has no test part: {results[0]['n_test']:,} images, {100 * HELD_OUT:.0f} % of each class drawn "
            "with seed 0, were set aside as test images; the encoder may have seen them, without their labels"
        )

    suffix = "" if own else "-" + re.sub(r"[^A-Za-z0-9._-]+", "-", Path(chosen).name)
    stem = f"probe-{head}-{'all' if len(states) > 1 else states[0]}{suffix}"
    files = [str(run / f"{stem}.json")]
    summary = {"run": str(run), "data": chosen, "division": division, "results": results, "files": files}
    write_json(run / f"{stem}.json", summary)  # before drawing
    pictures, notes = _draw(run, stem, results[: len(states)], train.class_names)
    files += pictures
    write_json(run / f"{stem}.json", summary)
    for note in notes if not quiet else ():
        Console(stderr=True, highlight=False).print(Text(f"note: {note}", style="yellow"), soft_wrap=True)
    if json_:
        Console().out(json.dumps(summary, indent=2, allow_nan=False), highlight=False)
    elif not quiet:
        _print(summary, Console(highlight=False))


def _data(run: Path, data: str | None) -> tuple[str, bool]:
    """The data for the probe, and whether they are those of the pretraining."""
    remembered = DataChoice.of(run)
    if data is None and remembered is None:
        raise ValueError(f"{run} does not say which images it was trained on; give labelled images with --data")
    own = remembered is not None and (data is None or data_name(data) == remembered.data)
    return (remembered.data if own and remembered is not None else data_name(str(data))), own


def _parts(shape: tuple[int, int, int], data: str, limit: int | None, shown: bool) -> tuple[Images, Images | None]:
    """Training and test images; None if there is no test part."""
    from neuralbayes.data.images import labeled_splits

    labeled = labeled_splits(data)
    for split, known in labeled.items():
        if split != "unlabeled" and not known:
            raise ValueError(
                f"--data must be labelled, but the {split} images of {data} have no labels; put pictures into one "
                "folder for each class"
            )
    train = _some(load_fitting(shape, data, "train", progress=shown), limit)
    if labeled and "test" not in labeled:
        return train, None
    return train, _some(load_fitting(shape, data, "test", progress=shown), limit)


def _some(images: Images, limit: int | None) -> Images:
    """`limit` labelled images, or all. They are evenly spaced, because folders are sorted by class."""
    import numpy as np

    from neuralbayes.data.sources import SubsetSource

    if limit is not None and limit < 1:
        raise ValueError(f"--limit must be at least 1, got {limit}")
    if limit is None or limit >= len(images):
        return images
    rows = np.linspace(0, len(images) - 1, limit).astype(np.int64)
    labels = None if images.labels is None else images.labels[rows]
    return replace(images, source=SubsetSource(images.source, rows), labels=labels)


def _draw(
    run: Path, stem: str, results: list[dict[str, Any]], class_names: tuple[str, ...] | None
) -> tuple[list[str], list[str]]:
    """Draw one confusion matrix per layer; returns paths and errors."""
    from neuralbayes.plot.style import problem_of

    paths: list[str] = []
    notes: list[str] = []
    for found in results:
        layer = found["features"].removeprefix("encoder ")
        title = f"{layer}, {found['head']}: {100 * found['mean']:.1f} % of {found['n_test']:,} test images right"
        path = run / f"{stem.replace('-all', f'-{layer}')}.png".replace("probe-", "confusion-", 1)
        names = class_names if class_names and len(class_names) == len(found["confusion"]) else None
        problem = problem_of(partial(_draw_confusion, found["confusion"], names, title, path))
        if problem is None:
            paths.append(str(path))
        else:
            notes.append(f"{path} could not be drawn ({problem})")
    return paths, notes


def _draw_confusion(confusion: Any, names: tuple[str, ...] | None, title: str, path: Path) -> None:
    from neuralbayes.plot.style import save_picture
    from neuralbayes.report.confusion import draw_confusion

    save_picture(draw_confusion(confusion, class_names=names, title=title), path)


def _print(summary: dict[str, Any], console: Console) -> None:
    results = summary["results"]
    first = results[0]
    seeds = f", {len(first['accuracies'])} seeds" if len(first["accuracies"]) > 1 else ""
    heading = f"{Path(summary['data']).name}: {first['head']} on {first['n_train']:,} training images{seeds}"
    console.print(Text(heading, style="bold"), soft_wrap=True)
    if summary["division"] is not None:
        console.print(Text(summary["division"], style="yellow"), soft_wrap=not console.is_terminal)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("features", no_wrap=True)
    for name in ("number", f"accuracy on {first['n_test']:,} test images"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in results:
        spread = f" ± {100 * row['std']:.2f}" if len(row["accuracies"]) > 1 else ""
        table.add_row(row["features"], str(row["n_features"]), f"{100 * row['mean']:.2f}{spread} %")
    console.print(table)
    feature_seconds, head_seconds = (sum(row[f"{what}_seconds"] for row in results) for what in ("feature", "head"))
    console.print(f"features {feature_seconds:.1f} s, computed once and kept; classifiers {head_seconds:.1f} s")
    for path in summary["files"]:
        console.print(Text(path, style="dim"), soft_wrap=True)
