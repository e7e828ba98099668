"""The step of a term of SNP effects: all effects given the rest, their prior, and both together by interweaving.

1. Effects given everything else, SNP by SNP (sweep.py), in animal space.
2. What the prior depends on, given the effects (priors/).
3. Where one variance v scales all effects: given z = a / sqrt(v) and the classes, the records see v as the scale of z,
   and (v, a) is redrawn along it (Yu & Meng 2011). Given a, v moves by about sqrt(2/p) of itself in a sweep, which is
   slow where thousands of SNPs share little information; this move is as fast as the data allow, and costs O(animals).
4. Records: e follows the breeding values g = X a.

Every `refresh_every` sweeps g is X a anew; the largest drift so far is a fact of the sweep.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mmgibbs.draws.normal import fill_pairs
from mmgibbs.draws.purpose import MARKER, MARKER_CLASS, stream
from mmgibbs.engines.base import HostState
from mmgibbs.genotypes.products import CHUNK, add_rows
from mmgibbs.machine.threads import blas_threads
from mmgibbs.model.markers import Markers
from mmgibbs.posterior.moments import Moments, MomentsOfLocations
from mmgibbs.posterior.parameters import MEAN_VARIANCE, Parameter, marker_name
from mmgibbs.posterior.thinned import ThinnedDraws
from mmgibbs.sampler.covariances import CovarianceMatrices
from mmgibbs.sampler.interweave import cholesky_prior, draw_scaling
from mmgibbs.sampler.markers.implied import ImpliedVariance
from mmgibbs.sampler.markers.priors import prior_of
from mmgibbs.sampler.markers.priors.base import Effects, Mixture, Site
from mmgibbs.sampler.markers.priors.common import CommonVariance, uniforms
from mmgibbs.sampler.markers.sweep import Block, gram_blocks, room, sharing, sweep_mixture, sweep_normal
from mmgibbs.sampler.mixed_model import MixedModel


class EffectsFollowed(Protocol):
    """Effects of a term on one trait, as they are now: what is followed of them."""

    markers: Markers

    @property
    def a(self) -> np.ndarray:
        """(p,)"""

    @property
    def chances(self) -> np.ndarray:
        """(p, classes) probability of each class given all else."""

    def breeding_values(self) -> np.ndarray:
        """(animals,) of every animal of the store."""


class MarkerEffects:
    """The effects a (p,) of one term, its breeding values g and its prior, in one chain; key = (seed, chain)."""

    def __init__(
        self,
        model: MixedModel,
        number: int,
        engine: HostState,
        matrices: CovarianceMatrices,
        key: tuple[int, int],
        refresh_every: int,
    ):
        self.markers = m = model.design.markers[number]
        self.number, self.engine, self.matrices, self.key, self.refresh_every = (
            number,
            engine,
            matrices,
            key,
            refresh_every,
        )
        store, p = m.genotypes, m.n_snps
        self.site = Site(len(model.design.terms) + 1 + number, m.number.astype(np.uint64), key)
        self.prior = prior_of(m.prior, p, self.site)
        self.values = store.values(m.centre, m.scale, m.mean)
        self.chunks = room(store, m.n_recorded)
        self.weights = engine.weights_of_animals(number, self.chunks * CHUNK)
        self.patterns = np.flatnonzero(model.design.patterns[:, m.trait])  # of records that see the effects
        self.grams = [gram_blocks(store, self.values, w) for w in self.weights[self.patterns]]
        self.a, self.of_class = np.zeros(p), np.ones(p, np.int8)
        self.chances = np.zeros((p, self.prior.n_classes), np.float32)
        self.chances[:, -1] = 1.0
        self.g, self.largest_drift = np.zeros(self.chunks * CHUNK), 0.0
        self._z, self._u = np.empty((2, p)), np.empty(p)
        self._values: np.ndarray | None = None  # breeding values of this sweep, once they are asked for
        self.left = None if m.left is None else ImpliedVariance(model, m, m.left, engine, matrices, (m.trait,))
        if self.left is not None:
            self.left.give(np.array([[self.prior.variance]]))
        trait = model.design.traits[m.trait]
        self.fact = f"interweaving_acceptance[{m.key}]"
        self.drift = f"marker_drift[{m.key}]"
        of_prior = {marker_name(m.key, name): what for name, what in self.prior.parameters.items()}
        variance = Parameter((), f"variance of the genomic breeding values of {trait} among genotyped animals")
        of_effects = Parameter((), f"mean variance of the prior of an effect on {trait}")
        self.parameters = of_prior | {
            marker_name(m.key, "genetic_variance"): variance,
            marker_name(m.key, MEAN_VARIANCE): of_effects,
        }

    def __call__(self, number: int) -> dict[str, float]:
        with blas_threads(1):  # sums in one order on every machine; and its threads would wait on the cores of ours
            return self._sweep(number)

    def _sweep(self, number: int) -> dict[str, float]:
        """Draw effects, prior and interweaving once; facts for the sample statistics."""
        self.matrices.give(self.engine)
        self._values = None
        s, d = self._draw_effects(number)
        effects = Effects(self.a, self.of_class)
        if self.left is not None:
            assert isinstance(self.prior, CommonVariance), "checked with the analysis"
            squares, n = self.left.squares()
            self.prior.beside = float(squares[0, 0]), n
        self.prior.update(effects, number)
        facts = self._interweave(number, s, d)
        if self.left is not None:
            self.left.give(np.array([[self.prior.variance]]))
        if number % self.refresh_every == 0:
            self.largest_drift = max(self.largest_drift, self._refresh())
        facts[self.drift] = self.largest_drift
        self.engine.move_breeding_values(self.number, self.g)
        return facts

    def _draw_effects(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """s and d (animals,) after the effects have moved."""
        m, engine = self.markers, self.engine
        Q = engine.Rinv[:, m.trait, m.trait]
        s = engine.sums_of_animals(self.number, len(self.g)).astype(engine.real)
        d = (Q @ self.weights).astype(engine.real)
        gram, precision = self._gram(Q)
        fill_pairs(self._z, self.site.level, m.n_snps, number, stream(MARKER, self.number), 0, *self.key)
        conditional = self.prior.conditional()
        packed = m.genotypes.array, self.values, self.chunks, gram
        moving = Block(gram.shape[1], len(s), s.dtype).arrays, *packed, precision, d, s, self.g, self.a
        if isinstance(conditional, Mixture):
            uniforms(self._u, number, self.site.level, stream(MARKER_CLASS, self.number), *self.key)
            classes = self.of_class, conditional.variance, conditional.log_share
            sharing(engine.threads_of_effects, self.chunks).together(
                sweep_mixture, *moving, *classes, self._z[0], self._u, self.chances
            )
        else:
            sharing(engine.threads_of_effects, self.chunks).together(
                sweep_normal, *moving, conditional.variance, self._z[0]
            )
        return s, d

    def _gram(self, Q: np.ndarray) -> tuple[np.ndarray, float]:
        """The blocks X_b' D X_b as a matrix and a factor, so that one pattern of records needs no sum."""
        if len(self.grams) == 1:
            return self.grams[0], float(Q[self.patterns[0]])
        total = np.zeros_like(self.grams[0])
        for q, gram in zip(Q[self.patterns], self.grams, strict=True):
            total += np.float32(q) * gram
        return total, 1.0

    def _interweave(self, number: int, s: np.ndarray, d: np.ndarray) -> dict[str, float]:
        """(v, a) along the scale of a; whether its proposal was accepted (1, else 0)."""
        if self.prior.common is None:
            return {}
        if not self.a.any():
            return {self.fact: 0.0}
        scaled = self.g if self.left is None else self.g + self.left.of_animals(len(self.g))[0]
        A, B = np.array([[scaled @ (d * scaled)]]), np.array([scaled @ s])
        G = np.array([[self.prior.variance]])
        M, accepted = draw_scaling(cholesky_prior(self.prior.common), A, B, G, number, self.site.term, self.key)
        if accepted:
            c = abs(M[0, 0])
            self.prior.rescale(c * c)
            self.a *= M[0, 0]
            self.g *= M[0, 0]
            if self.left is not None:
                self.left.transform(M)
        return {self.fact: float(accepted)}

    def _refresh(self) -> float:
        """g = X a anew; the largest change."""
        anew = np.zeros(len(self.g))
        add_rows(self.markers.genotypes.array, self.markers.genotypes.every, self.values, self.a, 0, self.chunks, anew)
        drift = float(np.abs(anew - self.g).max())
        self.g = anew
        return drift

    def breeding_values(self) -> np.ndarray:
        """(animals,) of every animal of the store, with records or not; made once a sweep."""
        if self._values is None:
            self._values = self._breeding_values()
        return self._values

    def _breeding_values(self) -> np.ndarray:
        """(animals,) sums of all effects, also of genotyped animals without records."""
        store = self.markers.genotypes
        out = np.zeros(store.n_chunks * CHUNK)
        out[: len(self.g)] = self.g
        if self.chunks < store.n_chunks:
            add_rows(store.array, store.every, self.values, self.a, self.chunks, store.n_chunks, out)
        return out[: store.n_animals]

    def draws(self) -> dict[str, np.ndarray]:
        own = {marker_name(self.markers.key, name): value for name, value in self.prior.draws().items()}
        found = {
            "genetic_variance": self.breeding_values()[: self.markers.n_genotyped].var(),
            MEAN_VARIANCE: self._mean_variance(),
        }
        return own | {marker_name(self.markers.key, name): np.array(value) for name, value in found.items()}

    def _mean_variance(self) -> float:
        """Of the prior of an effect, over the SNPs and their classes."""
        conditional = self.prior.conditional()
        if isinstance(conditional, Mixture):
            return float(np.exp(conditional.log_share) @ conditional.variance.mean(axis=1))
        return float(conditional.variance.mean())

    def state(self) -> dict[str, np.ndarray]:
        own: dict[str, np.ndarray] = {
            "a": self.a,
            "class": self.of_class,
            "g": self.g,
            "drift": np.array(self.largest_drift),
        }
        return state_of_term(self.markers.key, own, self.prior)

    def restore(self, state: dict[str, np.ndarray]) -> None:
        own = restore_term(self.markers.key, state, self.prior)
        self.a, self.of_class, self.g = own["a"].copy(), own["class"].copy(), own["g"].copy()
        self.largest_drift = float(own["drift"])
        self._values = None


class HasState(Protocol):
    """What a checkpoint keeps of a prior."""

    def state(self) -> dict[str, np.ndarray]: ...

    def restore(self, state: dict[str, np.ndarray]) -> None: ...


def state_of_term(key: str, own: dict[str, np.ndarray], prior: HasState) -> dict[str, np.ndarray]:
    """What a step keeps of its own and of its prior, under the names of its term."""
    own = own | {f"prior.{name}": value for name, value in prior.state().items()}
    return {marker_name(key, name): value for name, value in own.items()}


def restore_term(key: str, state: dict[str, np.ndarray], prior: HasState) -> dict[str, np.ndarray]:
    """`state_of_term` turned round: the prior takes its share back; what is the step's own under its own names."""
    start = marker_name(key, "")
    own = {name.removeprefix(start): value for name, value in state.items() if name.startswith(start)}
    prior.restore({n.removeprefix("prior."): v for n, v in own.items() if n.startswith("prior.")})
    return own


def starting_draws(markers: Markers) -> dict[str, np.ndarray]:
    """(1, 1, ...) of each quantity of a term that is logged: what a chain starts from."""
    prior = prior_of(markers.prior, markers.n_snps, Site(0, markers.number.astype(np.uint64), (0, 0)))
    found = prior.draws() | {"genetic_variance": np.array(0.0)}
    return {marker_name(markers.key, name): np.asarray(value)[None, None] for name, value in found.items()}


class FollowedMarkers(MomentsOfLocations):
    """Moments of effects, breeding values and, Rao-Blackwellised, of the probability of each class."""

    def __init__(self, step: EffectsFollowed, n_draws: int, n_batches: int):
        self.step = step
        m = step.markers
        shapes = [(m.n_snps, 1), (m.genotypes.n_animals, 1), step.chances.shape]
        super().__init__(shapes, n_draws, n_batches)

    def add(self, _theta: object) -> None:
        step = self.step
        self.moments.add([step.a[:, None], step.breeding_values()[:, None], step.chances.astype(np.float64)])

    def __getstate__(self) -> dict[str, Moments]:
        return {"moments": self.moments}  # the step stays with its chain


class KeptEffects(ThinnedDraws):
    """Some draws of the effects, as they are on the scale of the analysis."""

    def __init__(self, step: EffectsFollowed, most: int):
        self.step: EffectsFollowed | None = step
        super().__init__(most, step.markers.n_snps)

    def add(self, _theta: object) -> None:
        assert self.step is not None, "of a chain at work"
        self.add_vector(self.step.a)

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"step": None}  # which stays with its chain
