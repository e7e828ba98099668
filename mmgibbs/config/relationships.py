"""`relationship:` of a random term: how its levels are related, one class for each kind with the keys that it takes.

    relationship: pedigree                       a kind without keys by its name
    relationship: inverse.txt                    a file, {kind: file, file: inverse.txt}
    relationship: {kind: pedigree, ...}          a kind with keys of its own

A new kind is a class here and a line in KINDS; data/relationships.py makes the matrix, models/relationships holds it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, Union

from pydantic import BeforeValidator, Discriminator, Field, Tag

from mmgibbs.config.fields import (
    NUMBER,
    WHOLE,
    AlsoTakes,
    Boolean,
    Choice,
    Column,
    Count,
    FilePath,
    Fraction,
    Name,
    NotNegative,
    Positive,
    Schema,
    Section,
    Share,
    read_boolean,
    read_path,
)
from mmgibbs.config.genotypes import word_or_path
from mmgibbs.config.messages import Expected, Problems, unexpected
from mmgibbs.config.text import Plain, as_number, show
from mmgibbs.errors import nearest

if TYPE_CHECKING:
    from mmgibbs.config.tables import Data


class Relationship(Section):
    """A kind of relationship, and what the rest of an analysis must know of it."""

    name: ClassVar[str]
    related: ClassVar[bool] = True  # levels are not independent
    of_pedigree: ClassVar[bool] = False  # levels are the animals of data.pedigree
    of_genotypes: ClassVar[bool] = False  # made of data.genotypes
    needs_keys: ClassVar[bool] = False  # its name alone says too little

    @property
    def needs_pedigree(self) -> bool:
        """data.pedigree is read for it."""
        return self.of_pedigree

    @classmethod
    def long_form(cls, value: object) -> object:
        """`kind` has chosen this class already."""
        return {key: v for key, v in value.items() if key != "kind"} if isinstance(value, dict) else value

    @classmethod
    def edit_schema(cls, schema: Schema, resolve: Callable[[Schema], Schema]) -> None:
        schema["properties"]["kind"] = {"const": cls.name}

    @property
    def pedigree_columns(self) -> dict[str, str]:
        """Key -> column of the pedigree file that it takes beside id, sire and dam."""
        return {}

    @property
    def one_sex(self) -> bool:
        """No animal may be both sire and dam."""
        return True

    def refusals(self, data: Data) -> list[tuple[str, str]]:
        """(key, message) of what the section `data` says that it cannot go with; key '': the kind as a whole."""
        if self.of_pedigree and data.pedigree is None:
            return [("", f"found {self.name}, but the analysis has no pedigree: needed data.pedigree")]
        if self.of_genotypes and data.genotypes is None:
            return [("", f"found {self.name}, but the analysis has no genotypes: needed data.genotypes")]
        return []

    def with_paths(self, change: Callable[[Path], Path]) -> Self:
        """Itself with change(path) for every path."""
        return self

    @property
    def level_columns(self) -> tuple[str, ...]:
        """Columns of the records that make its levels; (): the effects say theirs."""
        return ()

    @property
    def number_columns(self) -> tuple[str, ...]:
        """Columns of numbers in the records that it needs beside them."""
        return ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters that it is estimated with, such as correlations."""
        return ()

    @property
    def lacks_parameters(self) -> bool:
        """It has parameters, and the file gives no values of them."""
        return False

    @property
    def has_free_parameters(self) -> bool:
        return False

    def with_fixed_parameters(self) -> Self:
        """Itself, its parameters held at the values of the file."""
        return self

    def as_file(self) -> str | dict:
        """The name alone where no key is set."""
        if all(getattr(self, key) == field.default for key, field in type(self).model_fields.items()):
            return self.name
        return {"kind": self.name} | super().as_file()


class Identity(Relationship):
    """Independent levels."""

    name = "identity"
    related = False


class Pedigree(Relationship):
    """Additive relationships of the pedigree file."""

    selfing: Column | None = None
    """Column of the pedigree: generations of selfing after the cross."""

    name = "pedigree"
    of_pedigree = True

    @property
    def pedigree_columns(self) -> dict[str, str]:
        return {} if self.selfing is None else {"selfing": self.selfing}

    @property
    def one_sex(self) -> bool:
        return self.selfing is None

    def refusals(self, data: Data) -> list[tuple[str, str]]:
        refusals = super().refusals(data)
        if self.selfing is not None and data.groups is not None and data.groups.effect == "metafounders":
            refusals.append(("selfing", "cannot be combined with metafounders"))
        if self.selfing is not None and data.inbreeding == "ignore":
            refusals.append(("selfing", "cannot be combined with data.inbreeding: ignore, as selfing is inbreeding"))
        return refusals


class File(Relationship):
    """A user's sparse inverse, rows `id1 id2 value`."""

    file: FilePath
    """File of the inverse of the relationship matrix: rows of two ids and a value."""

    name = "file"

    def with_paths(self, change: Callable[[Path], Path]) -> Self:
        return self.model_copy(update={"file": change(self.file)})

    def as_file(self) -> str:
        return str(self.file)


Correlation = Annotated[float, Field(ge=-0.995, le=0.995), NUMBER]
_CORRELATIONS = Expected("a correlation from -0.995 to 0.995, or a mapping such as {row: 0.4, column: 0.6}")
Correlations = Annotated[
    Annotated[Correlation, Tag("number")]
    | Annotated[dict[Name, Correlation], Field(min_length=1), _CORRELATIONS, Tag("each")],
    Discriminator(lambda value: "each" if isinstance(value, dict) else "number"),
]


class Autoregression(Relationship):
    """First-order autoregression (AR1): plots of a field in rows and columns, or records in time.

    The levels are the plots, or the times, of each level of `within`; the effect needs no `level`.
    """

    row: Column | None = None
    """Column of the rows of the field, whole numbers: neighbouring rows are correlated."""

    column: Column | None = None
    """Column of the columns of the field, whole numbers: neighbouring columns are correlated."""

    time: Column | None = None
    """Column of times: records d steps apart are correlated by rho^d."""

    within: Column | None = None
    """Column of the trials, or of the animals: their levels are independent of each other. Default: all records are of
    one."""

    step: Positive | None = None
    """Length of a step of `time`, which rho is the correlation over. Default: the smallest distance of two times."""

    rho: Correlations | None = None
    """Correlation of neighbours, where the estimates begin, or (`fixed`) their value: a number, or {row: R, column: C}.
    Default: 0.5."""

    fixed: Boolean = False
    """The correlations are known and stay at `rho`."""

    name = "ar1"
    related = False
    needs_keys = True

    @property
    def directions(self) -> tuple[str, ...]:
        """Directions of a field that have a correlation."""
        return tuple(key for key in self.parameters if key != "time")

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(key for key in ("row", "column", "time") if getattr(self, key) is not None)

    @property
    def level_columns(self) -> tuple[str, ...]:
        columns = (self.within, self.row, self.column, self.time)
        return tuple(column for column in columns if column is not None)

    @property
    def lacks_parameters(self) -> bool:
        return self.rho is None

    @property
    def has_free_parameters(self) -> bool:
        return not self.fixed

    def with_fixed_parameters(self) -> Self:
        return self.model_copy(update={"fixed": True})

    def starts(self) -> tuple[float, ...]:
        """Correlation of each direction, in the order of `parameters`."""
        if isinstance(self.rho, dict):
            return tuple(self.rho.get(key, 0.5) for key in self.parameters)
        return (0.5 if self.rho is None else self.rho,) * len(self.parameters)

    def check(self, problems: Problems) -> None:
        if not self.parameters:
            problems.add((), "found no direction, needed row, column or both, or time: the columns that have them")
        if self.time is not None and len(self.parameters) > 1:
            problems.add(("time",), "cannot be combined with row or column; needed two terms")
        if self.step is not None and self.time is None:
            problems.add(("step",), "found without time, which it belongs to")
        if len(set(self.level_columns)) < len(self.level_columns):
            problems.add((), "found one column twice, needed a column each for row, column, time and within")
        for key in self.rho if isinstance(self.rho, dict) else ():
            if key not in self.parameters:
                problems.add(("rho", key), f"found without {key}: COLUMN, needed {' and '.join(self.parameters)}")
        if isinstance(self.rho, dict) and self.fixed:
            for key in self.parameters:
                if key not in self.rho:
                    problems.add(("rho", key), "missing, needed the known correlation (fixed: true)")
        if self.fixed and self.rho is None:
            problems.add(("rho",), "missing, needed the known correlation (fixed: true)")


class RandomWalk(Relationship):
    """A curve over a covariate, through its observed values: a random walk of order 1, or of order 2, a smooth curve.

    The levels are the values of `of` within each level of `within`; the effect needs no `level`. Where the curve begins
    is an effect of the model: an intercept, and for order 2 a covariate, its slope.
    """

    of: Column
    """Column of the covariate."""

    order: Annotated[int, Field(ge=1, le=2), WHOLE] = 2
    """1: the curve changes from value to value at random, as a process in time; 2: its slope does, so it is smooth (the
    cubic smoothing spline)."""

    within: Column | None = None
    """Class column: each of its levels has a curve of its own. Default: one curve for all records."""

    name = "random_walk"
    related = False
    needs_keys = True

    @property
    def level_columns(self) -> tuple[str, ...]:
        return (self.of,) if self.within is None else (self.within, self.of)

    def check(self, problems: Problems) -> None:
        if self.of == self.within:
            problems.add(("within",), "found the column of `of`, needed another column, or none")


class Spline(Relationship):
    """A P-spline: a smooth curve over a covariate (`of`), or a smooth surface over the rows and columns of a field.

    The levels are the values of the covariate, or the plots, within each level of `within`; the effect needs no
    `level`. Polynomials, such as the line, are effects of the model. A surface has five parts (PS-ANOVA), each a random
    effect of its own: NAME_rows and NAME_columns, curves along them; NAME_rows_by_column and NAME_columns_by_row, whose
    height changes in the other direction; NAME_surface, what is smooth in both.
    """

    of: Column | None = None
    """Column of the covariate of a curve."""

    by: Column | None = None
    """Column that the curve is multiplied by, less its mean and in its standard deviations."""

    row: Column | None = None
    """Column of the rows of a field, whole numbers; with `column` a surface."""

    column: Column | None = None
    """Column of the columns of a field, whole numbers."""

    part: Choice[Literal["rows", "columns", "rows_by_column", "columns_by_row", "surface"]] | None = None
    """One part of a surface: rows, columns, rows_by_column, columns_by_row or surface. Default: all of them."""

    within: Column | None = None
    """Class column: each of its levels has a curve or surface of its own. Default: one for all records."""

    knots: Annotated[int, Field(ge=1, le=500), WHOLE] | None = None
    """Number of equal segments between knots. Default: 20 of a curve, 10 in each direction of a surface."""

    degree: Annotated[int, Field(ge=1, le=5), WHOLE] = 3
    """Degree of the B-splines."""

    order: Annotated[int, Field(ge=1, le=3), WHOLE] = 2
    """Order of the differences that are penalised: what is free is a polynomial of one degree less."""

    name = "spline"
    related = False
    needs_keys = True
    parts: ClassVar = {  # of a surface: (column of the curve, column that it is multiplied by)
        "rows": ("row", None),
        "columns": ("column", None),
        "rows_by_column": ("row", "column"),
        "columns_by_row": ("column", "row"),
        "surface": (None, None),
    }

    @property
    def keys_of_curve(self) -> tuple[str | None, str | None]:
        """Keys of the covariate and of the factor of a curve; (None, None) of a surface."""
        if self.of is not None:
            return "of", None if self.by is None else "by"
        return self.parts[self.part or "surface"]

    @property
    def directions(self) -> tuple[str, ...]:
        """Directions of a field; () of a curve."""
        return () if self.of is not None else ("row", "column")

    @property
    def segments(self) -> int:
        return self.knots or (20 if self.of is not None else 10)

    @property
    def level_columns(self) -> tuple[str, ...]:
        columns = self.within, self.of, self.row, self.column
        return tuple(column for column in columns if column is not None)

    @property
    def number_columns(self) -> tuple[str, ...]:
        factor = self.keys_of_curve[1]
        return () if factor is None else (getattr(self, factor),)

    def write_out(self) -> dict[str, Self]:
        """Part -> it alone, of a surface without `part`; '' -> itself of anything else."""
        if self.of is not None or self.part is not None:
            return {"": self}
        return {part: self.model_copy(update={"part": part}) for part in self.parts}

    def check(self, problems: Problems) -> None:
        of_field = [key for key in ("row", "column", "part") if getattr(self, key) is not None]
        if self.of is None and not {"row", "column"} <= set(of_field):
            problems.add((), "found no covariate, needed of: COLUMN for a curve, or row and column for a surface")
        if self.of is not None and of_field:
            problems.add((of_field[0],), "cannot be combined with of; needed two effects")
        if self.by is not None and self.of is None:
            problems.add(("by",), "found without of, the covariate of the curve that it multiplies")
        columns = [c for c in (self.of, self.by, self.row, self.column, self.within) if c is not None]
        if len(set(columns)) < len(columns):
            problems.add((), "found one column twice, needed a column each for of, by, row, column and within")
        if self.segments + self.degree <= self.order:
            problems.add(("knots",), f"found {self.segments}, needed more than order - degree")


_BASE = Expected("genotyped, recorded, half, base or the path of a file such as frequencies.txt")
BaseFrequencies = Annotated[  # as data.genotypes.frequencies, or base: those of the pedigree's base animals
    Annotated[Choice[Literal["genotyped", "recorded", "half", "base"]], _BASE, Tag("word")]
    | Annotated[FilePath, Tag("path")],
    Discriminator(word_or_path),
]


def _to_capitals(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


Partner = Annotated[
    Literal["A22", "I"],
    BeforeValidator(_to_capitals),
    Expected("A22 (pedigree relationships of the genotyped) or I"),
]


def _read_tuning(value: object) -> object:
    """true: A22; false: none."""
    value = read_boolean(value)
    if isinstance(value, bool):
        return "A22" if value else "none"
    lower = value.lower() if isinstance(value, str) else value
    return "A22" if lower == "a22" else lower


Tuning = Annotated[
    Literal["A22", "unit", "mean", "fst", "none"],
    BeforeValidator(_read_tuning),
    Expected("A22, unit, mean, fst, none, true (A22) or false (none)"),
    AlsoTakes(({"type": "boolean"},)),
]


class GenotypeRelationship(Relationship):
    """What those from genotypes have in common: a dense matrix, mixed with another so that it has an inverse."""

    blend: Share = 0.05
    """Share of the matrix that genomic relationships are mixed with, so that they have an inverse."""

    storage: Choice[Literal["double", "single"]] = "double"
    """Precision in which the inverse is stored, which each sweep reads; it is computed in double precision."""

    of_genotypes = True


class Core(Section):
    """The animals from which the inverse of genomic relationships is made: so many at random, as many as it takes to
    explain a share of the relationships, or those of a file.
    """

    size: Count | None = None
    """This number of animals, chosen at random."""

    explained: Fraction | None = None
    """As many animals, at random, as there are eigenvalues that make this share of the relationships, blended and tuned
    as they are inverted, such as 0.98."""

    file: FilePath | None = None
    """File with the id of an animal on each line."""

    seed: Annotated[int, Field(ge=0), WHOLE] = 1
    """Seed of the random choice."""

    short_forms: ClassVar = ({"type": "integer", "minimum": 1},)

    @classmethod
    def long_form(cls, value: object) -> object:
        """A number is its size: from Python, or as text of a file."""
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if isinstance(value, Plain):
            is_number = as_number(value) is not None
        return {"size": value} if is_number else value

    def check(self, problems: Problems) -> None:
        given = [key for key in ("size", "explained", "file") if getattr(self, key) is not None]
        if len(given) != 1:
            place = (given[-1] if given else "size",)
            problems.add(place, f"found {' and '.join(given) or 'none of them'}, needed one of size, explained, file")


class Genomic(GenotypeRelationship):
    """Additive relationships of genotyped animals from their genotypes (GBLUP)."""

    core: Core | None = None
    """Compute the inverse from a core of animals (APY); a number is its size. Default: the whole inverse."""

    method: Choice[Literal["vanraden1", "vanraden2"]] = "vanraden1"
    """vanraden1: one variance of all SNPs together; vanraden2: each SNP on its own scale."""

    frequencies: BaseFrequencies | None = None
    """Allele frequencies: those of the genotyped or recorded animals or of the base population, by the pedigree
    (genotyped, recorded, base), 0.5 (half), or the path of a table. Default: as data.genotypes.frequencies says."""

    blend_with: Annotated[Partner, Field(alias="with")] = "I"
    """What they are mixed with: A22 (pedigree relationships of the genotyped) or I."""

    name = "genomic"

    @property
    def needs_pedigree(self) -> bool:
        return self.of_pedigree or (self.blend > 0 and self.blend_with == "A22") or self.frequencies == "base"

    def refusals(self, data: Data) -> list[tuple[str, str]]:
        refusals = super().refusals(data)
        if not refusals and self.needs_pedigree and data.pedigree is None:
            key, value = ("frequencies", "base") if self.frequencies == "base" else ("with", "A22")
            refusals.append((key, f"found {value}, which is computed from the pedigree: needed data.pedigree"))
        return refusals

    def with_paths(self, change: Callable[[Path], Path]) -> Self:
        paths: dict[str, Any] = {}
        if isinstance(self.frequencies, Path):
            paths["frequencies"] = change(self.frequencies)
        if self.core is not None and self.core.file is not None:
            paths["core"] = self.core.model_copy(update={"file": change(self.core.file)})
        return self.model_copy(update=paths) if paths else self


class Dominance(GenotypeRelationship):
    """Dominance relationships of genotyped animals from their genotypes."""

    name = "dominance"

    def refusals(self, data: Data) -> list[tuple[str, str]]:
        of_a_file = "or, for dominance of a pedigree, the path of a file with the inverse of its matrix"
        return [(key, f"{message}, {of_a_file}") for key, message in super().refusals(data)]


class SingleStep(Genomic):
    """Relationships of a pedigree in which some animals are genotyped: one model for all of them."""

    blend_with: Annotated[Partner, Field(alias="with")] = "A22"
    """What they are mixed with: A22 (pedigree relationships of the genotyped) or I."""

    tune: Tuning = "A22"
    """Scale of the genomic relationships, after blending: means of the diagonal and off it as A22 (true), as I (unit),
    mean of all as A22 (mean), the same by Fst (fst), or as they are (none, false)."""

    tau: Positive = 1.0
    """Weight of the inverse of genomic relationships."""

    omega: NotNegative = 1.0
    """Weight of the inverse of the pedigree relationships of the genotyped."""

    outside_pedigree: Choice[Literal["refuse", "drop"]] = "refuse"
    """Genotyped animals that are not in the pedigree: refuse the analysis, or drop them."""

    name = "single_step"
    of_pedigree = True

    def refusals(self, data: Data) -> list[tuple[str, str]]:
        refusals = super().refusals(data)
        if data.groups is not None and data.groups.effect != "metafounders":
            refusals.append(
                (
                    "",
                    "cannot be combined with data.groups, which bias single-step evaluations; needed no groups, "
                    "data.groups.effect: metafounders, or relationship: pedigree",
                )
            )
        elif data.groups is not None:
            if (self.frequencies or (data.genotypes and data.genotypes.frequencies)) != "half":
                refusals.append(
                    ("frequencies", "needed half with metafounders, whose Gamma refers to frequencies of 1/2")
                )
            if self.tune != "none":
                refusals.append(("tune", "needed none with metafounders: Gamma does what tuning does"))
        return refusals


_SMOOTH, _OF_GENOTYPES = (Autoregression, RandomWalk, Spline), (Genomic, Dominance, SingleStep)
KINDS: dict[str, type[Relationship]] = {
    kind.name: kind for kind in (Identity, Pedigree, *_SMOOTH, File, *_OF_GENOTYPES)
}


# Kinds that need no key.
WORDS = [
    name
    for name, kind in KINDS.items()
    if not kind.needs_keys and not any(f.is_required() for f in kind.model_fields.values())
]


def read_relationship(value: object) -> object:
    """A mapping with its kind, also of a word, or of the path of a file: a lone word that is no kind is more likely a
    slip than a file.
    """
    if isinstance(value, dict):
        _check_kind(value.get("kind"))
        return value
    if value in WORDS or (isinstance(value, str) and value in KINDS and KINDS[value].needs_keys):
        return {"kind": str(value)}
    if not isinstance(value, str) or not any(mark in value for mark in "./\\"):
        raise unexpected(value, f"{', '.join(WORDS)} or the path of a file such as inverse.txt")
    return {"kind": "file", "file": read_path(value)}


def _check_kind(kind: object) -> None:
    problems = Problems()
    if kind is None:
        problems.add(("kind",), f"missing, needed one of {', '.join(KINDS)}")
    elif not isinstance(kind, str) or kind not in KINDS:
        problems.add(("kind",), f"found {show(kind)}; {nearest(str(kind), KINDS, 'the kinds are')}")
    problems.refuse()


if TYPE_CHECKING:
    AnyRelationship = Relationship
else:  # made of KINDS, so that a new kind is one line there
    AnyRelationship = Annotated[
        Union[tuple(Annotated[kind, Tag(name)] for name, kind in KINDS.items())],  # noqa: UP007 - of a tuple
        Discriminator(lambda value: value["kind"] if isinstance(value, dict) else value.name),
        BeforeValidator(read_relationship),
        AlsoTakes(({"enum": WORDS}, {"type": "string"})),
    ]
