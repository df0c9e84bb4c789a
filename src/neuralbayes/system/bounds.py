"""The most that files from strangers may ask for: what goes beyond is refused before it is read or unpacked."""

from __future__ import annotations

MAX_JSON_BYTES = 64 * 2**20
"""A JSON file, a metrics.jsonl, the header of a safetensors file: Python takes up to 24 times as much to hold it."""

MAX_PACKED_BYTES = 2**30
"""What is packed in an NPZ or a Parquet file, unpacked; an array that is not packed is mapped."""

MAX_PACKED_RATIO = 100
"""Bytes of a packed text per byte of its file, above `MAX_PACKED_BYTES`: text that says something packs less well."""

MAX_PARQUET_RATIO = 100
"""Bytes in memory per byte of a Parquet file, above `MAX_PACKED_BYTES`: cells that say something pack less well."""

MAX_COLUMNS = 100_000
"""Columns of a table: pandas takes seconds for so many, and a kilobyte for each."""

MAX_MEMBERS = 10_000
"""Members of an archive."""

MAX_OTHER_BYTES = 64 * 2**20
"""A member of an archive that nobody asked for, such as a readme: it is skipped."""

MAX_PAX_BYTES = 2**20
"""An extended header of a tar archive."""
