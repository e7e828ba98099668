"""Levels that are the components of a covariance matrix: which structures need their order, and their distances."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mmgibbs.config.effects import Random
from mmgibbs.config.structures import Structure
from mmgibbs.config.text import as_number, show
from mmgibbs.config.traits import Trait
from mmgibbs.models.structures import STRUCTURES
from mmgibbs.models.structures.base import StructureForm

_NUMBER_IN_TEXT = re.compile(r"(\D*?)([0-9]+(?:\.[0-9]+)?)(\D*)")


class Levels(NamedTuple):
    """Levels of a column of environments."""

    names: Sequence[str]  # from first to last
    is_ordered: bool  # the table or the analysis file says so; False: words, in the order that is most likely


class GuessedOrder(NamedTuple):
    """Levels of a column that are words, in the order that is most likely."""

    column: str
    levels: tuple[str, ...]


class Compared(NamedTuple):
    """Subject of the components of a term: cells of one column, or traits."""

    column: str | None
    levels: tuple[str, ...]

    @property
    def name(self) -> str:
        return "the traits" if self.column is None else show(self.column)


def level_numbers(levels: Sequence[str]) -> tuple[float, ...] | None:
    """Return the numbers that levels are, or that stand in the same words ('week 2', 'week 10'); None for others."""
    numbers = [as_number(level) for level in levels]
    words: set[tuple[str, str]] = set()
    if any(number is None for number in numbers):
        parts = [_NUMBER_IN_TEXT.fullmatch(level) for level in levels]
        numbers = [None if part is None else float(part[2]) for part in parts]
        words = {(part[1].casefold().strip(), part[3].casefold().strip()) for part in parts if part is not None}
    known = tuple(float(number) for number in numbers if number is not None)
    return known if len(known) == len(set(known)) == len(levels) and len(words) < 2 else None


def compare_levels(random: Random, traits: Sequence[Trait]) -> Compared | None:
    """Return what the components are of, in their order; None for coefficients, and for traits of several effects."""
    if len(random.effects) != 1:
        return None
    (effect,) = random.effects.values()
    if effect.coefficients != ("",):
        return None
    of_name = {trait.name: trait for trait in traits}
    chosen = [of_name[name] for name in effect.traits if name in of_name]
    columns = {column for trait in chosen for column in trait.where}
    varying = [c for c in columns if len({trait.where.get(c) for trait in chosen}) == len(chosen)]
    if len({trait.value_columns for trait in chosen}) == 1 and len(varying) == 1:
        return Compared(varying[0], tuple(trait.where.get(varying[0], "") for trait in chosen))
    return Compared(None, tuple(trait.name for trait in chosen))


def find_order_problem(structure: Structure, random: Random, guessed: Mapping[str, GuessedOrder]) -> str | None:
    """Return what to say of components whose order the structure needs and nothing says; guessed: by their trait."""
    traits = [trait for effect in random.effects.values() for trait in effect.traits]
    form = StructureForm(structure.kind, len(traits), equal=structure.variances == "equal")
    order = next((guessed[trait] for trait in traits if trait in guessed), None)
    # two components may be those of a kind without an order
    if order is None or not STRUCTURES[structure.kind_class.simplify(form).kind].needs_order:
        return None
    listed = f"{{{show(order.column)}: [{', '.join(map(show, order.levels))}]}}"
    return (
        f"{structure.kind} needs the order of the levels of column {show(order.column)}, which are words; needed data."
        f"order: {listed}, from first to last (shown in the order that would be taken)"
    )


def component_positions(
    structure: Structure, random: Random, traits: Sequence[Trait]
) -> tuple[tuple[float, ...] | None, str | None]:
    """(positions of the components where they are not one step apart, what forbids them)."""
    if structure.distances != "numbers" or "distances" not in structure.kind_class.key_names:
        return None, None
    compared = compare_levels(random, traits)
    numbers = None if compared is None else level_numbers(compared.levels)
    if compared is None or numbers is None:
        got = "components of several effects or coefficients"
        if compared is not None:
            got = f"{', '.join(map(show, compared.levels[:5]))}{', ...' if len(compared.levels) > 5 else ''}"
        return None, f"found numbers, needed components that are levels with a number each (1, 2, 4; week 2); got {got}"
    gaps = {abs(b - a) for a, b in zip(numbers, numbers[1:], strict=False)}
    return (None if gaps == {1.0} else numbers), None


def _find_repeated_level(random: Random, traits: Sequence[Trait]) -> tuple[str, str] | None:
    """The first two traits of different columns of values that are of one level; None where there are none."""
    of_name, first = {trait.name: trait for trait in traits}, dict[tuple, Trait]()
    for name in (name for effect in random.effects.values() for name in effect.traits if of_name[name].where):
        other = first.setdefault(tuple(of_name[name].where.items()), of_name[name])
        if other.value_columns != of_name[name].value_columns:
            return other.name, name
    return None


def describe_order(structure: Structure, random: Random, traits: Sequence[Trait]) -> str | None:
    """Return what to warn of: levels of several traits in one line, or levels whose numbers are not equally far and
    that the structure counts so."""
    kind = structure.kind_class
    if kind.needs_order and (repeated := _find_repeated_level(random, traits)) is not None:
        return (
            f"{structure.kind} has the levels of several traits in one line, as {show(repeated[0])} and "
            f"{show(repeated[1])}: the last level of a trait comes before the first of the next; needed a random "
            "effect for each trait, or another structure"
        )
    counts_steps = "distances" in kind.key_names and structure.distances == "equal"
    compared = compare_levels(random, traits) if counts_steps else None
    numbers = None if compared is None else level_numbers(compared.levels)
    if compared is None or numbers is None or len(numbers) < 3:
        return None
    gaps = [abs(b - a) for a, b in zip(numbers, numbers[1:], strict=False)]
    if max(gaps) - min(gaps) <= 1e-9 * max(gaps):
        return None
    levels = ", ".join(map(show, compared.levels[:10])) + (", ..." if len(compared.levels) > 10 else "")
    return (
        f"{structure.kind} counts the levels of {compared.name} as equally far from each other, each one step from the "
        f"next: {levels}; for correlations over the distance of their numbers, write distances: numbers"
    )
