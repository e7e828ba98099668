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
    NAME    of the functions that the analysis names (functions.py)
    mean[trait]    fixed_var[trait]    cv_a[trait]    i_a[trait]    (trait_moments.py, where they were asked for)

with SNPS a term of SNP effects: var, cov and corr are those of the genomic breeding values among the genotyped animals,
effect_... those of the effect of a SNP under the prior; the second and third line of them where the effects on several
traits have one prior.

Where the residuals have classes (`variances.residual.by`), whatever depends on them ends in the class:
residual.var[trait|class], residual.cov[trait,trait|class], h2[trait|class], residual.corr[trait,trait|class],
ratio[TERM:trait|class].

Elements that are zero by the model (`structure: diagonal`, traits never recorded together) have no name. What h2 and
ratio are is in variance_shares.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mmgibbs.posterior.draw_names import RESIDUAL
from mmgibbs.posterior.functions import add_functions
from mmgibbs.posterior.model_parts import (
    JointMarkerInfo,
    MarkerInfo,
    ObservedInfo,
    ResidualInfo,
    TermInfo,
    ThresholdInfo,
)
from mmgibbs.posterior.variance_shares import VarianceShares


@dataclass(frozen=True)
class Parameter:
    """A logged quantity: the names of its dimensions after (chain, draw)."""

    dims: tuple[str, ...] = ()
    help: str = ""


@dataclass(frozen=True)
class NamedParameters:
    draws: dict[str, np.ndarray]  # name -> (chains, draws) float64, in reporting order
    fixed: frozenset[str]  # names whose value is fixed, or follows from fixed values alone
    variances_counted: dict[str, dict]  # trait (trait|class) -> what its phenotypic variance is made of, for run.json
    notes: tuple[str, ...]
    functions: Mapping[str, frozenset[str]] = field(default_factory=dict)  # name -> parameters that it depends on


def named_parameters(
    terms: Sequence[TermInfo],
    matrices: Mapping[str, np.ndarray],
    residual: ResidualInfo,
    markers: Sequence[MarkerInfo | JointMarkerInfo] = (),
) -> NamedParameters:
    """List all parameters of the run.

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
        VarianceShares(terms, matrices, residual.traits[t], t, *r, [m for m in of_traits if m.trait_number == t])
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
    depends, of_functions = add_functions(residual.functions, draws, fixed)
    notes += of_functions
    counted = {share.name: share.counted for share in shares if share.counted}
    return NamedParameters(draws, frozenset(fixed), counted, tuple(dict.fromkeys(filter(None, notes))), depends)


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
