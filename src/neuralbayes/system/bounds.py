"""Limits for untrusted files, checked before anything is read or unpacked."""

from __future__ import annotations

MAX_JSON_BYTES = 64 * 2**20
"""Maximum size of a JSON file, a metrics.jsonl or the header of a safetensors file. Python needs up to 24 times as
much."""

MAX_PACKED_BYTES = 2**30
"""Maximum unpacked size of an NPZ or Parquet file. Uncompressed arrays are memory-mapped."""

MAX_PACKED_RATIO = 100
"""Maximum compression ratio of text above `MAX_PACKED_BYTES`. Meaningful text compresses less."""

MAX_PARQUET_RATIO = 100
"""Maximum compression ratio of a Parquet file above `MAX_PACKED_BYTES`. Meaningful cells compress less."""

MAX_COLUMNS = 100_000
"""Maximum number of columns. pandas takes seconds for so many, and a kilobyte for each."""

MAX_MEMBERS = 10_000
"""Maximum number of members of an archive."""

MAX_OTHER_BYTES = 64 * 2**20
"""Maximum size of an unused member of an archive, such as a readme, which is skipped."""

MAX_PAX_BYTES = 2**20
"""Maximum size of an extended header of a tar archive."""
