"""Effects of SNPs on the animals that records belong to: y_r = ... + x_a(r)' a + e_r.

x_aj = scale_j (m_aj - centre_j), m the copies of the counted allele; a missing genotype stands for the mean. The sum
g_a = x_a' a is the genomic breeding value of an animal. Effects have a prior of their own (sampler/markers/priors).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mmgibbs.genotypes.store import Store


@dataclass(frozen=True)
class MarkerPriorSpec:
    """Which prior the effects of a term have, and its numbers; every number is given, no default stands here."""

    kind: str  # name of the prior in its registry
    start: float  # of the variance of an effect (of a nonzero one, of a class of factor 1)
    fixed: bool  # the variance is held at its start
    df: float  # nu of the scaled inverse chi-square of that variance
    scale: float  # S: the prior is nu S / chi2(nu)
    options: dict[str, Any] = field(default_factory=dict)  # what one kind alone has


@dataclass(frozen=True)
class Markers:
    """One term of SNP effects on one trait.

    Animals with records stand first in the store; `n_recorded` of them. The others have breeding values, no say.
    """

    name: str
    trait: int
    animal: np.ndarray  # (n,) int32 place in the store of the animal of each record; -1 where it has no genotype
    genotypes: Store
    number: np.ndarray  # (p,) int64 of each SNP in its file: draws are keyed by it
    centre: np.ndarray  # (p,)
    scale: np.ndarray  # (p,)
    mean: np.ndarray  # (p,) the dosage that a missing genotype stands for
    prior: MarkerPriorSpec
    n_recorded: int

    @property
    def key(self) -> str:
        """What its draws are called: the name, and the number of the trait."""
        return f"{self.name}.{self.trait}"

    @property
    def n_snps(self) -> int:
        return self.genotypes.n_snps
