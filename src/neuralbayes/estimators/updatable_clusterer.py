"""Base class of clusterers that can be updated with new samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from neuralbayes import clusters
from neuralbayes.clusters.reservoir import MAX_RESERVOIR, mixed_reservoir
from neuralbayes.clusters.typicality import Typicality, split_rows
from neuralbayes.estimators.attributes import Check, array, count
from neuralbayes.estimators.clusterer import Samples, tensor_of
from neuralbayes.estimators.inputs import Rows
from neuralbayes.estimators.merged_clusterer import MergedClusterer, most_probable_states
from neuralbayes.system.devices import on_own_device
from neuralbayes.training.inference import in_blocks


class UpdatableClusterer(MergedClusterer):
    """A clusterer of states with `update`.

    A subclass calls `_keep_reservoir` after fitting.
    """

    reservoir_: NDArray[np.float32]
    n_samples_seen_: int

    _fitted: ClassVar[dict[str, Check]] = MergedClusterer._fitted | {
        "n_iter_start_": count,
        "n_samples_seen_": count,
    }
    _fitted_sometimes: ClassVar[dict[str, Check]] = MergedClusterer._fitted_sometimes | {"reservoir_": array("f", 2)}

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @on_own_device
    def update(self, X: Rows) -> Self:
        """Continue training with new samples, which may move the clusters and form new ones.

        Old labels keep their numbers and their meaning: the network is trained to keep its p(z|x) on `reservoir_`, a
        random sample of all samples it has seen. At least ten new samples can form a new cluster. They must be
        atypical, or lie among far more new samples than chance would suggest. And a valley of low density must separate
        them from the old clusters, unless they have hardly any old neighbours. A new cluster gets the number
        `n_clusters_`, which grows up to `max_clusters` (200).

        Parameters
        ----------
        X : as in `fit`
            New samples. Old samples need not be included.

        Returns
        -------
        self
            As after `fit`, except that `labels_` and `states_` refer to `X`, and the loss and the number of steps to
            the update. `prior_` and `typicality` refer to all samples so far.

        Notes
        -----
        `update` requires ``network="mlp"``. It also works on a model that was saved and loaded.
        """
        check_is_fitted(self)
        if not hasattr(self, "reservoir_"):
            raise ValueError(
                "`update` needs `network='mlp'`: samples for a network of your own are not kept. Fit all of them again"
            )
        samples = self._samples(X)
        rng = check_random_state(self.random_state)
        old, new = self.reservoir_, self._inputs(samples)
        groups = clusters.find_new_groups(
            old,
            self._clusters_of(old).argmax(axis=1),
            new,
            self._clusters_of(new).argmax(axis=1),
            self._typicality(samples),
            len(self.typical_scores_),
            at_most=max(0, (self.max_clusters or 200) - self.n_clusters_),
        )
        found = clusters.update_clusters(
            self.module_,
            old,
            new,
            groups,
            max_iter=self.max_iter,
            n_neighbors=self.n_neighbors,
            n_hidden=self.n_hidden_,
            objective=self.objective,
            rng=rng,
            verbose=bool(self.verbose),
        )
        self.module_ = found.network
        self.n_states_, self.n_clusters_ = found.network.membership.shape
        p_old, p_new = self._clusters_of(old), self._over_blocks(lambda logits: logits.softmax(dim=1), samples)
        self.labels_ = p_new.argmax(axis=1)
        self.states_ = self._states_of(new)
        n_seen = self.n_samples_seen_
        means = [p.mean(axis=0, dtype=np.float64) for p in (p_old, p_new)]
        self.prior_ = np.average(means, axis=0, weights=[n_seen, len(new)])
        self._keep_hierarchy(found.merging)
        self.separation_ = found.separation
        self.objective_, self.loss_curve_ = found.trained.objective, found.trained.loss_curve
        self.n_iter_, self.n_iter_start_ = found.trained.n_iter, found.trained.n_iter_start
        self.reservoir_ = mixed_reservoir(old, n_seen, new, rng)
        self.n_samples_seen_ = n_seen + len(new)
        coordinates = self.typical_parts()[1]
        reference, calibration = split_rows(np.ones(len(self.reservoir_), bool), rng)
        points = coordinates.of_inputs(self.reservoir_)
        self._keep_typicality(coordinates, Typicality.fit(points[reference], points[calibration]))
        self._keep_typical(samples)
        return self

    def _keep_reservoir(
        self,
        samples: Samples,
        fitted: NDArray[np.int64],
        weight: NDArray[np.float64] | None,
        rng: np.random.RandomState,
    ) -> None:
        """Keep a random sample of the fitted data, with its weights, in the coordinates of the network."""
        self.n_samples_seen_ = len(fitted)
        if self.module_.basis.ndim == 2:
            share = None if weight is None else weight[fitted] / weight[fitted].sum()
            drawn = rng.choice(fitted, min(len(fitted), MAX_RESERVOIR), replace=False, p=share)
            self.reservoir_ = self._inputs(samples, np.sort(drawn))

    def _inputs(self, samples: Samples, rows: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
        """Samples in the coordinates of the network."""
        chosen = np.arange(len(samples)) if rows is None else rows
        inputs: NDArray[np.float32] = in_blocks(
            lambda block: self.module_.normalize(tensor_of(samples, chosen[block])), len(chosen), block=self._block
        )
        return inputs

    def _state_logits(self, inputs: NDArray[np.float32]) -> Tensor:
        return torch.from_numpy(
            in_blocks(lambda rows: self.module_.network(torch.from_numpy(inputs[rows])), len(inputs), block=self._block)
        )

    def _clusters_of(self, inputs: NDArray[np.float32]) -> NDArray[Any]:
        """p(z|x) from the coordinates of the network: (n, n_clusters_)."""
        p_zx: NDArray[Any] = (self._state_logits(inputs).softmax(dim=1) @ self.module_.membership).numpy()
        return p_zx

    def _states_of(self, inputs: NDArray[np.float32]) -> NDArray[np.int64]:
        """The most probable state of each sample within its cluster."""
        p_zx = self._state_logits(inputs).double().softmax(dim=1)
        return most_probable_states(p_zx, self.module_.membership.double()).numpy()

    def _check_fitted(self, weights: Mapping[str, Tensor]) -> None:
        super()._check_fitted(weights)
        reservoir = getattr(self, "reservoir_", None)
        if reservoir is not None and (
            reservoir.shape[1] != self.n_dimensions_ or not 0 < len(reservoir) <= MAX_RESERVOIR
        ):
            raise ValueError(f"'reservoir_' must have {self.n_dimensions_} columns and at most {MAX_RESERVOIR} rows")
