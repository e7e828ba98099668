"""SNP effects: `model.markers`, a section for each term.

markers:
  snps:
    level: animal                # column of the records with the genotyped animals
    prior: bayes_r               # rr | bayes_a | bayes_b | bayes_c | bayes_r | lasso | horseshoe, or that of a plugin
    variance: {share: 0.3}       # of the phenotypic variance, from which the prior of the effects gets its scale
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Annotated, ClassVar, Self

from pydantic import model_validator

from mmgibbs.config.fields import (
    NUMBERS,
    Problems,
    Section,
    a_boolean,
    a_column,
    a_text,
    accepts,
    checked,
    expected,
    list_of,
    number,
    one_of,
    whole_number,
)
from mmgibbs.errors import nearest

GROUP = "mmgibbs.marker_priors"  # entry points of priors of others
PRIORS = ("rr", "bayes_a", "bayes_b", "bayes_c", "bayes_r", "lasso", "horseshoe")
OF_CLASSES = ("bayes_b", "bayes_c", "bayes_r")  # with a class of effects that are exactly 0
BAYES_R = (0.0, 0.01, 0.1, 1.0)  # variances of its classes, in units of the common one
SHARES_OF_BAYES_R = (0.95, 0.03, 0.015, 0.005)
HALF = (0.5, 0.5)  # of bayes_b and bayes_c, as BGLR starts
COUNTS_OF_HALF = (5.0, 5.0)  # and its ten imaginary SNPs
SIZE = 1_000_000.0  # of a window, in base pairs
SNPS = 100  # of a window where no map says where they are
_positive = number("a number above 0", above=0)
_some = number("a number of 0 or more")


@accepts({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})
def _share(value: object) -> float:
    found = number("a number between 0 and 1")(value)
    if not 0 < found < 1:
        raise expected(value, "a number between 0 and 1")
    return found


class Shares(Section):
    """Shares of the SNPs in each class, from the class of no effect on: where they start, or are held."""

    short_forms: ClassVar = (NUMBERS,)

    start: Annotated[tuple[float, ...] | None, checked(list_of(_some, "numbers that add up to 1", unique=False))] = None
    """Where the shares start, from the class of no effect on; they add up to 1."""

    prior: Annotated[
        tuple[float, ...] | None, checked(list_of(_positive, "numbers above 0, one for each class", unique=False))
    ] = None
    """Counts of the Dirichlet prior, one for each class."""

    fixed: Annotated[bool, checked(a_boolean)] = False
    """Keep the shares at their start."""

    @classmethod
    def long_form(cls, value: object) -> object:
        """A list is where they start."""
        return {"start": value} if isinstance(value, list) else value

    @model_validator(mode="after")
    def _agree(self) -> Self:
        problems = Problems()
        if self.start is not None and abs(sum(self.start) - 1) > 1e-6:
            problems.add(("start",), f"found shares that add up to {sum(self.start):g}, needed 1")
        if self.start is not None and any(share <= 0 for share in self.start):
            problems.add(("start",), "found a share of 0, needed every class to have some")
        if self.start is not None and self.prior is not None and len(self.start) != len(self.prior):
            problems.add(("prior",), f"found {len(self.prior)} numbers for {len(self.start)} classes")
        if self.fixed and self.prior is not None:
            problems.add(("prior",), "cannot be combined with fixed: true")
        problems.refuse()
        return self


class EffectVariance(Section):
    """The variance of an effect: start or share, df and scale of its prior nu S / chi2(nu)."""

    share: Annotated[float, checked(_share)] = 0.5
    """Share of the phenotypic variance that all SNPs together start with."""

    start: Annotated[float | None, checked(_positive)] = None
    """Variance of one effect to start with, on the scale of the analysis. Default: from the share."""

    fixed: Annotated[bool, checked(a_boolean)] = False
    """Keep the variance at its start."""

    df: Annotated[float, checked(_positive)] = 5.0
    """Degrees of freedom of its scaled inverse chi-square prior."""

    scale: Annotated[float | None, checked(_positive)] = None
    """Scale of that prior. Default: the prior has its mode at the start."""


class Windows(Section):
    """Windows of neighbouring SNPs whose shares of the genetic variance are reported."""

    short_forms: ClassVar = ({"const": True},)

    size: Annotated[float | None, checked(_positive)] = None
    """Size of a window in the unit of the map. Default: 1,000,000 base pairs where there is a map."""

    snps: Annotated[int | None, checked(whole_number(1))] = None
    """SNPs in each window. Default: 100 where there is no map."""

    share: Annotated[float, checked(_share)] = 0.01
    """Report the probability that a window has more than this share of the genetic variance."""

    @classmethod
    def long_form(cls, value: object) -> object:
        return {} if value is True else value

    @model_validator(mode="after")
    def _agree(self) -> Self:
        problems = Problems()
        if self.size is not None and self.snps is not None:
            problems.add(("snps",), "cannot be combined with size; needed one of them")
        problems.refuse()
        return self


class MarkerEffects(Section):
    """Effects of all SNPs of `data.genotypes` on the animals of a column."""

    level: Annotated[str, checked(a_column)] = "animal"
    """Column of the records with the ids of the genotyped animals."""

    prior: Annotated[str, checked(a_text("the name of a prior, such as bayes_r"))] = "rr"
    """Prior of the SNP effects: rr, bayes_a, bayes_b, bayes_c, bayes_r, lasso, horseshoe, or the name of a plugin's."""

    traits: Annotated[tuple[str, ...], checked(list_of(a_text("the name of a trait"), "the names of traits"))] = ()
    """Traits that have the effects. Default: every trait."""

    scale: Annotated[str, checked(one_of("allele", "standard"))] = "allele"
    """Scale of an effect: of one allele, or of one standard deviation of the genotypes."""

    classes: Annotated[
        tuple[float, ...], checked(list_of(_some, "variances of classes, the first 0", unique=True))
    ] = ()
    """Variances of the classes of bayes_r in units of the common variance, the first 0."""

    pi: Shares = Shares()
    """Shares of the SNPs in each class, from the class of no effect on."""

    variance: EffectVariance = EffectVariance()
    """The variance of the effects and its prior."""

    global_scale: Annotated[float | None, checked(_positive)] = None
    """Scale of the half-Cauchy prior of the horseshoe's global parameter. Default: from the share."""

    windows: Windows | None = None
    """Report windows of neighbouring SNPs; true for the defaults."""

    without_genotypes: Annotated[str, checked(one_of("refuse", "keep", "drop"))] = "refuse"
    """Records of animals without genotypes: refuse the analysis, keep them, or drop them."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        problems = Problems()
        given, known = self.model_fields_set, (*PRIORS, *(e.name for e in entry_points(group=GROUP)))
        if self.prior not in known:
            problems.add(("prior",), f"found {self.prior}; {nearest(self.prior, known, 'there are')}")
        if "classes" in given and self.prior != "bayes_r" and self.prior in PRIORS:
            problems.add(("classes",), f"cannot be combined with prior: {self.prior}; it belongs to bayes_r")
        if "pi" in given and self.prior in PRIORS and self.prior not in OF_CLASSES:
            problems.add(("pi",), f"cannot be combined with prior: {self.prior}, which has no class of no effect")
        if "global_scale" in given and self.prior in PRIORS and self.prior != "horseshoe":
            problems.add(("global_scale",), f"cannot be combined with prior: {self.prior}; it belongs to horseshoe")
        if self.variance.fixed and self.prior not in ("rr", "bayes_c", "bayes_r") and self.prior in PRIORS:
            problems.add(("variance", "fixed"), f"cannot be combined with prior: {self.prior}, which has no common one")
        if "classes" in given and (len(self.classes) < 2 or self.classes[0] != 0 or min(self.classes[1:]) <= 0):
            problems.add(("classes",), "needed 0 first, for no effect, then numbers above 0")
        problems.refuse()
        return self

    def completed(self) -> Self:
        """With what depends on the prior filled in."""
        if self.prior not in OF_CLASSES:
            return self
        classes = self.classes
        if not classes:
            classes = BAYES_R if self.prior == "bayes_r" else (0.0, 1.0)
        default = SHARES_OF_BAYES_R if classes == BAYES_R else HALF if len(classes) == 2 else None
        start = self.pi.start or default or tuple(1 / len(classes) for _ in classes)
        prior = self.pi.prior
        if prior is None and not self.pi.fixed:
            prior = COUNTS_OF_HALF if len(classes) == 2 else tuple(1.0 for _ in classes)
        pi = self.pi.model_copy(update={"start": start, "prior": prior})
        return self.model_copy(update={"classes": classes, "pi": pi})

    def refusals(self) -> list[tuple[tuple[str, ...], str]]:
        """What does not fit once everything is filled in."""
        if self.prior not in OF_CLASSES or self.pi.start is None or len(self.pi.start) == len(self.classes):
            return []
        return [(("pi", "start"), f"found {len(self.pi.start)} shares, needed {len(self.classes)}, one for each class")]
