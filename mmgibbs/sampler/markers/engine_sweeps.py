"""Where the sweeps over the effects of a term are made: by the host, or on the device of the engine."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mmgibbs.engines.base import MarkerEngine
from mmgibbs.engines.device_sweep import ClassDraws, SiteDraws, StateDraws
from mmgibbs.sampler.markers.arguments import Animals, Genotypes, Products
from mmgibbs.sampler.markers.block import make_block
from mmgibbs.sampler.markers.sweep import sharing, sweep


class EffectSweeps(Protocol):
    """Draws of all effects of a term."""

    def draw(
        self,
        Q: np.ndarray,
        animals: Animals,
        a: np.ndarray,
        draws: ClassDraws | StateDraws | SiteDraws,
        is_backward: bool = False,
    ) -> float:
        """Draw a (p, T) by `draws`, from the last SNP to the first if backward; s and g of the animals follow.

        Q (patterns, T, T): R^-1 of the traits in each missing pattern that observes one of them. Returned is the log
        ratio of the prior and the one that is compared (class_draws.py).
        """


class HostSweeps:
    """Sweeps of sweep.py on the host.

    grams (patterns, blocks, b, b): the products within blocks of each missing pattern.
    """

    def __init__(self, engine: MarkerEngine, genotypes: Genotypes, grams: np.ndarray):
        self.genotypes, self.grams = genotypes, grams
        self.threads = sharing(engine.threads_of_effects, genotypes.chunks)

    def draw(
        self,
        Q: np.ndarray,
        animals: Animals,
        a: np.ndarray,
        draws: ClassDraws | StateDraws | SiteDraws,
        is_backward: bool = False,
    ) -> float:
        """Draw the effects: see EffectSweeps."""
        T, n = animals.s.shape
        block = make_block(T, n, self.grams.shape[2], animals.s.dtype)
        if isinstance(draws, ClassDraws) and draws.compared[1].size:
            draws = draws._replace(chances=np.empty_like(draws.chances))
        self.threads.together(sweep, block, self.genotypes, self._products(Q), animals, a, draws, is_backward)
        return float(block.log_ratio[0])

    def _products(self, Q: np.ndarray) -> Products:
        """X_b' D X_b as matrices and factors; on one trait added up over the patterns."""
        if len(Q) == 1 or Q.shape[1] > 1:
            return Products(self.grams, Q)
        total = np.zeros_like(self.grams[:1])
        for q, gram in zip(Q, self.grams, strict=True):
            total += np.float32(q) * gram
        return Products(total, np.ones((1, 1, 1)))


def make_sweeps(
    engine: MarkerEngine, genotypes: Genotypes, grams: np.ndarray, n_traits: int, n_classes: int
) -> EffectSweeps:
    """Make the sweeps on the device of the engine, if it has one, else on the host."""
    if not hasattr(engine, "make_effects"):
        return HostSweeps(engine, genotypes, grams)
    array = genotypes.array[:, : genotypes.chunks]
    return engine.make_effects(array, genotypes.values, grams, n_traits, n_classes)
