"""Where the sweeps over the effects of a term are made: by the host, or on the device of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from mmgibbs.engines.base import MarkerEngine
from mmgibbs.engines.device_sweep import ClassDraws, ComparedPriors, SiteDraws, StateDraws
from mmgibbs.sampler.markers.arguments import Animals, Classes, Genotypes, Products
from mmgibbs.sampler.markers.joint_sweep import make_block as make_joint_block
from mmgibbs.sampler.markers.joint_sweep import sweep_single_sites, sweep_states
from mmgibbs.sampler.markers.sweep import make_block, sharing, sweep_mixture, sweep_normal

NO_CLASSES = Classes(np.empty((0, 1)), np.empty(0))  # nothing to compare a prior with


class EffectSweeps(Protocol):
    """Draws of all effects a (p,) of a term; s and g of the animals follow. Q (patterns,): R^-1 of the trait in each
    missing pattern that observes it.
    """

    def draw_normals(self, Q: np.ndarray, animals: Animals, a: np.ndarray, v: np.ndarray, z: np.ndarray) -> None:
        """Every effect from its normal: v (p,) its prior variance, z (p,) standard normals."""

    def draw_classes(self, Q: np.ndarray, animals: Animals, a: np.ndarray, draws: ClassDraws) -> float:
        """Class and effect of every SNP; log ratio of the prior and the one that is compared (sweep_mixture)."""


class HostSweeps:
    """Those of sweep.py. grams: the products within blocks (blocks, b, b) of each missing pattern."""

    def __init__(self, engine: MarkerEngine, genotypes: Genotypes, grams: Sequence[np.ndarray]):
        self.genotypes, self.grams = genotypes, grams
        self.threads = sharing(engine.threads_of_effects, genotypes.chunks)

    def draw_normals(self, Q: np.ndarray, animals: Animals, a: np.ndarray, v: np.ndarray, z: np.ndarray) -> None:
        """See EffectSweeps."""
        products = self._multiply(Q)
        block = make_block(products.gram.shape[1], len(animals.s), animals.s.dtype)
        self.threads.together(sweep_normal, block, self.genotypes, products, animals, a, v, z)

    def draw_classes(self, Q: np.ndarray, animals: Animals, a: np.ndarray, draws: ClassDraws) -> float:
        """See EffectSweeps."""
        products = self._multiply(Q)
        block = make_block(products.gram.shape[1], len(animals.s), animals.s.dtype)
        if draws.compared[1].size:
            draws = draws._replace(chances=np.empty_like(draws.chances))
        self.threads.together(sweep_mixture, block, self.genotypes, products, animals, a, *draws)
        return float(block.log_ratio[0])

    def _multiply(self, Q: np.ndarray) -> Products:
        """The blocks X_b' D X_b as a matrix and a factor, so that one pattern of records needs no sum."""
        if len(self.grams) == 1:
            return Products(self.grams[0], float(Q[0]))
        total = np.zeros_like(self.grams[0])
        for q, gram in zip(Q, self.grams, strict=True):
            total += np.float32(q) * gram
        return Products(total, 1.0)


class DeviceSweeps:
    """Those of a device; resident: its engine's ResidentEffects."""

    def __init__(self, resident: Any):
        self.resident = resident

    def draw_normals(self, Q: np.ndarray, animals: Animals, a: np.ndarray, v: np.ndarray, z: np.ndarray) -> None:
        """See EffectSweeps."""
        priors, nothing = ComparedPriors(v, np.empty(0), *NO_CLASSES), np.empty(0)
        self.resident.draw_on_one_trait(Q, animals, a, priors, z, nothing, False, nothing, None)

    def draw_classes(self, Q: np.ndarray, animals: Animals, a: np.ndarray, draws: ClassDraws) -> float:
        """See EffectSweeps."""
        priors = ComparedPriors(*draws.prior, *draws.compared)
        wanted = None if draws.compared[1].size else draws.chances
        return self.resident.draw_on_one_trait(
            Q, animals, a, priors, draws.z, draws.u, draws.is_backward, draws.of_class, wanted
        )


class JointSweeps(Protocol):
    """Draws of all effects a (p, T) of a term on T traits; s and g of the animals follow. Q (patterns, T, T): R^-1 of
    the traits in each missing pattern that observes one of them.
    """

    def draw_states(self, Q: np.ndarray, animals: Animals, a: np.ndarray, draws: StateDraws) -> None:
        """All traits at once."""

    def draw_sites(self, Q: np.ndarray, animals: Animals, a: np.ndarray, draws: SiteDraws) -> None:
        """One trait at a time."""


class HostJointSweeps:
    """Those of joint_sweep.py. grams (patterns, blocks, b, b): the products within blocks."""

    def __init__(self, engine: MarkerEngine, genotypes: Genotypes, grams: np.ndarray):
        self.genotypes, self.grams = genotypes, grams
        self.threads = sharing(engine.threads_of_effects, genotypes.chunks)

    def draw_states(self, Q: np.ndarray, animals: Animals, a: np.ndarray, draws: StateDraws) -> None:
        """See JointSweeps."""
        self.threads.together(sweep_states, *self._list_data(Q, animals), a, *draws)

    def draw_sites(self, Q: np.ndarray, animals: Animals, a: np.ndarray, draws: SiteDraws) -> None:
        """See JointSweeps."""
        self.threads.together(sweep_single_sites, *self._list_data(Q, animals), a, *draws)

    def _list_data(self, Q: np.ndarray, animals: Animals) -> tuple:
        """The first arguments of a sweep."""
        T, n = animals.s.shape
        block = make_joint_block(T, self.grams.shape[2], n, animals.s.dtype)
        return block, self.genotypes, Products(self.grams, Q), animals


def make_sweeps(
    engine: MarkerEngine, genotypes: Genotypes, grams: Sequence[np.ndarray], n_classes: int
) -> EffectSweeps:
    """Those of the engine's device, where it has one."""
    if not hasattr(engine, "make_effects"):
        return HostSweeps(engine, genotypes, grams)
    return DeviceSweeps(_make_effects(engine, genotypes, np.stack(grams), 1, n_classes))


def make_joint_sweeps(
    engine: MarkerEngine, genotypes: Genotypes, grams: np.ndarray, n_traits: int, n_states: int
) -> JointSweeps:
    """The same of effects on several traits."""
    if not hasattr(engine, "make_effects"):
        return HostJointSweeps(engine, genotypes, grams)
    return _make_effects(engine, genotypes, grams, n_traits, n_states)


def _make_effects(engine: Any, genotypes: Genotypes, grams: np.ndarray, n_traits: int, n_classes: int) -> Any:
    """The effects on the device of the engine, of the animals with records."""
    array = genotypes.array[:, : genotypes.chunks]
    return engine.make_effects(array, genotypes.values, grams, n_traits, n_classes)
