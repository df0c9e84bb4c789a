"""The walks of CONTRIBUTING.md: the files that a call enters, in order, by a profile.

`python tests/walks.py` writes them again after files were moved.
"""

import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from test_walks import backward, files_entered, pretrain

import neuralbayes as nb

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"
HEAD = "| walk | files |\n| --- | --- |\n"


def cluster() -> None:
    segment, rng = np.repeat([0, 1, 2], 50), np.random.default_rng(0)
    spend = rng.normal(np.array([40.0, 60.0, 300.0])[segment], 50)
    city = np.where(segment == 2, "Bonn", rng.choice(["Köln", "Trier"], 150))
    pd.DataFrame({"spend": spend, "city": city}).to_csv("customers.csv", index=False)
    print(nb.cluster("customers.csv", method="information").clusters)


WALKS = {
    "a table row through `cluster`": cluster,
    "a picture through `pretrain`": pretrain,
    "a batch through `backward`": backward,
}


def table() -> str:
    """The table; data and runs are written to the working directory."""
    rows = []
    for name, call in WALKS.items():
        files = [Path(file).as_posix() for file in files_entered(call)]
        shown = [f"`{file}`" for file in files if not file.startswith("system/")]
        rows.append(f"| {name} | {', '.join(shown)} |\n")
    return HEAD + "".join(rows)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        written = table()
        os.chdir(PAGE.parent)
    before, _, after = PAGE.read_text(encoding="utf-8").partition(HEAD)
    _, end, after = after.partition("\n\n")
    PAGE.write_text(before + written.rstrip("\n") + end + after, encoding="utf-8")
