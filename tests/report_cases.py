"""A real run and a labelled table to report on, small enough for tests, with names that would be harmful as HTML."""

from unittest import mock

import numpy as np
import pandas as pd
from image_cases import bars

from neuralbayes.cli import main
from neuralbayes.data.toys import make_spirals

SCRIPT = "<script>document.title='broken'</script>"
CLASS = "</script><!-- "


def make_run(folder, *, n=300, epochs=2, seed=0, name="run"):
    """Pretrain a tiny encoder on bars, which are saved in bars.npz; returns the folder of the run."""
    images, labels = bars(n)
    np.savez(folder / "bars.npz", train_images=images, train_labels=labels)
    words = ["pretrain", folder / "bars.npz", "--encoder", "tiny", "--batch", "32", "--microbatch", "32"]
    words += ["--epochs", epochs, "--seed", seed, "--out", folder / name, "--quiet"]
    with mock.patch("neuralbayes.report.run.draw_run", return_value=[]):  # the page has its own pictures
        assert main([str(word) for word in words]) == 0
    return folder / name


def make_model(folder, *, n=600, clusters=3, name="model"):
    """Label the three arms of a spiral, which are saved in table.csv; returns the folder of the model."""
    points, arms = make_spirals(n, random_state=0)
    table = pd.DataFrame({SCRIPT: points[:, 0], "height": points[:, 1], "arm": [f"{CLASS}{k}" for k in arms]})
    table.to_csv(folder / "table.csv", index=False)
    words = ["label", folder / "table.csv", "--clusters", clusters, "--save", folder / name, "--no-picture"]
    assert main([*(str(word) for word in words), "--quiet", "--force"]) == 0
    return folder / name
