"""Effects of SNPs on the animals that records belong to: y_r = ... + x_a(r)' a + e_r.

x_aj = scale_j (m_aj - centre_j), m the copies of the counted allele; a missing genotype counts as the mean. The sum
g_a = x_a' a is the genomic breeding value of an animal. Effects have a prior of their own (sampler/markers/priors).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mmgibbs.genotypes.store import Store


@dataclass(frozen=True)
class MarkerPriorSpec:
    """The prior of the effects of a term, and its numbers; every number is given, no default stands here."""

    kind: str  # name of the prior in its registry
    start: float  # of the variance of an effect (of a nonzero one, of a class of factor 1)
    fixed: bool  # the variance is fixed at its start
    df: float  # nu of the scaled inverse chi-square of that variance
    scale: float  # S: the prior is nu S / chi2(nu)
    options: dict[str, Any] = field(default_factory=dict)  # what one kind alone has


@dataclass(frozen=True)
class JointPriorSpec:
    """The prior of the effects b_j of a SNP on T traits together.

    A SNP is in one of K states: state k acts on the traits of states[k], and their effects have the covariance matrix
    factor_k G_kk, G_kk the rows and columns of G of those traits; the other effects are exactly 0. G ~ IW(df, scale),
    the shares of the states ~ Dirichlet(counts).
    """

    traits: tuple[int, ...]  # (T,) of the design
    states: np.ndarray  # (K, T) bool
    factor: np.ndarray  # (K,) above 0
    pi: np.ndarray  # (K,) where the shares start
    counts: np.ndarray | None  # (K,); None: the shares are fixed
    start: np.ndarray  # (T, T) of G
    fixed: bool  # G is fixed at its start
    df: float
    scale: np.ndarray  # (T, T)
    one_by_one: bool = False  # the states of a SNP move one trait at a time, else all at once

    @property
    def whole(self) -> bool:
        """True if each state acts on all traits or on none: classes that the traits share."""
        return bool(np.all(self.states.all(axis=1) | ~self.states.any(axis=1)))


def states_of_traits(n_traits: int) -> np.ndarray:
    """List every set of traits, that of none first, (2^T, T) bool; trait t is in state k where bit t of k is set."""
    return (np.arange(1 << n_traits)[:, None] >> np.arange(n_traits)) & 1 == 1


@dataclass(frozen=True)
class ResidualPolygenicVariance:
    """The covariance matrix of a random term is `factor` times that of an effect, trait by trait."""

    term: str
    factor: float


@dataclass(frozen=True)
class Markers:
    """A term of SNP effects on one trait.

    Animals with records stand first in the store; `n_recorded` of them. The others have breeding values, no say.
    A term whose effects on several traits have a prior in common has one of these for each of its traits, one after
    the other, which share the store and `joint`.
    """

    name: str
    trait: int
    animal: np.ndarray  # (n,) int32 place in the store of the animal of each record; -1 where it has no genotype
    genotypes: Store
    number: np.ndarray  # (p,) int64 of each SNP in its file: draws are keyed by it
    centre: np.ndarray  # (p,)
    scale: np.ndarray  # (p,)
    mean: np.ndarray  # (p,) the dosage that a missing genotype counts as
    prior: MarkerPriorSpec
    n_recorded: int
    joint: JointPriorSpec | None = None  # of all traits of the term; then `prior` is what it says of this one
    epsilon: bool = False  # a random term holds what predicted genotypes leave, and nothing of genotyped animals
    genotyped: int | None = None  # the first so many of the store, where the genotypes of the others are predicted
    left: ResidualPolygenicVariance | None = (
        None  # where the variance of an effect is that of what predicted genotypes leave, too
    )

    @property
    def first(self) -> bool:
        """True for the first of the traits that share a prior."""
        return self.joint is None or self.trait == self.joint.traits[0]

    @property
    def joint_key(self) -> str:
        """Name of the draws of all its traits together."""
        assert self.joint is not None, "of effects with a prior in common"
        return f"{self.name}.{'+'.join(map(str, self.joint.traits))}"

    @property
    def key(self) -> str:
        """Name of its draws: the name, and the number of the trait."""
        return f"{self.name}.{self.trait}"

    @property
    def n_genotyped(self) -> int:
        return self.genotypes.n_animals if self.genotyped is None else self.genotyped

    @property
    def n_snps(self) -> int:
        return self.genotypes.n_snps
