"""Options of a plugin: a frozen dataclass with defaults, filled from a mapping, with errors that name the option."""

from __future__ import annotations

import dataclasses
import math
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from mmgibbs.errors import ConfigError, nearest


class OptionsClass(Protocol):
    """A dataclass."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


AUTO = "auto"  # of an option that the sampler sets by the data
MIN_MAGNITUDE, MAX_MAGNITUDE = 1e-70, 1e70  # of a number: its fourth power is still a number
MAX_WHOLE_NUMBER = 2**53  # beyond which float64 skips some
Options = TypeVar("Options", bound=OptionsClass)


@dataclasses.dataclass(frozen=True)
class Choice:
    """The value that an option given as "auto" is set to."""

    value: Any
    why: str  # "poisson: ...", without the option's name or its value


def read_choices(sampler: object) -> dict[str, Choice]:
    """Return the choices of a sampler (`choices`, see protocol.Sampler); empty where it has nothing to choose."""
    return dict(getattr(sampler, "choices", {}))


def options_in_use(options: OptionsClass, choices: Mapping[str, Choice]) -> dict[str, Any]:
    """Return every option by name, "auto" replaced by the value that was chosen."""
    return vars(options) | {name: choice.value for name, choice in choices.items()}


def words_of_choices(choices: Mapping[str, Choice]) -> list[str]:
    """Describe each choice in a line: 'method polya_gamma (auto: ...)'."""
    return [f"{name} {_as_in_yaml(choice.value)} (auto: {choice.why})" for name, choice in choices.items()]


def _as_in_yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def option(
    default: Any, help: str, *, above: float | None = None, least: float | None = None, most: float | None = None
) -> Any:
    """A field of an `Options` dataclass: its default, its help text, the values it admits."""
    return dataclasses.field(default=default, metadata={"help": help, "above": above, "least": least, "most": most})


def fill_options(kind: type[Options], given: Mapping[str, Any], path: str = "model.options") -> Options:
    """kind(**given) after checks of names, types and ranges. ConfigError names the option, what was found and needed.

    Types: bool, int, float, str, Literal[...], and any of these `| None`; a float option takes whole numbers too.
    """
    hints = get_type_hints(kind)
    fields = {f.name: f for f in dataclasses.fields(kind)}
    for name in given:
        if name not in fields:
            raise ConfigError(f"{path}.{name}: unknown option; {nearest(str(name), fields, 'the options are')}")
    return kind(
        **{name: _checked(value, hints[name], fields[name].metadata, f"{path}.{name}") for name, value in given.items()}
    )


def _checked(value: Any, hint: Any, limits: Mapping[str, Any], path: str) -> Any:
    kinds = [k for k in (get_args(hint) if get_origin(hint) not in (None, Literal) else (hint,)) if k is not type(None)]
    if value is None and type(None) in get_args(hint):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    for kind in kinds:
        if get_origin(kind) is Literal:
            if isinstance(value, str) and value in get_args(kind):
                return value
        elif kind is float and _is_real(value):
            if value and not MIN_MAGNITUDE <= abs(value) <= MAX_MAGNITUDE:
                raise ConfigError(
                    f"{path}: found {value:g}, needed a number from {MIN_MAGNITUDE:g} to {MAX_MAGNITUDE:g} in size"
                )
            return _check_range(float(value), limits, path)
        elif kind is int and isinstance(value, int) and not isinstance(value, bool):
            if abs(value) > MAX_WHOLE_NUMBER:
                raise ConfigError(f"{path}: found {value:g}, needed a whole number below {MAX_WHOLE_NUMBER:g}")
            return _check_range(value, limits, path)
        elif kind not in (int, float) and isinstance(kind, type) and isinstance(value, kind):
            return value
    raise ConfigError(f"{path}: found {reprlib.repr(value)}, needed {_needed(kinds, type(None) in get_args(hint))}")


def _is_real(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _check_range(value: float, limits: Mapping[str, Any], path: str) -> float:
    above, least, most = limits.get("above"), limits.get("least"), limits.get("most")
    if above is not None and not value > above:
        raise ConfigError(f"{path}: found {value}, needed a number above {above:g}")
    if least is not None and value < least:
        raise ConfigError(f"{path}: found {value}, needed at least {least:g}")
    if most is not None and value > most:
        raise ConfigError(f"{path}: found {value}, needed at most {most:g}")
    return value


def _needed(kinds: Sequence[Any], optional: bool) -> str:
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    parts: list[str] = []
    for kind in kinds:
        parts += (
            [repr(v) for v in get_args(kind)]
            if get_origin(kind) is Literal
            else [words.get(kind, getattr(kind, "__name__", str(kind)))]
        )
    return " or ".join(parts + (["nothing"] if optional else []))
