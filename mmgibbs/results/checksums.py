"""Checksums of a run folder: run.json has size and SHA-256 of every result file, and a SHA-256 of itself.

    "checksums": {"summary.parquet": {"bytes": 6115, "sha256": "..."}, ...}
    "sha256": of the other keys as JSON with sorted keys and without blanks

Folders of versions before 0.2 have neither, and are read as they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mmgibbs.machine.files import sha256_of_file

CHECKSUMS, OF_RECORD = "checksums", "sha256"


def record_with_checksum(record: Mapping[str, Any]) -> dict[str, Any]:
    """`record` (plain JSON) with its own checksum as the last key."""
    return {**record, OF_RECORD: digest_of_record(record)}


def digest_of_record(record: Mapping[str, Any]) -> str:
    """SHA-256 of all keys but that of the checksum itself."""
    content = {key: value for key, value in record.items() if key != OF_RECORD}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def damage_of_record(record: Mapping[str, Any]) -> str | None:
    """Why run.json is not as the run wrote it; None if it is, or if it is of a version without checksums."""
    if OF_RECORD not in record and CHECKSUMS not in record:
        return None
    if record.get(OF_RECORD) != digest_of_record(record):
        return "is damaged or was changed: its checksum does not match its content"
    return None


def damage_of_file(path: Path, expected: Mapping[str, Any], content: bool = True) -> str | None:
    """Why a file is not as the run wrote it; None if it is. content: False compares only the size."""
    if not path.is_file():
        return "is missing"
    size = path.stat().st_size
    if size != expected["bytes"]:
        return f"is damaged: expected {expected['bytes']:,} bytes, got {size:,}"
    if content and sha256_of_file(path) != expected["sha256"]:
        return "is damaged or was changed: its checksum is not that in run.json"
    return None
