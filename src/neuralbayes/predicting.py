"""Label Parquet files that need not fit into memory, on the cores of this machine or on a cluster, with Dask."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from neuralbayes.clustering import Clustering


def predict_parquet(
    model_folder: str | Path,
    source: Any,
    out: str | Path,
    *,
    reject: float | None = None,
    features: Any = None,
    scheduler: str | None = None,
) -> int:
    """Label a folder of Parquet files, or a Dask data frame, with a saved clustering.

    Parameters
    ----------
    model_folder : path
        What :meth:`neuralbayes.Clustering.save` wrote; workers must be able to read it.
    source : path or dask.dataframe.DataFrame
    out : path
        A new folder, with a file for each partition and the columns of :meth:`neuralbayes.Clustering.table`.
    reject, features
        As for :meth:`neuralbayes.Clustering.on`.
    scheduler : str, optional
        Address of a Dask scheduler, such as "tcp://192.168.0.1:8786". By default, one process for each core.

    Returns
    -------
    int
        The number of rows.

    Notes
    -----
    The result is that of one process. If a worker dies, Dask gives its partitions to another one. The folder appears
    when it is complete.
    """
    try:
        import dask.dataframe as dd
    except ImportError as error:
        raise ImportError("Parquet folders are labelled with Dask: pip install 'neuralbayes[cluster]'") from error
    import pyarrow.parquet as pq

    out, frame = Path(out), source
    if out.exists():
        raise FileExistsError(f"`out` must be a folder that does not exist, got {out}")
    if isinstance(source, str | Path):  # with Arrow's types, which keep whole numbers with missing cells
        frame = dd.read_parquet(str(source), engine="pyarrow", dtype_backend="pyarrow", blocksize="128MiB")
    first = frame.head(20, npartitions=-1)
    if not len(first):
        raise ValueError(f"`source` must have rows, got none in {source}")
    options = {"model": str(Path(model_folder).absolute()), "reject": reject, "features": features}
    empty = label_part(first, **options).iloc[:0]
    labelled = frame.map_partitions(label_part, meta=empty, empty=empty, **options)
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    try:
        temporary.chmod(0o755)
        with _workers(scheduler, frame.npartitions):
            labelled.to_parquet(str(temporary), write_index=False, name_function="{:06d}.parquet".format)
        temporary.rename(out)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return sum(pq.read_metadata(path).num_rows for path in out.glob("*.parquet"))


def label_part(
    part: pd.DataFrame, *, model: str, reject: float | None, features: Any, empty: pd.DataFrame | None = None
) -> pd.DataFrame:
    """A partition, or the `empty` one, with the columns of `Clustering.table`; its own cells keep their types."""
    import pandas as pd
    import pyarrow as pa

    if not len(part) and empty is not None:
        return empty
    plain = pa.Table.from_pandas(part, preserve_index=False).to_pandas()  # as one process reads it
    found = _model(model).on(plain, reject=reject, features=features).table()
    added = found[[name for name in found if name not in part]].set_axis(part.index)
    return pd.concat([part[[name for name in part if name in found]], added], axis=1)


@lru_cache(maxsize=1)
def _model(folder: str) -> Clustering:
    from neuralbayes.loading import load

    return load(folder)  # type: ignore[no-any-return]


@contextmanager
def _workers(scheduler: str | None, n_parts: int) -> Iterator[None]:
    """Workers of a scheduler, or a process for each core; a single partition needs none."""
    import joblib  # type: ignore[import-untyped]
    from distributed import Client, LocalCluster

    if scheduler is not None:
        with Client(scheduler, timeout="10s"):
            yield
    elif n_parts == 1:
        yield
    else:
        options = {"n_workers": min(n_parts, joblib.cpu_count()), "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(**options) as cluster, Client(cluster):
            yield
