"""The effects of an analysis: section `model`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, PlainValidator, Tag

from mmgibbs.config.fields import (
    WHOLE,
    AlsoTakes,
    AutoOrBoolean,
    ByName,
    Cell,
    Cells,
    Choice,
    Column,
    Columns,
    ListOf,
    Name,
    Positive,
    Range,
    Schema,
    Section,
    Some,
    TermName,
    Text,
    TraitNames,
    plain,
    read_name,
)
from mmgibbs.config.interactions import OF_AN_INTERACTION, check_interaction, write_out_names
from mmgibbs.config.markers import MarkerEffects
from mmgibbs.config.messages import Expected, Problems, keys_by_kind
from mmgibbs.config.relationships import AnyRelationship, Identity
from mmgibbs.config.rules import OF_A_MIXED_MODEL, OF_A_REGRESSION
from mmgibbs.config.several_levels import OF_SEVERAL_LEVELS, GroupMates, advise_key, split_level
from mmgibbs.config.text import as_yaml_value
from mmgibbs.config.traits import Trait
from mmgibbs.errors import nearest
from mmgibbs.models.labels import component_label

RESERVED = ("mode", "residual", "intercept")  # they have a meaning of their own beside the names of terms

Degree = Annotated[int, Field(ge=0, le=20), WHOLE]
Interaction = Annotated[Some[Column], AfterValidator(check_interaction), Expected("the names of two or more columns")]


class Legendre(Section):
    """Normalised Legendre polynomials sqrt((2j+1)/2) P_j, j = 0..degree, of a covariate, `range` mapped to [-1, 1]."""

    degree: Degree
    """Degree of the highest polynomial; there are degree + 1 of them."""

    range: Range | None = None
    """Values of the covariate [low, high] that are mapped to [-1, 1]. Default: the range of the data."""


class LegendreOfColumn(Legendre):
    """Normalised Legendre polynomials of a column of the records."""

    column: Column
    """Column of the covariate."""


_BY_TRAIT = Expected("a number above 0, or a mapping from traits to such numbers")
VarianceByTrait = Annotated[  # a number for every trait of the effect; traits that are not named have a flat prior
    Annotated[Positive, Tag("number")]
    | Annotated[dict[Name, Positive], Field(min_length=1), _BY_TRAIT, Tag("by trait")],
    Discriminator(lambda value: "by trait" if isinstance(value, dict) else "number"),
]


class NormalPrior(Section):
    """A normal prior of fixed effects, with mean 0."""

    variance: VarianceByTrait
    """Variance of the normal prior with mean 0: a number for every trait, or a mapping from traits to numbers."""


def read_prior(value: object) -> float | dict[str, float] | None:
    return None if value == "flat" else NormalPrior.model_validate(value).variance


class Fixed(Section):
    """A fixed effect: a class; or a covariate by its powers up to `degree` or by Legendre polynomials.

    A covariate has one curve for all records, or one for each level of the class column `by`. An effect whose name has
    ':', such as `sex:age`, is an interaction of these columns.
    """

    column: Column = ""
    """Column of the records. Default: the name of the effect."""

    kind: Choice[Literal["class", "covariate"]] = "class"
    """class: an effect for each value of the column; covariate: a regression on the number in the column."""

    degree: Annotated[int, Field(ge=1, le=20), WHOLE] = 1
    """Highest power of a covariate."""

    legendre: Legendre | None = None
    """Legendre polynomials of the covariate instead of powers."""

    by: Column | None = None
    """Class column: the curve of the covariate is estimated for each of its levels."""

    interaction: Interaction | None = None
    """Columns of an interaction: classes are one class of all their combinations, numbers are multiplied. Default: the
    columns in the name of the effect, where it has ':'."""

    covariates: Columns | None = None
    """Columns of an interaction that are numbers. Default: those that are covariates elsewhere in model.fixed."""

    missing: Cells = ()
    """Further cells of the column that mean a missing value of this effect."""

    without_value: Choice[Literal["error", "drop"]] = "error"
    """Records without a value of the effect: error refuses them, drop leaves out their traits that have the effect."""

    traits: TraitNames = ()
    """Traits that have the effect. Default: every trait."""

    prior_variance: Annotated[
        float | dict[str, float] | None,
        PlainValidator(read_prior, json_schema_input_type=NormalPrior),
        AlsoTakes(({"const": "flat"},)),
        Field(alias="prior"),
    ] = None
    """flat, or {variance: V}: a normal prior with mean 0 and variance V, also V by trait."""

    reference: Cell | None = None
    """Level of a class that is set to 0, so that the other levels are differences from it. Default: the first level,
    numbers by their values; the first class effect without a reference keeps all its levels, which contain the mean,
    if there is no intercept."""

    @property
    def class_columns(self) -> tuple[str, ...]:
        """Columns of the records that make its class; () of a covariate without one."""
        if self.interaction is not None:
            return tuple(column for column in self.interaction if column not in (self.covariates or ()))
        column = self.column if self.kind == "class" else self.by
        return () if column is None else (column,)

    @property
    def number_columns(self) -> tuple[str, ...]:
        """Columns of the records that make its covariate; () of a class."""
        if self.interaction is not None:
            return tuple(column for column in self.interaction if column in (self.covariates or ()))
        return (self.column,) if self.kind == "covariate" else ()

    def trait_prior(self, trait: str) -> float | None:
        """Variance of the normal prior of the effect on a trait; None: flat."""
        return self.prior_variance.get(trait) if isinstance(self.prior_variance, dict) else self.prior_variance

    def as_file(self) -> dict:
        of_a_covariate = {"degree", "legendre", "by"}
        unused = of_a_covariate if self.kind == "class" else {"reference", *(("degree",) if self.legendre else ())}
        if self.interaction is None:
            unused = unused | {"interaction", "covariates"}
        prior = "flat" if self.prior_variance is None else {"variance": self.prior_variance}
        return {key: v for key, v in super().as_file().items() if key not in unused} | {"prior": prior}

    def is_flat(self, trait: str) -> bool:
        """Check whether the effect acts on the trait with a flat prior."""
        return trait in self.traits and self.trait_prior(trait) is None


def read_options(value: object) -> object:
    return as_yaml_value(value) if isinstance(value, dict) else value


class RandomEffect(Section):
    """One way in which records have levels of a random term; with covariates, a random regression."""

    level: Annotated[Column, AlsoTakes(({"type": "array", "items": {"type": "string"}}, {"type": "object"}))] = ""
    """Column of the records that says which level a record has. Default for an unnamed effect: the name of the term.
    A list of columns, such as [mate1, mate2], is `levels`; a mapping, such as {group: pen}, is `mates`."""

    levels: Columns | None = None
    """Columns of the levels, where a record may have several: the sum of their effects, each times its weight. An empty
    cell is no level."""

    weights: Columns | None = None
    """Columns of the weights of these levels, such as shares of the parents of a cross. Default: 1 for each."""

    mates: GroupMates | None = None
    """The other animals of the group of a record, such as its pen mates, instead of columns of levels."""

    interaction: Interaction | None = None
    """Columns whose combinations are the levels. Default for an unnamed effect: the columns in the name of the term,
    where it has ':', such as `line:site`."""

    missing: Cells = ()
    """Further cells of the column that mean an unknown level."""

    traits: TraitNames = ()
    """Traits that have the effect. Default: every trait."""

    covariates: Columns | None = None
    """Columns whose numbers multiply the coefficients of a level: a random regression."""

    legendre: LegendreOfColumn | None = None
    """Legendre polynomials of a column that multiply the coefficients of a level: a random regression."""

    unknown_level: Choice[Literal["error", "omit"]] = "error"
    """Records without a level: error refuses them, omit uses them without an effect of this term."""

    @classmethod
    def long_form(cls, value: object) -> object:
        return split_level(value)

    @classmethod
    def unknown_key(cls, key: str) -> str:
        return advise_key(key) or super().unknown_key(key)

    @property
    def has_several_levels(self) -> bool:
        """True if a record may have several levels."""
        return self.levels is not None or self.mates is not None

    @property
    def id_columns(self) -> tuple[str, ...]:
        """Columns of the records whose cells are levels; the joined column of an interaction."""
        if self.mates is not None:
            return (self.mates.of,)
        return self.levels or (self.level,)

    @property
    def level_columns(self) -> tuple[str, ...]:
        """Columns of the records that make its levels."""
        return self.interaction or self.id_columns

    @property
    def weight_columns(self) -> tuple[str, ...]:
        """Columns of the weights of several levels."""
        of_mates = () if self.mates is None or self.mates.weight is None else (self.mates.weight,)
        return self.weights or of_mates

    def as_file(self) -> dict:
        absent = {key for key in (OF_AN_INTERACTION, *OF_SEVERAL_LEVELS) if getattr(self, key) is None}
        absent |= {"level"} if self.has_several_levels else set()
        return {key: v for key, v in super().as_file().items() if key not in absent}

    @property
    def coefficients(self) -> tuple[str, ...]:
        """('',) or, for a random regression, ('.0', '.1', ...)."""
        if self.legendre is not None:
            return tuple(f".{j}" for j in range(self.legendre.degree + 1))
        return ("",) if self.covariates is None else tuple(f".{j}" for j in range(len(self.covariates)))


EffectName = Annotated[str, BeforeValidator(lambda value: value if value == "" else read_name(value))]
_OF_THE_EFFECT = ("level", *OF_SEVERAL_LEVELS, OF_AN_INTERACTION, "traits", "missing", "unknown_level")


class Random(Section):
    """A random term: its effects share one covariance matrix. A term with a single effect may have the keys of that
    effect (`level`, `traits`, ...) in place of `effects`.
    """

    relationship: AnyRelationship = Identity()
    """How levels are related: identity (independent), pedigree, genomic, dominance or single_step; the path of a file
    with an inverse matrix; or a mapping with one of these as its `kind` and further keys."""

    effects: Annotated[dict[EffectName, RandomEffect], keys_by_kind("effect")] = {}
    """Effects that share one covariance matrix, such as direct and maternal: name of each -> its keys."""

    @classmethod
    def long_form(cls, value: object) -> object:
        if not isinstance(value, dict) or "effects" in value:
            return value
        effect = {key: v for key, v in value.items() if key in _OF_THE_EFFECT}
        return {key: v for key, v in value.items() if key not in effect} | {"effects": {"": effect}}

    @classmethod
    def edit_schema(cls, schema: Schema, resolve: Callable[[Schema], Schema]) -> None:
        effect = resolve(schema["properties"]["effects"]["anyOf"][0]["additionalProperties"])
        schema["properties"] |= {key: effect["properties"][key] for key in _OF_THE_EFFECT}

    @classmethod
    def unknown_key(cls, key: str) -> str:
        if key in _OF_THE_EFFECT:
            return "cannot be combined with effects; needed inside one of these effects"
        if key in ("covariates", "legendre"):
            return f"found without the name of an effect, needed effects: {{NAME: {{level: ..., {key}: ...}}}}"
        return f"unknown key; {nearest(key, ['relationship', 'effects', *_OF_THE_EFFECT])}"

    def check(self, problems: Problems) -> None:
        for name, effect in self.effects.items():
            if name and not effect.level and effect.interaction is None and not effect.has_several_levels:
                problems.add(
                    ("effects", name, "level"), "missing, needed the column of its levels, such as animal or dam"
                )

    def as_file(self) -> dict:
        if "" not in self.effects or self.effects[""].coefficients != ("",):
            return super().as_file()
        effect = self.effects[""].as_file()
        return {"relationship": plain(self.relationship)} | {
            key: effect[key] for key in _OF_THE_EFFECT if key in effect
        }


class Model(Section):
    """The effects, or (`plugin`) a regression."""

    intercept: AutoOrBoolean = "auto"
    """auto: an intercept for each trait unless a fixed class effect without `reference` takes its place; true or
    false."""

    fixed: Annotated[dict[TermName, Fixed], keys_by_kind("fixed effect")] = {}
    """Fixed effects: name of each -> its keys. An empty entry is a class effect of the column of that name, or of
    several columns with ':' between them (`sex:age`) their interaction."""

    random: Annotated[dict[TermName, Random], keys_by_kind("random effect")] = {}
    """Random effects: name of each -> its keys. Names of several columns with ':' between them (`line:site`) are
    interactions."""

    markers: Annotated[ByName[MarkerEffects], keys_by_kind("term of SNP effects")] = {}
    """SNP effects of data.genotypes: name of each term -> its keys."""

    plugin: Annotated[Text, Expected("the name of a regression, such as horseshoe_probit")] | None = None
    """The name of a regression, instead of a mixed model."""

    response: Annotated[Some[Column], Expected("the name of a column, or of one column of counts for each class")] = ()
    """Column of the response of a regression, or one column of counts for each class."""

    predictors: Annotated[Some[Column], Expected("the names of one or more columns, or patterns such as snp_*")] = ()
    """Columns of the predictors of a regression, or patterns such as snp_*."""

    groups: Column | None = None
    """Column that divides the records of a hierarchical regression into groups."""

    group_predictors: Annotated[ListOf[Column], Expected("the names of one or more columns")] = ()
    """Columns of the predictors of the groups of a hierarchical regression."""

    options: Annotated[dict[str, Any], BeforeValidator(read_options), Expected("a mapping of options")] = {}
    """Options of the regression; `mmgibbs check` prints all of them with their values."""

    @classmethod
    def long_form(cls, value: object) -> object:
        """Names such as `sex:age` say the columns of their interaction."""
        if not isinstance(value, dict):
            return value
        named = {key: write_out_names(value[key], key == "random") for key in ("fixed", "random") if key in value}
        return value | named

    @property
    def is_empty(self) -> bool:
        """True without an effect and without an intercept."""
        return self.intercept is False and not (self.fixed or self.random or self.markers)

    @property
    def has_pedigree_relationships(self) -> bool:
        return any(random.relationship.of_pedigree for random in self.random.values())

    def as_file(self) -> dict:
        unused = OF_A_MIXED_MODEL if self.plugin else ("plugin", *OF_A_REGRESSION)
        return {key: v for key, v in super().as_file().items() if key not in unused}


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
