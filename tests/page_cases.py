"""Small clusterings of a table, of texts and of images, with hostile names, for the tests of pages."""

from functools import cache

import numpy as np
import pandas as pd

import neuralbayes as nb

SCRIPT = "</script><script>alert(1)</script>"
TURNED = "gnp\u202eexe.scr"
WORDS = [["lost my card", "card was stolen", "block the card"], ["weather in Bonn", "will it rain", "rain tomorrow"]]


@cache
def a_table(reject=None):
    """Three clusters in two columns, and a category; columns and cells hold markup."""
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1, 2], [90, 60, 50])
    frame = pd.DataFrame(
        {
            "id": [f"c{i:03d}" for i in range(200)],
            "<b>mass</b>": 8.0 * label + rng.normal(size=200),
            "length": -5.0 * label + rng.normal(size=200),
            "city": np.array(["Bonn", SCRIPT, "Köln"])[label],
            "note": TURNED,
        }
    )
    if reject is not None:
        frame.loc[199, ["<b>mass</b>", "length"]] = [400.0, 400.0]
    return nb.cluster(frame, 3, method="information", reject=reject)


@cache
def a_continuum():
    """One direction without gaps, and noise."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=400)
    frame = pd.DataFrame({"income": z + 0.1 * rng.normal(size=400), "spend": z + 0.1 * rng.normal(size=400)})
    return nb.cluster(frame, 3, method="information")


@cache
def many_clusters(n=40):
    """More clusters than the page shows cards of."""
    rng = np.random.default_rng(0)
    centres = 20.0 * rng.normal(size=(n, 4))
    rows = np.repeat(centres, 15, axis=0) + 0.5 * rng.normal(size=(15 * n, 4))
    return nb.cluster(pd.DataFrame(rows, columns=list("abcd")), n, method="information")


@cache
def no_clusters():
    """Noise without any division."""
    return nb.cluster(np.random.default_rng(0).normal(size=(300, 6)))


@cache
def some_texts():
    """Two topics, by features that tell them apart; one text holds markup."""
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1], 60)
    texts = [WORDS[k][i % 3] for i, k in enumerate(label)]
    texts[0] = f"{texts[0]} {SCRIPT}"
    return nb.cluster(texts, 2, features=4.0 * np.eye(8)[label] + rng.normal(size=(120, 8)))


@cache
def some_images():
    """Dark and bright images, by features that tell them apart."""
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1], 40)
    images = (40 + 150 * label[:, None, None, None] + rng.integers(0, 30, (80, 12, 10, 1))).astype(np.uint8)
    return nb.cluster(images, 2, features=4.0 * np.eye(8)[label] + rng.normal(size=(80, 8)))
