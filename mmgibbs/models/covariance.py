"""Full conditionals of the covariance matrices: inverse Wishart, and scaled inverse chi-square as its k = 1 case.

    G | .  ~ IW(nu + q, S + Theta' K^-1 Theta)              R | .  ~ IW(nu + n, S + sum_r w_r e_r e_r')

IW(nu, S) has density proportional to |G|^(-(nu+k+1)/2) exp(-tr(S G^-1)/2) and mean S/(nu-k-1). Priors are in
models/priors; some of them are such given auxiliary variables. The sums of squares and products come from an engine,
missing residuals augmented (engines/augment.py). Where components may not covary (`structure: diagonal`, traits never
recorded together) each block of the matrix has an IW of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mmgibbs.errors import ModelError
from mmgibbs.models.priors import FLAT
from mmgibbs.models.priors.base import CovariancePrior
from mmgibbs.models.priors.inverse_wishart import InverseWishart
from mmgibbs.models.priors.log_density import block_sizes
from mmgibbs.models.structures.base import Structure


@dataclass(frozen=True)
class CovarianceModel:
    """A covariance matrix of the model: where it starts, whether it moves, its prior and the blocks that may covary."""

    start: np.ndarray  # (k, k)
    fixed: bool
    blocks: tuple[tuple[int, ...], ...]  # a partition of 0 ... k - 1
    prior: CovariancePrior = FLAT
    name: str = ""  # of its term, or 'residual', for messages
    unit: tuple[int, ...] = ()  # components whose variance is 1 by convention: traits in categories
    structure: Structure | None = None  # G is a function of fewer parameters, which have priors in place of `prior`

    @cached_property
    def size_of_block(self) -> np.ndarray:
        """Size of the block that each component is in, (k,)."""
        return block_sizes(self.blocks)

    def given(self, a: np.ndarray | None = None) -> CovarianceModel:
        """The model given the auxiliary variables of its prior, or their starts: an inverse Wishart."""
        mixture = self.prior.mixture
        if mixture is None:
            return self
        df, scale = mixture.inverse_wishart(mixture.start() if a is None else a)
        prior = InverseWishart(df, scale, df_beyond_size=True)
        return CovarianceModel(self.start, self.fixed, self.blocks, prior, self.name, self.unit)

    @property
    def flat(self) -> bool:
        return self.prior.is_flat and self.structure is None

    def inverse_wishart(self, block: tuple[int, ...]) -> tuple[float, np.ndarray]:
        """nu and S of one block."""
        S = self.prior.scale_matrix(len(self.start))
        return self.prior.degrees(len(block)), S if len(block) == len(S) else S[np.ix_(block, block)]

    @cached_property
    def inverse_wisharts(self) -> tuple[tuple[float, np.ndarray], ...]:
        """nu and S of each block."""
        return tuple(self.inverse_wishart(block) for block in self.blocks)


def count_elements(matrices: Iterable[CovarianceModel]) -> int:
    """Free elements of the covariance matrices that are not fixed."""
    return sum(len(b) * (len(b) + 1) // 2 for c in matrices if not c.fixed for b in c.blocks)


def full_block(k: int) -> tuple[tuple[int, ...], ...]:
    return (tuple(range(k)),)


def join_all(G: Sequence[np.ndarray | None]) -> list[tuple[tuple[int, ...], ...] | None]:
    """Blocks of each term if all its components may covary; G: None for fixed terms."""
    return [None if g is None else full_block(len(g)) for g in G]


def covarying_blocks(G: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """Blocks of components that covary in G (k, k)."""
    from scipy.sparse.csgraph import connected_components

    _, label = connected_components(G != 0, directed=False)
    return tuple(tuple(int(c) for c in np.flatnonzero(label == b)) for b in dict.fromkeys(label.tolist()))


def diagonal_blocks(k: int) -> tuple[tuple[int, ...], ...]:
    return tuple((i,) for i in range(k))


def blocks_recorded_together(patterns: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """Traits in one block are joined by records that observe both;
    residuals of traits never recorded together cannot covary.
    """
    return covarying_blocks(patterns.astype(np.int64).T @ patterns.astype(np.int64))


def check_posterior_exists(
    name: str, model: CovarianceModel, n: dict[tuple[int, ...], int] | int, what: str = "levels"
) -> list[str]:
    """Refuse a conditional from which nothing can be drawn; return a warning where its mean does not exist.

    `n` counts levels or records.
    """
    notes: list[str] = []
    if model.fixed or model.prior.is_proper or model.structure is not None:  # whose priors are proper
        return notes
    for block in model.blocks:
        k, count = len(block), n if isinstance(n, int) else n[block]
        nu, _ = model.inverse_wishart(block)
        problem = (
            f"prior df {nu:g} plus {count} {what if count != 1 else what[:-1]} gives {nu + count:g} degrees of freedom"
        )
        if nu + count <= k - 1:
            raise ModelError(
                f"variances.{name}: the posterior does not exist: {problem}, "
                f"needed more than {k - 1} for a {k} x {k} matrix; give a prior with df above {k - 1 - count}, or "
                "fix it"
            )
        if nu + count <= k + 1:
            notes.append(
                f"variances.{name}: the posterior mean may not exist: {problem}, a mean needs more than {k + 1}"
            )
    return notes
