"""The tables of an analysis and its traits: sections `data` and `traits`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import model_validator

from mmgibbs.config.fields import (
    Problems,
    Section,
    a_boolean,
    a_cell,
    a_column,
    a_path,
    a_separator,
    a_table,
    accepted_by,
    accepts,
    any_of,
    checked,
    list_of,
    name_or_position,
    number,
    one_of,
    plain,
    whole_number,
    wrong,
)  # fmt: skip
from mmgibbs.config.genotypes import Genotypes
from mmgibbs.config.text import as_number, is_nothing

_widths = list_of(whole_number(1), "the width of each column in characters", unique=False)
_cells = list_of(a_cell, "a list of values as they are in the table", empty=True)


@accepts(any_of(accepted_by(name_or_position), {"type": "null"}))
def _column_of_parent(value: object) -> str | int:
    """A column by name or position; empty for none."""
    return "" if value == "" else name_or_position(value)


class PedigreeColumns(Section):
    """Columns of the pedigree, by name or by position from 1. Those that are not given are found by their names; null
    for the sire or the dam of a pedigree without sires or without dams.
    """

    id: Annotated[str | int | None, checked(name_or_position)] = None
    """Column of the animal, by name or by position from 1."""

    sire: Annotated[str | int | None, checked(_column_of_parent)] = None
    """Column of the sire; null for a pedigree without sires."""

    dam: Annotated[str | int | None, checked(_column_of_parent)] = None
    """Column of the dam; null for a pedigree without dams."""

    birth: Annotated[str | int | None, checked(name_or_position)] = None
    """Column of the year or date of birth (2011, 2011-03-04 or 04.03.2011)."""

    @property
    def given(self) -> dict[str, str | int | None]:
        """Column by role; None for a parent that the pedigree does not have."""
        columns = {key: getattr(self, key) for key in ("id", "sire", "dam", "birth")}
        return {key: column or None for key, column in columns.items() if column is not None}

    @classmethod
    def long_form(cls, value: object) -> object:
        """A parent without a column is kept apart from one whose column is to be found."""
        if not isinstance(value, dict):
            return value
        return {key: "" if key in ("sire", "dam") and is_nothing(v) else v for key, v in value.items()}

    def as_file(self) -> Any:
        return {key: plain(column) for key, column in self.given.items()}

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.sire == "" and self.dam == "":
            raise wrong("found neither a sire nor a dam, needed one of them at least")
        columns = [c for c in self.given.values() if c is not None]
        if len({type(c) for c in columns}) > 1:
            raise wrong("names cannot be combined with positions; needed either names or positions")
        if len(set(columns)) < len(columns):
            raise wrong("found the same column twice, needed a column of its own for each")
        if columns and isinstance(columns[0], int) and not {"id", "sire", "dam"} <= self.given.keys():
            raise wrong("found positions for some columns only, needed one each for id, sire and dam")
        return self


_gamma = number("a number above 0 and below 2, genotypes, or the path of a table", above=0, below=2)


@accepts(any_of({"const": "genotypes"}, {"type": "string"}, accepted_by(_gamma)))
def a_gamma(value: object) -> float | str | Path:
    """A number, the word genotypes, or the path of a table."""
    if isinstance(value, str) and value.lower() == "genotypes":
        return "genotypes"
    if isinstance(value, str) and ("." in value or "/" in value) and as_number(value) is None:
        return a_path(value)
    return _gamma(value)


class Groups(Section):
    """Unknown-parent groups: the pedigree column that names the group of an animal's unknown parents."""

    column: Annotated[str, checked(a_column)]
    """Column of the pedigree with the group of an animal's unknown parents."""

    effect: Annotated[str, checked(one_of("random", "fixed", "metafounders"))] = "random"
    """random or fixed: the effect of a group is added to its animals' breeding values; metafounders: groups are base
    populations whose animals are related, also to those of other groups."""

    gamma: Annotated[float | str | Path | None, checked(a_gamma)] = None
    """Relationships of metafounders: a number (of each with itself; none between them), a table with columns of two
    metafounders and their relationship, or genotypes (estimated from them)."""

    reference: Annotated[str | None, checked(a_cell)] = None
    """With fixed groups: the group whose effect is set to 0, the base of the breeding values. Default: the group with
    the oldest animals (by their births, or by the number of generations after them)."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        problems = Problems()
        if self.effect != "fixed" and self.reference is not None:
            problems.add(
                ("reference",), f"cannot be combined with effect: {self.effect}, whose base is its mean; needed fixed"
            )
        if self.effect == "metafounders" and self.gamma is None:
            problems.add(("gamma",), "missing, needed a number, the path of a table, or genotypes (estimates it)")
        if self.effect != "metafounders" and self.gamma is not None:
            problems.add(("gamma",), f"cannot be combined with effect: {self.effect}; it belongs to metafounders")
        problems.refuse()
        return self


class Data(Section):
    """The tables. Paths are relative to the analysis file."""

    phenotypes: Annotated[Any, checked(a_table)]
    """The table of records: csv, tsv, white-space separated, parquet or arrow. Paths are relative to this file."""

    pedigree: Annotated[Any, checked(a_table)] = None
    """The table of animals with their sires and dams."""

    separator: Annotated[str | None, checked(a_separator)] = None
    """Character between the columns of the records, or whitespace for any white space. Default: guessed."""

    pedigree_separator: Annotated[str | None, checked(a_separator)] = None
    """Character between the columns of the pedigree, or whitespace. Default: guessed."""

    widths: Annotated[tuple[int, ...] | None, checked(_widths)] = None
    """Widths of the columns of the records in characters, where they are fixed and no character is between them."""

    pedigree_widths: Annotated[tuple[int, ...] | None, checked(_widths)] = None
    """Widths of the columns of the pedigree in characters, where they are fixed."""

    header: Annotated[tuple[str, ...] | None, checked(list_of(a_column, "the names of the columns"))] = None
    """Names of the columns of records without a header line."""

    missing: Annotated[tuple[str, ...], checked(_cells)] = ("", "NA")
    """Cells of the records that mean a missing value."""

    decimal: Annotated[Literal[".", ","] | None, checked(one_of(".", ","))] = None
    """Decimal mark of the records, '.' or ','; the other may separate thousands. It decides what can be read in two
    ways: 1,205 and 1.205. Default: the point, and the comma in a column where it can be nothing else."""

    weights: Annotated[str | None, checked(a_column)] = None
    """Column of the weights of the records: the residual variance of a record is divided by its weight."""

    pedigree_columns: PedigreeColumns | None = None
    """Which columns of the pedigree have id, sire, dam and birth. Default: found by their names."""

    pedigree_header: Annotated[bool | None, checked(a_boolean)] = None
    """Whether the pedigree has a header line. Default: guessed."""

    unknown_parent: Annotated[tuple[str, ...], checked(_cells)] = ("", "NA", "0")
    """Cells of the pedigree that mean an unknown parent."""

    add_missing_animals: Annotated[bool, checked(a_boolean)] = False
    """Add parents, and animals with records, that have no row in the pedigree."""

    inbreeding: Annotated[str, checked(one_of("account", "ignore"))] = "account"
    """account: the inverse relationship matrix accounts for inbreeding; ignore: it does not."""

    groups: Groups | None = None
    """Unknown-parent groups. Default: none."""

    genotypes: Genotypes | None = None
    """The file of genotypes, or a mapping with the file and how to read it."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        problems = Problems()
        if self.pedigree is None:
            for key in ("pedigree_separator", "pedigree_widths", "pedigree_columns", "pedigree_header", "groups"):
                if getattr(self, key) is not None:
                    problems.add((key,), "found without a pedigree, needed data.pedigree")
        for key in ("", "pedigree_"):
            if getattr(self, f"{key}widths") is not None and getattr(self, f"{key}separator") is not None:
                problems.add(
                    (f"{key}widths",),
                    f"cannot be combined with {key}separator; needed one of them: columns have fixed "
                    "widths or a character between them",
                )
        if self.groups is not None and self.groups.effect == "metafounders":
            if self.inbreeding == "ignore":
                problems.add(
                    ("inbreeding",), "ignore cannot be combined with metafounders, whose relationships are inbreeding"
                )
            if self.groups.gamma == "genotypes" and self.genotypes is None:
                problems.add(("groups", "gamma"), "found genotypes, but the analysis has none: needed data.genotypes")
        if self.pedigree is not None and self.pedigree_header is False and self.pedigree_columns is not None:
            if any(isinstance(c, str) for c in self.pedigree_columns.given.values()):
                problems.add(
                    ("pedigree_columns",),
                    "names of columns cannot be combined with pedigree_header: false; needed positions (1, 2, 3)",
                )
        problems.refuse()
        return self
