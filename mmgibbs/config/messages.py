"""What is wrong with an analysis: every error of pydantic becomes a sentence for a breeder, at its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import Tag, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import InitErrorDetails, PydanticCustomError

from mmgibbs.config.text import as_number, show
from mmgibbs.errors import nearest

if TYPE_CHECKING:
    from mmgibbs.config.fields import Section

Place = tuple[str, ...]  # keys from the section down to a value
_OURS, _UNSUITABLE = "ours", "unsuitable"  # types of our errors: with their message, or with that of the field


@dataclass(frozen=True)
class Expected:
    """Description, in `Annotated`, of the values of a field for messages, beside its bounds and choices."""

    text: str


def keys_by_kind(what: str) -> Expected:
    return Expected(f"a mapping from the name of each {what} to its keys")


def wrong(message: str) -> PydanticCustomError:
    """An error with its message."""
    return PydanticCustomError(_OURS, "{message}", {"message": message})


def unsuitable() -> PydanticCustomError:
    """An error of a value that its field does not take; the field says what it does."""
    return PydanticCustomError(_UNSUITABLE, "unsuitable")


def unexpected(value: object, expected: str) -> PydanticCustomError:
    return wrong(unexpected_text(value, expected))


def unexpected_text(value: object, expected: str) -> str:
    return f"found {show(value)}, needed {expected}"


class Problems:
    """Several things wrong with one section, each at its place in it."""

    def __init__(self) -> None:
        self.found: list[tuple[Place, str]] = []  # place, message

    def add(self, place: Sequence[str], message: str) -> None:
        self.found.append((tuple(place), message))

    def refuse(self) -> None:
        """Raise pydantic's ValidationError with all of them, if there are some."""
        if self.found:
            details = [InitErrorDetails(type=wrong(message), loc=place, input=None) for place, message in self.found]
            raise ValidationError.from_exception_data("analysis", details)


def listed_problems(error: ValidationError) -> list[tuple[Place, str]]:
    """Place and message of each problem of a section that was read; sections translate their errors themselves."""
    return [(tuple(map(str, e["loc"])), e["msg"]) for e in error.errors(include_url=False, include_input=False)]


def translate(section: type[Section], error: ValidationError, given: Mapping[str, Any], problems: Problems) -> None:
    """Add the errors of a section's fields; `given`: its keys as they were written."""
    fields, lists = section.fields_by_key(), set[object]()
    for e in error.errors(include_url=False, include_input=False):
        key, *rest = e["loc"]
        if e["type"] == "missing":
            problems.add((str(key), *map(str, rest)), "missing, needed here")
            continue
        is_of_a_list = any(isinstance(step, int) for step in rest) or e["type"] == "too_short"
        if is_of_a_list:  # one problem of a list is enough
            if key in lists:
                continue
            lists.add(key)
        place, at, kind, value = _located(_annotation(fields[str(key)]), rest, given.get(str(key)))
        message = e["msg"] if e["type"] == _OURS else unexpected_text(value, _expected_text(kind, value))
        problems.add((str(key), *place), at + message)


def _annotation(field: FieldInfo) -> Any:
    """The annotation as it stands in the class: pydantic keeps its metadata apart."""
    return Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation


def _located(kind: Any, location: Sequence[str | int], value: Any) -> tuple[Place, str, Any, Any]:
    """Place below the field, the item of a list in words, type and value, of an error at a location of pydantic."""
    place: list[str] = []
    item = ""
    for i, key in enumerate(location):
        inner = _plain(kind)[0]
        if isinstance(key, int):
            items = get_args(inner)
            kind = items[0] if items[-1] is Ellipsis else items[key]
            if isinstance(value, list):
                of = "row {} of the matrix: " if get_origin(_plain(kind)[0]) is tuple else "value {} of the list: "
                item, value = item or of.format(key + 1), value[key]
        elif get_origin(inner) is dict:
            names, values = get_args(inner)
            is_name = location[i + 1 : i + 2] == ["[key]"]
            place.append(key)
            if is_name:
                return tuple(place), item, names, key
            kind, value = values, value.get(key) if isinstance(value, dict) else value
        elif (chosen := _tagged(inner, str(key))) is not None:
            kind = chosen
        else:  # a section, which has located its problems
            return (*place, *(str(p) for p in location[i:] if p != "[key]")), item, kind, value
    return tuple(place), item, kind, value


def _tagged(kind: Any, tag: str) -> Any:
    """The type with this tag of one of several; None where none has it."""
    several = get_args(kind) if get_origin(kind) in (Union, UnionType) else ()
    return next(
        (option for option in several if any(isinstance(m, Tag) and m.tag == tag for m in _plain(option)[1])), None
    )


def _plain(kind: Any) -> tuple[Any, list[Any]]:
    """A type without `Annotated` and `| None`, and its metadata."""
    metadata: list[Any] = []
    while True:
        if get_origin(kind) is Annotated:
            kind, *more = get_args(kind)
            metadata = [*_flat(more), *metadata]
        elif get_origin(kind) in (Union, UnionType) and type(None) in get_args(kind) and len(get_args(kind)) == 2:
            kind = next(option for option in get_args(kind) if option is not type(None))
        else:
            return kind, metadata


def _flat(metadata: Sequence[Any]) -> Iterator[Any]:
    for item in metadata:
        yield from item.metadata if isinstance(item, FieldInfo) else [item]


def _expected_text(kind: Any, value: object) -> str:
    """Describe what a field takes: as it says itself, or by its choices or bounds; with a hint of what may be meant."""
    kind, metadata = _plain(kind)
    texts = [m.text for m in metadata if isinstance(m, Expected)]
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    text = texts[-1] if texts else _type_text(kind, choices, metadata)
    if choices and isinstance(value, str) and value:
        close = nearest(value, [c for c in choices if isinstance(c, str)])
        return f"{text}; {close}" if close.startswith("did") else text
    if _innermost(kind) is float and isinstance(value, str) and has_decimal_comma(value.strip()):
        return f"{text} (decimals follow a point)"
    return text


def has_decimal_comma(text: str) -> bool:
    return as_number(text) is None and as_number(text.replace(",", ".", 1)) is not None


def _type_text(kind: Any, choices: tuple[Any, ...], metadata: list[Any]) -> str:
    if choices:
        return listed([c if isinstance(c, str) else show(c) for c in choices])
    if kind is bool:
        return "true or false"
    if kind in (int, float):
        return _number(kind, metadata)
    return "text"


def _number(kind: type, metadata: list[Any]) -> str:
    """'a whole number from 1 to 20', 'a number above 0'."""
    bounds = {key: getattr(m, key) for m in metadata for key in ("gt", "ge", "lt", "le") if hasattr(m, key)}
    what = "a whole number" if kind is int else "a number"
    low, high = bounds.get("ge"), bounds.get("le")
    if "gt" in bounds and "lt" in bounds:
        return f"{what} between {bounds['gt']:g} and {bounds['lt']:g}"
    if "gt" in bounds:
        return f"{what} above {bounds['gt']:g}"
    if low is not None and high is not None:
        return f"{what} from {low if kind is int else format(low, 'g')} to {high if kind is int else format(high, 'g')}"
    if low is not None:
        return f"{what} of at least {low}" if kind is int else f"{what} of {low:g} or more"
    return what


def _innermost(kind: Any) -> Any:
    """The type of the items of a list of lists."""
    kind = _plain(kind)[0]
    return _innermost(get_args(kind)[0]) if get_origin(kind) is tuple else kind


def listed(words: Sequence[str]) -> str:
    """'a, b or c'."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
