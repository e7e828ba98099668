"""Heritabilities and ratios: shares of the phenotypic variance of a trait (and class of residuals).

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

import numpy as np

from mmgibbs.posterior.model_parts import MarkerInfo, TermInfo

SIRE_COLUMNS, DAM_COLUMNS = ("sire", "father"), ("dam", "mother")  # level columns of this name are the parent's


class VarianceShares:
    """h2 and ratios, (chains, draws) each, of one trait and class of residuals; `counted`: what its phenotypic variance
    is made of.
    """

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
            weights = terms[i].level_weights(c)
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
        weights = {d: 1.0} | {c: w.sum for j, c in on_trait if j == i and (w := terms[i].level_weights(c)) is not None}
        if len(weights) == 1:
            return {}
        vector = np.zeros(len(terms[i].components))
        vector[list(weights)] = list(weights.values())
        total = np.einsum("a,...ab,b->...", vector, matrices[terms[i].matrix], vector)
        return {f"total_h2[{self.name}]": total / phenotypic}


def _component(terms: Sequence[TermInfo], matrices: Mapping[str, np.ndarray], i: int, c: int) -> np.ndarray:
    """Return the variance of one component, (chains, draws)."""
    return matrices[terms[i].matrix][..., c, c]


def _variance_of_records(terms: Sequence[TermInfo], matrices: Mapping[str, np.ndarray], i: int, c: int) -> np.ndarray:
    """Compute what a component adds to the variance of a record, (chains, draws).

    Of several levels, which are not related, it is the sum of their squared weights times the variance, on average.
    """
    weights, variance = terms[i].level_weights(c), _component(terms, matrices, i, c)
    return variance if weights is None else weights.squares * variance


def random_components(terms: Sequence[TermInfo], trait: int) -> list[tuple[int, int]]:
    """List (term, component) of every random component of a trait."""
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
    """Return the role of the animal whose level a component has: sire, dam or animal, by the column."""
    column = info.level_columns[info.effect_of_component[component]].lower()
    return "sire" if column in SIRE_COLUMNS else "dam" if column in DAM_COLUMNS else "animal"


def direct_component(terms: Sequence[TermInfo], on_trait: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """Find (term, component) of the animal's own effect, or None.

    A pedigree goes before a file, 'direct' before others.
    """
    direct = [
        (i, c)
        for i, c in on_trait
        if terms[i].related and _role(terms[i], c) == "animal" and terms[i].level_weights(c) is None
    ]

    def order(ic: tuple[int, int]) -> tuple[bool, bool]:
        """Terms of the pedigree first, among their effects the direct one."""
        info = terms[ic[0]]
        return not info.of_pedigree, info.effects[info.effect_of_component[ic[1]]] != "direct"

    return min(direct, key=order, default=None)  # the first written wins a tie


def correlated_effects(
    terms: Sequence[TermInfo], on_trait: Sequence[tuple[int, int]]
) -> list[tuple[int, int, int, float]]:
    """List (term, component, component, r) of pairs of effects of one term that are related by r > 0 in a record."""
    out = []
    for n, (i, a) in enumerate(on_trait):
        for j, b in on_trait[n + 1 :]:
            if i != j or not terms[i].may_covary(a, b):
                continue
            info = terms[i]
            columns = {info.level_columns[info.effect_of_component[c]] for c in (a, b)}
            roles = {_role(info, a), _role(info, b)}
            several = info.level_weights(a)
            if len(columns) == 1:
                out.append((i, a, b, 1.0 if several is None else several.squares))
            elif info.related and roles in ({"animal", "dam"}, {"animal", "sire"}):
                out.append((i, a, b, 0.5))
    return out


def _listed(names: Iterable[str]) -> str:
    return " and ".join(sorted(names))
