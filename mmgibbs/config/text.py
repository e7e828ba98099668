"""YAML text -> nested dicts and lists of text, safely. What a text means is left to the field that it belongs to.

So a trait called `no`, the id 0123 and the number 1e-3 all come through as written. Refused, each with its line: tags,
a key written twice, references that unfold into more values than an analysis can have, text that is not UTF-8,
anything that is not a file.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import yaml

from mmgibbs.errors import ConfigError

MOST_BYTES = 4_000_000  # of an analysis file
MOST_VALUES = 100_000  # in an analysis file, references unfolded
MOST_LEVELS = 30  # of nesting
TOO_DEEP = f"lists or mappings are nested more than {MOST_LEVELS} levels deep"
_Parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # only its events are used: it constructs nothing
_NOTHING = ("null", "Null", "NULL")
_INTEGER = re.compile(r"[+-]?[0-9]{1,300}")
_NUMBER = re.compile(r"[+-]?([0-9]{1,300}(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")


class Plain(str):
    """Text that was in the file without quotation marks, so that it may also be a number, true, false or null."""


def is_nothing(value: object) -> bool:
    return value is None or (isinstance(value, Plain) and value in _NOTHING)


def as_number(text: str) -> int | float | None:
    """The number that a text spells, or None. `1e-3` is one here, though YAML 1.1 says otherwise."""
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else None


def spelled(cell: str) -> str:
    """A cell as it is commonly written: '1' for '1.0', 'true' for 'True' or 'TRUE'; other text as it is."""
    number = as_number(cell)
    if number is not None:
        return str(int(number)) if abs(number) < 1e15 and number == int(number) else cell
    return cell.lower() if cell.lower() in ("true", "false") else cell


def as_yaml_value(value: Any) -> Any:
    """Interpret plain text where no field does: null, true, false, a number, else the text itself (YAML 1.2)."""
    if isinstance(value, dict):
        return {key: as_yaml_value(v) for key, v in value.items()}
    if isinstance(value, list):
        return [as_yaml_value(v) for v in value]
    if not isinstance(value, Plain):
        return value
    if is_nothing(value):
        return None
    if value in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return value.lower() == "true"
    number = as_number(value)
    return str(value) if number is None else number


def show(value: object) -> str:
    """A value as an error message shows it."""
    if is_nothing(value):
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        text = value if len(value) <= 60 else f"{value[:57]}..."
        text = text.encode("utf-8", "backslashreplace").decode()
        return text if isinstance(value, Plain) and as_number(value) is not None else repr(text)
    if isinstance(value, int):
        return str(value) if abs(value) < 10**30 else "a number of more than 30 digits"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, (list, tuple)):
        return (
            "an empty list"
            if not value
            else "a list of 1 value"
            if len(value) == 1
            else f"a list of {len(value)} values"
        )
    if isinstance(value, dict):
        keys = ", ".join(to_line(str(k)) for k in list(value)[:5])
        return f"a mapping with the keys {keys}{', ...' if len(value) > 5 else ''}" if value else "an empty mapping"
    return f"a value of type {type(value).__name__}"


def to_line(text: str) -> str:
    """Text with line breaks and other invisible characters spelt out, cut where it is long."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:80])
    return f"{shown}..." if len(text) > 80 else shown


def dotted(path: Iterable[str]) -> str:
    """A YAML path as errors show it."""
    return ".".join(to_line(key) for key in path)


def read_yaml(path: Path) -> object:
    """The tree of an analysis file. Raises ConfigError with one message."""
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise ConfigError(f"{path}: is a folder, needed an analysis file (YAML)")
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{path}: is a device or a pipe, needed an analysis file (YAML)")
        if status.st_size > MOST_BYTES:
            raise ConfigError(
                f"{path}: has {status.st_size:,} bytes, an analysis file has at most {MOST_BYTES:,}; "
                "is this a data file?"
            )
        content = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except ConfigError:
        raise
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{show(str(path))[1:-1]}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path} line {line}: byte 0x{content[error.start]:02x} is not UTF-8 text; save the file as UTF-8"
        ) from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, where: str) -> object:
    """The tree of a YAML text; `where` begins every message."""
    try:
        return _Builder(yaml.parse(text, Loader=_Parser), where).document()
    except yaml.MarkedYAMLError as error:
        raise ConfigError(_syntax(error, where, text)) from None
    except (yaml.YAMLError, UnicodeEncodeError):
        # the reader: a control character or half a character, found before there are lines to speak of
        at = next((i for i, c in enumerate(text) if not c.isprintable() and c not in "\t\r\n"), None)
        line = "" if at is None else f" line {text.count(chr(10), 0, at) + 1}"
        got = "a character that cannot be in a file" if at is None else f"the character {text[at]!a}"
        raise ConfigError(f"{where}{line}: is not readable text: found {got}, needed an analysis (YAML)") from None
    except ConfigError:
        raise
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{where}: is not valid YAML"
        ) from None  # an escape such as "\U7fffffff", which is no character


def _syntax(error: yaml.MarkedYAMLError, where: str, text: str) -> str:
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return f"{where}: is not valid YAML: {error.problem}"
    lines = text.split("\n")
    number = min(
        mark.line, max(len(lines) - 1, 0)
    )  # what is missing at the end of a file is reported below its last line
    column = mark.column if number == mark.line else len(lines[number])
    hint = "; check the indentation, brackets, colons and quotation marks there and just above"
    if "\t" in lines[number][: column + 1]:
        hint = "; indent with blanks, not tabs"
    if "mapping values are not allowed" in (error.problem or ""):
        hint = "; check the indentation, and put text that holds ': ' in quotation marks"
    if "maximum nesting depth" in (error.problem or ""):  # libyaml reads ahead of us to a limit of its own
        return f"{where} line {number + 1}: {TOO_DEEP}"
    return f"{where} line {number + 1}, column {column + 1}: is not valid YAML: {error.problem}{hint}"


class _Builder:
    """Composes the events of the YAML parser into dicts, lists and text."""

    def __init__(self, events: Iterator[yaml.Event], where: str):
        self.events, self.where = events, where
        self.count = 0
        self.anchors: dict[str, tuple[object, int]] = {}

    def refuse(self, event: yaml.Event, message: str) -> NoReturn:
        assert event.start_mark is not None, "the parser marks every event"
        raise ConfigError(f"{self.where} line {event.start_mark.line + 1}: {message}")

    def document(self) -> object:
        next(self.events)  # start of the stream
        if isinstance(event := next(self.events), yaml.StreamEndEvent):
            return None
        value = self.node(next(self.events), 0)
        next(self.events)  # end of the document
        if not isinstance(event := next(self.events), yaml.StreamEndEvent):
            self.refuse(event, "a second document begins ('---'), needed one analysis per file")
        return value

    def node(self, event: yaml.Event, level: int) -> object:
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                self.refuse(
                    event,
                    f"'*{event.anchor}' refers to something that is not written before it; "
                    "text beginning with * needs quotation marks",
                )
            known, size = self.anchors[event.anchor]
            self.grow(event, size)
            return known
        assert isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent))
        before = self.count
        self.grow(event, 1)
        if event.tag not in (None, "!", "tag:yaml.org,2002:str"):
            self.refuse(event, f"the tag {show(event.tag)} is not accepted in an analysis file; write the plain value")
        if level > MOST_LEVELS:
            self.refuse(event, TOO_DEEP)
        value: object
        if isinstance(event, yaml.ScalarEvent):
            value = self.scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = items = list[object]()
            while not isinstance(item := next(self.events), yaml.SequenceEndEvent):
                items.append(self.node(item, level + 1))
        else:
            value = self.mapping(level)
        if event.anchor is not None:
            self.anchors[event.anchor] = value, self.count - before
        return value

    def scalar(self, event: yaml.ScalarEvent) -> str | None:
        if not event.implicit[0]:
            return event.value
        return None if event.value in ("", "~") else Plain(event.value)

    def mapping(self, level: int) -> dict:
        value: dict[str, object] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self.node(event, level + 1)
            if not isinstance(key, str):
                self.refuse(event, f"found {show(key)} as a key, needed a name")
            if key in value:
                self.refuse(event, f"the key {show(str(key))} is written twice in the same mapping")
            value[str(key)] = self.node(next(self.events), level + 1)
        return value

    def grow(self, event: yaml.Event, size: int) -> None:
        self.count += size
        if self.count > MOST_VALUES:
            self.refuse(
                event,
                f"more than {MOST_VALUES:,} values (references unfolded), more than an analysis file can have; "
                "is this a data file?",
            )


def plain_tree(source: dict, where: str) -> dict:
    """A copy of a Python dict with lists and text for arrays, tuples and paths; tables stay as they are."""
    count = 0

    def copy(value: Any, path: tuple[str, ...]) -> Any:
        nonlocal count
        count += 1
        if count > MOST_VALUES:
            raise ConfigError(
                f"{where}: more than {MOST_VALUES:,} values, more than an analysis can have; pass data as data frames"
            )
        if len(path) > MOST_LEVELS:
            raise ConfigError(f"{where}: {dotted(path[:3])}: {TOO_DEEP}")
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, np.ndarray):
            if value.size > MOST_VALUES:
                raise ConfigError(
                    f"{where}: {dotted(path)}: an array of {value.size:,} values, more than an analysis can have"
                )
            value = value.tolist()
        if isinstance(value, int) and abs(value) > 10**300:
            raise ConfigError(f"{where}: {dotted(path)}: found {show(value)}, needed a smaller one")
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if isinstance(value, dict):
            bad = next((key for key in value if not isinstance(key, (str, int)) or isinstance(key, bool)), None)
            if bad is not None or None in value:
                raise ConfigError(
                    f"{where}: {dotted(path) or 'the analysis'}: found {show(bad)} as a key, needed a name"
                )
            return {_text(str(key), path): copy(v, (*path, str(key))) for key, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [copy(v, (*path, str(i))) for i, v in enumerate(value)]
        return _text(value, path) if isinstance(value, str) else value

    def _text(value: str, path: tuple[str, ...]) -> str:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ConfigError(
                f"{where}: {dotted(path)}: found {show(value)}, which is not text (half a character)"
            ) from None
        return value

    return copy(source, ())
