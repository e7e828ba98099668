"""SNP effects: `model.markers`, a section for each term.

markers:
  snps:
    level: animal                # column of the records with the genotyped animals
    prior: bayes_r               # rr | bayes_a | bayes_b | bayes_c | bayes_r | lasso | horseshoe, or that of a plugin
    variance: {share: 0.3}       # of the phenotypic variance, from which the prior of the effects gets its scale
    snps: {chromosomes: [1, 2]}  # or {group: coding, file: groups.csv}, or rest; without: every SNP
    across_traits: joint         # joint | one_by_one | shared | independent: effects of a SNP on several traits
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag

from mmgibbs.config.fields import (
    Boolean,
    Cell,
    Choice,
    Column,
    Count,
    FilePath,
    Fraction,
    ListOf,
    Matrix,
    NotNegative,
    Positive,
    Repeated,
    Section,
    Some,
    Text,
    TraitName,
    is_yes,
)
from mmgibbs.config.messages import Expected, Problems
from mmgibbs.errors import nearest
from mmgibbs.models.marker_priors import BAYES_R, GROUP, MARKER_PRIORS, OF_ANOTHER_PACKAGE, MarkerPriorKind

J = "J"  # name of the fixed regression that single_step adds
SHARES_OF_BAYES_R = (0.95, 0.03, 0.015, 0.005)
HALF = (0.5, 0.5)  # of bayes_b and bayes_c, as BGLR starts
COUNTS_OF_HALF = (5.0, 5.0)  # and its ten imaginary SNPs
SIZE = 1_000_000.0  # of a window, in base pairs
SIZES = {"bp": SIZE, "kb": 1e3, "Mb": 1.0, "cM": 1.0, "M": 0.01}  # of a window in each unit of a map
SNPS = 100  # of a window where no map says where they are
ACROSS_TRAITS = {  # how the effects of a SNP on several traits depend on each other -> priors that can
    how: tuple(name for name, kind in MARKER_PRIORS.items() if how in kind.across_traits)
    for how in ("joint", "one_by_one", "shared")
}
MOST_TRAITS = {"joint": 4, "one_by_one": 6}  # with a state for every set of traits
_NUMBERS = {"type": "array", "items": {"type": "number"}, "minItems": 1}
PositiveOrMatrix = Annotated[
    Annotated[Positive, Tag("number")] | Annotated[Matrix, Tag("matrix")],
    Discriminator(lambda value: "matrix" if isinstance(value, list) else "number"),
]


class Shares(Section):
    """Shares of the SNPs in each class, from the class of no effect on: where they start, or are fixed.

    Where effects are in a state for every set of traits: of each trait, or of the states in their order (none, first,
    second, both, ...).
    """

    short_forms: ClassVar = (_NUMBERS,)

    start: Annotated[Repeated[NotNegative], Expected("numbers that add up to 1")] | None = None
    """Starting values of the shares, beginning with the class of no effect; they add up to 1."""

    prior: Annotated[Repeated[Positive], Expected("numbers above 0, one for each class")] | None = None
    """Counts of the Dirichlet prior, one for each class."""

    fixed: Boolean = False
    """Fix the shares at their starting values."""

    @classmethod
    def long_form(cls, value: object) -> object:
        """A list is where they start."""
        return {"start": value} if isinstance(value, list) else value

    @property
    def sum_of_start(self) -> float:
        return sum(self.start or ())

    def check(self, problems: Problems) -> None:
        if self.start is not None and self.prior is not None and len(self.start) != len(self.prior):
            problems.add(
                ("prior",), f"found {len(self.prior)} numbers for {len(self.start)} classes, needed one for each"
            )


class EffectVariance(Section):
    """The variance of an effect: start or share, df and scale of its prior nu S / chi2(nu)."""

    share: Fraction = 0.5
    """Share of the phenotypic variance that all SNPs together explain at the start."""

    start: PositiveOrMatrix | None = None
    """Variance of one effect to start with, on the scale of the analysis; a covariance matrix where effects on several
    traits have one prior. Default: from the share."""

    fixed: Boolean = False
    """Fix the variance at its starting value."""

    df: Positive = 5.0
    """Degrees of freedom of its scaled inverse chi-square prior, also of each variance of a matrix."""

    scale: PositiveOrMatrix | None = None
    """Scale of that prior, a number or a matrix. Default: the prior of each variance has its mode at the start."""


class Windows(Section):
    """Windows of neighbouring SNPs whose shares of the genetic variance are reported."""

    short_forms: ClassVar = ({"const": True},)

    size: Positive | None = None
    """Size of a window in the unit of the map. Default: 1,000,000 base pairs if there is a map; 1 if it is in Mb or
    cM."""

    snps: Count | None = None
    """SNPs in each window. Default: 100 if there is no map."""

    share: Fraction = 0.01
    """Report the probability that a window has more than this share of the genetic variance."""

    @classmethod
    def long_form(cls, value: object) -> object:
        return {} if is_yes(value) else value


class ChosenSnps(Section):
    """SNPs of one term: those of chromosomes, those of a file (of groups of it), or those that no other term has."""

    chromosomes: Annotated[ListOf[Cell], Expected("the names of one or more chromosomes, such as [1, 2, X]")] = ()
    """Chromosomes of the map."""

    group: Annotated[ListOf[Cell], Expected("the names of one or more groups of the file")] = ()
    """Groups of the file, such as coding. Default: every SNP that the file names."""

    file: FilePath | None = None
    """Table with a column of SNPs and, where there is a group, one of groups; a SNP may be in several."""

    rest: Boolean = False
    """Every SNP that no other term has; `snps: rest` is the same."""

    short_forms: ClassVar = ({"const": "rest"},)

    @classmethod
    def long_form(cls, value: object) -> object:
        return {"rest": True} if value == "rest" else value


class MarkerEffects(Section):
    """Effects of SNPs of `data.genotypes` on the animals of a column."""

    level: Column = "animal"
    """Column of the records with the ids of the genotyped animals."""

    prior: Annotated[
        Text,
        Expected("the name of a prior, such as bayes_r"),
        Field(description=f"Prior of the SNP effects: {', '.join(MARKER_PRIORS)}, or the name of a plugin's."),
    ] = "rr"

    snps: ChosenSnps | None = None
    """SNPs of this term: chromosomes, groups of a file, or the rest. Default: every SNP."""

    traits: Annotated[Some[TraitName], Expected("the names of traits")] = ()
    """Traits that have the effects. Default: every trait."""

    scale: Choice[Literal["allele", "standard"]] = "allele"
    """Scale of an effect: of one allele, or of one standard deviation of the genotypes."""

    classes: Annotated[ListOf[NotNegative], Expected("variances of classes, the first 0")] = ()
    """Variances of the classes of bayes_r in units of the common variance, the first 0. Default: 0, 0.01, 0.1, 1."""

    pi: Shares = Shares()
    """Shares of the SNPs in each class, beginning with the class of no effect."""

    variance: EffectVariance = EffectVariance()
    """The variance of the effects and its prior."""

    global_scale: Positive | None = None
    """Scale of the half-Cauchy prior of the horseshoe's global parameter. Default: from the share."""

    windows: Windows | None = None
    """Report windows of neighbouring SNPs; true for the defaults."""

    without_genotypes: Choice[Literal["refuse", "keep", "drop"]] = "refuse"
    """Records of animals without genotypes: refuse the analysis, keep them, or drop them."""

    across_traits: Choice[Literal["joint", "one_by_one", "shared", "independent"]] | None = None
    """How the effects of a SNP on several traits depend on each other. Default: joint for rr, and for bayes_c up to 4
    traits; else independent."""

    single_step: Choice[Literal["none", "epsilon"]] = "none"
    """epsilon: use the records of animals without genotypes too. Their genotypes are predicted from those of
    relatives, and the pedigree term is what the SNPs do not explain."""

    variance_left: Choice[Literal["own", "implied"]] = "own"
    """With epsilon, the variance of what the SNPs do not explain: own, sampled as that of any random effect; or
    implied by the variance of an effect, times the sum of 2pq (and the mean factor of the classes), so that there is
    one genetic variance. For rr, on several traits too, and for bayes_c and bayes_r with fixed pi on one."""

    def check(self, problems: Problems) -> None:
        known = (*MARKER_PRIORS, *(e.name for e in entry_points(group=GROUP)))
        if self.prior not in known:
            problems.add(("prior",), f"found {self.prior}; {nearest(self.prior, known, 'there are')}")
        if "classes" in self.given and (len(self.classes) < 2 or self.classes[0] != 0 or min(self.classes[1:]) <= 0):
            problems.add(
                ("classes",), f"found {list(self.classes)}, needed 0 first, for no effect, then numbers above 0"
            )

    @property
    def prior_kind(self) -> MarkerPriorKind:
        """The known properties of its prior."""
        return MARKER_PRIORS.get(self.prior, OF_ANOTHER_PACKAGE)

    @property
    def given(self) -> set[str]:
        """Keys with another value than where they are missing: `resolved` writes every key, also those of no effect."""
        kind = self.prior_kind
        same = {} if "classes" in kind.keys or not kind.classes else {"classes": kind.classes}
        fields = {key: field.get_default() for key, field in type(self).model_fields.items()}
        return {key for key, default in fields.items() if getattr(self, key) not in (default, same.get(key, default))}

    def completed(self) -> Self:
        """Fill in what depends on the prior."""
        if not self.prior_kind.classes:
            return self
        classes = self.classes or self.prior_kind.classes
        default = SHARES_OF_BAYES_R if classes == BAYES_R else HALF if len(classes) == 2 else None
        start = self.pi.start or default or tuple(1 / len(classes) for _ in classes)
        prior = self.pi.prior
        if prior is None and not self.pi.fixed:
            prior = COUNTS_OF_HALF if len(classes) == 2 else tuple(1.0 for _ in classes)
        pi = self.pi.model_copy(update={"start": start, "prior": prior})
        return self.model_copy(update={"classes": classes, "pi": pi})

    def with_paths(self, change: Callable[[Path], Path]) -> Self:
        """Replace the path of the file of its SNPs by change(path)."""
        if self.snps is None or self.snps.file is None:
            return self
        return self.model_copy(update={"snps": self.snps.model_copy(update={"file": change(self.snps.file)})})

    def on_traits(self, every: tuple[str, ...]) -> Self:
        """Fill in the traits, and how the effects on them depend on each other."""
        traits, across = self.traits or every, self.across_traits
        if across is None:
            kind = self.prior_kind
            can = "joint" in kind.across_traits and (kind.is_normal or len(traits) <= MOST_TRAITS["joint"])
            across = "joint" if can and len(traits) > 1 else "independent"
        return self.model_copy(update={"traits": traits, "across_traits": across})

    @property
    def together(self) -> bool:
        """Effects on several traits have one prior."""
        return len(self.traits) > 1 and self.across_traits != "independent"

    @property
    def n_states(self) -> int:
        """Number of states of a SNP over all traits, where there is one for every set of them; 0 else."""
        has_states = self.together and not self.prior_kind.is_normal and self.across_traits != "shared"
        return 2 ** len(self.traits) if has_states else 0

    def refusals(self) -> list[tuple[tuple[str, ...], str]]:
        """List what does not fit once everything is filled in."""
        return [*self._class_lines(), *self._trait_lines()]

    def _class_lines(self) -> list[tuple[tuple[str, ...], str]]:
        out: list[tuple[tuple[str, ...], str]] = []
        needed = f"{len(self.classes)}, one for each class"
        if self.n_states > 2:
            needed += f", or {self.n_states}, one for each set of traits"
        for key, given in (("start", self.pi.start), ("prior", self.pi.prior)):
            if self.prior_kind.classes and given is not None and len(given) not in (len(self.classes), self.n_states):
                what = "shares" if key == "start" else "numbers"
                out.append((("pi", key), f"found {len(given)} {what}, needed {needed}"))
        return out

    def _trait_lines(self) -> list[tuple[tuple[str, ...], str]]:
        out: list[tuple[tuple[str, ...], str]] = []
        across, T = self.across_traits, len(self.traits)
        if across is None or across == "independent":
            for key in ("start", "scale"):
                if isinstance(getattr(self.variance, key), tuple):
                    out.append((("variance", key), "found a matrix, needed one number: the effects have one variance"))
            return out
        if T == 1:
            out.append((("across_traits",), f"found {across} with one trait, {self.traits[0]}; needed several"))
        elif self.prior not in ACROSS_TRAITS[across]:
            can = " or ".join(ACROSS_TRAITS[across])
            out.append((("across_traits",), f"{across} cannot be combined with prior: {self.prior}; needed {can}"))
        elif self.n_states and MOST_TRAITS[across] < T:
            alternative = (
                "one_by_one (up to 6 traits), " if across == "joint" and MOST_TRAITS["one_by_one"] >= T else ""
            )
            got = f"found {across} with {T} traits, which are {self.n_states} sets of traits"
            out.append(
                (("across_traits",), f"{got}; needed at most {MOST_TRAITS[across]}, {alternative}shared or independent")
            )
        return out
