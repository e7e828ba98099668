"""The step of a term of SNP effects whose effects on T traits have a prior in common (step.py, priors/joint.py).

Interweaving, as sampler/interweave.py: where every state acts on all traits or on none, G = L L' and b = L z, and L
moves to M L, M lower triangular, with the effects M a and the breeding values M g. Where states act on some of the
traits, G = S C S and a = S z with S the standard deviations, and S moves to M S, M diagonal: the Jacobian of
G -> (S, C) is the product of |s_t|^T.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.draws.normal import fill_pairs
from mmgibbs.draws.purpose import MARKER, MARKER_CLASS, stream
from mmgibbs.engines.base import MarkerEngine
from mmgibbs.engines.device_sweep import SiteDraws, StateDraws
from mmgibbs.genotypes.products import CHUNK
from mmgibbs.models.markers import JointPriorSpec, Markers
from mmgibbs.posterior.draw_names import MEAN_VARIANCE, marker_name
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.covariances import CovarianceMatrices
from mmgibbs.sampler.interweave import draw_scaling
from mmgibbs.sampler.markers.arguments import Animals, SingleSites, States
from mmgibbs.sampler.markers.block import gram_blocks
from mmgibbs.sampler.markers.engine_sweeps import make_sweeps
from mmgibbs.sampler.markers.priors.base import Site
from mmgibbs.sampler.markers.priors.common import uniforms
from mmgibbs.sampler.markers.priors.joint import JointPrior
from mmgibbs.sampler.markers.step import MarkerStep
from mmgibbs.sampler.markers.swaps import SwapMoves
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule


class EffectsOnTrait:
    """The effects of a joint step on one trait, for steps that follow effects of a term on one trait."""

    def __init__(self, step: JointMarkerEffects, t: int, markers: Markers):
        self.step, self.t, self.markers = step, t, markers

    @property
    def a(self) -> np.ndarray:
        """(p,)"""
        return self.step.a[:, self.t]

    @property
    def chances(self) -> np.ndarray:
        """(p, classes): of no effect and of one, or of each class that the traits share."""
        spec = self.step.prior.spec
        if spec.whole:
            return self.step.chances
        inside = self.step.inside[:, self.t]
        return np.stack([1 - inside, inside], axis=1)

    def breeding_values(self) -> np.ndarray:
        """Return the breeding values (animals,) of every animal of the store."""
        return self.step.breeding_values()[self.t]


class JointMarkerEffects(MarkerStep):
    """The effects a (p, T) of one term, their states (p,), breeding values g (T, animals) and prior, in one chain.

    number: of the first trait's among the terms of SNP effects; key = (seed, chain).
    """

    class_name = "state"
    prior: JointPrior

    def __init__(
        self,
        model: MixedModel,
        number: int,
        engine: MarkerEngine,
        matrices: CovarianceMatrices,
        key: tuple[int, int],
        schedule: Schedule,
    ):
        super().__init__(model, number, engine, matrices, key, schedule)
        m = self.markers
        assert m.joint is not None and m.first, "one step for all traits of the term"
        spec, p, self.T, n = m.joint, m.n_snps, len(m.joint.traits), self.chunks * CHUNK
        self.prior = JointPrior(spec, self.site)
        every = model.design.markers[number : number + self.T]
        self.on_traits = [EffectsOnTrait(self, t, markers) for t, markers in enumerate(every)]
        self.patterns = np.flatnonzero(model.design.patterns[:, list(spec.traits)].any(axis=1))
        self.weights = engine.marker_passes.weigh_animals(number, n)[self.patterns]
        grams = np.stack([gram_blocks(m.genotypes, self.values, w) for w in self.weights])
        self.sweeps = make_sweeps(engine, self.packed, grams, self.T, len(spec.pi))
        self.a, self.classes = np.zeros((p, self.T)), np.full(p, len(spec.pi) - 1, np.int8)
        self.g, self.inside = np.zeros((self.T, n)), np.ones((p, self.T), np.float32)
        self.swaps = None
        if len(spec.pi) > 1:
            self.swaps = SwapMoves(m.genotypes, self.packed, self.weights.sum(axis=0), number, self.site)
        self._pairs = np.empty((2, p))
        self._start(m.joint_key, spec.traits, len(spec.pi))
        self.parameters = self._named_parameters([model.design.traits[t] for t in spec.traits])

    @property
    def covariance(self) -> np.ndarray:
        return self.prior.G

    def _named_parameters(self, traits: Sequence[str]) -> dict[str, Parameter]:
        """List the parameters that are recorded beside the effects, with their dimensions."""
        joined = " and ".join(traits)
        of_all = {
            "covariance": Parameter(("marker_trait", "marker_trait"), f"covariance matrix of an effect on {joined}"),
            "genetic_covariance": Parameter(
                ("marker_trait", "marker_trait"), f"of the genomic breeding values of {joined} among genotyped animals"
            ),
        }
        if len(self.prior.pi) > 1:
            of_all["pi"] = Parameter(("marker_class",), "share of the SNPs in each state")
            of_all["in_class"] = Parameter(("marker_class",), "SNPs in each state")
        out = {marker_name(self.markers.joint_key, name): what for name, what in of_all.items()}
        for effects, trait in zip(self.on_traits, traits, strict=True):
            key = effects.markers.key
            out[marker_name(key, "variance")] = Parameter((), f"variance of an effect on {trait}")
            what = f"variance of the genomic breeding values of {trait} among genotyped animals"
            out[marker_name(key, "genetic_variance")] = Parameter((), what)
            out[marker_name(key, MEAN_VARIANCE)] = Parameter((), f"mean variance of the prior of an effect on {trait}")
        return out

    def _draw_effects(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """s (T, animals) after the effects have moved, and Q (patterns, T, T)."""
        engine, prior, n = self.engine, self.prior, self.g.shape[1]
        traits = list(prior.spec.traits)
        Q = np.ascontiguousarray(engine.Rinv[self.patterns][:, traits][:, :, traits])
        sums = [engine.marker_passes.sum_by_animal(self.number + t, n) for t in range(self.T)]
        s = np.stack(sums).astype(engine.real)
        D = np.einsum("pto,pn->ton", Q, self.weights).astype(engine.real)
        z = self._normals(0, number)
        animals = Animals(D, s, self.g)
        if prior.spec.one_by_one:
            sites = SingleSites(np.linalg.inv(prior.G), *prior.left_out(), prior.log_pi)
            u = np.ascontiguousarray(np.transpose([self._uniforms(t, number) for t in range(self.T)]))
            of_sites = SiteDraws(self.classes, sites, z, self._normals(1, number), u, self.inside, self.chances)
            self.sweeps.draw(Q, animals, self.a, of_sites)
        else:
            states = States(prior.traits, prior.n_traits, *prior.state_precisions())
            of_states = StateDraws(self.classes, states, z, self._uniforms(0, number), self.chances)
            self.sweeps.draw(Q, animals, self.a, of_states)
            self.inside = self.chances @ prior.spec.states.astype(np.float32)
        self.refuse_lost_classes(number)
        if self.swaps is not None:
            self.swaps.move(number, animals, self.a, self.classes)
            self.swaps.share(self.chances, self.inside)
        return s, Q

    def _update_prior(self, number: int) -> None:
        if self.residual_polygenic is not None:
            self.prior.beside = self.residual_polygenic.squares()
        self.prior.update(self.a, self.classes, self._normals(2, number), number)

    def _normals(self, which: int, number: int) -> np.ndarray:
        """Draw standard normals (p, T): 0 of the effects, 1 and 2 of those that states leave out."""
        half = (self.T + 1) // 2
        out = np.empty((len(self.a), 2 * half))
        for j in range(half):
            draw = which * half + j
            fill_pairs(self._pairs, self.site.level, len(self.a), number, stream(MARKER, self.number), draw, *self.key)
            out[:, 2 * j : 2 * j + 2] = self._pairs.T
        return np.ascontiguousarray(out[:, : self.T])

    def _uniforms(self, draw: int, number: int) -> np.ndarray:
        """Draw a uniform for each SNP, (p,)."""
        out = np.empty(len(self.a))
        uniforms(out, number, self.site.level, stream(MARKER_CLASS, self.number), *self.key, draw)
        return out

    def _interweave(self, number: int, sums: tuple[np.ndarray, np.ndarray]) -> dict[str, float]:
        """Move (G, a) along the scales of the effects; return whether the proposal was accepted (1, else 0)."""
        (s, Q), scaling, g = sums, self.prior.scaling, self.g
        if scaling is None:
            return {}
        if self.residual_polygenic is not None:
            g = g + self.residual_polygenic.epsilon(g.shape[1])
        row, column = np.array(scaling.elements).T
        products = np.stack([(g * w) @ g.T for w in self.weights])  # sum over animals of w g g', by pattern
        each = Q[:, row[:, None], row] * products[:, column[:, None], column]
        H, seen = each.sum(axis=0), np.einsum("an,an->a", s[row].astype(np.float64), g[column])
        M, accepted = draw_scaling(scaling, H, seen, self.prior.G, number, self.site.term, self.key)
        if accepted:
            moved = M @ self.prior.G @ M.T
            self.prior.G = (moved + moved.T) / 2
            self.a[:] = self.a @ M.T
            self.g = M @ self.g
            if self.residual_polygenic is not None:
                self.residual_polygenic.transform(M)
        return {self.fact: float(accepted)}

    def draws(self) -> dict[str, np.ndarray]:
        genotyped = self.breeding_values()[:, : self.markers.n_genotyped]
        of_term = self.prior.draws() | {"genetic_covariance": np.cov(genotyped, bias=True)}
        out = {marker_name(self.markers.joint_key, name): value for name, value in of_term.items()}
        of_trait = np.diag(self.prior.G), np.diag(of_term["genetic_covariance"]), self.prior.mean_variances
        for effects, *values in zip(self.on_traits, *of_trait, strict=True):
            for name, value in zip(("variance", "genetic_variance", MEAN_VARIANCE), values, strict=True):
                out[marker_name(effects.markers.key, name)] = np.array(value)
        return out


def joint_starting_draws(markers: Markers, spec: JointPriorSpec) -> dict[str, np.ndarray]:
    """Return the starting values (1, 1, ...) of each quantity of all traits of a term that is logged."""
    prior = JointPrior(spec, Site(0, markers.number.astype(np.uint64), (0, 0)))
    draws: dict[str, np.ndarray] = prior.draws() | {"genetic_covariance": np.zeros_like(prior.G)}
    out = {marker_name(markers.joint_key, name): value[None, None] for name, value in draws.items()}
    for t, variance in zip(spec.traits, np.diag(prior.G), strict=True):
        of_trait = {"variance": float(variance), "genetic_variance": 0.0}
        out |= {marker_name(f"{markers.name}.{t}", name): np.full((1, 1), value) for name, value in of_trait.items()}
    return out
