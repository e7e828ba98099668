"""The kinds of values in an analysis file: each takes what a user may write, or says what was found and what is needed.

A kind is a function value -> value that raises PydanticCustomError; a field states it as
`Annotated[int, checked(whole_number(1))]`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, PlainValidator, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

if TYPE_CHECKING:
    import polars as pl

from mmgibbs.config.frames import as_polars
from mmgibbs.config.text import Plain, as_number, is_nothing, show
from mmgibbs.errors import nearest

Value = TypeVar("Value")
OfSection = TypeVar("OfSection", bound="Section")
Kind = Callable[[object], Value]  # what a user wrote -> the value that is meant
Schema = Any  # JSON schema, in which a Section class represents its own schema, a KeyOf for that of one of its keys
_YES, _NO = ("true", "yes", "on"), ("false", "no", "off")
NOT_IN_A_NAME = "[],:/="  # they stand between the parts of a parameter's name: genetic.cov[direct:a,maternal:b]


# ------------------------------------------------------------------------------------------------ problems


def wrong(message: str) -> PydanticCustomError:
    return PydanticCustomError("mmgibbs", "{message}", {"message": message})


def expected(found: object, needed: str) -> PydanticCustomError:
    return wrong(f"found {show(found)}, needed {needed}")


class Problems:
    """Several things wrong with one section, each at its place in it."""

    def __init__(self) -> None:
        self.found: list[tuple[tuple[str, ...], str]] = []  # place, message

    def add(self, place: Sequence[str], message: str) -> None:
        self.found.append((tuple(place), message))

    def add_all(self, error: ValidationError, place: Sequence[str] = ()) -> None:
        for e in error.errors(include_url=False, include_input=False):
            self.add(
                (*place, *(str(part) for part in e["loc"])),
                "missing, needed here" if e["type"] == "missing" else e["msg"],
            )

    def refuse(self) -> None:
        if self.found:
            details = [InitErrorDetails(type=wrong(message), loc=place, input=None) for place, message in self.found]
            raise ValidationError.from_exception_data("analysis", details)


class Section(BaseModel):
    """A mapping of the analysis file: frozen, and strict about its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    filled_in: ClassVar[tuple[str, ...]] = ()  # attributes that no key sets
    short_forms: ClassVar[tuple[Schema, ...]] = ()  # what `long_form` takes beside a mapping
    other_keys: ClassVar[Schema] = False  # schema of keys that `long_form` takes beside the fields

    @classmethod
    def long_form(cls, value: object) -> object:
        """What a short way of writing this section means."""
        return value

    @classmethod
    def more_keys(cls) -> dict[str, Schema]:
        """Keys that `long_form` takes beside the fields, and their schemas."""
        return {}

    @classmethod
    def keys(cls) -> list[str]:
        """The keys that a file may use."""
        return [field.alias or name for name, field in cls.model_fields.items() if name not in cls.filled_in]

    @classmethod
    def unknown_key(cls, key: str) -> str:
        return f"unknown key; {nearest(key, cls.keys())}"

    def as_file(self) -> Any:
        """The section as plain values in the form of an analysis file, defaults written out."""
        return {
            field.alias or name: plain(getattr(self, name))
            for name, field in type(self).model_fields.items()
            if name not in self.filled_in
        }

    @model_validator(mode="wrap")
    @classmethod
    def _speak_plainly(cls, value: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Every unknown key at its place with the nearest known one, and every wrong value."""
        value = cls.long_form({} if is_nothing(value) else value)
        fields = {field.alias or name: field for name, field in cls.model_fields.items() if name not in cls.filled_in}
        if not isinstance(value, dict):
            raise expected(value, f"a mapping with keys such as {', '.join(list(fields)[:4])}")
        problems = Problems()
        for key in value:
            if key not in fields:
                problems.add((key,), cls.unknown_key(key))
        # a key without a value is no key where the default is nothing
        given = {
            key: v
            for key, v in value.items()
            if key in fields and not (is_nothing(v) and fields[key].default in (None, "", ()))
        }
        try:
            section = handler(given)
        except ValidationError as error:
            problems.add_all(error)
        problems.refuse()
        return section


class KeyOf(NamedTuple):
    """A key of a section, in a schema."""

    section: type[Section]
    key: str


def plain(value: object) -> Any:
    """Nested dicts and lists of text, numbers, booleans and None."""
    if isinstance(value, Section):
        return value.as_file()
    if isinstance(value, dict):
        return {str(key): plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "shape"):
        return f"data frame of {value.shape[0]} rows and {value.shape[1]} columns"
    return str(value)


# ------------------------------------------------------------------------------------------------ kinds


def checked(kind: Kind[Any]) -> PlainValidator:
    """Annotated[type, checked(kind)]: the field takes what the kind makes of a value."""
    return PlainValidator(kind)


def accepting(kind: Kind[Value], schema: Schema) -> Kind[Value]:
    """The kind itself, which from now on says what it accepts."""
    kind.accepted = schema  # type: ignore[attr-defined]
    return kind


def accepts(schema: Schema) -> Callable[[Kind[Value]], Kind[Value]]:
    """Decorator: the JSON schema of what a kind accepts."""
    return lambda kind: accepting(kind, schema)


def accepted_by(kind: Kind[Any]) -> Schema:
    """The JSON schema of what a kind accepts; {}, which is anything, where it does not say."""
    return getattr(kind, "accepted", {})


def any_of(*schemas: Schema) -> Schema:
    """One of the schemas; those of a schema that itself is `any_of` some are taken by themselves."""
    flat = [s["anyOf"] if isinstance(s, dict) and list(s) == ["anyOf"] else [s] for s in schemas]
    return {"anyOf": [schema for several in flat for schema in several]}


def unless(word: str, function: Kind[Value]) -> Kind[Value | None]:
    """None where the word is written."""

    def check(value: object) -> Value | None:
        return None if isinstance(value, str) and value == word else function(value)

    return accepting(check, any_of({"const": word}, accepted_by(function)))


TEXT: Schema = {"type": ["string", "integer"]}  # names may be numbers: a column called 2019


def a_text(needed: str = "text") -> Kind[str]:
    """Text; whole numbers are taken as they are written (a column named 2019, an id)."""

    def check(value: object) -> str:
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str) or value.strip() == "":
            raise expected(value, needed)
        return str(value)

    return accepting(check, TEXT)


a_column = a_text("the name of a column")


@accepts({"type": ["string", "number", "boolean"]})
def a_cell(value: object) -> str:
    """A value as it is in a table: any text, also none; numbers, true and false are taken as they are written."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(int(value)) if math.isfinite(value) and value == int(value) else str(value)
    if not isinstance(value, str):
        hint = " (write '' for empty cells)" if value is None else ""
        raise expected(value, f"the text of a cell{hint}")
    return str(value)


@accepts(TEXT)
def a_name(value: object) -> str:
    """A name that the run folder can use."""
    text = a_text("a name")(value)
    bad = next((c for c in text if c in NOT_IN_A_NAME or not c.isprintable()), None)
    if bad is not None or text != text.strip():
        what = "a blank at its end" if bad is None else f"the character {bad!r}"
        raise wrong(
            f"found the name {show(str(text))} with {what}, needed a name without {' '.join(NOT_IN_A_NAME)} "
            "(the column may have any name)"
        )
    return text


@accepts({"enum": [True, False, *_YES[1:], *_NO[1:]]})
def a_boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in (*_YES, *_NO):
        return value.lower() in _YES
    raise expected(value, "true or false")


def is_yes(value: object) -> bool:
    """true, or what a file writes for it."""
    return value is True or (isinstance(value, str) and value.lower() in _YES)


@accepts({"enum": ["auto", True, False, *_YES[1:], *_NO[1:]]})
def auto_or_boolean(value: object) -> str | bool:
    if isinstance(value, str) and value.lower() == "auto":
        return "auto"
    try:
        return a_boolean(value)
    except PydanticCustomError:
        raise expected(value, "auto, true or false") from None


def _finite(value: object) -> int | float | None:
    """The number that is meant, if any: from Python, or as text."""
    if isinstance(value, str):
        value = as_number(value.strip())
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:
        return None


def whole_number(least: int, most: int | None = None) -> Kind[int]:
    needed = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"

    def check(value: object) -> int:
        number = _finite(value)
        if number is None or number != int(number) or number < least or number > (2**63 - 1 if most is None else most):
            raise expected(value, needed)
        return int(number)

    limits = {"minimum": least} if most is None else {"minimum": least, "maximum": most}
    return accepting(check, {"type": "integer"} | limits)


def number(needed: str = "a number", above: float = -math.inf, below: float = math.inf) -> Kind[float]:
    def check(value: object) -> float:
        found = _finite(value)
        if found is None and isinstance(value, str) and as_number(value.strip().replace(",", ".", 1)) is not None:
            raise expected(value, f"{needed} (decimals follow a point)")
        if found is None or not above < float(found) < below:
            raise expected(value, needed)
        return float(found)

    limits = {"exclusiveMinimum": above, "exclusiveMaximum": below}
    return accepting(check, {"type": "number"} | {key: v for key, v in limits.items() if math.isfinite(v)})


def one_of(*choices: str, later: Sequence[str] = ()) -> Kind[str]:
    """One of the words; `later` are reserved for a later version."""

    def check(value: object) -> str:
        text = str(value).lower() if isinstance(value, str) else None
        if text in later:
            raise wrong(f"found {show(value)}, which is not in this version yet; needed {_listed(choices)}")
        if text not in choices:
            close = nearest(text or "", choices) if text else ""
            raise expected(value, _listed(choices) + (f"; {close}" if close.startswith("did") else ""))
        return text

    return accepting(check, {"enum": list(choices)})


def _listed(choices: Sequence[str]) -> str:
    return choices[0] if len(choices) == 1 else f"{', '.join(choices[:-1])} or {choices[-1]}"


def list_of(item: Kind[Value], needed: str, unique: bool = True, empty: bool = False) -> Kind[tuple[Value, ...]]:
    """A tuple; one value may be without its brackets."""

    def check(value: object) -> tuple[Value, ...]:
        values = [value] if isinstance(value, (str, int, float)) and not isinstance(value, bool) else value
        if not isinstance(values, list) or not (values or empty):
            raise expected(value, needed)
        items = []
        for i, v in enumerate(values, 1):
            try:
                items.append(item(v))
            except PydanticCustomError as error:
                raise wrong(f"value {i} of the list: {error.message()}") from None
        twice = (
            next((v for i, v in enumerate(items) if v in items[:i]), None)
            if unique and len(set(items)) < len(items)
            else None
        )
        if twice is not None:
            raise wrong(f"found {show(twice)} twice, needed every value once")
        return tuple(items)

    one = accepted_by(item)
    several = {"type": "array", "items": one, "minItems": 0 if empty else 1, "uniqueItems": unique}
    return accepting(check, any_of(several, one))


@accepts(TEXT)
def a_name_or_none(value: object) -> str:
    return "" if value == "" else a_name(value)


def each_of(mapping: dict[Any, Any], kind: Kind[Value], named: Kind[str]) -> dict[str, Value]:
    """NAME -> what the kind makes of its value, in the order written; every problem is said, at its name."""
    problems, out = Problems(), {}
    for name, entry in mapping.items():
        try:
            out[named(name)] = kind(entry)
        except PydanticCustomError as error:
            problems.add((name,), error.message())
        except ValidationError as error:
            problems.add_all(error, (name,))
    problems.refuse()
    return out


def mapping_of(section: type[OfSection], what: str, named: Kind[str] = a_name) -> Kind[dict[str, OfSection]]:
    """NAME -> section, in the order written."""

    def check(value: object) -> dict[str, OfSection]:
        value = {} if is_nothing(value) else value
        if not isinstance(value, dict):
            raise expected(value, f"a mapping from the name of each {what} to its keys")
        return each_of(value, section.model_validate, named)

    return accepting(check, {"type": ["object", "null"], "additionalProperties": section})


@accepts({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2})
def a_range(value: object) -> tuple[float, float]:
    needed = "two numbers [low, high], low below high"
    if not isinstance(value, list) or len(value) != 2:
        raise expected(value, needed)
    low, high = (number()(v) for v in value)
    if not low < high:
        raise wrong(f"found [{low:g}, {high:g}], needed {needed}")
    return low, high


NUMBERS: Schema = {"type": "array", "items": {"type": "number"}, "minItems": 1}


@accepts(any_of({"type": "number"}, {"type": "array", "items": NUMBERS, "minItems": 1}))
def a_matrix(value: object) -> tuple[tuple[float, ...], ...]:
    """Rows of numbers; a number is a 1 x 1 matrix. Its size is judged where the model is known."""
    if not isinstance(value, list):
        return ((number("a number or a matrix (a list of rows)")(value),),)
    if not value:
        raise expected(value, "a matrix (a list of rows)")
    rows = []
    for i, row in enumerate(value, 1):
        if not isinstance(row, list):
            raise wrong(f"found {show(row)} as row {i} of the matrix, needed a list of numbers: [[a, b], [b, c]]")
        try:
            rows.append(tuple(number()(v) for v in row))
        except PydanticCustomError as error:
            raise wrong(f"row {i} of the matrix: {error.message()}") from None
    return tuple(rows)


@accepts({"type": "string"})
def a_path(value: object) -> Path:
    text = value if isinstance(value, str) else None
    if text is None or text.strip() == "" or "\0" in text:
        raise expected(value, "the path of a file")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise wrong(f"found {show(value)}, but there is no such home directory") from None


@accepts({"type": "string"})
def a_table(value: object) -> Path | pl.DataFrame:
    """The path of a table, or (from Python) a data frame: see frames.py."""
    if isinstance(value, (str, type(None))):
        return a_path(value)
    import polars as pl

    if isinstance(value, pl.LazyFrame):
        raise wrong("found a LazyFrame, needed a path or a DataFrame (call .collect())")
    try:
        frame = as_polars(value)
    except ValueError as error:
        raise wrong(f"found {error}, needed a path or a data frame") from None
    if frame is None:
        raise expected(value, "the path of a file (or, from Python, a data frame such as those of Polars and pandas)")
    return frame


@accepts({"type": "string"})
def a_separator(value: object) -> str:
    """One character; ' ' means any white space."""
    words = {"whitespace": " ", "space": " ", "blank": " ", "tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}
    text = words.get(value, value) if isinstance(value, str) else value
    if not isinstance(text, str) or len(text.encode()) != 1 or text in '"\n\r\0':
        raise expected(value, "one character, tab or whitespace")
    return str(text)


@accepts(TEXT)
def name_or_position(value: object) -> str | int:
    """A column by its name or, as a number without quotation marks, by its position from 1."""
    if isinstance(value, int) or (isinstance(value, Plain) and as_number(value) is not None):
        return whole_number(1)(value)
    return a_text("the name or the position (from 1) of a column")(value)


@dataclass(frozen=True)
class Interval:
    """How often: every so many sweeps, or minutes."""

    every: float
    unit: str  # 'sweeps' | 'minutes'

    def __str__(self) -> str:
        return f"{self.every:g}m" if self.unit == "minutes" else f"{int(self.every)}"


@accepts(any_of({"type": "integer", "minimum": 1}, {"type": "string", "pattern": "^[0-9.]+ ?(m|min|minutes)$"}))
def an_interval(value: object) -> Interval:
    text = re.fullmatch(r"([0-9.]+) ?(m|min|minutes)", value.strip()) if isinstance(value, str) else None
    try:
        if text:
            return Interval(number(above=0)(text[1]), "minutes")
        return Interval(whole_number(1)(value), "sweeps")
    except PydanticCustomError:
        raise expected(value, "a number of sweeps such as 500, or minutes such as 10m") from None
