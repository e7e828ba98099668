"""Arguments of a simulation, checked by name: from Python anything may come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mmgibbs.errors import ConfigError, is_command, option_name

LARGEST_SEED = 2**32 - 1


def check_integer(name: str, value: Any, least: int, most: int | None = None, which_is: str = "") -> int:
    """ConfigError unless `value` is a whole number from `least` to `most` (what that is); None: there is no largest."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, np.integer))
        or value < least
        or (most is not None and value > most)
    ):
        between = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise wrong(name, value, f"a whole number {between}" + (f", {which_is}" if which_is else ""))
    return int(value)


def check_number(name: str, value: Any, least: float, most: float) -> None:
    """ConfigError unless `value` is a number from `least` to `most`."""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:
        raise wrong(name, value, f"a number from {least:g} to {most:g}")


def share(name: str, value: Any, most: bool = False) -> float:
    """ConfigError unless `value` is a number between 0 and 1; most: 1 is one too."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not (0 < value < 1 or (most and value == 1)):
        raise wrong(name, value, "a number above 0 and up to 1" if most else "a share between 0 and 1")
    return float(value)


def several(name: str, value: Any, needed: str) -> tuple[Any, ...]:
    """The values of a sequence or of an array with one dimension; ConfigError for anything else, as for a text."""
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return tuple(value)
    array = np.asarray(value)
    if array.ndim != 1:
        raise wrong(name, value, needed)
    return tuple(array.tolist())


def population(n_animals: Any, seed: Any, years: Any) -> tuple[int, int, int]:
    """The three numbers that every simulation begins with."""
    animals = "animals" if is_command() else "n_animals"
    numbers = check_integer(animals, n_animals, 1), check_integer("seed", seed, 0, LARGEST_SEED)
    return *numbers, check_integer("years", years, 1)


def wrong(name: str, value: object, needed: str) -> ConfigError:
    shown = f"{value:g}" if isinstance(value, float) else repr(value)
    return ConfigError(f"{option_name(name)}: found {shown}, needed {needed}")
