"""One sweep of a term of SNP effects, on one trait or on several with a prior in common.

1. Effects given everything else, SNP by SNP (sweep.py), in animal space.
   Every second sweep is the proposal of a step of the shares of the classes, where they are sampled (share_moves.py).
2. What the prior depends on, given the effects (priors/).
3. Interweaving (Yu & Meng 2011): the scale of all effects is redrawn given the standardised effects, so that the
   records see it. Given the effects it moves by about sqrt(2/p) of itself in a sweep, which is slow where thousands of
   SNPs share little information; this move is as fast as the data allow, and costs O(animals).
4. Records: e follows the breeding values g = X a of each trait.

Every `schedule.refresh_every` sweeps g is X a anew; the largest drift so far is a fact of the sweep.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from mmgibbs.engines.base import MarkerEngine
from mmgibbs.errors import ModelError
from mmgibbs.genotypes.products import CHUNK, add_rows
from mmgibbs.machine.threads import blas_threads
from mmgibbs.posterior.draw_names import marker_name
from mmgibbs.sampler.covariances import CovarianceMatrices
from mmgibbs.sampler.markers.arguments import Genotypes
from mmgibbs.sampler.markers.choose import NO_CLASS
from mmgibbs.sampler.markers.implied import ImpliedVariance
from mmgibbs.sampler.markers.priors.base import Site
from mmgibbs.sampler.markers.sweep import recorded_chunks
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule


class HasState(Protocol):
    """The state of a prior that a checkpoint keeps."""

    def state(self) -> dict[str, np.ndarray]: ...

    def restore(self, state: dict[str, np.ndarray]) -> None: ...


class MarkerStep(ABC):
    """The effects of one term on T traits, their classes, breeding values and prior, in one chain.

    a: (p,), or (p, T) of several traits; g: (n,), or (T, n), of the animals with records. number: of the (first) term
    among those of SNP effects; name: of the term in what is recorded; key = (seed, chain).
    """

    class_name: ClassVar[str]  # of the classes of the SNPs in a checkpoint
    prior: HasState
    a: np.ndarray
    classes: np.ndarray  # (p,) int8
    g: np.ndarray

    def __init__(
        self,
        model: MixedModel,
        number: int,
        engine: MarkerEngine,
        matrices: CovarianceMatrices,
        key: tuple[int, int],
        schedule: Schedule,
    ):
        self.markers = m = model.design.markers[number]
        self.model, self.number, self.engine, self.matrices = model, number, engine, matrices
        self.key, self.schedule = key, schedule
        self.site = Site(len(model.design.terms) + 1 + number, m.number.astype(np.uint64), key)
        self.values = m.genotypes.values(m.centre, m.scale, m.mean)
        self.chunks = recorded_chunks(m.genotypes, m.n_recorded)
        self.packed = Genotypes(m.genotypes.array, self.values, self.chunks)
        self.largest_drift = 0.0
        self._values: np.ndarray | None = None  # breeding values of this sweep, once they are asked for

    def _start(self, name: str, traits: Sequence[int], n_classes: int) -> None:
        """Start without effects: every SNP in the last class, breeding values 0. traits: of the effects."""
        m, p = self.markers, self.markers.n_snps
        self.name, self.fact, self.drift = name, f"interweaving_acceptance[{name}]", f"marker_drift[{name}]"
        self.chances = np.zeros((p, n_classes), np.float32)
        self.chances[:, -1] = 1.0
        self.residual_polygenic = None
        if m.left is not None:
            self.residual_polygenic = ImpliedVariance(self.model, m, m.left, self.engine, self.matrices, traits)
            self.residual_polygenic.give(self.covariance)

    @property
    @abstractmethod
    def covariance(self) -> np.ndarray:
        """Covariance matrix (T, T) of an effect, or what represents it."""

    @abstractmethod
    def _draw_effects(self, number: int) -> Any:
        """Draw the effects and return what interweaving needs of the records."""

    @abstractmethod
    def _update_prior(self, number: int) -> None:
        """Draw what the prior of the effects depends on."""

    @abstractmethod
    def _interweave(self, number: int, sums: Any) -> dict[str, float]:
        """Draw the scale of all effects; whether its proposal was accepted (1, else 0)."""

    def __call__(self, number: int) -> dict[str, float]:
        with blas_threads(1):  # sums in one order on every machine; and its threads would wait on the cores of ours
            return self._sweep(number)

    def _sweep(self, number: int) -> dict[str, float]:
        """Draw effects, prior and interweaving once; facts for the sample statistics."""
        self.matrices.give(self.engine)
        self._values = None
        sums = self._draw_effects(number)
        self._update_prior(number)
        facts = self._interweave(number, sums)
        if self.residual_polygenic is not None:
            self.residual_polygenic.give(self.covariance)
        if number % self.schedule.refresh_every == 0:
            self.largest_drift = max(self.largest_drift, self._refresh())
        facts[self.drift] = self.largest_drift
        for t, values in enumerate(self.g.reshape(-1, self.g.shape[-1])):
            self.engine.marker_passes.move_breeding_values(self.number + t, values)
        return facts

    def refuse_lost_classes(self, number: int, log_ratio: float = 0.0) -> None:
        """ModelError where a SNP was drawn whose classes have no probabilities, or whose sums of weights are lost."""
        lost = np.flatnonzero(self.classes == NO_CLASS)
        if lost.size or np.isnan(log_ratio):
            which = f"SNP {lost[0] + 1:,} of {len(self.classes):,}" if lost.size else "the shares of the classes"
            raise ModelError(
                f"model.markers.{self.markers.name}: {which} cannot be drawn at sweep {number} of chain "
                f"{self.key[1] + 1}: expected a probability for each {self.class_name}, got none: the effects or their "
                f"variances are no longer finite; give other starting values, or a proper prior "
                f"(model.markers.{self.markers.name}.variance, variances.residual)"
            )

    def _refresh(self) -> float:
        """g = X a anew; the largest change."""
        anew = self._add_products(0, self.chunks, np.zeros_like(self.g))
        drift = float(np.abs(anew - self.g).max())
        self.g = anew
        return drift

    def _add_products(self, first: int, stop: int, out: np.ndarray) -> np.ndarray:
        """out (animals,), or (T, animals), += X a for chunks first .. stop - 1."""
        store = self.markers.genotypes
        effects = self.a.reshape(len(self.a), -1).T
        for a, values in zip(effects, out.reshape(len(effects), -1), strict=True):
            add_rows(store.array, store.every, self.values, a.copy(), first, stop, values)
        return out

    def breeding_values(self) -> np.ndarray:
        """Return the breeding values of every animal of the store, (animals,) or (T, animals); made once a sweep."""
        if self._values is None:
            store = self.markers.genotypes
            out = np.zeros((*self.g.shape[:-1], store.n_chunks * CHUNK))
            out[..., : self.g.shape[-1]] = self.g
            if self.chunks < store.n_chunks:
                self._add_products(self.chunks, store.n_chunks, out)
            self._values = out[..., : store.n_animals]
        return self._values

    def state(self) -> dict[str, np.ndarray]:
        """Return the arrays that the next sweep depends on, under names that begin with that of the term."""
        arrays = {"a": self.a, self.class_name: self.classes, "g": self.g, "drift": np.array(self.largest_drift)}
        arrays |= {f"prior.{name}": value for name, value in self.prior.state().items()}
        return {marker_name(self.name, name): value for name, value in arrays.items()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue from `state`."""
        start = marker_name(self.name, "")
        arrays = {name.removeprefix(start): value for name, value in state.items() if name.startswith(start)}
        self.prior.restore({n.removeprefix("prior."): v for n, v in arrays.items() if n.startswith("prior.")})
        self.a, self.classes, self.g = (arrays[kept].copy() for kept in ("a", self.class_name, "g"))
        self.largest_drift = float(arrays["drift"])
        self._values = None
