"""Traits: section `traits`: columns of values, or categories, bounds or counts with a liability behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, TypeAdapter

from mmgibbs.config.fields import Boolean, ByName, Cell, Cells, Choice, Column, Name, Section, Some
from mmgibbs.config.messages import Expected, Problems
from mmgibbs.config.text import is_nothing, show, spelled
from mmgibbs.models.families import FAMILIES, NORMAL

if TYPE_CHECKING:
    Type = str
else:  # made of FAMILIES, so that a new family is one line there
    Type = Choice[Literal[(NORMAL, *FAMILIES)]]
_MEANINGS = ["a normal value", *(family.meaning for family in FAMILIES.values())]


class Sides(Section):
    """What the cells of the column `censored` say of a record: the value is a bound from one side, or exact."""

    left: Cells = ()
    """Cells that mean: the true value is at most the recorded one."""

    right: Cells = ()
    """Cells that mean: the true value is at least the recorded one."""

    none: Cells = ()
    """Cells that mean: the recorded value is the true one."""

    def check(self, problems: Problems) -> None:
        seen: dict[str, str] = {}
        for side in ("left", "right", "none"):
            for cell in getattr(self, side):
                if spelled(cell) in seen:
                    also = seen[spelled(cell)]
                    problems.add((side,), f"found {cell!r}, which is also in {also}; needed it in one of them")
                seen[spelled(cell)] = side
        if not seen:
            problems.add((), "found no cell, needed left, right or none with the values that mean it")

    def items(self) -> list[tuple[str, tuple[str, ...]]]:
        return [(side, getattr(self, side)) for side in ("left", "right", "none")]


class Trait(Section):
    """A trait: its name, the column that has it, further texts that mean a missing value, and its type."""

    filled_in: ClassVar = ("name",)
    name: str = ""
    column: Column = ""
    """Column of the records. Default: the name of the trait."""

    missing: Cells = ()
    """Further cells that mean a missing value of this trait."""

    by: Column | None = None
    """Column of the environments, such as sites or years: each has a trait of its own, called TRAIT|LEVEL, with the
    records in it. Effects on TRAIT are effects on all of them. Default: one trait."""

    where: dict[Column, Cell] = {}
    """Records that have the trait: column -> its cell, as in {site: S1}. Default: every record with a value."""

    type: Annotated[Type, Field(description=f"Type of the trait: {', '.join(_MEANINGS[:-1])}, or {_MEANINGS[-1]}.")] = (
        NORMAL
    )

    categories: Annotated[Some[Cell], Expected("the categories from low to high")] | None = None
    """Categories of an ordinal trait from low to high. Default: the numbers found, in order."""

    positive: Cell | None = None
    """Cell of a binary trait that counts as yes. Default: the larger of two numbers; needed for words."""

    lower: Column | None = None
    """Column of the lower bound of a censored trait; an empty cell means that there is none."""

    upper: Column | None = None
    """Column of the upper bound of a censored trait; an empty cell means that there is none."""

    log: Boolean = False
    """Analyse the logarithm of a censored trait."""

    censored: Column | None = None
    """Column that says whether the value of a censored trait is exact or a bound."""

    values: Sides | None = None
    """What the cells of the column `censored` mean."""

    exposure: Column | None = None
    """Column with the time or the area that a count belongs to."""

    def check(self, problems: Problems) -> None:
        for key, types in self._types_of_keys().items():
            if getattr(self, key) not in (None, False) and self.type not in types:
                problems.add((key,), f"cannot be combined with type: {self.type}; needed type: {' or '.join(types)}")
        for key, message in () if self.is_normal else FAMILIES[self.type].check(self):
            problems.add((key,), message)
        both = set(map(spelled, self.missing)) & self.named_categories
        if both:
            problems.add(
                ("missing",), f"found {sorted(both)[0]!r}, which is a category too; needed it to mean one thing"
            )
        if self.categories is not None and len(set(map(spelled, self.categories))) < len(self.categories):
            alike = [c for c in self.categories if list(map(spelled, self.categories)).count(spelled(c)) > 1]
            problems.add(
                ("categories",), f"found {' and '.join(map(repr, alike))}, which mean the same; needed each once"
            )
        if self.categories is not None and len(self.categories) < 2:
            problems.add(("categories",), f"found {len(self.categories)}, needed two or more, from low to high")

    @property
    def is_normal(self) -> bool:
        """True if the records are the values of the trait, with no liability behind them."""
        return self.type == NORMAL

    @property
    def has_unit_residual(self) -> bool:
        """True if its residual variance is 1 by convention."""
        return not self.is_normal and FAMILIES[self.type].has_unit_residual

    @property
    def named_categories(self) -> set[str]:
        """The categories that the file names, as they are commonly written."""
        return {spelled(c) for c in (*(self.categories or ()), *(() if self.positive is None else (self.positive,)))}

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The columns that its values, or their bounds, are read from."""
        return (self.lower, self.upper) if self.lower and self.upper else (self.column,)

    def is_apart(self, other: Trait) -> bool:
        """Check that no record can have both traits, by their `where`."""
        return any(other.where.get(column, cell) != cell for column, cell in self.where.items())

    def as_file(self) -> dict[str, Any]:
        file = super().as_file()
        if self.lower or self.upper:
            file.pop("column", None)
        file.pop("by")  # its levels are traits
        if not self.where:
            file.pop("where")
        types = self._types_of_keys()
        return {key: value for key, value in file.items() if key not in types or self.type in types[key]}

    @classmethod
    def _types_of_keys(cls) -> dict[str, list[str]]:
        """Types that take each key that not every trait has."""
        takers = {key: [kind for kind, family in FAMILIES.items() if key in family.keys] for key in cls.model_fields}
        return {key: kinds for key, kinds in takers.items() if kinds}


def check_columns_of_values(traits: Sequence[Trait], problems: Problems) -> None:
    """Add a problem for two traits of the same records that read the same columns."""
    for i, trait in enumerate(traits):
        for other in traits[:i]:
            if other.value_columns == trait.value_columns and not trait.is_apart(other):
                columns = " and ".join(map(show, trait.value_columns))
                has, ones = (
                    ("columns", "different ones") if len(trait.value_columns) > 1 else ("column", "a different one")
                )
                problems.add(
                    ("traits", trait.name), f"trait {show(other.name)} has its {has} {columns} already, needed {ones}"
                )
                break


_NAMES: TypeAdapter[tuple[str, ...]] = TypeAdapter(Some[Name])
_TRAITS: TypeAdapter[dict[str, Trait]] = TypeAdapter(ByName[Trait])


def read_traits(value: object) -> object:
    """A list of columns, or a mapping from names to their keys."""
    if is_nothing(value):
        return ()
    if isinstance(value, dict):
        named = _TRAITS.validate_python(value)
    else:
        named = {name: Trait() for name in _NAMES.validate_python(value)}
    return tuple(t.model_copy(update={"name": name, "column": t.column or name}) for name, t in named.items())


Traits = Annotated[
    tuple[Trait, ...],
    BeforeValidator(read_traits, json_schema_input_type=Some[Name] | ByName[Trait]),
    Expected("the names of one or more traits"),
]
