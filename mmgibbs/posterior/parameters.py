"""From draws of covariance matrices to named parameters: variances, covariances, heritabilities, correlations, ratios.

Names (a contract, with TERM a random term and a, b components written `effect:trait`, or `trait` where the effect has
no name):

    TERM.var[a]          TERM.cov[a,b]          residual.var[trait]    residual.cov[trait,trait]
    h2[trait]            TERM.corr[a,b]         residual.corr[trait,trait]
    ratio[TERM:trait]    ratio[TERM.effect:trait] where TERM has several effects

Elements that are zero by the model (`structure: diagonal`, traits never recorded together) have no name. For each
trait:

    phenotypic variance = sum of the variances of every effect on the trait + cross terms + residual variance (weight 1)
    h2[trait]    = variance of the direct effect / phenotypic variance
    ratio[...]   = variance of any other effect / phenotypic variance

The *direct* effect is the animal's own in a term with a relationship (the pedigree before a user's file): the effect
whose level is neither sire nor dam. A cross term enters where two effects of one record on a trait are correlated
across levels: 2 r cov[a,b] with r the relationship of the two levels: 1/2 between an animal and its dam or sire (so a
direct-maternal covariance counts once: Willham 1963), 1 where both effects have the same level, 0 between sire and dam.
All of it refers to animals that are not inbred. Random regressions have no single variance: traits on which one acts
get no h2 and no ratio, which a note says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SIRE_COLUMNS, DAM_COLUMNS = ("sire", "father"), ("dam", "mother")  # level columns of this name are the parent's


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
    fixed: bool = False  # held at its starting value

    def may_covary(self, a: int, b: int) -> bool:
        return self.blocks is None or any(a in block and b in block for block in self.blocks)


@dataclass(frozen=True)
class NamedParameters:
    draws: dict[str, np.ndarray]  # name -> (chains, draws) float64, in reporting order
    fixed: frozenset[str]  # names whose value is held fixed, or follows from fixed values alone
    variances_counted: dict[str, dict]  # trait -> what its phenotypic variance is made of, for run.json
    notes: tuple[str, ...]


def term_info(term, traits: Sequence[str], level_columns: Sequence[str], blocks=None, fixed=False) -> TermInfo:
    """TermInfo of a random `mmgibbs.model.terms.Term`; coefficients of random regressions are numbered:
    'rr.0:yield'.
    """
    labels = []
    for effect in term.effects:
        for t in effect.traits:
            for j in range(effect.n_regressors):
                name = effect.name if effect.covariates is None else f"{effect.name}.{j}"
                labels.append(f"{name}:{traits[t]}" if name else traits[t])
    return TermInfo(
        name=term.name,
        components=tuple(labels),
        effect_of_component=tuple(int(e) for e in term.component_effect),
        trait_of_component=tuple(int(t) for t in term.component_trait),
        effects=tuple(e.name for e in term.effects),
        level_columns=tuple(level_columns),
        regression=tuple(e.covariates is not None for e in term.effects),
        related=term.relationship.related,
        of_pedigree=term.relationship.of_pedigree,
        blocks=blocks,
        fixed=fixed,
    )


def named_parameters(
    terms: Sequence[TermInfo],
    variances: Sequence[np.ndarray],
    residual: np.ndarray,
    traits: Sequence[str],
    residual_blocks: tuple[tuple[int, ...], ...] | None = None,
    residual_fixed: bool = False,
) -> NamedParameters:
    """All parameters of the run.

    variances: (chains, draws, k, k) per random term; residual: (chains, draws, T, T). `residual_blocks`: traits whose
    residuals may covary (None: all).
    """
    last = TermInfo(
        "residual",
        tuple(traits),
        (0,) * len(traits),
        tuple(range(len(traits))),
        blocks=residual_blocks,
        fixed=residual_fixed,
    )
    matrices = [*zip(terms, variances, strict=False), (last, residual)]
    draws, fixed = {}, set()
    for info, G in matrices:
        named = _variances_and_covariances(info, G)
        draws.update(named)
        fixed.update(named if info.fixed else ())
    heritabilities, ratios, counted, notes = _shares_of_phenotypic_variance(terms, variances, residual, traits)
    draws.update(heritabilities)
    for info, G in matrices:
        named = _correlations(info, G)
        draws.update(named)
        fixed.update(named if info.fixed else ())
    draws.update(ratios)
    if residual_fixed and all(info.fixed for info in terms):
        fixed.update(draws)
    return NamedParameters(draws, frozenset(fixed), counted, tuple(notes))


def _covarying_pairs(info: TermInfo) -> list[tuple[int, int]]:
    k = len(info.components)
    return [(a, b) for a in range(k) for b in range(a + 1, k) if info.may_covary(a, b)]


def _variances_and_covariances(info: TermInfo, G: np.ndarray) -> dict[str, np.ndarray]:
    out = {f"{info.name}.var[{c}]": G[..., i, i] for i, c in enumerate(info.components)}
    for a, b in _covarying_pairs(info):
        out[f"{info.name}.cov[{info.components[a]},{info.components[b]}]"] = G[..., a, b]
    return out


def _correlations(info: TermInfo, G: np.ndarray) -> dict[str, np.ndarray]:
    return {
        f"{info.name}.corr[{info.components[a]},{info.components[b]}]": _correlation(G, a, b)
        for a, b in _covarying_pairs(info)
    }


def _correlation(G: np.ndarray, a: int, b: int) -> np.ndarray:
    return G[..., a, b] / np.sqrt(G[..., a, a] * G[..., b, b])


def _shares_of_phenotypic_variance(terms, variances, residual, traits):
    """(h2 by name, ratios by name, what was counted per trait, notes)."""
    heritabilities, ratios, counted, notes = {}, {}, {}, []
    for t, trait in enumerate(traits):
        on_trait = [(i, c) for i, info in enumerate(terms) for c, s in enumerate(info.trait_of_component) if s == t]
        regressions = {terms[i].name for i, c in on_trait if terms[i].regression[terms[i].effect_of_component[c]]}
        if regressions:
            notes.append(
                f"{trait}: the variance of {_listed(regressions)} changes with its covariates, "
                f"so there is no single h2[{trait}], nor ratio"
            )
            continue
        phenotypic, sums = residual[..., t, t], []
        for i, c in on_trait:
            phenotypic = phenotypic + variances[i][..., c, c]
            sums.append(_variance_name(terms, i, c))
        for i, a, b, r in _correlated_effects(terms, on_trait):
            phenotypic = phenotypic + 2 * r * variances[i][..., a, b]
            sums.append(f"{2 * r:g} x {terms[i].name}.cov[{terms[i].components[a]},{terms[i].components[b]}]")
        sums.append(f"residual.var[{trait}]")
        direct = _direct_component(terms, on_trait)
        if direct is not None:
            i, c = direct
            heritabilities[f"h2[{trait}]"] = variances[i][..., c, c] / phenotypic
        elif any(terms[i].related for i, _ in on_trait):
            notes.append(
                f"{trait}: no effect of the animal itself, so no h2[{trait}]; "
                "in a sire model four times the sire's ratio estimates it"
            )
        for i, c in on_trait:
            if (i, c) != direct:
                ratios[_ratio_name(terms[i], c, trait)] = variances[i][..., c, c] / phenotypic
        counted[trait] = {
            "phenotypic_variance": sums,
            "direct_variance": None if direct is None else _variance_name(terms, *direct),
        }
    return heritabilities, ratios, counted, notes


def _variance_name(terms, i: int, component: int) -> str:
    return f"{terms[i].name}.var[{terms[i].components[component]}]"


def _ratio_name(info: TermInfo, component: int, trait: str) -> str:
    effect = info.effects[info.effect_of_component[component]]
    return f"ratio[{info.name}.{effect}:{trait}]" if len(info.effects) > 1 else f"ratio[{info.name}:{trait}]"


def _role(info: TermInfo, component: int) -> str:
    column = info.level_columns[info.effect_of_component[component]].lower()
    return "sire" if column in SIRE_COLUMNS else "dam" if column in DAM_COLUMNS else "animal"


def _direct_component(terms, on_trait):
    """(term, component) of the animal's own effect, or None. A pedigree goes before a file, 'direct' before others."""
    own = [(i, c) for i, c in on_trait if terms[i].related and _role(terms[i], c) == "animal"]

    def order(ic):
        info = terms[ic[0]]
        return not info.of_pedigree, info.effects[info.effect_of_component[ic[1]]] != "direct"

    return min(own, key=order, default=None)  # the first written wins a tie


def _correlated_effects(terms, on_trait):
    """(term, component, component, r): pairs of effects of one term whose levels in a record are related by r > 0."""
    out = []
    for n, (i, a) in enumerate(on_trait):
        for j, b in on_trait[n + 1 :]:
            if i != j or not terms[i].may_covary(a, b):
                continue
            info = terms[i]
            columns = {info.level_columns[info.effect_of_component[c]] for c in (a, b)}
            roles = {_role(info, a), _role(info, b)}
            if len(columns) == 1:
                out.append((i, a, b, 1.0))
            elif info.related and roles in ({"animal", "dam"}, {"animal", "sire"}):
                out.append((i, a, b, 0.5))
    return out


def _listed(names) -> str:
    return " and ".join(sorted(names))
