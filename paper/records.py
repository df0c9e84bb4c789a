"""Results as small JSON files, one per experiment and scale: settings and values of every run, and the command."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from neuralbayes.system.files import atomic_write, json_hash, read_json
from paper import NAMES, load_experiment
from paper.experiment import SCALES, Record, Run, Scale


@dataclass(frozen=True)
class Recorded:
    """The finished runs of an experiment at one scale.

    Attributes
    ----------
    experiment : str
    scale : {"smoke", "laptop", "paper"}
    command : str
        The command that repeats the runs.
    n_runs : int
        Number of runs in the experiment.
    records : list of Record
        The finished runs.
    """

    experiment: str
    scale: Scale
    command: str
    n_runs: int
    records: list[Record]

    @classmethod
    def collect(cls, experiment: str, scale: Scale, command: str, runs: Iterable[Run], out: Path) -> Recorded:
        """Collect the finished runs in the folder `out`."""
        every = list(runs)
        return cls(experiment, scale, command, len(every), [Record.of(run, out) for run in every if run.finished(out)])

    def path(self, folder: Path) -> Path:
        """Path of the file below a folder of results."""
        return folder / self.experiment / f"{self.scale}.json"

    def write(self, folder: Path) -> Path:
        """Write the file, one line per run."""
        head = {name: value for name, value in asdict(self).items() if name != "records"}
        lines = ",\n".join("    " + json.dumps(asdict(record), allow_nan=False) for record in self.records)
        path = self.path(folder)
        with atomic_write(path) as temporary:
            temporary.write_text(f'{json.dumps(head, indent=2)[:-2]},\n  "records": [\n{lines}\n  ]\n}}\n', "utf-8")
        return path

    @classmethod
    def read(cls, path: Path) -> Recorded:
        """Read a file that :meth:`write` wrote."""
        content: Any = read_json(path)
        try:
            records = [Record(**record) for record in content.pop("records")]
            return cls(**content, records=records)
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"{path} does not hold the results of an experiment ({error!r})") from error


def read_results(folder: Path) -> dict[str, list[Recorded]]:
    """The results in a folder by experiment, at the largest scale that was run.

    An experiment that tells sizes apart also gets those of smaller scales, except "smoke".
    """
    found = {}
    for name in NAMES:
        paths = {scale: path for scale in SCALES if (path := folder / name / f"{scale}.json").is_file()}
        if paths:
            together = [scale for scale in paths if scale != "smoke"] if load_experiment(name).tells_sizes_apart else []
            found[name] = [Recorded.read(paths[scale]) for scale in together or list(paths)[-1:]]
    if not found:
        raise FileNotFoundError(f"{folder} holds no results; `neuralbayes reproduce NAME --record {folder}` makes some")
    return found


def all_records(recorded: Iterable[Recorded]) -> list[Record]:
    """The records of several scales; a run that belongs to two of them counts once."""
    every = [record for one in recorded for record in one.records]
    return list({json_hash(record.settings): record for record in every}.values())


def restore_results(folder: Path, scale: Scale, runs: Iterable[Run], out: Path) -> None:
    """Copy recorded results to the folders of their runs below `out`, so that these count as finished.

    Parameters
    ----------
    folder : Path
        Holds the files that :meth:`Recorded.write` wrote, if any.
    scale : {"smoke", "laptop", "paper"}
    runs : iterable of Run
        Other recorded runs are ignored.
    out : Path
    """
    by_key = {run.key: run for run in runs}
    for name in NAMES:
        path = folder / name / f"{scale}.json"
        for record in Recorded.read(path).records if path.is_file() else ():
            run = by_key.get(json_hash(record.settings))
            if run is not None:
                record.store(run, out)


def seeds_of(folder: Path, name: str, scale: Scale, seeds: int | None) -> int | None:
    """The number of seeds of a record: the one asked for, or more if the record in `folder` already has more."""
    path = folder / name / f"{scale}.json"
    records = Recorded.read(path).records if path.is_file() else []
    if not records:
        return seeds
    known = {json_hash(record.settings) for record in records}
    most: int = 1 + max(record.settings["seed"] for record in records)
    runs = load_experiment(name).runs
    choices: tuple[int | None, ...] = (seeds, None, most)
    return max(choices, key=lambda n: len(known & {run.key for run in runs(scale, n)}))
