"""Base class of clusterers that merge states: the state of each sample, the hierarchy, and `cut`."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from neuralbayes.clusters.merging import check_linkage, cut
from neuralbayes.estimators.attributes import Check, array, count
from neuralbayes.estimators.clusterer import Samples
from neuralbayes.estimators.typical_clusterer import TypicalClusterer
from neuralbayes.networks.states import StateNetwork

if TYPE_CHECKING:
    from neuralbayes.clusters.merging import Merging


class MergedClusterer(TypicalClusterer):
    """A clusterer whose `module_` is a :class:`neuralbayes.networks.states.StateNetwork`, with `cut`.

    A subclass passes the network and the merges of its states to `_keep_merged`.
    """

    n_states_: int
    states_: NDArray[np.int64]
    hierarchy_: NDArray[np.float64]

    _fitted: ClassVar[dict[str, Check]] = TypicalClusterer._fitted | {
        "n_states_": count,
        "states_": array("i", 1),
        "hierarchy_": array("f", 2),
    }

    def cut(self, k: int) -> NDArray[np.int64]:
        """Return labels of the fitted samples for another number of clusters, without a new fit.

        Parameters
        ----------
        k : int
            Number of clusters, from 1 to `n_states_`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from 0, numbered from the largest cluster to the smallest. There are fewer than `k` clusters if some
            states have no samples. Clusters of a larger `k` lie within those of a smaller one. ``cut(n_clusters_)``
            returns `labels_`. Other clusters merge fewer or more of the same states and are not trained. After
            `update`, the labels belong to the new samples.
        """
        check_is_fitted(self)
        if not isinstance(k, Integral) or isinstance(k, bool) or not 1 <= k <= self.n_states_:
            raise ValueError(f"`k` must be a whole number from 1 to n_states_={self.n_states_}, got {k!r}")
        if k == self.n_clusters_:
            return self.labels_.copy()
        clusters = cut(self.hierarchy_, int(k))[self.states_]
        largest_first = np.argsort(-np.bincount(clusters, minlength=int(k)), kind="stable")
        return np.argsort(largest_first)[clusters]

    def _keep_merged(
        self,
        network: StateNetwork,
        merging: Merging,
        samples: Samples,
        verbose: bool,
        *,
        weight: NDArray[np.float64] | None,
        named: NDArray[np.int64],
    ) -> NDArray[np.intp]:
        """Label the samples as `_keep` does, and keep their states and the hierarchy of states."""
        membership = network.membership
        best: list[Tensor] = []  # state of each sample within its most probable cluster, per block

        def note(_: nn.Module, x: object, logits: Tensor) -> None:
            logits = logits.cpu()
            if len(membership) == membership.shape[1]:  # each state is a cluster
                best.append(logits.argmax(dim=1))
            else:
                best.append(most_probable_states(logits.double().softmax(dim=1), membership.double()))

        with network.network.register_forward_hook(note):
            order = self._keep(network, samples, verbose, weight=weight, named=named)
        network.membership = membership[:, torch.from_numpy(order)]
        self.n_states_ = len(membership)
        self.states_ = torch.cat(best).numpy()
        self._keep_hierarchy(merging)
        return order

    def _keep_hierarchy(self, merging: Merging) -> None:
        self.hierarchy_ = merging.linkage

    def _check_fitted(self, weights: Mapping[str, Tensor]) -> None:
        super()._check_fitted(weights)
        check_linkage(self.hierarchy_)
        if len(self.hierarchy_) != self.n_states_ - 1:
            raise ValueError(f"'hierarchy_' must merge {self.n_states_} states")
        if len(self.states_) != len(self.labels_) or not ((self.states_ >= 0) & (self.states_ < self.n_states_)).all():
            raise ValueError(f"'states_' must be from 0 to {self.n_states_ - 1}, one for each of 'labels_'")


def most_probable_states(p_zx: Tensor, membership: Tensor) -> Tensor:
    """The most probable state of each sample within its most probable cluster: (n, n_states) -> (n,)."""
    own = membership.T[(p_zx @ membership).argmax(dim=1)]
    return torch.where(own > 0, p_zx, -1.0).argmax(dim=1)
