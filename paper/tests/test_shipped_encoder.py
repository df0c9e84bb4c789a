"""The encoder that ships beside the paper is whole, and gives features of images of its size."""

import hashlib
from pathlib import Path

import numpy as np

import neuralbayes as nb

FOLDER = Path(__file__).parents[1] / "encoder"


def test_the_encoder_is_the_one_of_its_checksum_and_small():
    lines = (FOLDER / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    assert [line.split()[1] for line in lines] == ["encoder.json", "encoder.safetensors"]
    for digest, name in map(str.split, lines):
        content = (FOLDER / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest
        assert len(content) < 20e6


def test_it_gives_features_of_the_images_of_cifar_10():
    images = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3), dtype=np.uint8)
    assert nb.ImageEncoder.load(FOLDER).features(images, "relu2").shape == (2, 3200)
