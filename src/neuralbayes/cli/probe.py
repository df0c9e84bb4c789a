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
    from neuralbayes.features.encoder import ImageEncoder
    from neuralbayes.probes.protocol import Protocol

EXAMPLES = """Trains a small classifier on the features of the training images, which are computed once and kept in \
RUN/features. There are two protocols. The validation protocol chooses the epoch on a tenth of the training images and \
reports the accuracy on all test images. The protocol of the paper reports the best epoch on the first 128 test images.

Sub-folders are classes, or there are sub-folders train and test with classes in them. If there is no test part, a \
fixed fifth of each class is held out.

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
    epochs: int | None = None,
    protocol: Literal["both", "validation", "paper"] = "both",
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
        Number of classifiers to train.
    epochs
        Maximum number of epochs, 100 by default as in the paper. The validation protocol stops after 5 epochs without
        improvement.
    protocol
        Which protocol to use.
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
    from neuralbayes.probes.protocol import probe_parts
    from neuralbayes.system.devices import torch_device
    from neuralbayes.system.files import inside, write_json

    states = layer_names(layer)
    encoder = load_encoder(run).to(torch_device())
    chosen, own = _data(run, data)
    shown = not (quiet or json_)
    train, test, division = _parts(encoder, chosen, limit, shown)
    for part in (train, test) if division is None else (train,):
        tell_skipped(part, kept_in=run / f"probe-{part.split}-{SKIPPED_FILE}", quiet=not shown)
    protocols: tuple[Protocol, ...] = ("validation", "paper") if protocol == "both" else (protocol,)
    rows = _rows(encoder, train, states, baselines)
    settings: dict[str, Any] = {
        "head": head,
        "seeds": seeds,
        "max_epochs": epochs,
        "cache": inside(run, "features"),
        "verbose": shown,
    }
    results: list[dict[str, Any]] = []
    for name, row in rows.items():
        if shown:
            Console(highlight=False).print(Text(name, style="dim"))
        found = {p: probe_parts(train, test, protocol=p, **row, **settings) for p in protocols}
        results.append({"features": name, **{p: result.to_dict() for p, result in found.items()}})

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
        _print(summary, protocols, Console(highlight=False))


def _data(run: Path, data: str | None) -> tuple[str, bool]:
    """The data for the probe, and whether they are those of the pretraining."""
    remembered = DataChoice.of(run)
    if data is None and remembered is None:
        raise ValueError(f"{run} does not say which images it was trained on; give labelled images with --data")
    own = remembered is not None and (data is None or data_name(data) == remembered.data)
    return (remembered.data if own and remembered is not None else data_name(str(data))), own


def _parts(encoder: ImageEncoder, data: str, limit: int | None, shown: bool) -> tuple[Images, Images, str | None]:
    """Training and test images, and a note if the test part was held out."""
    from neuralbayes.data.images import labeled_splits
    from neuralbayes.probes.held_out import SEED, TEST_SHARE, held_out

    labeled = labeled_splits(data)
    for split, known in labeled.items():
        if split != "unlabeled" and not known:
            raise ValueError(
                f"--data must be labelled, but the {split} images of {data} have no labels; put pictures into one "
                "folder for each class"
            )
    train = _some(load_fitting(encoder.shape, data, "train", progress=shown), limit)
    if labeled and "test" not in labeled:
        train, test = held_out(train)
        division = (
            f"{data} has no test part: {len(test):,} images, {100 * TEST_SHARE:.0f} % of each class drawn with seed "
            f"{SEED}, were set aside as test images; the encoder may have seen them, without their labels"
        )
        return train, test, division
    return train, _some(load_fitting(encoder.shape, data, "test", progress=shown), limit), None


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


def _rows(encoder: ImageEncoder, train: Images, states: tuple[str, ...], baselines: bool) -> dict[str, dict[str, Any]]:
    """The probes by name: arguments of `probe_parts`."""
    from neuralbayes.probes import random_encoder
    from neuralbayes.system.devices import torch_device

    rows: dict[str, dict[str, Any]] = {f"encoder {s}": {"encoder": encoder, "state": s} for s in states}
    if baselines:
        untrained = random_encoder(encoder, train.source).to(torch_device())
        rows |= {f"random encoder {s}": {"encoder": untrained, "state": s} for s in states}
        rows["pixels"] = {}
    return rows


def _draw(
    run: Path, stem: str, results: list[dict[str, Any]], class_names: tuple[str, ...] | None
) -> tuple[list[str], list[str]]:
    """Draw one confusion matrix per layer, with the honest protocol if available; returns errors."""
    from neuralbayes.plot.style import problem_of

    paths: list[str] = []
    notes: list[str] = []
    for result in results:
        protocol = "validation" if "validation" in result else "paper"
        found = result[protocol]
        layer = result["features"].removeprefix("encoder ")
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


def _print(summary: dict[str, Any], protocols: tuple[Protocol, ...], console: Console) -> None:
    from neuralbayes.probes import PAPER_IMAGES

    first = summary["results"][0][protocols[0]]
    seeds = f", {len(first['accuracies'])} seeds" if len(first["accuracies"]) > 1 else ""
    heading = f"{Path(summary['data']).name}: {first['head']} on {first['n_train']:,} training images{seeds}"
    console.print(Text(heading, style="bold"), soft_wrap=True)
    if summary["division"] is not None:
        console.print(Text(summary["division"], style="yellow"), soft_wrap=not console.is_terminal)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption_justify="left")
    table.add_column("features", no_wrap=True)
    headings = {"validation": "all test images", "paper": f"best on {PAPER_IMAGES} *"}
    for name in ("number", *(headings[p] for p in protocols), "epochs"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in summary["results"]:
        found = [row[p] for p in protocols]
        spreads = [f" ± {100 * f['std']:.2f}" if len(f["accuracies"]) > 1 else "" for f in found]
        accuracies = [f"{100 * f['mean']:.2f}{spread} %" for f, spread in zip(found, spreads, strict=True)]
        epochs = " ".join(map(str, found[0]["epochs"]))
        table.add_row(row["features"], str(found[0]["n_features"]), *accuracies, epochs)
    if "paper" in protocols:
        table.caption = (
            f"* the paper's protocol: chosen and judged on the first {PAPER_IMAGES} test images, so too high"
        )
    console.print(table)
    feature_seconds = sum(row[protocols[0]]["feature_seconds"] for row in summary["results"])
    head_seconds = sum(row[p]["head_seconds"] for row in summary["results"] for p in protocols)
    console.print(f"features {feature_seconds:.1f} s, computed once and kept; classifiers {head_seconds:.1f} s")
    for path in summary["files"]:
        console.print(Text(path, style="dim"), soft_wrap=True)
