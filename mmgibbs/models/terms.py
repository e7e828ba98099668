"""Terms: how records meet levels (the incidence), and what is known of the levels' effects beforehand (the prior).

A *term* holds q levels with k components each, Theta (q x k), and adds W_ri theta_i,l(r) to record r. Its incidence is
`Levels`: effects, each of which brings one level per record and either the constant 1 or m covariates; the pairs
(effect, covariate) are the *regressors*, numbered effect by effect. Components run effect by effect, then trait by
trait, then coefficient by coefficient, so component c has a trait t(c) and a regressor a(c), and

    W_ri[t, c] = z_r,a(c)   where t = t(c),   else 0.

An effect may bring several levels per record, such as the mates in a pen, each with a weight: it then adds
sum_j w_rj theta_i,l(r,j). Its *slots* are the places j = 0 ... s - 1; an effect with one level per record has one slot.

Its prior is one of

    Flat            fixed effects: precision 0
    Normal(P)       fixed effects: precision I (x) P, never sampled
    Related(K)      random effects: Theta ~ MN(0, K (x) G), precision K^-1 (x) G^-1; G is a parameter, whose own model
                    is models/covariance.py; G of rank f < k has no inverse: Theta = F L', F ~ MN(0, K (x) I), G = L L'

Another incidence (the columns of genotypes) offers what `Levels` does: n_levels, n_components, n_regressors and the
trait and regressor of each component.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from mmgibbs.models.relationships.base import Relationship
from mmgibbs.models.relationships.identity import Identity


@dataclass(frozen=True)
class Effect:
    """A way in which records meet the levels of a term: 'direct' through the animal, 'maternal' through its dam."""

    name: str  # '' where the term has one unnamed effect
    level: np.ndarray  # (n,) int32 level of each record, or (n, s) several; -1: the record does not meet this effect
    traits: tuple[int, ...]  # the traits that it acts on
    covariates: np.ndarray | None = None  # (n, m) float64, or (n, s) weights of several levels; None: the constant 1
    coefficients: tuple[str, ...] = ("",)  # (m,) label of each covariate, as reported

    @property
    def has_several_levels(self) -> bool:
        """True if a record may meet several levels."""
        return self.level.ndim == 2

    @property
    def n_regressors(self) -> int:
        return 1 if self.covariates is None or self.has_several_levels else self.covariates.shape[1]

    @property
    def slots(self) -> list[np.ndarray]:
        """The (n,) int32 levels of each slot, -1 for none."""
        return list(self.level.T) if self.has_several_levels else [self.level]

    def meetings(self) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Yield for each slot the (n,) int32 levels and (n, m) float64 multipliers of their effects; None: 1."""
        covariates = self.covariates
        for slot, level in enumerate(self.slots):
            if self.has_several_levels and covariates is not None:
                yield level, covariates[:, slot : slot + 1]
            else:
                yield level, covariates

    def sum_powers(self, power: int) -> np.ndarray:
        """(n,) sum_j w_rj^power over the levels that a record meets through an effect with several."""
        return np.sum(
            [np.where(level >= 0, 1.0 if z is None else z[:, 0] ** power, 0.0) for level, z in self.meetings()], axis=0
        )

    def mean_power(self, power: int) -> float:
        """The mean of `sum_powers` over the records that meet the effect; 1 of an effect with one level per record."""
        met = (self.level >= 0).any(axis=1) if self.has_several_levels else np.zeros(0, bool)
        return float(self.sum_powers(power)[met].mean()) if met.any() else 1.0


@dataclass(frozen=True)
class Levels:
    """Incidence: each effect brings one of q levels per record. Its arrays are made once, and not changed."""

    effects: tuple[Effect, ...]
    n_levels: int  # q, unknown-parent groups included

    @cached_property
    def component_effect(self) -> np.ndarray:
        """(k,) int64: the effect of each component."""
        return np.array(
            [i for i, e in enumerate(self.effects) for _ in e.traits for _ in range(e.n_regressors)], np.int64
        )

    @cached_property
    def component_trait(self) -> np.ndarray:
        """(k,) int64: t(c)."""
        return np.array([t for e in self.effects for t in e.traits for _ in range(e.n_regressors)], np.int64)

    @cached_property
    def component_regressor(self) -> np.ndarray:
        """(k,) int64: a(c)."""
        first = np.cumsum([0] + [e.n_regressors for e in self.effects])
        return np.array(
            [first[i] + j for i, e in enumerate(self.effects) for _ in e.traits for j in range(e.n_regressors)],
            np.int64,
        )

    @cached_property
    def regressor_effect(self) -> np.ndarray:
        """(m,) int64: the effect that each regressor belongs to."""
        return np.array([i for i, e in enumerate(self.effects) for _ in range(e.n_regressors)], np.int64)

    @cached_property
    def n_components(self) -> int:
        return sum(len(e.traits) * e.n_regressors for e in self.effects)

    @cached_property
    def n_regressors(self) -> int:
        return sum(e.n_regressors for e in self.effects)

    @cached_property
    def slot_effect(self) -> np.ndarray:
        """(slots,) int64: the effect of each slot, effect by effect."""
        return np.array([i for i, e in enumerate(self.effects) for _ in e.slots], np.int64)

    @cached_property
    def slots(self) -> list[np.ndarray]:
        """The (n,) int32 levels of each slot."""
        return [level for e in self.effects for level in e.slots]

    @cached_property
    def slot_weights(self) -> np.ndarray:
        """(n, slots) float64 weights of levels; no rows where all are 1."""
        weights = [e.covariates if e.has_several_levels else None for e in self.effects]
        if all(w is None for w in weights):
            return np.empty((0, self.slot_effect.size))
        ones = np.ones(len(self.slots[0]))
        return np.column_stack(
            [
                ones if w is None else w[:, j]
                for w, e in zip(weights, self.effects, strict=True)
                for j in range(len(e.slots))
            ]
        )

    @property
    def has_several_levels(self) -> bool:
        """True if a record may meet several levels through one effect."""
        return any(e.has_several_levels for e in self.effects)


@dataclass(frozen=True)
class Flat:
    """A fixed term: precision 0."""

    kind: ClassVar[str] = "fixed"
    precision: ClassVar[None] = None


@dataclass(frozen=True)
class Normal:
    """A fixed term whose levels are N(0, P^-1) each."""

    precision: np.ndarray  # P, (k, k); zero rows and columns: flat for that component

    kind: ClassVar[str] = "fixed"


@dataclass(frozen=True)
class Related:
    """A random term: its effects share one covariance matrix G, its levels the relationship matrix K."""

    relationship: Relationship
    n_scores: int | None = None  # f of the scores s that stand for theta = s L' where G = L L' has no inverse

    kind: ClassVar[str] = "random"
    precision: ClassVar[None] = None


@dataclass(frozen=True)
class Term:
    """A fixed effect, or the random effects that share one covariance matrix: Incidence x Prior."""

    name: str
    incidence: Levels
    prior: Flat | Normal | Related = Flat()
    active: np.ndarray | None = None  # (q, k) bool; False: set to 0 (dropped, or without records); None: all active

    def __post_init__(self) -> None:
        assert self.relationship.n_levels == self.n_levels, f"{self.name}: K is of another size than Theta"

    @property
    def kind(self) -> str:
        """'fixed' or 'random'."""
        return self.prior.kind

    @property
    def relationship(self) -> Relationship:
        """K; of fixed effects the identity, as their levels are independent."""
        return self.prior.relationship if isinstance(self.prior, Related) else Identity(self.n_levels)

    @property
    def n_scores(self) -> int | None:
        """Scores of each level of a random term whose G has no inverse; None for all others."""
        return self.prior.n_scores if isinstance(self.prior, Related) else None

    @property
    def prior_precision(self) -> np.ndarray | None:
        """(k, k) of a fixed term; None where it is flat, and of a random term."""
        return self.prior.precision

    @cached_property
    def fixed_precision(self) -> np.ndarray:
        """(k, k) float64 of a fixed term, 0 where it is flat."""
        k, precision = self.n_components, self.prior_precision
        return np.zeros((k, k)) if precision is None else np.asarray(precision, np.float64)

    @property
    def effects(self) -> tuple[Effect, ...]:
        return self.incidence.effects

    @property
    def n_levels(self) -> int:
        return self.incidence.n_levels

    @property
    def component_effect(self) -> np.ndarray:
        return self.incidence.component_effect

    @property
    def component_trait(self) -> np.ndarray:
        return self.incidence.component_trait

    @property
    def component_regressor(self) -> np.ndarray:
        return self.incidence.component_regressor

    @property
    def regressor_effect(self) -> np.ndarray:
        return self.incidence.regressor_effect

    @property
    def n_components(self) -> int:
        return self.incidence.n_components

    @property
    def n_regressors(self) -> int:
        return self.incidence.n_regressors

    @property
    def has_several_levels(self) -> bool:
        """True if a record may meet several levels through one effect."""
        return isinstance(self.incidence, Levels) and self.incidence.has_several_levels

    @property
    def n_groups(self) -> int:
        """The last n_groups levels are unknown-parent groups."""
        return self.relationship.n_groups

    @property
    def groups_fixed(self) -> bool:
        return self.relationship.groups_fixed

    @property
    def n_equations(self) -> int:
        """Equations in force: components set to 0 are not counted."""
        return self.n_levels * self.n_components if self.active is None else int(np.count_nonzero(self.active))

    @property
    def n_prior_levels(self) -> int:
        """Levels that count as degrees of freedom of an inverse-Wishart: fixed unknown-parent groups never do, nor do
        levels that are set to 0."""
        n = self.n_without_fixed_groups
        return n if self.active is None else int(np.count_nonzero(self.active[:n].any(axis=1)))

    @property
    def n_without_fixed_groups(self) -> int:
        """The levels that stand before fixed unknown-parent groups: all where there are none."""
        return self.n_levels - (self.n_groups if self.groups_fixed else 0)
