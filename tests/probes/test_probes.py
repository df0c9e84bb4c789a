"""Probes of two parts: heads, protocols, and caching."""

import json

import numpy as np
import pytest
import torch

from neuralbayes.data.dataset import Split
from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import ArraySource, Images
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.probes import PAPER_IMAGES, ProbeResult, random_encoder
from neuralbayes.probes.heads import Part, Scaler, nearest_neighbors
from neuralbayes.probes.protocol import probe_parts

SHAPE = (22, 22, 1)


def rows(n, seed=0, noise=0.7, n_classes=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    centers = np.random.default_rng(99).normal(size=(n_classes, 6))
    return (centers[y] * 2 + noise * rng.normal(size=(n, 6))).astype(np.float32), y


def pictures(n, seed=0):
    """Make pictures that are bright on the left or on the right."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    x = rng.integers(0, 100, (n, *SHAPE), dtype=np.uint8)
    for image, label in zip(x, y, strict=True):
        image[:, :11] += np.uint8(100 * (label == 0))
        image[:, 11:] += np.uint8(100 * (label == 1))
    return x, y


@pytest.fixture
def encoder():
    return ImageEncoder("tiny", SHAPE, Normalization.fit(pictures(20)[0])).eval()


class Counting(ArraySource):
    """Count the requests for images."""

    reads = 0

    def read(self, indices):
        self.reads += 1
        return super().read(indices)


@pytest.mark.parametrize("head", ["linear", "mlp", "knn"])
@pytest.mark.parametrize("protocol", ["validation", "paper"])
def test_classes_that_are_apart_are_told_apart(head, protocol):
    result = probe_parts(rows(300), rows(200, seed=1), head=head, protocol=protocol, max_epochs=100)
    assert result.mean > 0.9
    assert (result.head, result.protocol) == (head, protocol)
    assert len(result.accuracies) == len(result.epochs) == (1 if head == "knn" else 3)


def test_features_without_information_give_chance():
    x, y = rows(600)
    result = probe_parts((x, y), (rows(300, seed=5)[0], rows(300, seed=6)[1]), head="linear", max_epochs=5)
    assert abs(result.mean - 1 / 3) < 0.12


@pytest.mark.parametrize("head", ["linear", "mlp", "knn"])
@pytest.mark.parametrize(("protocol", "n_test"), [("validation", 200), ("paper", PAPER_IMAGES)])
def test_the_confusion_matrix_is_of_the_judged_images_of_all_seeds(head, protocol, n_test):
    test = rows(200, seed=1, noise=3.0)
    result = probe_parts(rows(300, noise=3.0), test, head=head, protocol=protocol, max_epochs=3)
    confusion = np.array(result.confusion)
    assert result.n_test == n_test
    assert confusion.sum() == n_test * len(result.accuracies)
    assert np.trace(confusion) / confusion.sum() == pytest.approx(result.mean)
    assert (confusion.sum(axis=1) == len(result.accuracies) * np.bincount(test[1][:n_test], minlength=3)).all()


def test_the_papers_protocol_looks_at_the_first_128_test_images_only():
    x, y = rows(400, seed=1)
    spoilt = x.copy()
    spoilt[PAPER_IMAGES:] = np.random.default_rng(0).normal(size=spoilt[PAPER_IMAGES:].shape)
    kept = [probe_parts(rows(300), (t, y), protocol="paper", max_epochs=4, seeds=1) for t in (x, spoilt)]
    assert kept[0].accuracies == kept[1].accuracies
    honest = [probe_parts(rows(300), (t, y), max_epochs=4, seeds=1) for t in (x, spoilt)]
    assert honest[0].mean > honest[1].mean + 0.2


def test_the_papers_figure_is_the_best_epoch_on_the_images_it_is_judged_on():
    train, test = rows(200, noise=6.0), rows(128, seed=1, noise=6.0)
    best = probe_parts(train, test, protocol="paper", max_epochs=15, seeds=1)
    early = probe_parts(train, test, protocol="paper", max_epochs=best.epochs[0], seeds=1)
    assert early.accuracies == best.accuracies
    assert 1 <= best.epochs[0] <= 15


def test_curves_are_of_the_images_that_choose_the_epoch():
    train, test = rows(300, noise=4.0), rows(200, seed=1, noise=4.0)
    paper = probe_parts(train, test, protocol="paper", max_epochs=6, seeds=2)
    assert [len(curve) for curve in paper.curves] == [6, 6]
    assert tuple(max(curve) for curve in paper.curves) == paper.accuracies
    honest = probe_parts(train, test, max_epochs=6, seeds=1)
    validation = [share * 30 for share in honest.curves[0]]  # a tenth of 300 images
    np.testing.assert_allclose(validation, np.round(validation), atol=1e-9)
    assert honest.curves[0][honest.epochs[0] - 1] == max(honest.curves[0])
    assert probe_parts(train, test, head="knn").curves == ((),)


def test_no_test_image_takes_part_in_training_or_in_choosing_the_epoch():
    """Under the validation protocol, the classifier does not depend on the test images."""
    x, y = rows(200, seed=1, noise=2.0)
    for head in ("linear", "mlp"):
        whole = probe_parts(rows(300), (x, y), head=head, max_epochs=6, seeds=2)
        halves = [
            probe_parts(rows(300), (x[s], y[s]), head=head, max_epochs=6, seeds=2)
            for s in (slice(100), slice(100, 200))
        ]
        assert halves[0].epochs == halves[1].epochs == whole.epochs
        both = np.mean([half.accuracies for half in halves], axis=0)
        np.testing.assert_allclose(both, whole.accuracies)


def test_training_ends_after_epochs_without_improvement():
    result = probe_parts(rows(300, noise=0.01), rows(50, noise=0.01), head="linear", max_epochs=10_000, seeds=1)
    assert result.epochs[0] < 500


def test_seeds_differ_and_are_the_same_again():
    train, test = rows(200, noise=4.0), rows(400, seed=1, noise=4.0)
    first, again = (probe_parts(train, test, max_epochs=5) for _ in range(2))
    assert first.accuracies == again.accuracies
    assert len(set(first.accuracies)) > 1
    assert first.std > 0
    assert probe_parts(train, test, max_epochs=5, seeds=1).std == 0


def test_global_random_numbers_are_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    probe_parts(rows(100), rows(50), max_epochs=2)
    assert torch.equal(torch.rand(1), expected)


def test_a_constant_and_a_huge_feature_do_no_harm():
    (x, y), (tx, ty) = rows(300), rows(200, seed=1)
    widened = [np.column_stack([a, np.full(len(a), 7.0), 1e6 * a[:, :1]]) for a in (x, tx)]
    assert probe_parts((widened[0], y), (widened[1], ty), head="linear", seeds=1).mean > 0.9


def test_the_scaler_is_that_of_all_rows_at_once():
    x = torch.randn(5000, 4) * torch.tensor([1.0, 3.0, 0.5, 0.0]) + torch.tensor([100.0, 0.0, -5.0, 2.0])
    scaled = Scaler.fit(x)(x.clone())
    torch.testing.assert_close(scaled.mean(0), torch.zeros(4), atol=1e-4, rtol=0)
    torch.testing.assert_close(scaled.std(0, correction=0), torch.tensor([1.0, 1, 1, 0]), atol=1e-4, rtol=0)


def test_nearest_neighbours_in_blocks_are_those_of_a_slow_loop():
    x, y = (torch.from_numpy(a) for a in rows(100, noise=3.0))
    tx, ty = (torch.from_numpy(a) for a in rows(30, seed=1, noise=3.0))
    scaler = Scaler(torch.zeros(6), torch.ones(6))
    found = nearest_neighbors(Part(x, y, torch.arange(100)), Part(tx, ty, torch.arange(30)), scaler, 3, k=5, block=7)
    for row, predicted in zip(tx, found, strict=True):
        cosine = (x @ row) / (x.norm(dim=1) * row.norm())
        near = cosine.argsort(descending=True)[:5]
        counts = torch.bincount(y[near], minlength=3)
        best = [k for k in range(3) if counts[k] == counts.max()]
        assert predicted == max(best, key=lambda k: float(cosine[near][y[near] == k].sum()))


def test_the_result_is_json():
    result = probe_parts(rows(100), rows(50), head="knn")
    again = json.loads(json.dumps(result.to_dict()))
    assert again["mean"] == result.mean
    assert again["confusion"] == [list(row) for row in result.confusion]
    assert isinstance(result, ProbeResult)


def test_pixels_are_probed_without_an_encoder_and_every_kind_of_data_gives_the_same():
    train, test = pictures(80), pictures(40, seed=1)
    expected = probe_parts(train, test, head="knn")
    assert expected.mean > 0.9
    assert expected.n_features == 22 * 22
    splits = [Split(x, y) for x, y in (train, test)]
    images = [Images("p", "train", ArraySource(x), y) for x, y in (train, test)]
    for pair in (splits, images):
        assert probe_parts(*pair, head="knn").confusion == expected.confusion


def test_features_of_an_encoder_are_computed_once(encoder, tmp_path):
    sources = [Counting(x) for x in (pictures(60)[0], pictures(30, seed=1)[0])]
    train, test = (
        Images("my/data", split, source, labels)
        for split, source, labels in zip(
            ("train", "test"), sources, (pictures(60)[1], pictures(30, seed=1)[1]), strict=True
        )
    )
    first = probe_parts(train, test, encoder=encoder, head="knn", cache=tmp_path)
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".json", ".json", ".npy", ".npy"]
    assert {p.name.rsplit("-", 1)[0] for p in tmp_path.iterdir()} == {"data-train-relu4", "data-test-relu4"}

    before, encoder.features = encoder.features, None  # a call would fail
    again = probe_parts(train, test, encoder=encoder, head="knn", cache=tmp_path)
    encoder.features = before
    assert (again.confusion, again.feature_seconds) == (first.confusion, pytest.approx(first.feature_seconds, abs=0.01))
    assert first.confusion == probe_parts(train, test, encoder=encoder, head="knn").confusion


@pytest.mark.parametrize("change", ["weights", "images", "state", "normalization"])
def test_kept_features_are_not_taken_for_those_of_something_else(encoder, tmp_path, change):
    train, test = pictures(40), pictures(20, seed=1)
    probe_parts(train, test, encoder=encoder, head="knn", cache=tmp_path)
    state = "relu4"
    if change == "weights":
        with torch.no_grad():
            encoder.network.norm2.running_mean[0] += 0.5
    elif change == "images":
        train[0][17, 3, 3, 0] ^= 1
    elif change == "normalization":
        old = encoder.normalization
        encoder.normalization = Normalization(old.per, old.mean, old.std * 2)
    else:
        state = "relu2"
    before = len(list(tmp_path.glob("*.npy")))
    found = probe_parts(train, test, encoder=encoder, state=state, head="knn", cache=tmp_path)
    assert len(list(tmp_path.glob("*.npy"))) == before + (1 if change == "images" else 2)
    assert found.confusion == probe_parts(train, test, encoder=encoder, state=state, head="knn").confusion


def test_damaged_kept_features_are_computed_again(encoder, tmp_path):
    train, test = pictures(40), pictures(20, seed=1)
    first = probe_parts(train, test, encoder=encoder, head="knn", cache=tmp_path)
    arrays = sorted(tmp_path.glob("*.npy"))
    whole = [path.read_bytes() for path in arrays]
    arrays[0].write_bytes(whole[0][:100])
    arrays[1].write_bytes(b"")
    assert probe_parts(train, test, encoder=encoder, head="knn", cache=tmp_path).confusion == first.confusion
    assert [path.read_bytes() for path in arrays] == whole


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"head": "tree"}, "`head` must be one of linear, mlp, knn, got 'tree'"),
        ({"protocol": "best"}, "`protocol` must be one of validation, paper, got 'best'"),
        ({"seeds": 0}, "`seeds` must be at least 1, got 0"),
        ({"max_epochs": 0}, "`max_epochs` must be at least 1"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        probe_parts(rows(20), rows(10), **settings)


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        ((np.ones((4, 2)), np.array([0, 1, 0])), None, "labels of `train` must be 4 integers"),
        ((np.ones((4, 2)), np.array([0, 1, 0, -1])), None, "labels of `train` must be"),
        ((np.ones((4, 2)), np.ones(4)), None, "labels of `train` must be 4 integers from 0, got float64"),
        (None, (np.ones((4, 5)), np.zeros(4, int)), "`test` must have 6 features"),
        (None, (np.full((4, 6), np.nan), np.zeros(4, int)), "features of `test` must be finite"),
        (None, (np.ones((4, 6)), None), "`test` must have labels"),
        ((np.ones((1, 6)), np.zeros(1, int)), None, "`train` must have at least 2 rows"),
    ],
)
def test_data_that_cannot_be_probed_are_refused(train, test, message):
    with pytest.raises(ValueError, match=message):
        probe_parts(train or rows(20), test or rows(10))
    with pytest.raises(TypeError, match="`train` must be images with labels"):
        probe_parts([1, 2], rows(10))


def test_features_and_an_encoder_contradict_each_other(encoder):
    with pytest.raises(ValueError, match="`train` must be images if an encoder is given"):
        probe_parts(rows(20), rows(10), encoder=encoder)


def test_a_random_encoder_has_the_shape_of_another_and_statistics_of_the_images(encoder):
    source = ArraySource(pictures(200)[0])
    random = random_encoder(encoder, source, seed=4)
    assert (random.size, random.shape) == (encoder.size, encoder.shape)
    assert not random.training
    with torch.no_grad():
        outputs = random.network.norm1(random.network.conv1(random.prepare(source.read(np.arange(200)))))
    torch.testing.assert_close(outputs.mean(dim=(0, 2, 3)), torch.zeros(16), atol=0.02, rtol=0)
    torch.testing.assert_close(outputs.std(dim=(0, 2, 3)), torch.ones(16), atol=0.05, rtol=0)
    assert all(norm.momentum == 0.1 for norm in random.modules() if isinstance(norm, torch.nn.BatchNorm2d))


def test_a_random_encoder_is_decided_by_its_seed_and_starts_where_pretraining_does(encoder):
    from neuralbayes.features.pretraining import PretrainConfig, pretrain

    x = pictures(32)[0]
    again, first, other = (random_encoder(encoder, x, seed=s).network.state_dict() for s in (4, 4, 5))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["conv1.weight"], other["conv1.weight"])
    barely = PretrainConfig(encoder="tiny", epochs=1, batch_size=32, microbatch_size=32, learning_rate=1e-12, seed=4)
    trained = pretrain(x, barely)
    torch.testing.assert_close(trained.network.state_dict()["conv4.weight"], first["conv4.weight"])


def test_a_random_encoder_refuses_other_images(encoder):
    with pytest.raises(ValueError, match="must have the shape"):
        random_encoder(encoder, np.zeros((4, 30, 30, 1), np.uint8))
