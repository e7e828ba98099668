"""The types of the values of an analysis file, and `Section`, the class of its mappings.

Plain values of a file come as text (see text.py): the readers below turn it into the type of a field, and pydantic,
which is strict about types here, checks it. `Annotated[int, Field(ge=1), WHOLE]` is a whole number of at least 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError

from mmgibbs.config.frames import as_polars
from mmgibbs.config.messages import Expected, Problems, listed_problems, translate, unexpected, unsuitable, wrong
from mmgibbs.config.rules import broken_rules
from mmgibbs.config.text import Plain, as_number, is_nothing, show
from mmgibbs.errors import ConfigError, nearest

T = TypeVar("T")
Schema = dict[str, Any]  # JSON schema
NOT_IN_A_NAME = "[],:/="  # they stand between the parts of a parameter's name: genetic.cov[direct:a,maternal:b]
YES, NO = ("true", "yes", "on"), ("false", "no", "off")
MAX_WHOLE = 2**63 - 1
_NOTHING: tuple[Any, ...] = (None, "", (), {})  # defaults of keys that a file may leave empty


# ------------------------------------------------------------------------------------------------ sections


class Section(BaseModel):
    """A mapping of the analysis file: frozen, and strict about its keys and types."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True, use_attribute_docstrings=True
    )

    filled_in: ClassVar[tuple[str, ...]] = ()  # attributes that no key sets
    short_forms: ClassVar[tuple[Schema, ...]] = ()  # schemas of what `long_form` takes beside a mapping

    @classmethod
    def long_form(cls, value: object) -> object:
        """Expand a short way of writing this section."""
        return value

    @classmethod
    def fields_by_key(cls) -> dict[str, FieldInfo]:
        """Key in the file -> its field."""
        return {f.alias or name: f for name, f in cls.model_fields.items() if name not in cls.filled_in}

    @classmethod
    def unknown_key(cls, key: str) -> str:
        return f"unknown key; {nearest(key, cls.fields_by_key())}"

    @classmethod
    def edit_schema(cls, schema: Schema, resolve: Callable[[Schema], Schema]) -> None:
        """Change the JSON schema of the section as a mapping, where keys are not those of its fields.

        resolve: the schema that a reference stands for.
        """

    def check(self, problems: Problems) -> None:
        """Add what cannot be in the section and is no row of rules.py."""

    def as_file(self) -> Any:
        """The section as plain values in the form of an analysis file, defaults written out."""
        return {
            field.alias or name: plain(getattr(self, name))
            for name, field in type(self).model_fields.items()
            if name not in self.filled_in
        }

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, value: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Read a section: report every unknown key with the nearest known one, every wrong value, every broken rule."""
        if isinstance(value, cls):
            return value
        value = cls.long_form({} if is_nothing(value) else value)
        fields = cls.fields_by_key()
        if not isinstance(value, dict):
            raise unexpected(value, f"a mapping with keys such as {', '.join(list(fields)[:4])}")
        problems = Problems()
        for key in value:
            if key not in fields:
                problems.add((key,), cls.unknown_key(key))
        # a key without a value is no key where the default is nothing
        given = {
            key: v
            for key, v in value.items()
            if key in fields and not (is_nothing(v) and fields[key].default in _NOTHING)
        }
        try:
            section = handler(given)
        except ValidationError as error:
            translate(cls, error, given, problems)
        problems.refuse()
        for place, message in broken_rules(section):
            problems.add(place, message)
        section.check(problems)
        problems.refuse()
        return section

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        reference = handler(core_schema)
        schema = handler.resolve_ref_schema(reference)
        for name in cls.filled_in:
            schema["properties"].pop(name, None)
        for key, field in cls.fields_by_key().items():
            schema["properties"][key] = _described(schema["properties"][key], field)
        if "required" not in schema:
            schema["type"] = ["object", "null"]
        cls.edit_schema(schema, handler.resolve_ref_schema)
        if cls.short_forms:
            mapping = {key: schema.pop(key) for key in list(schema) if key != "description"}
            schema["anyOf"] = [mapping, *cls.short_forms]
        return reference


S = TypeVar("S", bound=Section)


def read_section(kind: type[S], value: object, place: str) -> S:
    """Return a section that was given as an argument. ConfigError with each problem, behind the words of its place."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        found = [(place + ".".join(at), message) for at, message in listed_problems(error)]
        lines = [f"{path.rstrip('.: ')}: {message}" for path, message in found]
        raise ConfigError("\n".join(lines)) from None


def _described(schema: Schema, field: FieldInfo) -> Schema:
    """A key with its meaning first, empty where nothing is its default; sections say theirs."""
    schema = {key: v for key, v in schema.items() if key not in ("description", "title")}
    if "default" in schema and (schema["default"] in (*_NOTHING, []) or isinstance(schema["default"], dict)):
        del schema["default"]
    if not field.is_required() and field.default in _NOTHING:
        schema = any_of(schema, {"type": "null"})
    return {"description": " ".join((field.description or "").split())} | schema


def any_of(*schemas: Schema) -> Schema:
    """Combine schemas of which one is to hold; those of a schema that itself is `any_of` some are taken apart."""
    flat = [s["anyOf"] if list(s) == ["anyOf"] else [s] for s in schemas]
    unique = [schema for several in flat for schema in several]
    return {"anyOf": [schema for i, schema in enumerate(unique) if schema not in unique[:i]]}


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


# ------------------------------------------------------------------------------------------------ numbers and words


def read_number(value: object) -> object:
    """The number that text spells."""
    number = as_number(value.strip()) if isinstance(value, str) else value
    if isinstance(number, float) and not math.isfinite(number):
        raise unsuitable()
    return value if number is None else number


def read_whole_number(value: object) -> object:
    number = read_number(value)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, int) and abs(number) > MAX_WHOLE:
        raise unsuitable()
    return number


def is_yes(value: object) -> bool:
    """true, or what a file writes for it."""
    return value is True or (isinstance(value, str) and value.lower() in YES)


def read_boolean(value: object) -> object:
    return is_yes(value) if isinstance(value, str) and value.lower() in (*YES, *NO) else value


def read_auto_or_boolean(value: object) -> object:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise unsuitable()
    return to_lower_case(read_boolean(value))


def to_lower_case(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


@dataclass(frozen=True, eq=False)
class AlsoTakes:
    """Schemas, in `Annotated`, of what the validators of a type take beside its values."""

    schemas: tuple[Schema, ...]

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        return any_of(*self.schemas, handler(core_schema))


def nothing_for_auto(value: object) -> object:
    return None if isinstance(value, str) and value == "auto" else value


NUMBER, WHOLE = BeforeValidator(read_number), BeforeValidator(read_whole_number)
Number = Annotated[float, NUMBER]
Positive = Annotated[float, Field(gt=0), NUMBER]
NotNegative = Annotated[float, Field(ge=0), NUMBER]
Fraction = Annotated[float, Field(gt=0, lt=1), NUMBER]
Share = Annotated[float, Field(ge=0, le=1), NUMBER]
Count = Annotated[int, Field(ge=1), WHOLE]
Boolean = Annotated[bool, BeforeValidator(read_boolean)]
AutoOrBoolean = Annotated[Literal["auto", True, False], BeforeValidator(read_auto_or_boolean)]
Auto = Annotated[T | None, BeforeValidator(nothing_for_auto), AlsoTakes(({"const": "auto"},))]
Choice = Annotated[T, BeforeValidator(to_lower_case)]  # Choice[Literal["one", "other"]]


# ------------------------------------------------------------------------------------------------ text


def read_text(value: object) -> object:
    """Whole numbers are text as they are written (a column named 2019, an id)."""
    if isinstance(value, str) and not value.strip():
        raise unsuitable()
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def read_cell(value: object) -> object:
    """A value as it is in a table: any text, also none; numbers, true and false are taken as they are written."""
    if value is None:
        raise unexpected(value, "the text of a cell (write '' for empty cells)")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(int(value)) if math.isfinite(value) and value == int(value) else str(value)
    return value


def read_name(value: object) -> str:
    """A name that the run folder can use."""
    text = str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    if not text.strip():
        raise unexpected(value, "a name")
    bad = next((c for c in text if c in NOT_IN_A_NAME or not c.isprintable()), None)
    if bad is not None or text != text.strip():
        what = "a blank at its end" if bad is None else f"the character {bad!r}"
        raise wrong(
            f"found the name {show(text)} with {what}, needed a name without {' '.join(NOT_IN_A_NAME)} "
            "(the column may have any name)"
        )
    return text


def read_term_name(value: object) -> str:
    """A name of an effect: of one column, or of several columns with ':' between them."""
    if not isinstance(value, str) or ":" not in value:
        return read_name(value)
    for name in value.split(":"):
        if not name.strip():
            raise wrong(f"found the name {show(value)}, needed names of columns on both sides of ':', such as sex:age")
        read_name(name)
    return value


Text = Annotated[str, BeforeValidator(read_text)]
Column = Annotated[Text, Expected("the name of a column")]
TraitName = Annotated[Text, Expected("the name of a trait")]
Identifier = Annotated[Text, Expected("an id")]
Pattern = Annotated[Text, Expected("a pattern")]
Name = Annotated[str, BeforeValidator(read_name)]
TermName = Annotated[str, BeforeValidator(read_term_name)]
ByName = dict[Name, T]  # in the order written
Cell = Annotated[
    str,
    BeforeValidator(read_cell),
    Expected("the text of a cell"),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]


# ------------------------------------------------------------------------------------------------ lists


def read_list(value: object) -> object:
    """Read a list; one value may be without its brackets."""
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


def check_unique(values: tuple[T, ...]) -> tuple[T, ...]:
    if len(set(values)) < len(values):
        twice = next(v for i, v in enumerate(values) if v in values[:i])
        raise wrong(f"found {show(twice)} twice, needed every value once")
    return values


_LIST = BeforeValidator(read_list)
ListOf = Annotated[tuple[T, ...], _LIST, AfterValidator(check_unique)]
Some = Annotated[tuple[T, ...], Field(min_length=1), _LIST, AfterValidator(check_unique)]  # one or more
Repeated = Annotated[tuple[T, ...], Field(min_length=1), _LIST]  # in which values may repeat
Columns = Annotated[Some[Column], Expected("the names of one or more columns")]
TraitNames = Annotated[Some[TraitName], Expected("the names of one or more traits")]
Cells = Annotated[ListOf[Cell], Expected("a list of values as they are in the table")]


def read_range(value: object) -> object:
    if isinstance(value, list) and len(value) != 2:
        raise unsuitable()
    return tuple(value) if isinstance(value, list) else value


def check_range(limits: tuple[float, float]) -> tuple[float, float]:
    low, high = limits
    if not low < high:
        raise wrong(f"found [{low:g}, {high:g}], needed two numbers [low, high], low below high")
    return limits


Range = Annotated[
    tuple[Number, Number],
    BeforeValidator(read_range),
    AfterValidator(check_range),
    Expected("two numbers [low, high], low below high"),
    WithJsonSchema({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}),
]


def read_matrix(value: object) -> object:
    """A list of rows; a number is a 1 x 1 matrix."""
    if isinstance(value, list):
        return tuple(tuple(row) if isinstance(row, list) else row for row in value)
    number = read_number(value)
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    return ((number,),) if is_number else number


Row = Annotated[tuple[Number, ...], Field(min_length=1), Expected("a list of numbers: [[a, b], [b, c]]")]
# Its size is judged where the model is known.
Matrix = Annotated[
    tuple[Row, ...],
    Field(min_length=1),
    BeforeValidator(read_matrix),
    Expected("a number or a matrix (a list of rows)"),
    AlsoTakes(({"type": "number"},)),
]
Rows = tuple[tuple[float, ...], ...]


# ------------------------------------------------------------------------------------------------ files and columns


def read_path(value: object) -> object:
    """A path, ~ for the home directory."""
    if isinstance(value, Path):
        return value
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise unexpected(value, "the path of a file")
    try:
        return Path(value).expanduser()
    except RuntimeError:
        raise wrong(f"found {show(value)}, but there is no such home directory") from None


def is_path_or_list(value: object) -> bool:
    """A path, or a list of paths: no mapping."""
    return isinstance(value, (str, Path, list, tuple))


def read_table(value: object) -> object:
    """The path of a table, or (from Python) a data frame: see frames.py."""
    if isinstance(value, str):
        return read_path(value)
    if value is None:
        raise unexpected(value, "the path of a file")
    import polars as pl

    if isinstance(value, pl.LazyFrame):
        raise wrong("found a LazyFrame, needed a path or a DataFrame (call .collect())")
    try:
        frame = as_polars(value)
    except ValueError as error:
        raise wrong(f"found {error}, needed a path or a data frame") from None
    if frame is None:
        raise unsuitable()
    return frame


def read_separator(value: object) -> object:
    """Read a separator of one character; ' ' means any white space."""
    words = {"whitespace": " ", "space": " ", "blank": " ", "tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}
    text = words.get(value, value) if isinstance(value, str) else value
    if not isinstance(text, str) or len(text.encode()) != 1 or text in '"\n\r\0':
        raise unsuitable()
    return text


def read_column_or_position(value: object) -> object:
    """A column by its name or, as a number without quotation marks, by its position from 1."""
    if isinstance(value, int) or (isinstance(value, Plain) and as_number(value) is not None):
        number = read_whole_number(value)
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise unexpected(value, "a whole number of at least 1")
        return number
    if not isinstance(value, str) or not value.strip():
        raise unsuitable()
    return str(value)


FilePath = Annotated[Path, BeforeValidator(read_path), WithJsonSchema({"type": "string"})]
Table = Annotated[
    Any,
    BeforeValidator(read_table),
    Expected("the path of a file (or, from Python, a data frame such as those of Polars and pandas)"),
    WithJsonSchema({"type": "string"}),
]
Separator = Annotated[
    str,
    BeforeValidator(read_separator),
    Expected("one character, tab or whitespace"),
    WithJsonSchema({"type": "string"}),
]
ColumnOrPosition = Annotated[
    str | int,
    BeforeValidator(read_column_or_position),
    Expected("the name or the position (from 1) of a column"),
]


# ------------------------------------------------------------------------------------------------ intervals


@dataclass(frozen=True)
class Interval:
    """Interval of so many sweeps, or minutes."""

    every: float
    unit: str  # 'sweeps' | 'minutes'

    def __str__(self) -> str:
        return f"{self.every:g}m" if self.unit == "minutes" else f"{int(self.every)}"


def read_interval(value: object) -> object:
    minutes = re.fullmatch(r"([0-9.]+) ?(m|min|minutes)", value.strip()) if isinstance(value, str) else None
    try:
        number = read_number(minutes[1]) if minutes else read_whole_number(value)
    except PydanticCustomError:
        raise unsuitable() from None
    least = 0 if minutes else 1
    if (
        isinstance(number, bool)
        or not isinstance(number, (int, float) if minutes else int)
        or number < least
        or not number
    ):
        raise unsuitable()
    return Interval(float(number), "minutes") if minutes else Interval(number, "sweeps")
