"""From draws of covariance matrices to named parameters: variances, covariances, heritabilities, correlations, ratios.

Names (a contract, with TERM a random term and a, b components written `effect:trait`, or `trait` where the effect has
no name):

    TERM.var[a]          TERM.cov[a,b]          residual.var[trait]    residual.cov[trait,trait]
    TERM.rho[row]        TERM.rho[column]       TERM.rho[time]         correlations of neighbours (relationship: ar1)
    residual.rho[row]    residual.rho[trait:row]                       of residuals; [trait:row] of several traits
    h2[trait]            TERM.corr[a,b]         residual.corr[trait,trait]    total_h2[trait]
    ratio[TERM:trait]    ratio[TERM.effect:trait] where TERM has several effects
    threshold[trait:low|high]    incidence[trait:category]    h2_observed[trait:category]    (observed_scale.py)
    SNPS.var[trait]    SNPS.effect_var[trait]    SNPS.pi[trait:class]    SNPS.in_class[trait:class]
    SNPS.cov[trait,trait]    SNPS.corr[trait,trait]    SNPS.effect_cov[trait,trait]    SNPS.effect_corr[trait,trait]
    SNPS.pi[state]    SNPS.in_class[state]
    TERM.rho    TERM.regression[b,a]    TERM.innovation[a]
    TERM.loading[a:factor]    TERM.specific[a]    TERM.explained[a]
    TERM.explained[factor]    (models/structures)
    mean[trait]    fixed_var[trait]    cv_a[trait]    i_a[trait]    (trait_moments.py, where they were asked for)

with SNPS a term of SNP effects: var, cov and corr are those of the genomic breeding values among the genotyped animals,
effect_... those of the effect of a SNP under the prior; the second and third line of them where the effects on several
traits have one prior.

Where the residuals have classes (`variances.residual.by`), whatever depends on them ends in the class:
residual.var[trait|class], residual.cov[trait,trait|class], h2[trait|class], residual.corr[trait,trait|class],
ratio[TERM:trait|class].

Elements that are zero by the model (`structure: diagonal`, traits never recorded together) have no name. For each
trait (and class):

    phenotypic variance = sum of the variances of every effect on the trait + cross terms + residual variance (weight 1)
    h2[trait]    = variance of the direct effect / phenotypic variance
    ratio[...]   = variance of any other effect / phenotypic variance

An effect with several levels per record, such as that of pen mates, counts with its variance times the mean of
sum_j w_rj^2: its levels are taken as not related. With w the mean of sum_j w_rj, and s that effect,

    total_h2[trait] = (var[direct] + 2 w cov[direct,s] + w^2 var[s]) / phenotypic variance      (Bijma 2011)

The *direct* effect is the animal's own in a term with a relationship (the pedigree before a user's file): the effect
whose level is neither sire nor dam. A cross term enters where two effects of one record on a trait are correlated
across levels: 2 r cov[a,b] with r the relationship of the two levels: 1/2 between an animal and its dam or sire (so a
direct-maternal covariance counts once: Willham 1963), 1 where both effects have the same level, 0 between sire and dam.
All of it refers to animals that are not inbred. Random regressions have no single variance: traits on which one acts
get no h2 and no ratio, which a note says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mmgibbs.models.labels import parameter_labels
from mmgibbs.models.structures.base import Structure
from mmgibbs.models.terms import Term

if TYPE_CHECKING:
    from mmgibbs.posterior.trait_moments import TraitMoments

SIRE_COLUMNS, DAM_COLUMNS = ("sire", "father"), ("dam", "mother")  # level columns of this name are the parent's
MEAN_VARIANCE = "mean_variance"  # of the prior of SNP effects as it is: for reliabilities
RESIDUAL = "R"  # what the draws of the residual covariance matrices are called: (..., T, T), or (..., classes, T, T)


def matrix_name(term: int) -> str:
    """What the draws (..., k, k) of the covariance matrix of a random term are called."""
    return f"G.{term}"


def structure_name(term: int) -> str:
    """What the draws (..., p) of the parameters of the structure of a random term are called."""
    return f"structure.{term}"


def relationship_name(term: int) -> str:
    """What the draws (..., P) of the parameters of the relationship of a random term are called."""
    return f"rho.{term}"


def residual_correlation_name(group: int) -> str:
    """What the values (..., P) of the correlations of residuals of a group of records are called."""
    return f"rho.residual.{group}"


def marker_name(term: str, what: str) -> str:
    """What a quantity of a term of SNP effects is called among the draws, and in a checkpoint."""
    return f"markers.{term}.{what}"


def class_matrix_name(residual_class: int) -> str:
    """What the residual covariance matrix (k, k) of one class is called, where one name represents one matrix."""
    return f"{RESIDUAL}.{residual_class}"


def threshold_name(trait: int) -> str:
    """What the draws (..., K - 2) of the free thresholds of an ordinal trait are called."""
    return f"threshold.{trait}"


def observed_name(trait: int, residual_class: int = 0) -> str:
    """What the draws (..., m) of incidences and heritabilities on the observed scale are called."""
    return f"observed.{trait}.{residual_class}"


def liability_name(trait: int, residual_class: int = 0) -> str:
    """What the draws of the moments of a liability are called (observed_scale.OF_LIABILITY)."""
    return f"liability.{trait}.{residual_class}"


def trait_moments_name(trait: int) -> str:
    """What the draws of the mean of a trait and the variance of its fixed effects are called (trait_moments.py)."""
    return f"moments.{trait}"


def predicted_name(trait: int) -> str:
    """What the draws of records drawn anew are called (predictive.py)."""
    return f"predicted.{trait}"


@dataclass(frozen=True)
class Parameter:
    """A logged quantity: the names of its dimensions after (chain, draw)."""

    dims: tuple[str, ...] = ()
    help: str = ""


class WeightsOfLevels(NamedTuple):
    """Of an effect with several levels per record, means over the records that meet it."""

    sum: float  # of sum_j w_rj
    squares: float  # of sum_j w_rj^2


@dataclass(frozen=True)
class TermInfo:
    """What the names and ratios need to know of one random term with k components and one or more effects."""

    name: str
    components: tuple[str, ...]  # (k,) 'direct:weaning_weight', or 'weaning_weight' for an unnamed effect
    effect_of_component: tuple[int, ...]  # (k,)
    trait_of_component: tuple[int, ...]  # (k,)
    effects: tuple[str, ...] = ("",)  # names of the effects
    level_columns: tuple[str, ...] = ("animal",)  # per effect: the column that its levels come from
    regression: tuple[bool, ...] = (False,)  # per effect: has covariates
    related: bool = False  # its levels are
    of_pedigree: bool = False  # by the pedigree
    blocks: tuple[tuple[int, ...], ...] | None = None  # components that may covary; None: all of them
    fixed: bool = False  # fixed at its starting value
    matrix: str = ""  # what the draws of its covariance matrix are called
    structure: Structure | None = None  # of its covariance matrix
    structure_draws: str = ""  # what the draws of its parameters are called
    parameters: tuple[str, ...] = ()  # of its relationship
    parameter_values: tuple[float, ...] = ()  # where they begin, or are held
    parameters_fixed: bool = True
    relationship: str = ""  # what the draws of these parameters are called
    several: tuple[WeightsOfLevels | None, ...] = ()  # per effect, where a record may meet several levels

    def weights_of(self, component: int) -> WeightsOfLevels | None:
        """None of an effect with one level per record."""
        return self.several[self.effect_of_component[component]] if self.several else None

    def may_covary(self, a: int, b: int) -> bool:
        return self.blocks is None or any(a in block and b in block for block in self.blocks)


@dataclass(frozen=True)
class ThresholdInfo:
    """An ordinal trait with K categories; its first threshold is 0, the others are sampled."""

    trait: str
    labels: tuple[str, ...]  # (K,) from low to high
    draws: str  # what the draws (..., K - 2) of the others are called

    def named(self, draws: np.ndarray) -> dict[str, np.ndarray]:
        """threshold[trait:low|high] -> (chains, draws)."""
        pairs = zip(self.labels[1:-1], self.labels[2:], strict=True)
        return {f"threshold[{self.trait}:{low}|{high}]": draws[..., k] for k, (low, high) in enumerate(pairs)}


@dataclass(frozen=True)
class ObservedInfo:
    """What is reported of a trait on the scale of its records."""

    names: tuple[str, ...]  # (m,)
    draws: str  # what the draws (..., m) are called

    def named(self, draws: np.ndarray) -> dict[str, np.ndarray]:
        return {name: draws[..., j] for j, name in enumerate(self.names)}


@dataclass(frozen=True)
class MarkerInfo:
    """What the names and ratios need to know of one term of SNP effects on one trait."""

    name: str
    trait: str
    trait_number: int
    draws: str  # what its draws are called (marker_name)
    epsilon: bool = False  # the animals' own random effect is of those without genotypes alone

    def variance(self, draws: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """Draws of the variance of its breeding values among genotyped animals."""
        return draws.get(marker_name(self.draws, "genetic_variance"))

    def named(self, draws: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """snps.var[trait] the variance of breeding values, snps.effect_var[trait] that of an effect, and the rest."""
        start, out = marker_name(self.draws, ""), {}
        called = {"genetic_variance": "var", "variance": "effect_var"}
        for name in [n for n in draws if n.startswith(start)]:
            what = name.removeprefix(start)
            if what == MEAN_VARIANCE:
                continue
            values, word = draws[name], f"{self.name}.{called.get(what, what)}"
            if values.ndim == 2:
                out[f"{word}[{self.trait}]"] = values
            else:
                out |= {f"{word}[{self.trait}:{k}]": values[..., k] for k in range(values.shape[-1])}
        return out


@dataclass(frozen=True)
class JointMarkerInfo:
    """The same of effects on several traits that have one prior."""

    name: str
    traits: tuple[str, ...]
    states: tuple[str, ...]  # what the states of a SNP are called
    draws: str

    def named(self, draws: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Covariances and correlations of breeding values and of effects, shares of the states."""
        out: dict[str, np.ndarray] = {}
        for what, word in (("genetic_covariance", ""), ("covariance", "effect_")):
            G = draws.get(marker_name(self.draws, what))
            pairs = (
                [] if G is None else [(a, b) for a in range(len(self.traits)) for b in range(a + 1, len(self.traits))]
            )
            for a, b in pairs:
                assert G is not None
                label = f"[{self.traits[a]},{self.traits[b]}]"
                out[f"{self.name}.{word}cov{label}"] = G[..., a, b]
                out[f"{self.name}.{word}corr{label}"] = _correlation_or_0(G, a, b)
        for word in ("pi", "in_class"):
            values = draws.get(marker_name(self.draws, word))
            if values is not None:
                out |= {f"{self.name}.{word}[{state}]": values[..., k] for k, state in enumerate(self.states)}
        return out


def _correlation_or_0(G: np.ndarray, a: int, b: int) -> np.ndarray:
    """0 in draws in which one of the two does not vary."""
    product = G[..., a, a] * G[..., b, b]
    return np.where(product > 0, G[..., a, b] / np.sqrt(np.where(product > 0, product, 1.0)), 0.0)


@dataclass(frozen=True)
class CorrelationInfo:
    """What is reported of the correlations of residuals of one group of records (`Design.correlated`)."""

    names: tuple[str, ...]  # (P,) 'residual.rho[row]'
    values: tuple[float, ...]  # (P,) where they begin, or are held
    fixed: bool
    draws: str  # what values (..., P) that were estimated are called

    def named(self, R: np.ndarray, matrices: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """(chains, draws) of each; those that were not estimated are held."""
        held = np.broadcast_to(np.array(self.values), (*R.shape[:2], len(self.values)))
        values = matrices.get(self.draws, held)
        return {name: values[..., p] for p, name in enumerate(self.names)}


@dataclass(frozen=True)
class ResidualInfo:
    """What the names and ratios need to know of the residuals: of all records, or class by class."""

    traits: tuple[str, ...]
    blocks: tuple[tuple[tuple[int, ...], ...] | None, ...] = (None,)  # per class: traits that may covary; None: all
    fixed: tuple[bool, ...] = (False,)  # per class
    classes: tuple[str, ...] = ()  # none: one matrix for all records
    unit: tuple[tuple[int, ...], ...] = ((),)  # per class: traits whose variance is 1 by convention
    thresholds: tuple[ThresholdInfo, ...] = ()  # of the ordinal traits
    observed: tuple[ObservedInfo, ...] = ()  # of traits in categories and counts
    moments: tuple[TraitMoments, ...] = ()  # traits whose mean and fixed effects are reported
    correlations: tuple[CorrelationInfo, ...] = ()  # of residuals

    def matrices(self, R: np.ndarray) -> list[tuple[str, TermInfo, np.ndarray]]:
        """(ending of its names, info, draws (..., T, T)) per class."""
        T = len(self.traits)
        info = TermInfo("residual", self.traits, (0,) * T, tuple(range(T)))
        by_class = [R[..., c, :, :] for c in range(len(self.classes))] if self.classes else [R]
        endings = [f"|{name}" for name in self.classes] or [""]
        return [
            (ending, replace(info, blocks=blocks, fixed=fixed), draws)
            for ending, blocks, fixed, draws in zip(endings, self.blocks, self.fixed, by_class, strict=True)
        ]


@dataclass(frozen=True)
class NamedParameters:
    draws: dict[str, np.ndarray]  # name -> (chains, draws) float64, in reporting order
    fixed: frozenset[str]  # names whose value is fixed, or follows from fixed values alone
    variances_counted: dict[str, dict]  # trait (trait|class) -> what its phenotypic variance is made of, for run.json
    notes: tuple[str, ...]


def term_info(
    term: Term,
    traits: Sequence[str],
    level_columns: Sequence[str],
    blocks: tuple[tuple[int, ...], ...] | None = None,
    fixed: bool = False,
    index: int = 0,
    structure: Structure | None = None,
) -> TermInfo:
    """TermInfo of a random `mmgibbs.models.terms.Term`; coefficients of random regressions are numbered:
    'rr.0:yield'. index: of the term in the design.
    """
    return TermInfo(
        name=term.name,
        components=tuple(parameter_labels(term, traits)),
        effect_of_component=tuple(int(e) for e in term.component_effect),
        trait_of_component=tuple(int(t) for t in term.component_trait),
        effects=tuple(e.name for e in term.effects),
        level_columns=tuple(level_columns),
        # a factor of a single effect is in units of 1
        regression=tuple(e.covariates is not None and e.coefficients != ("",) for e in term.effects),
        several=tuple(
            WeightsOfLevels(e.mean_power(1), e.mean_power(2)) if e.has_several_levels else None for e in term.effects
        ),
        related=term.relationship.related,
        of_pedigree=term.relationship.of_pedigree,
        blocks=blocks,
        fixed=fixed,
        matrix=matrix_name(index),
        structure=structure,
        structure_draws=structure_name(index),
        parameters=term.relationship.parameters,
        parameter_values=tuple(term.relationship.parameter_values.tolist()),
        parameters_fixed=term.relationship.parameters_fixed,
        relationship=relationship_name(index),
    )


def named_parameters(
    terms: Sequence[TermInfo],
    matrices: Mapping[str, np.ndarray],
    residual: ResidualInfo,
    markers: Sequence[MarkerInfo | JointMarkerInfo] = (),
) -> NamedParameters:
    """All parameters of the run.

    matrices: draws by name, (chains, draws, k, k) of each random term (TermInfo.matrix), and RESIDUAL (chains, draws,
    T, T), or (chains, draws, classes, T, T) where the residuals have classes.
    """
    residuals = residual.matrices(matrices[RESIDUAL])
    every = [*(("", info, matrices[info.matrix]) for info in terms), *residuals]
    draws: dict[str, np.ndarray] = {}
    fixed: set[str] = set()
    for ending, info, G in every:
        named = _variances_and_covariances(info, G, ending)
        draws.update(named)
        fixed.update(named if info.fixed else ())
        of_relationship = _parameters_of_relationship(info, G, matrices)
        draws.update(of_relationship)
        fixed.update(of_relationship if info.parameters_fixed else ())
    for correlations in residual.correlations:
        named = correlations.named(matrices[RESIDUAL], matrices)
        draws.update(named)
        fixed.update(named if correlations.fixed else ())
    for of_markers in markers:
        draws.update(of_markers.named(matrices))
    of_traits = [m for m in markers if isinstance(m, MarkerInfo)]
    shares = [
        _Shares(terms, matrices, residual.traits[t], t, *r, [m for m in of_traits if m.trait_number == t])
        for t in range(len(residual.traits))
        for r in residuals
    ]
    for share in shares:
        draws.update(share.heritability)
    for ending, info, G in every:
        named = _correlations(info, G, ending)
        draws.update(named)
        fixed.update(named if info.fixed else ())
    for info in terms:
        if info.structure is not None and info.structure_draws in matrices:
            of_structure = info.structure.named(matrices[info.structure_draws], info.components)
            draws.update({f"{info.name}.{name}": values for name, values in of_structure.items()})
    for share in shares:
        draws.update(share.ratios)
        if share.ending and share.fixed:
            fixed.update((*share.heritability, *share.ratios))
    all_fixed = all(info.fixed and info.parameters_fixed for _, info, _ in every)
    if all_fixed and all(correlations.fixed for correlations in residual.correlations) and not markers:
        fixed.update(draws)
    for (ending, _, _), unit in zip(residuals, residual.unit, strict=True):
        fixed.update(f"residual.var[{residual.traits[t]}{ending}]" for t in unit)
    infos: list[ThresholdInfo | ObservedInfo] = [*residual.thresholds, *residual.observed]
    for followed in infos:
        if followed.draws in matrices:
            draws.update(followed.named(matrices[followed.draws]))
    notes = [share.note for share in shares]
    for moments in residual.moments:
        additive = next(share.additive for share in shares if share.trait == moments.trait)
        draws.update(moments.named(matrices, additive))
        notes.append(moments.note(additive))
    counted = {share.name: share.counted for share in shares if share.counted}
    return NamedParameters(draws, frozenset(fixed), counted, tuple(dict.fromkeys(filter(None, notes))))


def _covarying_pairs(info: TermInfo) -> list[tuple[int, int]]:
    """Pairs of components that have a covariance."""
    k = len(info.components)
    return [(a, b) for a in range(k) for b in range(a + 1, k) if info.may_covary(a, b)]


def _variances_and_covariances(info: TermInfo, G: np.ndarray, ending: str) -> dict[str, np.ndarray]:
    """Named draws of a term's matrix G (..., k, k)."""
    out = {f"{info.name}.var[{c}{ending}]": G[..., i, i] for i, c in enumerate(info.components)}
    for a, b in _covarying_pairs(info):
        out[f"{info.name}.cov[{info.components[a]},{info.components[b]}{ending}]"] = G[..., a, b]
    return out


def _parameters_of_relationship(
    info: TermInfo, G: np.ndarray, matrices: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Draws of the parameters of a relationship; those that were not drawn are held."""
    held = np.broadcast_to(np.array(info.parameter_values), (*G.shape[:-2], len(info.parameters)))
    values = matrices.get(info.relationship, held)
    return {f"{info.name}.rho[{name}]": values[..., p] for p, name in enumerate(info.parameters)}


def _correlations(info: TermInfo, G: np.ndarray, ending: str) -> dict[str, np.ndarray]:
    """Named draws of the correlations of the same pairs."""
    return {
        f"{info.name}.corr[{info.components[a]},{info.components[b]}{ending}]": _correlation(G, a, b)
        for a, b in _covarying_pairs(info)
    }


def _correlation(G: np.ndarray, a: int, b: int) -> np.ndarray:
    return G[..., a, b] / np.sqrt(G[..., a, a] * G[..., b, b])


class _Shares:
    """h2 and ratios of one trait and class of residuals; `counted`: what its phenotypic variance is made of."""

    def __init__(
        self,
        terms: Sequence[TermInfo],
        matrices: Mapping[str, np.ndarray],
        trait: str,
        t: int,
        ending: str,
        residual: TermInfo,
        R: np.ndarray,
        markers: Sequence[MarkerInfo] = (),
    ):
        self.name, self.trait, self.ending, self.note = f"{trait}{ending}", trait, ending, ""
        self.additive: np.ndarray | None = None  # V_A
        self.heritability: dict[str, np.ndarray] = {}
        self.ratios: dict[str, np.ndarray] = {}
        self.counted: dict = {}
        on_trait = random_components(terms, t)
        self.fixed = residual.fixed and all(terms[i].fixed for i, _ in on_trait) and not markers
        regressions = covariate_term_names(terms, t)
        if regressions:
            self.note = (
                f"{trait}: the variance of {_listed(regressions)} changes with its covariates, "
                f"so there is no single h2[{trait}], nor ratio"
            )
            return
        phenotypic, sums = R[..., t, t], []
        direct = direct_component(terms, on_trait)
        if any(m.epsilon for m in markers):  # the variances of genotyped animals, who have none of the direct effect
            on_trait, direct = [place for place in on_trait if place != direct], None
        for i, c in on_trait:
            phenotypic = phenotypic + _variance_of_records(terms, matrices, i, c)
            weights = terms[i].weights_of(c)
            sums.append(("" if weights is None else f"{weights.squares:g} x ") + _variance_name(terms, i, c))
        for i, a, b, r in correlated_effects(terms, on_trait):
            phenotypic = phenotypic + 2 * r * matrices[terms[i].matrix][..., a, b]
            times = "" if 2 * r == 1 else f"{2 * r:g} x "
            sums.append(f"{times}{terms[i].name}.cov[{terms[i].components[a]},{terms[i].components[b]}]")
        of_markers = {f"{m.name}.var[{trait}]": m.variance(matrices) for m in markers}
        genomic = {name: variance for name, variance in of_markers.items() if variance is not None}
        for name, variance in genomic.items():
            phenotypic = phenotypic + variance
            sums.append(name)
        sums.append(f"residual.var[{self.name}]")
        additive = list(genomic.values()) + ([] if direct is None else [_component(terms, matrices, *direct)])
        if additive:
            self.additive = sum(additive[1:], additive[0])
            self.heritability[f"h2[{self.name}]"] = self.additive / phenotypic
            if len(additive) > 1:
                shares = zip(markers, genomic.values(), strict=True)
                self.ratios |= {f"ratio[{m.name}:{self.name}]": variance / phenotypic for m, variance in shares}
        elif any(terms[i].related for i, _ in on_trait):
            self.note = (
                f"{trait}: there is no effect of the animal itself, so there is no h2[{trait}]; "
                "in a sire model four times the sire's ratio estimates it"
            )
        for i, c in on_trait:
            if (i, c) != direct or genomic:
                share = _variance_of_records(terms, matrices, i, c) / phenotypic
                self.ratios[_ratio_name(terms[i], c, self.name)] = share
        self.heritability |= self._total_heritability(terms, matrices, direct, on_trait, phenotypic)
        self.counted = {
            "phenotypic_variance": sums,
            "direct_variance": None if direct is None else _variance_name(terms, *direct),
        }
        if genomic:
            self.counted["genomic_variance"] = list(genomic)

    def _total_heritability(
        self,
        terms: Sequence[TermInfo],
        matrices: Mapping[str, np.ndarray],
        direct: tuple[int, int] | None,
        on_trait: Sequence[tuple[int, int]],
        phenotypic: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """T2 = var(u_D + w u_S) / phenotypic variance, w the mean sum of the weights of the mates (Bijma 2011)."""
        if direct is None:
            return {}
        i, d = direct
        weights = {d: 1.0} | {c: w.sum for j, c in on_trait if j == i and (w := terms[i].weights_of(c)) is not None}
        if len(weights) == 1:
            return {}
        vector = np.zeros(len(terms[i].components))
        vector[list(weights)] = list(weights.values())
        total = np.einsum("a,...ab,b->...", vector, matrices[terms[i].matrix], vector)
        return {f"total_h2[{self.name}]": total / phenotypic}


def _component(terms: Sequence[TermInfo], matrices: Mapping[str, np.ndarray], i: int, c: int) -> np.ndarray:
    """(chains, draws) the variance of one component."""
    return matrices[terms[i].matrix][..., c, c]


def _variance_of_records(terms: Sequence[TermInfo], matrices: Mapping[str, np.ndarray], i: int, c: int) -> np.ndarray:
    """(chains, draws) what a component adds to the variance of a record: of several levels, which are not related, the
    sum of their squared weights times the variance, on average."""
    weights, variance = terms[i].weights_of(c), _component(terms, matrices, i, c)
    return variance if weights is None else weights.squares * variance


def random_components(terms: Sequence[TermInfo], trait: int) -> list[tuple[int, int]]:
    """(term, component) of every random component of a trait."""
    return [(i, c) for i, info in enumerate(terms) for c, s in enumerate(info.trait_of_component) if s == trait]


def covariate_term_names(terms: Sequence[TermInfo], trait: int) -> set[str]:
    """Names of the terms whose variance on the trait changes with covariates."""
    on = random_components(terms, trait)
    return {terms[i].name for i, c in on if terms[i].regression[terms[i].effect_of_component[c]]}


def _variance_name(terms: Sequence[TermInfo], i: int, component: int) -> str:
    return f"{terms[i].name}.var[{terms[i].components[component]}]"


def _ratio_name(info: TermInfo, component: int, trait: str) -> str:
    effect = info.effects[info.effect_of_component[component]]
    return f"ratio[{info.name}.{effect}:{trait}]" if len(info.effects) > 1 else f"ratio[{info.name}:{trait}]"


def _role(info: TermInfo, component: int) -> str:
    """Whose level a component has: sire, dam or animal, by the column."""
    column = info.level_columns[info.effect_of_component[component]].lower()
    return "sire" if column in SIRE_COLUMNS else "dam" if column in DAM_COLUMNS else "animal"


def direct_component(terms: Sequence[TermInfo], on_trait: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """(term, component) of the animal's own effect, or None. A pedigree goes before a file, 'direct' before others."""
    direct = [
        (i, c)
        for i, c in on_trait
        if terms[i].related and _role(terms[i], c) == "animal" and terms[i].weights_of(c) is None
    ]

    def order(ic: tuple[int, int]) -> tuple[bool, bool]:
        """Terms of the pedigree first, among their effects the direct one."""
        info = terms[ic[0]]
        return not info.of_pedigree, info.effects[info.effect_of_component[ic[1]]] != "direct"

    return min(direct, key=order, default=None)  # the first written wins a tie


def correlated_effects(
    terms: Sequence[TermInfo], on_trait: Sequence[tuple[int, int]]
) -> list[tuple[int, int, int, float]]:
    """(term, component, component, r): pairs of effects of one term whose levels in a record are related by r > 0."""
    out = []
    for n, (i, a) in enumerate(on_trait):
        for j, b in on_trait[n + 1 :]:
            if i != j or not terms[i].may_covary(a, b):
                continue
            info = terms[i]
            columns = {info.level_columns[info.effect_of_component[c]] for c in (a, b)}
            roles = {_role(info, a), _role(info, b)}
            several = info.weights_of(a)
            if len(columns) == 1:
                out.append((i, a, b, 1.0 if several is None else several.squares))
            elif info.related and roles in ({"animal", "dam"}, {"animal", "sire"}):
                out.append((i, a, b, 0.5))
    return out


def _listed(names: Iterable[str]) -> str:
    return " and ".join(sorted(names))
