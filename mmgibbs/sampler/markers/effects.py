"""The step of a term of SNP effects on one trait (step.py), its prior a plugin (priors/).

Where a sampled number scales all effects (v, S, 1/lambda^2, tau^2), interweaving redraws it with the effects a and the
variances v_j of single SNPs, given the classes, a_j / sqrt(v_j), and each v_j in units of that number.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.normal import fill_pairs
from mmgibbs.draws.purpose import MARKER, MARKER_CLASS, stream
from mmgibbs.engines.base import MarkerEngine
from mmgibbs.engines.device_sweep import ClassDraws
from mmgibbs.genotypes.products import CHUNK
from mmgibbs.models.markers import Markers
from mmgibbs.posterior.draw_names import MEAN_VARIANCE, marker_name
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.covariances import CovarianceMatrices
from mmgibbs.sampler.interweave import draw_scaling
from mmgibbs.sampler.markers.arguments import NO_CLASSES, Animals, Classes
from mmgibbs.sampler.markers.block import gram_blocks
from mmgibbs.sampler.markers.engine_sweeps import make_sweeps
from mmgibbs.sampler.markers.priors import make_prior
from mmgibbs.sampler.markers.priors.base import Effects, MarkerPrior, Mixture, Normals, Site
from mmgibbs.sampler.markers.priors.common import CommonVariance, uniforms
from mmgibbs.sampler.markers.share_moves import Proposal, ShareMoves
from mmgibbs.sampler.markers.step import MarkerStep
from mmgibbs.sampler.markers.swaps import NO_VARIANCES, SwapMoves
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule


class MarkerEffects(MarkerStep):
    """The effects a (p,) of one term, its breeding values g and its prior, in one chain; key = (seed, chain)."""

    class_name = "class"
    prior: MarkerPrior

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
        m, p, n = self.markers, self.markers.n_snps, self.chunks * CHUNK
        self.prior = make_prior(m.prior, p, self.site)
        self.weights = engine.marker_passes.weigh_animals(number, n)
        self.patterns = np.flatnonzero(model.design.patterns[:, m.trait])  # of records that see the effects
        grams = np.stack([gram_blocks(m.genotypes, self.values, w) for w in self.weights[self.patterns]])
        self.sweeps = make_sweeps(engine, self.packed, grams, 1, self.prior.n_classes)
        self.a, self.classes, self.g = np.zeros(p), np.ones(p, np.int8), np.zeros(n)
        self._z, self._u = np.empty((2, p)), np.empty(p)
        self._start(m.key, (m.trait,), self.prior.n_classes)
        self.swaps = None
        if self.prior.n_classes > 1:
            weight = self.weights[self.patterns].sum(axis=0)
            self.swaps = SwapMoves(m.genotypes, self.packed, weight, number, self.site)
        self.share_moves, self.share_fact = self._share_moves(), f"share_acceptance[{self.name}]"
        trait = model.design.traits[m.trait]
        of_prior = {marker_name(m.key, name): what for name, what in self.prior.parameters.items()}
        variance = Parameter((), f"variance of the genomic breeding values of {trait} among genotyped animals")
        of_effects = Parameter((), f"mean variance of the prior of an effect on {trait}")
        self.parameters = of_prior | {
            marker_name(m.key, "genetic_variance"): variance,
            marker_name(m.key, MEAN_VARIANCE): of_effects,
        }

    @property
    def covariance(self) -> np.ndarray:
        return np.array([[self.prior.variance]])

    def _share_moves(self) -> ShareMoves | None:
        """Return the moves of the shares of the prior, if these are sampled."""
        prior = self.prior
        if prior.shares is None or prior.shares.counts is None or self.residual_polygenic is not None:
            return None
        return ShareMoves(prior.shares, prior.class_factors, self.site, self.schedule.burn_in)

    def _draw_effects(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """s and d (animals,) after the effects have moved."""
        m, engine = self.markers, self.engine
        Q = engine.Rinv[:, m.trait, m.trait]
        s = engine.marker_passes.sum_by_animal(self.number, len(self.g)).astype(engine.real)
        d = (Q @ self.weights).astype(engine.real)
        of_patterns, animals = Q[self.patterns, None, None], Animals(d[None, None], s[None], self.g[None])
        fill_pairs(self._z, self.site.level, m.n_snps, number, stream(MARKER, self.number), 0, *self.key)
        conditional = self.prior.conditional()
        if isinstance(conditional, Mixture):
            uniforms(self._u, number, self.site.level, stream(MARKER_CLASS, self.number), *self.key)
        proposal = self.share_moves and self.share_moves.propose(number, self.prior.scaling)
        if proposal:
            self._move_shares(of_patterns, animals, conditional, proposal, number)
        else:
            self._sweep_effects(of_patterns, animals, _classes(conditional))
            self.refuse_lost_classes(number)
        self._swap(animals, number)
        return s, d

    def _swap(self, animals: Animals, number: int) -> None:
        """Exchange effects between SNPs that are alike."""
        conditional = self.prior.conditional()  # anew: the scale may have moved with the shares
        if self.swaps is None or not isinstance(conditional, Mixture):
            return
        is_shared = conditional.variance.shape[1] == 1 or getattr(self.prior, "redraws_variances", False)
        variance = NO_VARIANCES if is_shared else np.ascontiguousarray(conditional.variance)
        self.swaps.move(number, animals, self.a[:, None], self.classes, variance)
        if is_shared:
            self.swaps.share(self.chances)

    def _sweep_effects(
        self, Q: np.ndarray, animals: Animals, prior: Classes, compared: Classes = NO_CLASSES, is_backward: bool = False
    ) -> float:
        """Draw class and effect of every SNP; with their probabilities, unless the prior is compared with another."""
        draws = ClassDraws(self.classes, prior, compared, self._z[0], self._u, self.chances)
        return self.sweeps.draw(Q, animals, self.a[:, None], draws, is_backward)

    def _move_shares(
        self, Q: np.ndarray, animals: Animals, conditional: Normals | Mixture, proposal: Proposal, number: int
    ) -> None:
        """Draw shares and scale with all effects, or leave everything as it is (share_moves.py)."""
        assert self.share_moves and self.prior.shares and isinstance(conditional, Mixture)
        moving = self.a, self.classes, animals.s, animals.g
        before = [array.copy() for array in moving]
        priors = _classes(proposal.changed(conditional)), _classes(conditional)
        log_ratio = self._sweep_effects(Q, animals, *priors, proposal.is_backward)
        self.refuse_lost_classes(number, log_ratio)
        if self.share_moves.decide(proposal, log_ratio, number):
            self.prior.shares.pi = proposal.pi
            self.prior.rescale(proposal.square)
        else:
            for array, values in zip(moving, before, strict=True):
                array[:] = values

    def _update_prior(self, number: int) -> None:
        if self.residual_polygenic is not None:
            assert isinstance(self.prior, CommonVariance), "checked with the analysis"
            squares, n = self.residual_polygenic.squares()
            self.prior.beside = float(squares[0, 0]), n
        self.prior.update(Effects(self.a, self.classes), number)

    def _interweave(self, number: int, sums: tuple[np.ndarray, np.ndarray]) -> dict[str, float]:
        """Draw the scale of the effects and of their variances; whether its proposal was accepted (1, else 0)."""
        (s, d), scaling = sums, self.prior.scaling
        if scaling is None:
            return {}
        if not self.a.any():
            return {self.fact: 0.0}
        scaled = self.g if self.residual_polygenic is None else self.g + self.residual_polygenic.epsilon(len(self.g))[0]
        # The normal part of the prior is as a record more.
        A = np.array([[scaled @ (d * scaled) + scaling.precision]])
        B = np.array([scaled @ s - scaling.precision])
        v = np.array([[scaling.v]])
        M, accepted = draw_scaling(scaling.root_prior, A, B, v, number, self.site.term, self.key)
        if accepted:
            c = abs(M[0, 0])
            self.prior.rescale(c * c)
            self.a *= M[0, 0]
            self.g *= M[0, 0]
            if self.residual_polygenic is not None:
                self.residual_polygenic.transform(M)
        return {self.fact: float(accepted)}

    def _sweep(self, number: int) -> dict[str, float]:
        facts = super()._sweep(number)
        return facts if self.share_moves is None else facts | {self.share_fact: self.share_moves.accepted}

    def state(self) -> dict[str, np.ndarray]:
        moves = {} if self.share_moves is None else self.share_moves.state()
        return super().state() | {marker_name(self.name, f"share_moves.{name}"): value for name, value in moves.items()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        super().restore(state)
        if self.share_moves is not None:
            start = marker_name(self.name, "share_moves.")
            moves = {name.removeprefix(start): value for name, value in state.items() if name.startswith(start)}
            self.share_moves.restore(moves)

    def draws(self) -> dict[str, np.ndarray]:
        variances = {
            "genetic_variance": np.array(self.breeding_values()[: self.markers.n_genotyped].var()),
            MEAN_VARIANCE: np.array(self._mean_variance()),
        }
        of_term = self.prior.draws() | variances
        return {marker_name(self.markers.key, name): value for name, value in of_term.items()}

    def _mean_variance(self) -> float:
        """Return the mean prior variance of an effect over the SNPs and their classes."""
        conditional = self.prior.conditional()
        if isinstance(conditional, Mixture):
            return float(np.exp(conditional.log_share) @ conditional.variance.mean(axis=1))
        return float(conditional.variance.mean())


def _classes(conditional: Normals | Mixture) -> Classes:
    if isinstance(conditional, Mixture):
        return Classes(conditional.variance, conditional.log_share)
    return Classes(conditional.variance[None], NO_CLASSES.log_share)


def starting_draws(markers: Markers) -> dict[str, np.ndarray]:
    """Return the starting values (1, 1, ...) of each quantity of a term that is logged."""
    prior = make_prior(markers.prior, markers.n_snps, Site(0, markers.number.astype(np.uint64), (0, 0)))
    draws = prior.draws() | {"genetic_variance": np.array(0.0)}
    return {marker_name(markers.key, name): np.asarray(value)[None, None] for name, value in draws.items()}
