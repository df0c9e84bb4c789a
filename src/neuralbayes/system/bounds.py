"""Limits for untrusted files, checked before anything is read or unpacked."""

from __future__ import annotations

MAX_JSON_BYTES = 64 * 2**20
"""Maximum size of a JSON file, a metrics.jsonl or the header of a safetensors file. Python needs up to 24 times as
much."""

MAX_PACKED_BYTES = 2**30
"""Maximum unpacked size of an array in an NPZ file. Uncompressed arrays are memory-mapped."""

MAX_MEMBERS = 10_000
"""Maximum number of members of an archive."""

MAX_OTHER_BYTES = 64 * 2**20
"""Maximum size of an unused member of an archive, such as a readme, which is skipped."""

MAX_PAX_BYTES = 2**20
"""Maximum size of an extended header of a tar archive."""
