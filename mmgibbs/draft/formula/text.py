"""An analysis as the text of its file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import yaml


def write_analysis(analysis: Mapping[str, Any], notes: Sequence[str] = ()) -> str:
    """The text of an analysis file: a line for each effect, comments above it. A data frame has its type and size."""
    lines = [f"# {note}" for note in notes]
    for section, value in analysis.items():
        if isinstance(value, Mapping) and section in ("data", "traits", "model"):
            lines.append(f"{section}:")
            lines += _nested_lines(value, depth=2 if section == "model" else 1)
        else:
            lines.append(f"{section}: {_flow(value)}")
    return "\n".join(lines) + "\n"


def _nested_lines(mapping: Mapping[str, Any], depth: int, indent: str = "  ") -> list[str]:
    """A line for each entry, at most `depth` mappings deep."""
    lines = []
    for key, value in mapping.items():
        if isinstance(value, Mapping) and value and depth > 1:
            lines.append(f"{indent}{_flow(key)}:")
            lines += _nested_lines(value, depth - 1, f"{indent}  ")
        else:
            lines.append(f"{indent}{_flow(key)}: {_flow(value)}")
    return lines


def _flow(value: Any) -> str:
    """A value on one line."""
    text = yaml.dump(
        _plain(value), Dumper=yaml.SafeDumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6
    )
    return text.removesuffix("\n").removesuffix("\n...").strip()


def _plain(value: Any) -> Any:
    """Paths as text, and tables as what they are."""
    if isinstance(value, Mapping):
        return {str(key): _plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "columns") and hasattr(value, "shape"):
        return f"(a data frame of {value.shape[0]:,} rows)"
    return value if isinstance(value, (str, int, float, bool, type(None))) else f"(a {type(value).__name__})"
