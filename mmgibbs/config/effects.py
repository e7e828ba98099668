"""The effects of an analysis: section `model`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from mmgibbs.config.fields import (
    KeyOf,
    Problems,
    Schema,
    Section,
    a_cell,
    a_column,
    a_name,
    a_name_or_none,
    a_range,
    a_text,
    accepted_by,
    accepts,
    any_of,
    auto_or_boolean,
    checked,
    expected,
    list_of,
    mapping_of,
    number,
    one_of,
    plain,
    unless,
    whole_number,
    wrong,
)  # fmt: skip
from mmgibbs.config.markers import MarkerEffects
from mmgibbs.config.relationships import Identity, Relationship, a_relationship
from mmgibbs.config.text import as_yaml_value
from mmgibbs.config.traits import Trait
from mmgibbs.errors import nearest
from mmgibbs.model.labels import component_label

Column = Annotated[str, checked(a_column)]
Traits = Annotated[tuple[str, ...], checked(list_of(a_text("the name of a trait"), "the names of one or more traits"))]
Missing = Annotated[tuple[str, ...], checked(list_of(a_cell, "a list of values as they are in the table", empty=True))]
Degree = Annotated[int, checked(whole_number(0, 20))]


class Legendre(Section):
    """Normalised Legendre polynomials sqrt((2j+1)/2) P_j, j = 0..degree, of a covariate, `range` mapped to [-1, 1]."""

    degree: Degree
    """Degree of the highest polynomial; there are degree + 1 of them."""

    range: Annotated[tuple[float, float] | None, checked(a_range)] = None
    """Values of the covariate [low, high] that are mapped to [-1, 1]. Default: the range of the data."""


class LegendreOfColumn(Legendre):
    column: Column
    """Column of the covariate."""


_positive = number("a number above 0", above=0)


@accepts(any_of(accepted_by(_positive), {"type": "object", "additionalProperties": accepted_by(_positive)}))
def _variance_by_trait(value: object) -> float | dict[str, float]:
    """A number for every trait of the effect, or trait -> number; traits that are not named have a flat prior."""
    if not isinstance(value, dict):
        return _positive(value)
    if not value:
        raise expected(value, "a number above 0, or a mapping from traits to such numbers")
    return {a_name(trait): _positive(variance) for trait, variance in value.items()}


class NormalPrior(Section):
    """A normal prior of fixed effects, with mean 0."""

    variance: Annotated[float | dict[str, float], checked(_variance_by_trait)]
    """Variance of the normal prior with mean 0: a number for every trait, or a mapping from traits to numbers."""


@accepts(NormalPrior)
def _prior_of_fixed(value: object) -> float | dict[str, float]:
    return NormalPrior.model_validate(value).variance


class Fixed(Section):
    """A fixed effect: a class; or a covariate by its powers up to `degree` or by Legendre polynomials.

    A covariate has one curve for all records, or one for each level of the class column `by`.
    """

    column: Annotated[str, checked(a_column)] = ""
    """Column of the records. Default: the name of the effect."""

    kind: Annotated[str, checked(one_of("class", "covariate"))] = "class"
    """class: an effect for each value of the column; covariate: a regression on the number in the column."""

    degree: Annotated[int, checked(whole_number(1, 20))] = 1
    """Highest power of a covariate."""

    legendre: Legendre | None = None
    """Legendre polynomials of the covariate instead of powers."""

    by: Annotated[str | None, checked(a_column)] = None
    """Class column: the curve of the covariate is estimated for each of its levels."""

    missing: Missing = ()
    """Further cells of the column that mean a missing value of this effect."""

    without_value: Annotated[str, checked(one_of("error", "drop"))] = "error"
    """Records without a value of the effect: error refuses them, drop leaves out their traits that have the effect."""

    traits: Traits = ()
    """Traits that have the effect. Default: every trait."""

    prior_variance: Annotated[
        float | dict[str, float] | None, checked(unless("flat", _prior_of_fixed)), Field(alias="prior")
    ] = None
    """flat, or {variance: V}: a normal prior with mean 0 and variance V, also V by trait."""

    reference: Annotated[str | None, checked(a_cell)] = None
    """Level of a class that is set to 0, so that the other levels are differences from it. Default: the first level,
    numbers by their values; the first class effect without a reference keeps all its levels, which contain the mean,
    if there is no intercept."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        problems = Problems()
        if self.kind == "class":
            for key in ("degree", "legendre", "by"):
                if key in self.model_fields_set and getattr(self, key) is not None:
                    problems.add((key,), "cannot be combined with kind: class; needed kind: covariate")
        elif self.legendre is not None and "degree" in self.model_fields_set:
            problems.add(
                ("degree",), "cannot be combined with legendre, which has a degree of its own; needed one of them"
            )
        if self.kind != "class" and self.reference is not None:
            problems.add(("reference",), "cannot be combined with kind: covariate; it belongs to a class")
        problems.refuse()
        return self

    def prior_of(self, trait: str) -> float | None:
        """Variance of the normal prior of the effect on a trait; None: flat."""
        return self.prior_variance.get(trait) if isinstance(self.prior_variance, dict) else self.prior_variance

    def as_file(self) -> dict:
        of_a_covariate = {"degree", "legendre", "by"}
        unused = of_a_covariate if self.kind == "class" else {"reference", *(("degree",) if self.legendre else ())}
        prior = "flat" if self.prior_variance is None else {"variance": self.prior_variance}
        return {key: v for key, v in super().as_file().items() if key not in unused} | {"prior": prior}

    def is_flat(self, trait: str) -> bool:
        """Whether the effect acts on the trait with a flat prior."""
        return trait in self.traits and self.prior_of(trait) is None


@accepts({"type": "object"})
def _options(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise expected(value, "a mapping of options")
    return as_yaml_value(value)


class RandomEffect(Section):
    """One way in which records have levels of a random term; with covariates, a random regression."""

    level: Annotated[str, checked(a_column)] = ""
    """Column of the records that says which level a record has. Default for an unnamed effect: the name of the term."""

    missing: Missing = ()
    """Further cells of the column that mean an unknown level."""

    traits: Traits = ()
    """Traits that have the effect. Default: every trait."""

    covariates: Annotated[tuple[str, ...] | None, checked(list_of(a_column, "the names of one or more columns"))] = None
    """Columns whose numbers multiply the coefficients of a level: a random regression."""

    legendre: LegendreOfColumn | None = None
    """Legendre polynomials of a column that multiply the coefficients of a level: a random regression."""

    unknown_level: Annotated[str, checked(one_of("error", "omit"))] = "error"
    """Records without a level: error refuses them, omit uses them without an effect of this term."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.covariates is not None and self.legendre is not None:
            raise wrong("covariates cannot be combined with legendre; needed one of them")
        return self

    @property
    def coefficients(self) -> tuple[str, ...]:
        """('',) or, for a random regression, ('.0', '.1', ...)."""
        if self.legendre is not None:
            return tuple(f".{j}" for j in range(self.legendre.degree + 1))
        return ("",) if self.covariates is None else tuple(f".{j}" for j in range(len(self.covariates)))


_OF_THE_EFFECT = ("level", "traits", "missing", "unknown_level")


class Random(Section):
    """A random term: its effects share one covariance matrix. A term with a single effect may have the keys of that
    effect (`level`, `traits`, ...) in place of `effects`.
    """

    relationship: Annotated[Relationship, checked(a_relationship)] = Identity()
    """How levels are related: identity (independent), pedigree, genomic, dominance or single_step; the path of a file
    with an inverse matrix; or a mapping with one of these as its `kind` and further keys."""

    effects: Annotated[dict[str, RandomEffect], checked(mapping_of(RandomEffect, "effect", a_name_or_none))] = {}
    """Effects that share one covariance matrix, such as direct and maternal: name of each -> its keys."""

    @classmethod
    def long_form(cls, value: object) -> object:
        if not isinstance(value, dict) or "effects" in value:
            return value
        effect = {key: v for key, v in value.items() if key in _OF_THE_EFFECT}
        return {key: v for key, v in value.items() if key not in effect} | {"effects": {"": effect}}

    @classmethod
    def more_keys(cls) -> dict[str, Schema]:
        return {key: KeyOf(RandomEffect, key) for key in _OF_THE_EFFECT}

    @classmethod
    def unknown_key(cls, key: str) -> str:
        if key in _OF_THE_EFFECT:
            return "cannot be combined with effects; needed inside one of these effects"
        if key in ("covariates", "legendre"):
            return f"found without the name of an effect, needed effects: {{NAME: {{level: ..., {key}: ...}}}}"
        return f"unknown key; {nearest(key, ['relationship', 'effects', *_OF_THE_EFFECT])}"

    @model_validator(mode="after")
    def _agree(self) -> Self:
        problems = Problems()
        if not self.effects:
            problems.add(("effects",), "found no effect, needed at least one: effects: {NAME: {level: COLUMN}}")
        if len(self.effects) > 1 and "" in self.effects:
            problems.add(("effects",), "found an effect without a name among others, needed a name")
        for name, effect in self.effects.items():
            if name and not effect.level:
                problems.add(
                    ("effects", name, "level"), "missing, needed the column of its levels, such as animal or dam"
                )
        problems.refuse()
        return self

    def as_file(self) -> dict:
        if "" not in self.effects or self.effects[""].coefficients != ("",):
            return super().as_file()
        effect = self.effects[""].as_file()
        return {"relationship": plain(self.relationship)} | {key: effect[key] for key in _OF_THE_EFFECT}


OF_A_MIXED_MODEL = ("intercept", "fixed", "random", "markers")
OF_A_REGRESSION = ("response", "predictors", "groups", "group_predictors", "options")


class Model(Section):
    """The effects, or (`plugin`) a regression."""

    intercept: Annotated[str | bool, checked(auto_or_boolean)] = "auto"
    """auto: an intercept for each trait unless a fixed class effect without `reference` takes its place; true or
    false."""

    fixed: Annotated[dict[str, Fixed], checked(mapping_of(Fixed, "fixed effect"))] = {}
    """Fixed effects: name of each -> its keys. An empty entry is a class effect of the column of that name."""

    random: Annotated[dict[str, Random], checked(mapping_of(Random, "random effect"))] = {}
    """Random effects: name of each -> its keys."""

    markers: Annotated[dict[str, MarkerEffects], checked(mapping_of(MarkerEffects, "term of SNP effects"))] = {}
    """SNP effects of data.genotypes: name of each term -> its keys."""

    plugin: Annotated[str | None, checked(a_text("the name of a regression, such as horseshoe_probit"))] = None
    """The name of a regression, instead of a mixed model."""

    response: Annotated[
        tuple[str, ...], checked(list_of(a_column, "the name of a column, or of one column of counts for each class"))
    ] = ()
    """Column of the response of a regression, or one column of counts for each class."""

    predictors: Annotated[
        tuple[str, ...], checked(list_of(a_column, "the names of one or more columns, or patterns such as snp_*"))
    ] = ()
    """Columns of the predictors of a regression, or patterns such as snp_*."""

    groups: Annotated[str | None, checked(a_column)] = None
    """Column that divides the records of a hierarchical regression into groups."""

    group_predictors: Annotated[
        tuple[str, ...], checked(list_of(a_column, "the names of one or more columns", empty=True))
    ] = ()
    """Columns of the predictors of the groups of a hierarchical regression."""

    options: Annotated[dict[str, Any], checked(_options)] = {}
    """Options of the regression; `mmgibbs check` prints all of them with their values."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        problems = Problems()
        regression, mixed = OF_A_REGRESSION, OF_A_MIXED_MODEL
        for key in regression if self.plugin is None else mixed:
            if getattr(self, key) not in (None, "auto", (), {}):
                of_the_other = (
                    "found without plugin; it belongs to a regression"
                    if self.plugin is None
                    else "cannot be combined with plugin; it belongs to a mixed model"
                )
                problems.add((key,), of_the_other)
        for key in ("response", "predictors"):
            if self.plugin is not None and not getattr(self, key):
                problems.add((key,), "missing, needed for a regression")
        if self.group_predictors and self.groups is None:
            problems.add(("group_predictors",), "found without groups, needed groups: COLUMN beside them")
        problems.refuse()
        return self

    def as_file(self) -> dict:
        other = OF_A_MIXED_MODEL if self.plugin else ("plugin", *OF_A_REGRESSION)
        return {key: v for key, v in super().as_file().items() if key not in other}


def component_names(term: Random | Sequence[Trait]) -> tuple[str, ...]:
    """The components of a covariance matrix in their order (effect, trait, coefficient), as parameters are named.

    'direct:weaning_weight'; 'weaning_weight' for an unnamed effect; 'rr.0:yield' for a coefficient of a random
    regression.
    For the residual: `component_names(analysis.traits)`.
    """
    if not isinstance(term, Random):
        return tuple(trait.name for trait in term)
    return tuple(
        component_label(f"{name}{coefficient}", trait)
        for name, effect in term.effects.items()
        for trait in effect.traits
        for coefficient in effect.coefficients
    )
