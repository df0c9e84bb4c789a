"""``neuralbayes probe``: evaluate features with a classifier."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from neuralbayes.cli.files import check_exists
from neuralbayes.cli.options import Device, Flag, Json
from neuralbayes.cli.runs import data_of, first, hidden_state, load_encoder, load_fitting
from neuralbayes.cli.terminal import say, say_paths, say_table

if TYPE_CHECKING:
    from neuralbayes.data.images import Images
    from neuralbayes.features.encoder import ImageEncoder

EXAMPLES = """Trains a small classifier on the features of the training images, which are computed once and kept in \
RUN/features, and reports its accuracy on all test images. Sub-folders are classes, or there are sub-folders train and \
test with classes in them. If there is no test part, a fixed fifth of each class is held out.

[bold]Examples[/bold]

  [cyan]neuralbayes probe run --baselines[/cyan]
  [cyan]neuralbayes probe run labelled_images/ --head linear[/cyan]
  [cyan]neuralbayes probe run fashion-mnist --limit 5000 --head knn --json[/cyan]
"""

CONFUSIONS = 3
"""Number of confusions that are named on the screen."""

app = App(name="probe", help_epilogue=EXAMPLES)


@app.default
def probe(
    run: Path,
    data: str | None = None,
    /,
    *,
    limit: int | None = None,
    layer: Annotated[str, Parameter(metavar="last|1..4")] = "last",
    head: Literal["mlp", "linear", "knn"] = "mlp",
    seeds: int = 3,
    baselines: Flag = False,
    device: Device = "auto",
    json_: Json = False,
    quiet: Flag = False,
) -> None:
    """Evaluate features with a classifier.

    Parameters
    ----------
    run
        Folder of a finished run of pretrain.
    data
        Labelled images, with or without a test part. By default the named data set that the encoder was trained on.
    limit
        Use N images of the training part and N of the test part, evenly spaced.
    layer
        Hidden layer: the last one, or a number.
    head
        The classifier: one hidden layer of 200 units as in the paper, a linear one, or the 20 nearest neighbours.
    seeds
        Number of classifiers to train; the linear one and nearest neighbours are deterministic, so one is enough.
    baselines
        Also probe a random encoder of the same shape, and the pixels.
    device
        Device of the encoders: cpu, cuda, cuda:1 or mps; auto uses the best one available.
    json_
        Print one JSON object and nothing else.
    quiet
        Print errors only.
    """
    check_exists(run)
    state = hidden_state(layer)
    if data is not None:
        check_exists(Path(data), sets=True)
    import neuralbayes
    from neuralbayes.features.encoder import random_encoder
    from neuralbayes.system.devices import torch_device
    from neuralbayes.system.files import inside, write_json

    shown = not (quiet or json_)
    encoder = load_encoder(run).to(torch_device(device))
    chosen = data_of(run, data, "probe")
    train, test = _parts(encoder, chosen, limit, shown)
    encoders: dict[str, Any] = {f"encoder {state}": encoder}
    if baselines:
        encoders[f"random encoder {state}"] = random_encoder(encoder, train).to(torch_device(device))
        encoders["pixels"] = None
    results = []
    for name, one in encoders.items():
        if shown:
            say(name, style="dim")
        found = neuralbayes.probe(
            one, train, test=test, state=state, head=head, seeds=seeds, cache=inside(run, "features"), verbose=shown
        )
        results.append({"features": name, **found.to_dict()})
    path = run / f"probe-{head}-{state}-{re.sub(r'[^A-Za-z0-9._-]+', '-', Path(chosen).name)}.json"
    summary = {"run": str(run), "data": chosen, "held_out": test is None, "results": results, "files": [str(path)]}
    write_json(path, summary)
    if json_:
        print(json.dumps(summary, indent=2, allow_nan=False))
    elif not quiet:
        _show(results, f"{Path(chosen).name}: {head}", train.class_names)
        if test is None:
            say("There is no test part: a fifth of each class was held out; the encoder may have seen it.")
        say_paths([("numbers", path)])


def _parts(encoder: ImageEncoder, data: str, limit: int | None, shown: bool) -> tuple[Images, Images | None]:
    """Training and test images; None if there is no test part."""
    train = first(load_fitting(encoder, data, "train", quiet=not shown), limit)
    try:
        return train, first(load_fitting(encoder, data, "test", quiet=not shown), limit)
    except ValueError:  # data without parts are all "train"
        return train, None


def _show(results: list[dict[str, Any]], title: str, names: tuple[str, ...] | None) -> None:
    ours = results[0]
    say(f"{title} on {ours['n_train']:,} training images, {len(ours['accuracies'])} times", style="bold")
    rows = []
    for row in results:
        spread = f" ± {100 * row['std']:.2f}" if len(row["accuracies"]) > 1 else ""
        rows.append([row["features"], row["n_features"], f"{100 * row['mean']:.2f}{spread} %"])
    headings = ["features", "number", f"accuracy on {ours['n_test']:,} test images"]
    say_table(headings, rows, numbers=headings[1:])
    confused = sorted(
        ((count, i, j) for i, row in enumerate(ours["confusion"]) for j, count in enumerate(row) if i != j and count),
        reverse=True,
    )
    for count, i, j in confused[:CONFUSIONS]:
        share = 100 * count / sum(ours["confusion"][i])
        one, other = (str(k) if names is None else names[k] for k in (i, j))
        say(f"{one} was taken for {other} in {share:.0f} % of cases")
