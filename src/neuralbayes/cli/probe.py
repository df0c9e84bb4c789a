"""``neuralbayes probe``: evaluate features with a classifier."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from cyclopts import App

from neuralbayes.cli.files import check_exists
from neuralbayes.cli.options import Device, Flag, Json, Layer, Quiet
from neuralbayes.cli.runs import hidden_state, load_encoder, load_fitting, some
from neuralbayes.cli.terminal import say, say_paths, say_table

EXAMPLES = """Trains a small classifier on the features of the training images, which are computed once and kept in \
RUN/features, and reports its accuracy on all test images. Sub-folders are classes, or there are sub-folders train and \
test with classes in them. If there is no test part, a fixed fifth of each class is held out.

[bold]Examples[/bold]

  [cyan]neuralbayes probe run cifar10 --baselines[/cyan]
  [cyan]neuralbayes probe run labelled_images/ --head linear[/cyan]
  [cyan]neuralbayes probe run fashion-mnist --limit 5000 --head knn --json[/cyan]
"""

app = App(name="probe", help_epilogue=EXAMPLES)


@app.default
def probe(
    run: Path,
    data: str,
    /,
    *,
    limit: int | None = None,
    layer: Layer = "last",
    head: Literal["mlp", "linear", "knn"] = "mlp",
    seeds: int = 3,
    baselines: Flag = False,
    device: Device = "auto",
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate features with a classifier.

    Args:
        run: Folder of a finished run of pretrain.
        data: Labelled images, with or without a test part.
        limit: Use N images of the training part and N of the test part, evenly spaced.
        head: One hidden layer of 200 units as in the paper, a linear classifier, or the 20 nearest neighbours.
        seeds: Number of classifiers to train; only those with a hidden layer differ.
        baselines: Also probe a random encoder of the same shape, and the pixels.
    """
    check_exists(run)
    check_exists(data)
    state = hidden_state(layer)
    import neuralbayes
    from neuralbayes.features.encoder import random_encoder
    from neuralbayes.system.devices import torch_device
    from neuralbayes.system.files import inside, write_json

    shown = not (quiet or json_)
    encoder = load_encoder(run).to(torch_device(device))
    train = some(load_fitting(encoder, data, "train", quiet=not shown), limit)
    test = None
    with suppress(ValueError):  # data without parts are all "train"
        test = some(load_fitting(encoder, data, "test", quiet=not shown), limit)
    encoders: dict[str, Any] = {f"encoder {state}": encoder}
    if baselines:
        encoders[f"random encoder {state}"] = random_encoder(encoder, train).to(torch_device(device))
        encoders["pixels"] = None
    results = []
    for name, one in encoders.items():
        found = neuralbayes.probe(
            one, train, test=test, state=state, head=head, seeds=seeds, cache=inside(run, "features"), verbose=shown
        )
        results.append({"features": name, **found.to_dict()})
    path = run / f"probe-{head}-{state}-{re.sub(r'[^A-Za-z0-9._-]+', '-', Path(data).name)}.json"
    summary = {"run": str(run), "data": data, "held_out": test is None, "results": results, "files": [str(path)]}
    write_json(path, summary)
    if json_:
        print(json.dumps(summary, indent=2, allow_nan=False))
    elif shown:
        _show(results)
        if test is None:
            say("There is no test part: a fifth of each class was held out; the encoder may have seen it.")
        say_paths(numbers=path)


def _show(results: list[dict[str, Any]]) -> None:
    ours = results[0]
    rows = []
    for row in results:
        spread = f" ± {100 * row['std']:.2f}" if len(row["accuracies"]) > 1 else ""
        rows.append([row["features"], row["n_features"], f"{100 * row['mean']:.2f}{spread} %"])
    headings = ["features", "number", f"{ours['head']}: accuracy on {ours['n_test']:,} test images"]
    say_table(headings, rows, numbers=headings[1:])
