"""Starts and priors of covariance matrices: section `variances`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag

from mmgibbs.config.fields import (
    Boolean,
    ByName,
    Cell,
    Choice,
    Column,
    FilePath,
    Matrix,
    Schema,
    Section,
    Some,
    TermName,
    is_path_or_list,
)
from mmgibbs.config.messages import Problems, keys_by_kind
from mmgibbs.config.priors import FORMS, AnyPriorOrFlat
from mmgibbs.config.relationships import AnyRelationship
from mmgibbs.config.structures import WITH_FEWER_PARAMETERS, Structure

_ROWS = {"type": "array", "items": {"type": "number"}, "minItems": 1}
_MATRIX = ({"type": "number"}, {"type": "array", "items": _ROWS, "minItems": 1})


class Variance(Section):
    """The covariance matrix of a random term or of the residuals."""

    short_forms: ClassVar = _MATRIX

    start: Matrix | None = None
    """Starting value of the matrix, or its value if it is fixed: a number or a list of rows. Default: an equal split of
    the phenotypic variance."""

    fixed: Boolean = False
    """Fix the matrix at its starting value."""

    # None: flat; on traits in categories, where the file says nothing, see build/priors.py
    prior: Annotated[AnyPriorOrFlat, Field(description=f"{FORMS}. Default: flat; proper for traits in categories.")] = (
        None
    )

    structure: Annotated[
        Structure,
        Field(
            description="full; diagonal: no covariances between components; or a structure with fewer parameters: "
            f"{', '.join(WITH_FEWER_PARAMETERS)}, or a mapping {{kind, factors, variances, distances, loading_sd}}."
        ),
    ] = Structure()

    @classmethod
    def long_form(cls, value: object) -> object:
        """A number or a matrix is its start."""
        return value if isinstance(value, dict) else {"start": value}

    def as_file(self) -> dict:
        return super().as_file() | {"prior": "flat" if self.prior is None else self.prior.as_file()}


class KnownResidual(Section):
    """Residuals of known covariance: records that are adjusted means of a first analysis (`output.means`)."""

    short_forms: ClassVar = ({"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1})

    files: Annotated[
        Annotated[dict[Cell, FilePath], Field(min_length=1), Tag("each")] | Annotated[Some[FilePath], Tag("all")],
        Discriminator(lambda value: "each" if isinstance(value, dict) else "all"),
    ]
    """means_covariance.npz of the first analysis; a list of several; or {VALUE: PATH}, one for each value of `by`."""

    by: Column | None = None
    """Column of the records whose value says which file has their mean."""

    level: Column = "level"
    """Column of the records with the level of the mean, such as the line."""

    trait: Column | None = None
    """Column of the records with the trait of the mean in the first analysis. Default: trait, where records have such a
    column."""

    effect: Column | None = None
    """Column of the records with the effect of the mean. Default: effect, where records have such a column."""

    @classmethod
    def long_form(cls, value: object) -> object:
        """Paths alone are the files."""
        return {"files": value} if is_path_or_list(value) else value

    def check(self, problems: Problems) -> None:
        if isinstance(self.files, dict) and self.by is None:
            problems.add(("by",), "missing, needed the column whose values are those of files")
        if not isinstance(self.files, dict) and self.by is not None:
            problems.add(("files",), "found no values of `by`, needed {VALUE: PATH} for each of them, or no `by`")

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the records that it names, those that may be missing included."""
        return tuple(filter(None, (self.by, self.level, self.trait or "trait", self.effect or "effect")))

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(self.files.values() if isinstance(self.files, dict) else self.files)

    def with_paths(self, change: Callable[[Path], Path]) -> Self:
        """Replace every path by change(path)."""
        if isinstance(self.files, dict):
            changed: object = {value: change(path) for value, path in self.files.items()}
        else:
            changed = tuple(change(path) for path in self.files)
        return self.model_copy(update={"files": changed})


class ResidualClass(Section):
    """Keys of one class of residuals; those not given are as for all classes."""

    short_forms: ClassVar = _MATRIX

    start: Matrix | None = None
    """Starting value of the matrix of this class. Default: that of all classes."""

    fixed: Boolean | None = None
    """Fix the matrix of this class at its starting value. Default: as for all classes."""

    prior: AnyPriorOrFlat = None
    """Prior of the matrix of this class. Default: that of all classes."""

    relationship: AnyRelationship | None = None
    """Correlations of the residuals of this class. Default: those of all classes."""

    @classmethod
    def long_form(cls, value: object) -> object:
        """A number or a matrix is its start."""
        return value if isinstance(value, dict) else {"start": value}

    def as_file(self) -> dict:
        file = super().as_file() | {"prior": "flat" if self.prior is None else self.prior.as_file()}
        return {key: value for key, value in file.items() if (key, value) != ("relationship", None)}


class ResidualVariance(Variance):
    """The covariance matrix of the residuals: one, or one for each class of a column of the phenotypes."""

    by: Column | None = None
    """Column of the records: each of its values has its own residual matrix. Default: one matrix for all records."""

    classes: Annotated[ByName[ResidualClass], keys_by_kind("residual class")] = {}
    """Value of that column -> keys of its matrix alone."""

    relationship: AnyRelationship | None = None
    """ar1: residuals of neighbouring plots, or of successive times, are correlated, without a nugget; each class and
    trait has its own correlations. For REML and BLUP. Default: residuals are independent."""

    known: KnownResidual | None = None
    """means_covariance.npz of a first analysis: the records are adjusted means of it, whose covariance is known. For
    REML, BLUP and engine: marginal."""

    def as_file(self) -> dict:
        file = super().as_file()
        without = [key for key in ("relationship", "known") if file[key] is None]
        without += [] if self.by is not None else ["by", "classes"]
        return {key: value for key, value in file.items() if key not in without}

    @property
    def relationships(self) -> list[AnyRelationship]:
        """Correlations of the residuals of some class, or of all."""
        every = [self.relationship, *(section.relationship for section in self.classes.values())]
        return [kind for kind in every if kind is not None and kind.name != "identity"]

    @property
    def correlation_columns(self) -> tuple[str, ...]:
        """Columns of the records that correlations of residuals, or their known covariance, are made of."""
        columns = [column for kind in self.relationships for column in kind.level_columns]
        return (*columns, *(() if self.known is None else self.known.columns))

    def of_class(self, name: str) -> Variance:
        """Return the variance of one class."""
        section = self.classes.get(name)
        given = {} if section is None else {key: getattr(section, key) for key in section.model_fields_set}
        return self.model_copy(update=given | {"classes": {}})


class Variances(Section):
    """Covariance matrices by the name of their random term; mode 'fixed' fixes every one at its start."""

    mode: Choice[Literal["sample", "fixed"]] = "sample"
    """sample: matrices are estimated; fixed: every matrix is fixed at its starting value."""

    residual: ResidualVariance = ResidualVariance()
    """The covariance matrix of the residuals."""

    terms: Annotated[dict[TermName, Variance], keys_by_kind("random effect")] = {}
    """The covariance matrix of each random effect, by its name."""

    @classmethod
    def long_form(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        reserved = {key: v for key, v in value.items() if key in ("mode", "residual")}
        return reserved | {"terms": {key: v for key, v in value.items() if key not in reserved}}

    @property
    def is_to_be_sampled(self) -> bool:
        """The file says so."""
        return self.mode == "sample" and "mode" in self.model_fields_set

    @classmethod
    def edit_schema(cls, schema: Schema, resolve: Callable[[Schema], Schema]) -> None:
        """Edit the schema: the terms have no key of their own in the file."""
        schema["additionalProperties"] = schema["properties"].pop("terms")["anyOf"][0]["additionalProperties"]

    def as_file(self) -> dict:
        file = super().as_file()
        return file | file.pop("terms")
