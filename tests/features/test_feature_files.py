"""Files of image features: the same in each format, in the order of the images, complete or absent."""

import numpy as np
import pandas as pd
import pytest

from neuralbayes.data.columns import written_columns
from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import ArraySource
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.features.feature_files import write_features

SHAPE = (22, 26, 3)


def images(n):
    return np.random.default_rng(n).integers(0, 256, (n, *SHAPE), dtype=np.uint8)


@pytest.fixture
def encoder():
    return ImageEncoder("tiny", SHAPE, Normalization.fit(images(30))).eval()


@pytest.mark.parametrize("block", [4, 1000])
def test_features_are_written_in_the_order_of_the_images(encoder, tmp_path, block):
    source = ArraySource(images(11))
    expected = encoder.features(source, "relu2")
    labels, names = np.arange(11) % 3, [f"picture {i}.png" for i in range(11)]
    for suffix in ("npy", "parquet", "csv"):
        path = tmp_path / f"f.{suffix}"
        shape = write_features(encoder, source, path, state="relu2", labels=labels, names=names, block_size=block)
        assert shape == expected.shape
    np.testing.assert_allclose(np.load(tmp_path / "f.npy"), expected, atol=1e-5)
    frame = pd.read_parquet(tmp_path / "f.parquet")
    assert frame.columns[:4].tolist() == ["index", "path", "label", "f_0"]
    assert frame["index"].tolist() == list(range(11))
    assert frame["path"].tolist() == names
    assert frame["label"].tolist() == labels.tolist()
    np.testing.assert_array_equal(frame.filter(like="f_").to_numpy(), np.load(tmp_path / "f.npy"))
    text = pd.read_csv(tmp_path / "f.csv", dtype=dict.fromkeys(frame.filter(like="f_"), np.float32))
    pd.testing.assert_frame_equal(text, frame, check_exact=True, check_dtype=False)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "f-rows.csv"), text[["index", "path", "label"]])


def test_classes_have_names_beside_their_numbers(encoder, tmp_path):
    for suffix in ("csv", "parquet", "npy"):
        labels = np.array([1, 0, 1])
        path = tmp_path / f"f.{suffix}"
        write_features(encoder, ArraySource(images(3)), path, labels=labels, class_names=("cat", "dog, big"))
    tables = (
        pd.read_csv(tmp_path / "f.csv"),
        pd.read_parquet(tmp_path / "f.parquet"),
        pd.read_csv(tmp_path / "f-rows.csv"),
    )
    for table in tables:
        assert table["class"].tolist() == ["dog, big", "cat", "dog, big"]
        assert set(written_columns(tables[0])) == {"index", "label", "class"}


def test_an_array_alone_has_no_file_beside_it_and_other_formats_are_refused(encoder, tmp_path):
    write_features(encoder, ArraySource(images(3)), tmp_path / "f.npy")
    with pytest.raises(ValueError, match="`path`"):
        write_features(encoder, ArraySource(images(3)), tmp_path / "f.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["f.npy"]
