"""The tables of an analysis and its traits: sections `data` and `traits`."""

from __future__ import annotations

import codecs
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from mmgibbs.config.fields import (
    NUMBER,
    Boolean,
    Cell,
    Cells,
    Choice,
    Column,
    ColumnOrPosition,
    Count,
    FilePath,
    Repeated,
    Section,
    Separator,
    Some,
    Table,
    plain,
    read_column_or_position,
)
from mmgibbs.config.genotypes import Genotypes
from mmgibbs.config.messages import Expected, Problems, unsuitable
from mmgibbs.config.text import as_number, is_nothing

MISSING = ("", "NA")  # cells of the records, unless the analysis says otherwise
UNKNOWN_PARENT = (*MISSING, "0")  # cells of the pedigree, the same
LevelsInOrder = Annotated[Some[Cell], Expected("the levels from first to last")]
Widths = Annotated[Repeated[Count], Expected("the width of each column in characters")]


def _read_encoding(value: str) -> str:
    try:
        b"a".decode(value)  # Python has encodings of other things too, such as hex
    except UnicodeDecodeError:  # of two bytes for a letter
        pass
    except (LookupError, ValueError):
        raise unsuitable() from None
    return codecs.lookup(value).name


Encoding = Annotated[
    Cell, AfterValidator(_read_encoding), Expected("the name of an encoding, as windows-1252 or cp850")
]
ParentColumn = Annotated[  # empty for none
    str | int,
    BeforeValidator(lambda value: value if value == "" else read_column_or_position(value)),
    Expected("the name or the position (from 1) of a column"),
]


def _kind_of_gamma(value: object) -> str:
    if isinstance(value, str) and value.lower() == "genotypes":
        return "word"
    is_path = isinstance(value, str) and ("." in value or "/" in value) and as_number(value) is None
    return "path" if is_path else "number"


_GAMMA = Expected("a number above 0 and below 2, genotypes, or the path of a table")
Gamma = Annotated[
    Annotated[float, Field(gt=0, lt=2), NUMBER, _GAMMA, Tag("number")]
    | Annotated[Choice[Literal["genotypes"]], Tag("word")]
    | Annotated[FilePath, Tag("path")],
    Discriminator(_kind_of_gamma),
]


class PedigreeColumns(Section):
    """Columns of the pedigree, by name or by position from 1. Those that are not given are found by their names; null
    for the sire or the dam of a pedigree without sires or without dams.
    """

    id: ColumnOrPosition | None = None
    """Column of the animal, by name or by position from 1."""

    sire: ParentColumn | None = None
    """Column of the sire; null for a pedigree without sires."""

    dam: ParentColumn | None = None
    """Column of the dam; null for a pedigree without dams."""

    birth: ColumnOrPosition | None = None
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

    def check(self, problems: Problems) -> None:
        columns = [c for c in self.given.values() if c is not None]
        if self.sire == "" and self.dam == "":
            problems.add((), "found neither a sire nor a dam, needed one of them at least")
        elif len({type(c) for c in columns}) > 1:
            problems.add((), "names cannot be combined with positions; needed either names or positions")
        elif len(set(columns)) < len(columns):
            problems.add((), "found the same column twice, needed a column of its own for each")
        elif columns and isinstance(columns[0], int) and not {"id", "sire", "dam"} <= self.given.keys():
            problems.add((), "found positions for some columns only, needed one each for id, sire and dam")


class Groups(Section):
    """Unknown-parent groups: a column of the pedigree with the group of an animal's unknown parents, or the names of
    groups that stand in place of sires and dams."""

    column: Column | None = None
    """Column of the pedigree with the group of an animal's unknown parents. Needed, or parents."""

    parents: Annotated[Cells, Expected("names of groups as they are in the columns of sires and dams")] = ()
    """Names in the columns of sires and dams that are groups and not animals, as [G1, G2]; * stands for any characters,
    as in UPG_*. Needed, or column."""

    effect: Choice[Literal["random", "fixed", "metafounders"]] = "random"
    """random or fixed: the effect of a group is added to its animals' breeding values; metafounders: groups are base
    populations whose animals are related, also to those of other groups."""

    gamma: Gamma | None = None
    """Relationships of metafounders: a number (of each with itself; none between them), a table with columns of two
    metafounders and their relationship, or genotypes (estimated from them)."""

    reference: Cell | None = None
    """With fixed groups: the group whose effect is set to 0, the base of the breeding values. Default: the group with
    the oldest animals (by their births, or by the number of generations after them)."""

    def check(self, problems: Problems) -> None:
        if (self.column is None) == (not self.parents):
            got = "neither column nor parents" if self.column is None else "both column and parents"
            problems.add((), f"found {got}, needed one of them")
        elif not all(name.strip("* ") for name in self.parents):
            problems.add(("parents",), "found a name of any characters, needed some that tell groups from animals")


class Data(Section):
    """The tables. Paths are relative to the analysis file."""

    phenotypes: Table
    """The table of records: csv, tsv, white-space separated, parquet or arrow. Paths are relative to this file."""

    pedigree: Table = None
    """The table of animals with their sires and dams."""

    separator: Separator | None = None
    """Character between the columns of the records, or whitespace for any white space. Default: guessed."""

    pedigree_separator: Separator | None = None
    """Character between the columns of the pedigree, or whitespace. Default: guessed."""

    encoding: Encoding | None = None
    """Encoding of the records where they are not UTF-8, as cp850 or windows-1250. Default: UTF-8, else Windows-1252."""

    pedigree_encoding: Encoding | None = None
    """Encoding of the pedigree, the same."""

    widths: Widths | None = None
    """Widths of the columns of the records in characters, where they are fixed and no character is between them."""

    pedigree_widths: Widths | None = None
    """Widths of the columns of the pedigree in characters, where they are fixed."""

    header: Annotated[Some[Column], Expected("the names of the columns")] | None = None
    """Names of the columns of records without a header line."""

    missing: Cells = MISSING
    """Cells of the records that mean a missing value."""

    decimal: Choice[Literal[".", ","]] | None = None
    """Decimal mark of the records, '.' or ','; the other may separate thousands. It decides what can be read in two
    ways: 1,205 and 1.205. Default: the point, and the comma in a column where it can be nothing else."""

    order: dict[Column, LevelsInOrder] = {}
    """Order of the levels of columns of the records, from first to last, as in {month: [jan, feb, mar]}: of traits by
    such a column (`by`), and of a column that is `time`, `of`, `row` or `column` of a relationship (ar1, random_walk,
    spline), where each level is one step from the next. Default: that of numbers, dates and ordered types."""

    weights: Column | None = None
    """Column of the weights of the records: the residual variance of a record is divided by its weight."""

    pedigree_columns: PedigreeColumns | None = None
    """Which columns of the pedigree have id, sire, dam and birth. Default: found by their names."""

    pedigree_header: Boolean | None = None
    """Whether the pedigree has a header line. Default: guessed."""

    unknown_parent: Cells = UNKNOWN_PARENT
    """Cells of the pedigree that mean an unknown parent."""

    add_missing_animals: Boolean = False
    """Add parents, and animals with records, that have no row in the pedigree."""

    inbreeding: Choice[Literal["account", "ignore"]] = "account"
    """account: the inverse relationship matrix accounts for inbreeding; ignore: it does not."""

    groups: Groups | None = None
    """Unknown-parent groups. Default: none."""

    genotypes: Genotypes | None = None
    """The file of genotypes, or a mapping with the file and how to read it."""

    @property
    def has_named_columns(self) -> bool:
        """Columns of the pedigree are given by names."""
        columns = () if self.pedigree is None or self.pedigree_columns is None else self.pedigree_columns.given.values()
        return any(isinstance(column, str) for column in columns)

    @property
    def has_metafounders(self) -> bool:
        return self.groups is not None and self.groups.effect == "metafounders"
