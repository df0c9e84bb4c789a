"""Tables of docs/guarantees.md, made from results/guarantees/*.json."""

from __future__ import annotations

from pathlib import Path

from pages import read_result, table


def crashes_table() -> str:
    """Table of a run that is killed repeatedly."""
    result = read_result("guarantees/crashes.json")
    moments = {
        "at random": "at a random moment",
        "fsync": "before data are forced to the disk",
        "replace": "before a file gets its name",
        "after replace": "right after a file got its name",
        "unlink": "before an old checkpoint is deleted",
    }
    rows = [[moments[where], n] for where, n in sorted(result["where"].items(), key=lambda item: -item[1])]
    same = "the same, bit for bit" if result["same_weights"] else "DIFFERENT"
    lines = "the same, byte for byte" if result["same_metrics"] else "DIFFERENT"
    rows += [["final weights", same], ["metrics.jsonl", lines], ["left behind", len(result["left_behind"])]]
    return table(["killed", f"of {result['kills']} times"], rows) + "\n"


def disks_table() -> str:
    """Table of the behaviour of each command on a full and on a read-only disk."""
    rows = [
        [
            f"`{row['command']}`",
            *(", ".join(row[trouble]["wrong"]) or "error, nothing lost" for trouble in ("full", "read-only")),
            "succeeds" if row["goes_on"] else "FAILS",
        ]
        for row in read_result("guarantees/disks.json")["writers"]
    ]
    return table(["command", "full", "read-only", "with free space"], rows, left=4) + "\n"


def soak_table() -> str:
    """Table of a mix of commands under disturbances."""
    result = read_result("guarantees/soak.json")
    words = {
        "nothing": "left alone",
        "killed": "killed at a random moment",
        "killed while writing": "killed while a file is written",
        "interrupted": "SIGINT or SIGTERM",
        "full disk": "a full disk",
        "short files": "no file longer than 100 bytes to 1 MB",
        "bad file": "a damaged input",
    }
    rows = [[words[fault], n["rounds"], n["ended by it"]] for fault, n in result["faults"].items()]
    lost = len(result["wrong"])
    rows += [["files lost, changed or truncated, errors without a message", lost, ""]]
    head = f"{result['commands']} commands in {result['minutes']:.0f} minutes"
    return table([head, "times", "command ended"], rows) + "\n"


def fuzz_table() -> str:
    """Table of mutated files, for every reader."""
    rows = [
        [
            row["reader"],
            f"{row['inputs']:,}",
            f"{row['read'] / row['inputs']:.1%}",
            row["branches"],
            f"{row['slowest_ms']} ms",
            f"{row['peak_megabytes']} MB",
        ]
        for row in read_result("guarantees/fuzz.json")["readers"]
    ]
    return table(["reader", "files", "read", "branches reached", "slowest", "most memory"], rows) + "\n"


def objectives_table() -> str:
    """Table of objectives on extreme logits."""
    found = read_result("guarantees/numerics.json")["objectives"]
    names, types = (list(dict.fromkeys(row[column] for row in found)) for column in (0, 1))
    rows = []
    for name in names:
        counts = []
        for kind in types:
            finite = sum(n for *key, n in found if key == [name, kind, "finite"])
            counts.append(f"{finite} of {sum(n for *key, n in found if key[:2] == [name, kind])}")
        rows.append([name, *counts])
    return table(["finite value and gradient", *types], rows) + "\n"


def estimators_table() -> str:
    """Table of estimators on degenerate data."""
    found = read_result("guarantees/numerics.json")["estimators"]
    names = list(next(iter(found.values())))
    rows = []
    for kind, outcomes in found.items():
        errors = [text.removeprefix("error: ") for text in outcomes.values() if text.startswith("error: ")]
        cells = ["refused" if text.startswith("error: ") else text for text in outcomes.values()]
        rows.append([kind, *cells, errors[0] if errors else ""])
    return table(["", *(f"`{name}`" for name in names), "error message"], rows, left=len(names) + 2) + "\n"


def determinism_table() -> str:
    """Table of results that are repeated with the same seed."""
    rows = [
        [
            f"`{row['result']}`",
            *(
                {True: "same", False: "DIFFERENT", None: ""}[row[what]]
                for what in ("again", "new_process", "other_hashes", "interrupted")
            ),
            f"{row['two_threads']:.0e}" if row["two_threads"] else "same",
        ]
        for row in read_result("guarantees/determinism.json")["results"]
    ]
    heads = ["", "again", "in a new process", "other hash seed", "interrupted", "difference with two threads"]
    return table(heads, rows, left=5) + "\n"


def leaks_table() -> str:
    """Table of the memory and handles of a process that fits many models."""
    result = read_result("guarantees/leaks.json")
    rows = []
    for name, row in result.items():
        if isinstance(row, dict):
            slope = f"{row['a_fit']:+.4f} ({row['low']:+.4f} to {row['high']:+.4f})"
            rows.append([name, f"{row['first']:,.0f}", f"{row['last']:,.0f}", slope])
    return (
        table(["", "after the warm-up", f"after {result['fits']:,} fits", "growth per fit (95 % interval)"], rows)
        + "\n"
    )


def mutants_table() -> str:
    """Table of the number of changes to the core that the tests notice."""
    found = read_result("guarantees/mutants.json")["files"]
    rows = [[row["file"].removeprefix("src/neuralbayes/"), row["mutants"], row["killed"]] for row in found]
    rows.append(["all", *(sum(row[column] for row in rows) for column in (1, 2))])
    cells = [[f"`{name}`" if name != "all" else name, n, killed, f"{killed / n:.1%}"] for name, n, killed in rows]
    return table(["file", "changes", "noticed", "share"], cells) + "\n"


def equivalent_table() -> str:
    """Table of the changes that no test notices, with the reasons why they change nothing."""
    groups: dict[tuple[str, str], int] = {}
    for row in read_result("guarantees/mutants.json")["files"]:
        for survivor in row["survivors"]:
            place = f"{Path(row['file']).stem}.{survivor['change'].partition(':')[0]}"
            key = (place, survivor["equivalent"] or "NOT KNOWN")
            groups[key] = groups.get(key, 0) + 1
    rows = [[f"`{place}`", n, why] for (place, why), n in groups.items()]
    return table(["function", "changes", "why they change nothing"], rows) + "\n"
