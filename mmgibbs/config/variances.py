"""Starts and priors of covariance matrices: section `variances`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from mmgibbs.config.fields import (
    NUMBER,
    AlsoTakes,
    Boolean,
    ByName,
    Choice,
    Column,
    Matrix,
    Positive,
    Repeated,
    Schema,
    Section,
    TermName,
)
from mmgibbs.config.messages import Expected, keys_by_kind
from mmgibbs.config.structures import Structure

_ROWS = {"type": "array", "items": {"type": "number"}, "minItems": 1}
_MATRIX = ({"type": "number"}, {"type": "array", "items": _ROWS, "minItems": 1})


class Prior(Section):
    """IW(df, scale) of a covariance matrix; of a single variance the scaled inverse chi-square scale / chi2(df)."""

    df: Annotated[float, Field(gt=-1e12, lt=1e12), NUMBER, Expected("a number below 1e12")]
    """Degrees of freedom of the inverse Wishart prior."""

    scale: Matrix
    """Its scale: a matrix, or a number for a single variance."""


class UniformHeritability(Section):
    """s / (s + 1) uniform on (0, 1), s the variance of one component of a trait whose residual variance is 1."""

    h2: Choice[Literal["uniform"]]
    """uniform: the share of the variance, that of this component over its sum with the residual variance, is uniform on
    (0, 1) on the liability scale. If no other effect is random and this one is genetic, it is the heritability."""


class HalfTScale(Section):
    """Half-t of each standard deviation: df, and its scale for every component (default: wide)."""

    df: Annotated[float, Field(gt=0, lt=1e6), NUMBER, Expected("a number above 0")] = 2.0
    """Degrees of freedom of the half-t priors; 2 makes correlations uniform."""

    scale: Annotated[Repeated[Positive], Expected("numbers above 0")] | None = None
    """Scale of the standard deviation of each component. Default: 1 for traits with a residual variance of 1 (binary,
    ordinal), 1,000 phenotypic standard deviations for others."""


class HalfT(Section):
    """Half-t priors of the standard deviations, uniform correlations for df 2 (Huang & Wand 2013)."""

    half_t: HalfTScale
    """Half-t priors of the standard deviations: {df, scale}."""


def _kind_of_prior(value: object) -> str:
    keys = value if isinstance(value, dict) else {}
    return next((key for key in ("h2", "half_t") if key in keys), "df")


def _nothing_for_flat(value: object) -> object:
    return None if value == "flat" else value


AnyPrior = Annotated[
    Annotated[Prior, Tag("df")] | Annotated[UniformHeritability, Tag("h2")] | Annotated[HalfT, Tag("half_t")],
    Discriminator(_kind_of_prior),
]
AnyPriorOrFlat = Annotated[AnyPrior | None, BeforeValidator(_nothing_for_flat), AlsoTakes(({"const": "flat"},))]


class Variance(Section):
    """The covariance matrix of a random term or of the residuals."""

    short_forms: ClassVar = _MATRIX

    start: Matrix | None = None
    """Starting value of the matrix, or its value if it is fixed: a number or a list of rows. Default: an equal split of
    the phenotypic variance."""

    fixed: Boolean = False
    """Fix the matrix at its starting value."""

    # None: flat, df = -(k+1) and scale = 0; on traits in categories, where the file says nothing, see build/priors.py
    prior: AnyPriorOrFlat = None
    """flat, {df, scale} (inverse Wishart), {h2: uniform} or {half_t: {df, scale}}. Default: flat; proper for traits in
    categories."""

    structure: Structure = Structure()
    """full; diagonal: no covariances between components; or a structure with fewer parameters: factor_analytic,
    compound_symmetry, ar1, antedependence, or a mapping {kind, factors, variances, loading_sd}."""

    @classmethod
    def long_form(cls, value: object) -> object:
        """A number or a matrix is its start."""
        return value if isinstance(value, dict) else {"start": value}

    def as_file(self) -> dict:
        return super().as_file() | {"prior": "flat" if self.prior is None else self.prior.as_file()}


class ResidualClass(Section):
    """Keys of one class of residuals; those not given are as for all classes."""

    short_forms: ClassVar = _MATRIX

    start: Matrix | None = None
    """Starting value of the matrix of this class. Default: that of all classes."""

    fixed: Boolean | None = None
    """Fix the matrix of this class at its starting value. Default: as for all classes."""

    prior: AnyPriorOrFlat = None
    """Prior of the matrix of this class. Default: that of all classes."""

    @classmethod
    def long_form(cls, value: object) -> object:
        """A number or a matrix is its start."""
        return value if isinstance(value, dict) else {"start": value}

    def as_file(self) -> dict:
        return super().as_file() | {"prior": "flat" if self.prior is None else self.prior.as_file()}


class ResidualVariance(Variance):
    """The covariance matrix of the residuals: one, or one for each class of a column of the phenotypes."""

    by: Column | None = None
    """Column of the records: each of its values has its own residual matrix. Default: one matrix for all records."""

    classes: Annotated[ByName[ResidualClass], keys_by_kind("residual class")] = {}
    """Value of that column -> keys of its matrix alone."""

    def as_file(self) -> dict:
        file = super().as_file()
        return file if self.by is not None else {k: v for k, v in file.items() if k not in ("by", "classes")}

    def of_class(self, name: str) -> Variance:
        """What holds for one class."""
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
        """Those of `terms` have no key of their own in the file."""
        schema["additionalProperties"] = schema["properties"].pop("terms")["anyOf"][0]["additionalProperties"]

    def as_file(self) -> dict:
        file = super().as_file()
        return file | file.pop("terms")
