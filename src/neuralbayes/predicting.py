"""Label new data by saved clusterings, and Parquet files that need not fit into memory, with Dask."""

from __future__ import annotations

import re
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

PUBLIC = re.compile(r"(wordllama|efficientnet-lite0|pixels|(timm|sentence-transformers):([\w.-]+(/[\w.-]+)?))")
"""Features that are neither code nor a file of this machine."""

PART_BYTES = "128MiB"
"""Size of a partition. Smaller files are read together, larger ones by row groups."""


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
        A folder, which must not exist. It holds a file for each partition, with the columns of the input and the
        cluster, its name, its probability and, where the model has one, its typicality.
    reject : float, optional
        Label samples of at most this typicality -1.
    features : str, optional
        Features of a column of texts, if the model does not name a public network.
    scheduler : str, optional
        Address of a Dask scheduler, such as "tcp://192.168.0.1:8786". By default, one process for each core.

    Returns
    -------
    int
        The number of rows.

    Notes
    -----
    Each row is labelled on its own, so the result is that of one process. If a worker dies, Dask gives its partitions
    to another one. The folder appears when it is complete.
    """
    try:
        import dask.dataframe as dd
    except ImportError as error:
        raise ImportError(
            "Parquet folders are labelled with Dask, which is not installed: pip install 'neuralbayes[cluster]'"
        ) from error
    out, model = Path(out), str(Path(model_folder).absolute())
    if out.exists():
        raise FileExistsError(f"`out` must be a folder that does not exist, got {out}")
    frame = source
    if isinstance(source, str | Path):  # Arrow's types keep whole numbers with missing cells
        frame = dd.read_parquet(
            str(source), engine="pyarrow", dtype_backend="pyarrow", blocksize=PART_BYTES, aggregate_files=True
        )
    first = frame.head(20, npartitions=-1)
    if not len(first):
        raise ValueError(f"`source` must have rows, got none in {source}")
    options = {"model": model, "reject": reject, "features": features}
    labelled = frame.map_partitions(label_part, meta=label_part(first, **options).iloc[:0], **options)
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    temporary.chmod(0o755)
    try:
        with _workers(scheduler, frame.npartitions):
            labelled.to_parquet(str(temporary), engine="pyarrow", write_index=False)
        temporary.rename(out)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(path).num_rows for path in out.glob("*.parquet"))


def label_part(part: pd.DataFrame, *, model: str, reject: float | None, features: Any) -> pd.DataFrame:
    """A partition with the columns of :meth:`neuralbayes.Clustering.table`; its own cells stay as they are."""
    import pandas as pd
    import pyarrow as pa

    if not len(part):
        return part
    plain = pa.Table.from_pandas(part, preserve_index=False).to_pandas()  # as one process reads it
    found = open_model(model, features).on(plain, reject=reject).table()
    new = [name for name in found if name not in part.columns]
    added = found[new].set_axis(part.index)
    return pd.concat([part[[name for name in part if name in found]], added], axis=1)


@lru_cache(maxsize=2)
def open_model(folder: str | Path, features: Any = None) -> Clustering:
    """Load a clustering for new data.

    A model may come from a stranger. What it says about features is only used if it is a public network; code and files
    must be given again as `features`.
    """
    from neuralbayes.clustering import Clustering, load

    found = load(folder)
    if not isinstance(found, Clustering):
        raise ValueError(f"{folder} was saved by an estimator, which does not say how data are read: use nb.load")
    recipe = found.points.recipe
    recorded = str(recipe.get("features") or "pixels")
    public = PUBLIC.fullmatch(recorded)
    if features is None and (public is None or (public[3] and Path(public[3]).expanduser().exists())):
        raise ValueError(f"`features` must be given again for {folder}, which names code or a file: {recorded}")
    if features is not None:
        recipe["features"] = features
    return found


@contextmanager
def _workers(scheduler: str | None, n_parts: int) -> Iterator[None]:
    """Workers of a scheduler, or one process for each core; one partition needs none."""
    if scheduler is None and n_parts == 1:
        yield
        return
    import joblib  # type: ignore[import-untyped]
    from distributed import Client, LocalCluster

    if scheduler is not None:
        with Client(scheduler, timeout="10s"):
            yield
        return
    n_workers = min(n_parts, joblib.cpu_count())
    with LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        yield
