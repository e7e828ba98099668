"""The section of a prior in the analysis file, as plain data: a dataclass, and a field for each key.

`config/priors.py` makes of it what reads the section, and `results/record_types.py` what checks a record. The type of a
field is one of these: float; tuple[float, ...], numbers; Matrix; Literal[...], words; a dataclass of further keys. With
`| None` and a default of None it may be left out.
"""

from __future__ import annotations

import dataclasses
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

Matrix = tuple[tuple[float, ...], ...]  # its rows


class Limits(NamedTuple):
    """What numbers of a key are admitted, and the words for it in messages, where they are not the limits."""

    above: float | None = None
    below: float | None = None
    expected: str = ""


def key(meaning: str, default: Any = dataclasses.MISSING, limits: Limits | None = None) -> Any:
    """Declare a key by its meaning, its default (without: it is needed), and the limits of its numbers."""
    return dataclasses.field(default=default, metadata={"meaning": meaning, "limits": limits or Limits()})


class Key(NamedTuple):
    """A key of a section."""

    name: str
    type: Any  # without `| None`
    is_optional: bool  # with `| None`
    default: Any  # dataclasses.MISSING: it is needed
    meaning: str
    limits: Limits


def list_keys(section: Any) -> list[Key]:
    """List the keys of a section, a dataclass."""
    hints, keys = get_type_hints(section), []
    for field in dataclasses.fields(section):
        options = get_args(hints[field.name]) if get_origin(hints[field.name]) in (Union, UnionType) else ()
        values = [option for option in options if option is not type(None)] or [hints[field.name]]
        of_file = field.default, field.metadata["meaning"], field.metadata["limits"]
        keys.append(Key(field.name, values[0], bool(options), *of_file))
    return keys
