"""Starts and priors of covariance matrices: section `variances`."""

from __future__ import annotations

from typing import Annotated, ClassVar

from mmgibbs.config.fields import (
    Section,
    a_boolean,
    a_column,
    a_matrix,
    accepted_by,
    accepts,
    any_of,
    checked,
    list_of,
    mapping_of,
    number,
    one_of,
    unless,
)

Matrix = tuple[tuple[float, ...], ...]
_positive = number("a number above 0", above=0)


class Prior(Section):
    """IW(df, scale) of a covariance matrix; of a single variance the scaled inverse chi-square scale / chi2(df)."""

    df: Annotated[float, checked(number("a number below 1e12", above=-1e12, below=1e12))]
    """Degrees of freedom of the inverse Wishart prior."""

    scale: Annotated[Matrix, checked(a_matrix)]
    """Its scale: a matrix, or a number for a single variance."""


class UniformHeritability(Section):
    """s / (s + 1) uniform on (0, 1), s the variance of one component of a trait whose residual variance is 1."""

    h2: Annotated[str, checked(one_of("uniform"))]
    """uniform: the share of the variance, that of this component over its sum with the residual variance, is uniform on
    (0, 1) on the liability scale. If no other effect is random and this one is genetic, it is the heritability."""


class HalfTScale(Section):
    """Half-t of each standard deviation: df, and its scale for every component (default: wide)."""

    df: Annotated[float, checked(number("a number above 0", above=0, below=1e6))] = 2.0
    """Degrees of freedom of the half-t priors; 2 makes correlations uniform."""

    scale: Annotated[tuple[float, ...] | None, checked(list_of(_positive, "numbers above 0", unique=False))] = None
    """Scale of the standard deviation of each component. Default: 1 for traits with a residual variance of 1 (binary,
    ordinal), 1,000 phenotypic standard deviations for others."""


class HalfT(Section):
    """Half-t priors of the standard deviations, uniform correlations for df 2 (Huang & Wand 2013)."""

    half_t: HalfTScale
    """Half-t priors of the standard deviations: {df, scale}."""


AnyPrior = Prior | UniformHeritability | HalfT


@accepts(any_of(Prior, UniformHeritability, HalfT))
def a_prior(value: object) -> AnyPrior:
    """{df, scale}, {h2: uniform} or {half_t: {df, scale}}."""
    if isinstance(value, dict) and "h2" in value:
        return UniformHeritability.model_validate(value)
    if isinstance(value, dict) and "half_t" in value:
        return HalfT.model_validate(value)
    return Prior.model_validate(value)


class Variance(Section):
    """The covariance matrix of a random term or of the residuals."""

    short_forms: ClassVar = (accepted_by(a_matrix),)

    start: Annotated[Matrix | None, checked(a_matrix)] = None
    """Starting value of the matrix, or its value if it is fixed: a number or a list of rows. Default: an equal split of
    the phenotypic variance."""

    fixed: Annotated[bool, checked(a_boolean)] = False
    """Fix the matrix at its starting value."""

    # None: flat, df = -(k+1) and scale = 0; on traits in categories, where the file says nothing, see build/priors.py
    prior: Annotated[AnyPrior | None, checked(unless("flat", a_prior))] = None
    """flat, {df, scale} (inverse Wishart), {h2: uniform} or {half_t: {df, scale}}. Default: flat; proper for traits in
    categories."""

    structure: Annotated[str, checked(one_of("full", "diagonal"))] = "full"
    """full, or diagonal: no covariances between components."""

    @classmethod
    def long_form(cls, value: object) -> object:
        """A number or a matrix is its start."""
        return value if isinstance(value, dict) else {"start": value}

    def as_file(self) -> dict:
        return super().as_file() | {"prior": "flat" if self.prior is None else self.prior.as_file()}


class ResidualClass(Section):
    """Keys of one class of residuals; those not given are as for all classes."""

    short_forms: ClassVar = (accepted_by(a_matrix),)

    start: Annotated[Matrix | None, checked(a_matrix)] = None
    """Starting value of the matrix of this class. Default: that of all classes."""

    fixed: Annotated[bool | None, checked(a_boolean)] = None
    """Fix the matrix of this class at its starting value. Default: as for all classes."""

    prior: Annotated[AnyPrior | None, checked(unless("flat", a_prior))] = None
    """Prior of the matrix of this class. Default: that of all classes."""

    @classmethod
    def long_form(cls, value: object) -> object:
        """A number or a matrix is its start."""
        return value if isinstance(value, dict) else {"start": value}

    def as_file(self) -> dict:
        return super().as_file() | {"prior": "flat" if self.prior is None else self.prior.as_file()}


class ResidualVariance(Variance):
    """The covariance matrix of the residuals: one, or one for each class of a column of the phenotypes."""

    by: Annotated[str | None, checked(a_column)] = None
    """Column of the records: each of its values has its own residual matrix. Default: one matrix for all records."""

    classes: Annotated[dict[str, ResidualClass], checked(mapping_of(ResidualClass, "residual class"))] = {}
    """Value of that column -> keys of its matrix alone."""

    def as_file(self) -> dict:
        file = super().as_file()
        return file if self.by is not None else {k: v for k, v in file.items() if k not in ("by", "classes")}

    def of_class(self, name: str) -> Variance:
        """What holds for one class."""
        own = self.classes.get(name)
        given = {} if own is None else {key: getattr(own, key) for key in own.model_fields_set}
        return self.model_copy(update=given | {"classes": {}})


class Variances(Section):
    """Covariance matrices by the name of their random term; mode 'fixed' fixes every one at its start."""

    other_keys: ClassVar = Variance  # those of `terms` have no key of their own in the file

    mode: Annotated[str, checked(one_of("sample", "fixed"))] = "sample"
    """sample: matrices are estimated; fixed: every matrix is fixed at its starting value."""

    residual: ResidualVariance = ResidualVariance()
    """The covariance matrix of the residuals."""

    terms: Annotated[dict[str, Variance], checked(mapping_of(Variance, "random effect"))] = {}
    """The covariance matrix of each random effect, by its name."""

    @classmethod
    def long_form(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        reserved = {key: v for key, v in value.items() if key in ("mode", "residual")}
        return reserved | {"terms": {key: v for key, v in value.items() if key not in reserved}}

    def as_file(self) -> dict:
        file = super().as_file()
        return file | file.pop("terms")
