"""What the names and ratios of parameters need to know of the parts of a model: its random terms, residuals, SNP
effects, thresholds and observed scales, and how the parts name their own draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mmgibbs.models.labels import parameter_labels
from mmgibbs.models.structures.base import Structure
from mmgibbs.models.terms import Term
from mmgibbs.posterior.draw_names import (
    MEAN_VARIANCE,
    marker_name,
    matrix_name,
    relationship_name,
    structure_name,
)
from mmgibbs.posterior.functions import ParameterFunction

if TYPE_CHECKING:
    from mmgibbs.posterior.trait_moments import TraitMoments


class WeightsOfLevels(NamedTuple):
    """Weights of an effect with several levels per record, means over the records that meet it."""

    sum: float  # of sum_j w_rj
    squares: float  # of sum_j w_rj^2


@dataclass(frozen=True)
class TermInfo:
    """A random term with k components and one or more effects, as names and ratios need it."""

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

    def level_weights(self, component: int) -> WeightsOfLevels | None:
        """Return the weights of the levels of a component; None for an effect with one level per record."""
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
    """Quantities of a trait that are reported on the scale of its records."""

    names: tuple[str, ...]  # (m,)
    draws: str  # what the draws (..., m) are called

    def named(self, draws: np.ndarray) -> dict[str, np.ndarray]:
        return {name: draws[..., j] for j, name in enumerate(self.names)}


@dataclass(frozen=True)
class MarkerInfo:
    """A term of SNP effects on one trait, as names and ratios need it."""

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
    """SNP effects on several traits that have one prior, as names and ratios need them."""

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
    """Correlations of residuals of one group of records that are reported (`Design.correlated`)."""

    names: tuple[str, ...]  # (P,) 'residual.rho[row]'
    values: tuple[float, ...]  # (P,) where they begin, or are held
    fixed: bool
    draws: str  # what values (..., P) that were estimated are called

    def named(self, R: np.ndarray, matrices: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the draws (chains, draws) of each correlation; those that were not estimated are held."""
        held = np.broadcast_to(np.array(self.values), (*R.shape[:2], len(self.values)))
        values = matrices.get(self.draws, held)
        return {name: values[..., p] for p, name in enumerate(self.names)}


@dataclass(frozen=True)
class ResidualInfo:
    """Residuals of all records, or class by class, as names and ratios need them."""

    traits: tuple[str, ...]
    blocks: tuple[tuple[tuple[int, ...], ...] | None, ...] = (None,)  # per class: traits that may covary; None: all
    fixed: tuple[bool, ...] = (False,)  # per class
    classes: tuple[str, ...] = ()  # none: one matrix for all records
    unit: tuple[tuple[int, ...], ...] = ((),)  # per class: traits whose variance is 1 by convention
    thresholds: tuple[ThresholdInfo, ...] = ()  # of the ordinal traits
    observed: tuple[ObservedInfo, ...] = ()  # of traits in categories and counts
    moments: tuple[TraitMoments, ...] = ()  # traits whose mean and fixed effects are reported
    correlations: tuple[CorrelationInfo, ...] = ()  # of residuals
    functions: tuple[ParameterFunction, ...] = ()  # of all parameters, in the order of the analysis

    def matrices(self, R: np.ndarray) -> list[tuple[str, TermInfo, np.ndarray]]:
        """List (ending of its names, info, draws (..., T, T)) per class."""
        T = len(self.traits)
        info = TermInfo("residual", self.traits, (0,) * T, tuple(range(T)))
        by_class = [R[..., c, :, :] for c in range(len(self.classes))] if self.classes else [R]
        endings = [f"|{name}" for name in self.classes] or [""]
        return [
            (ending, replace(info, blocks=blocks, fixed=fixed), draws)
            for ending, blocks, fixed, draws in zip(endings, self.blocks, self.fixed, by_class, strict=True)
        ]


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
