"""Mutations that keep a file valid enough to pass the first check: JSON stays JSON, lengths and checksums match."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 255, 10**5, 2**31, 2**63, 10**30, 0.5, -1e308, float("nan"), float("inf")),
    *("", "x", "0", "../x", "/", "\0", "\ud800", "é", "x" * 300, [], {}, [0], [[]], ["x"], {"x": 1}, [1, 2, 3]),
)


def mutate_json(seeds: Sequence[bytes], data: bytes, max_size: int, seed: int) -> bytes:
    """Change values in a file of JSON, one document per line; now and then, change bytes.

    Parameters
    ----------
    seeds : sequence of bytes
        Mutated instead of `data` in most cases if `data` is no longer JSON.
    data : bytes
    max_size, seed : int
        Arguments that Atheris passes to a mutator.
    """
    import atheris

    rng = random.Random(seed)
    for whole in (data, rng.choice(seeds)) if rng.random() < 0.8 else ():
        lines = whole.split(b"\n")
        i = rng.randrange(len(lines))
        try:
            tree = [json.loads(lines[i])]
        except (ValueError, RecursionError):
            continue
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            _change(tree, rng)
        lines[i] = b"\n".join(json.dumps(document).encode() for document in tree)
        if len(changed := b"\n".join(lines)) <= max_size:
            return changed
    mutated: bytes = atheris.Mutate(data, max_size)
    return mutated


def _change(tree: list[Any], rng: random.Random) -> None:
    """Replace, remove, double or move one value in `tree`."""
    places = list(_places(tree))
    if not places:
        return
    container, key = rng.choice(places)
    match rng.randrange(8):
        case 0:
            del container[key]
        case 1 if isinstance(container, list):
            container.append(container[key])
        case 2:
            other, name = rng.choice(places)
            container[key] = json.loads(json.dumps(other[name]))  # a copy, because a tree must not contain itself
        case 3 if isinstance(container, dict):
            container[rng.choice(("x", "", *container))] = container.pop(key)
        case _:
            container[key] = json.loads(json.dumps(rng.choice(VALUES)))


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    left = [tree]
    while left:
        container = left.pop()
        for key, value in list(container.items() if isinstance(container, dict) else enumerate(container)):
            yield container, key
            if isinstance(value, dict | list):
                left.append(value)


def png_sealed(data: bytes) -> bytes:
    """Correct the checksums of a PNG; leave anything else unchanged."""
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        return data
    sealed, at = bytearray(data[:8]), 8
    while at + 12 <= len(data):
        end = at + 8 + int.from_bytes(data[at : at + 4], "big")
        if end + 4 > len(data):
            break
        sealed += data[at:end] + zlib.crc32(data[at + 4 : end]).to_bytes(4, "big")
        at = end + 4
    return bytes(sealed + data[at:])
