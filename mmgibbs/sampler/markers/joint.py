"""The step of a term of SNP effects whose effects on T traits have a prior in common (model.markers.JointPriorSpec).

1. States and effects given everything else, SNP by SNP (joint_sweep.py), in animal space.
2. G given the effects: G ~ IW(df + n, scale + sum b_j b_j' / factor_j) over the n SNPs with any effect, where the b of
   traits that the state of a SNP leaves out are drawn given the others first. SNPs without any effect would add draws
   of their b from N(0, G), which say nothing of G: they are integrated out. Shares of the states by their counts.
3. Interweaving (Yu & Meng 2011), as sampler/interweave.py: where every state acts on all traits or on none, G = L L'
   and b = L z, and L moves to M L, M lower triangular, with the effects M a and the breeding values M g. Where states
   act on some of the traits, G = S C S and a = S z with S the standard deviations, and S moves to M S, M diagonal: the
   Jacobian of G -> (S, C) is the product of |s_t|^T.
4. Records: e follows the breeding values of each trait.

Every `refresh_every` sweeps the breeding values are made anew from the effects.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.draws.gamma import gamma
from mmgibbs.draws.normal import fill_pairs
from mmgibbs.draws.purpose import MARKER, MARKER_CLASS, MARKER_SHARES, stream
from mmgibbs.engines.base import HostState
from mmgibbs.genotypes.products import CHUNK, add_rows
from mmgibbs.machine.threads import blas_threads
from mmgibbs.model.covariance import CovarianceModel, full_block
from mmgibbs.model.markers import JointPriorSpec, Markers
from mmgibbs.posterior.moments import Moments, MomentsOfLocations
from mmgibbs.posterior.parameters import MEAN_VARIANCE, Parameter, marker_name
from mmgibbs.sampler.covariances import START_SCALES, CovarianceMatrices, draw_covariance
from mmgibbs.sampler.interweave import CholeskyPrior, cholesky_prior, draw_scaling
from mmgibbs.sampler.markers.effects import EffectsFollowed, MarkerEffects, restore_term, state_of_term
from mmgibbs.sampler.markers.implied import ImpliedVariance
from mmgibbs.sampler.markers.joint_sweep import Block, sweep_one_by_one, sweep_states
from mmgibbs.sampler.markers.priors.base import Site
from mmgibbs.sampler.markers.priors.common import uniforms
from mmgibbs.sampler.markers.sweep import gram_blocks, room, sharing
from mmgibbs.sampler.mixed_model import MixedModel


class JointPrior:
    """G and the shares of the states, in one chain."""

    def __init__(self, spec: JointPriorSpec, site: Site):
        self.spec, self.site = spec, site
        scale = 1.0 if spec.fixed else START_SCALES[site.key[1] % len(START_SCALES)]
        self.G, self.pi = spec.start * scale, spec.pi.copy()
        self.in_state = np.zeros(len(spec.pi), np.int64)
        self.beside: tuple[np.ndarray, int] = np.zeros_like(self.G), 0  # products, of so many, of the same G
        self.model = CovarianceModel(spec.start, spec.fixed, full_block(len(spec.start)), spec.df, spec.scale)
        self.traits = np.argsort(~spec.states, axis=1, kind="stable").astype(np.int64)  # those of a state first
        self.n_traits = spec.states.sum(axis=1)

    @property
    def log_pi(self) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.pi)

    def of_states(self) -> tuple[np.ndarray, np.ndarray]:
        """B_k^-1 (K, T, T), traits of the state first, and log pi_k - log|B_k| / 2 (K,)."""
        K, T = self.spec.states.shape
        precision, log_weight = np.zeros((K, T, T)), self.log_pi
        for k in range(K):
            own = self.traits[k, : self.n_traits[k]]
            B = self.spec.factor[k] * self.G[np.ix_(own, own)]
            precision[k, : len(own), : len(own)] = np.linalg.inv(B)
            log_weight[k] -= 0.5 * np.linalg.slogdet(B)[1]
        return precision, log_weight

    def left_out(self) -> tuple[np.ndarray, np.ndarray]:
        """given and noise (K, T, T): the b of the traits that state k leaves out are given_k a + noise_k z."""
        K, T = self.spec.states.shape
        given, noise = np.zeros((2, K, T, T))
        for k, active in enumerate(self.spec.states):
            own, rest = np.flatnonzero(active), np.flatnonzero(~active)
            if not rest.size:
                continue
            slope = np.linalg.solve(self.G[np.ix_(own, own)], self.G[np.ix_(own, rest)]).T
            given[k][np.ix_(rest, own)] = slope
            spread = self.G[np.ix_(rest, rest)] - slope @ self.G[np.ix_(own, rest)]
            noise[k][np.ix_(rest, rest)] = np.linalg.cholesky(self.spec.factor[k] * spread)
        return given, noise

    def update(self, a: np.ndarray, state: np.ndarray, z: np.ndarray, number: int) -> None:
        """G and the shares given a (p, T) and state (p,); z (p, T) standard normals for the b that are left out."""
        spec = self.spec
        self.in_state = np.bincount(state, minlength=len(spec.pi))
        if not spec.fixed:
            given, noise = self.left_out()
            products, n = self.beside[0].copy(), self.beside[1]
            for k in np.flatnonzero(spec.states.any(axis=1)):
                at = state == k
                b = a[at] + a[at] @ given[k].T + z[at] @ noise[k].T
                products += b.T @ b / spec.factor[k]
                n += len(b)
            self.G = draw_covariance(self.model, products, n, number, self.site.term, self.site.key)
        if spec.counts is not None:
            at = stream(MARKER_SHARES, self.site.term)
            each = [float(c + n) for c, n in zip(spec.counts, self.in_state, strict=True)]
            g = np.array([gamma(shape, number, k, at, 0, *self.site.key) for k, shape in enumerate(each)])
            self.pi = g / g.sum()

    @property
    def scaling(self) -> CholeskyPrior | None:
        """Prior and Jacobian of what interweaving moves; None where G is fixed."""
        if self.spec.fixed:
            return None
        if self.spec.whole:
            return cholesky_prior(self.model)
        T = len(self.G)
        nu, S = self.model.prior(tuple(range(T)))
        return CholeskyPrior(tuple((t, t) for t in range(T)), np.full(T, T - (nu + T + 1)), S)

    @property
    def mean_variances(self) -> np.ndarray:
        """(T,) of the prior of an effect on each trait, over the states."""
        return np.diag(self.G) * ((self.pi * self.spec.factor) @ self.spec.states)

    def draws(self) -> dict[str, np.ndarray]:
        shares = {"pi": self.pi, "in_class": self.in_state.astype(float)} if len(self.pi) > 1 else {}
        return {"covariance": self.G} | shares

    def state(self) -> dict[str, np.ndarray]:
        return {"G": self.G, "pi": self.pi, "in_state": self.in_state}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.G, self.pi, self.in_state = (state[name].copy() for name in ("G", "pi", "in_state"))


class EffectsOnTrait:
    """What a joint step has on one of its traits, as others follow the effects of a term on one trait."""

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
        """(animals,) of every animal of the store."""
        return self.step.breeding_values()[self.t]


class JointMarkerEffects:
    """The effects a (p, T) of one term, their states (p,), breeding values g (T, animals) and prior, in one chain.

    number: of the first trait's among the terms of SNP effects; key = (seed, chain).
    """

    def __init__(
        self,
        model: MixedModel,
        number: int,
        engine: HostState,
        matrices: CovarianceMatrices,
        key: tuple[int, int],
        refresh_every: int,
    ):
        m = model.design.markers[number]
        assert m.joint is not None and m.first, "one step for all traits of the term"
        spec, p, T = m.joint, m.n_snps, len(m.joint.traits)
        every = model.design.markers[number : number + T]
        self.first, self.number, self.engine, self.matrices, self.key = m, number, engine, matrices, key
        self.refresh_every, self.T = refresh_every, T
        self.site = Site(len(model.design.terms) + 1 + number, m.number.astype(np.uint64), key)
        self.prior = JointPrior(spec, self.site)
        self.on_traits = [EffectsOnTrait(self, t, markers) for t, markers in enumerate(every)]
        store = m.genotypes
        self.values = store.values(m.centre, m.scale, m.mean)
        self.chunks = room(store, m.n_recorded)
        weights = engine.weights_of_animals(number, self.chunks * CHUNK)
        self.patterns = np.flatnonzero(model.design.patterns[:, list(spec.traits)].any(axis=1))
        self.weights = weights[self.patterns]
        self.grams = np.stack([gram_blocks(store, self.values, w) for w in self.weights])
        self.a, self.state_of = np.zeros((p, T)), np.full(p, len(spec.pi) - 1, np.int8)
        self.chances = np.zeros((p, len(spec.pi)), np.float32)
        self.chances[:, -1] = 1.0
        self.inside = np.ones((p, T), np.float32)
        self.g, self.largest_drift = np.zeros((T, self.chunks * CHUNK)), 0.0
        self._pairs = np.empty((2, p))
        self._values: np.ndarray | None = None
        self.left = None if m.left is None else ImpliedVariance(model, m, m.left, engine, matrices, spec.traits)
        if self.left is not None:
            self.left.give(self.prior.G)
        traits = [model.design.traits[t] for t in spec.traits]
        self.fact, self.drift = f"interweaving_acceptance[{m.joint_key}]", f"marker_drift[{m.joint_key}]"
        self.parameters = self._named_parameters(traits)

    def _named_parameters(self, traits: Sequence[str]) -> dict[str, Parameter]:
        """What is recorded beside the effects, with its dimensions."""
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
        out = {marker_name(self.first.joint_key, name): what for name, what in of_all.items()}
        for own, trait in zip(self.on_traits, traits, strict=True):
            key = own.markers.key
            out[marker_name(key, "variance")] = Parameter((), f"variance of an effect on {trait}")
            what = f"variance of the genomic breeding values of {trait} among genotyped animals"
            out[marker_name(key, "genetic_variance")] = Parameter((), what)
            out[marker_name(key, MEAN_VARIANCE)] = Parameter((), f"mean variance of the prior of an effect on {trait}")
        return out

    def __call__(self, number: int) -> dict[str, float]:
        with blas_threads(1):  # sums in one order on every machine; and its threads would wait on the cores of ours
            return self._sweep(number)

    def _sweep(self, number: int) -> dict[str, float]:
        """Draw effects, prior and interweaving once; facts for the sample statistics."""
        self.matrices.give(self.engine)
        self._values = None
        traits = list(self.prior.spec.traits)
        Q = np.ascontiguousarray(self.engine.Rinv[self.patterns][:, traits][:, :, traits])
        s = self._draw_effects(number, Q)
        if self.left is not None:
            self.prior.beside = self.left.squares()
        self.prior.update(self.a, self.state_of, self._normals(2, number), number)
        facts = self._interweave(number, s, Q)
        if self.left is not None:
            self.left.give(self.prior.G)
        if number % self.refresh_every == 0:
            self.largest_drift = max(self.largest_drift, self._refresh())
        facts[self.drift] = self.largest_drift
        for t in range(self.T):
            self.engine.move_breeding_values(self.number + t, self.g[t])
        return facts

    def _draw_effects(self, number: int, Q: np.ndarray) -> np.ndarray:
        """s (T, animals) after the effects have moved."""
        m, engine, prior, n = self.first, self.engine, self.prior, self.g.shape[1]
        s = np.stack([engine.sums_of_animals(self.number + t, n) for t in range(self.T)]).astype(engine.real)
        D = np.einsum("pto,pn->ton", Q, self.weights).astype(engine.real)
        z = self._normals(0, number)
        of_block, together = (
            Block(self.T, self.grams.shape[2], n, s.dtype).arrays,
            sharing(engine.threads_of_effects, self.chunks).together,
        )
        packed = m.genotypes.array, self.values, self.chunks, self.grams
        data = of_block, *packed, Q, D, s, self.g, self.a, self.state_of
        if prior.spec.one_by_one:
            inverse, of_states = np.linalg.inv(prior.G), prior.left_out()
            u = np.ascontiguousarray(np.transpose([self._uniforms(t, number) for t in range(self.T)]))
            moving = inverse, *of_states, prior.log_pi, z, self._normals(1, number), u
            together(sweep_one_by_one, *data, *moving, self.inside, self.chances)
        else:
            precision, log_weight = prior.of_states()
            u = self._uniforms(0, number)
            states = prior.traits, prior.n_traits, precision, log_weight
            together(sweep_states, *data, *states, z, u, self.chances)
            self.inside = self.chances @ prior.spec.states.astype(np.float32)
        return s

    def _normals(self, which: int, number: int) -> np.ndarray:
        """(p, T) standard normals: 0 of the effects, 1 and 2 of those that states leave out."""
        half = (self.T + 1) // 2
        out = np.empty((len(self.a), 2 * half))
        for j in range(half):
            draw = which * half + j
            fill_pairs(self._pairs, self.site.level, len(self.a), number, stream(MARKER, self.number), draw, *self.key)
            out[:, 2 * j : 2 * j + 2] = self._pairs.T
        return np.ascontiguousarray(out[:, : self.T])

    def _uniforms(self, draw: int, number: int) -> np.ndarray:
        """(p,) one for each SNP."""
        out = np.empty(len(self.a))
        uniforms(out, number, self.site.level, stream(MARKER_CLASS, self.number), *self.key, draw)
        return out

    def _interweave(self, number: int, s: np.ndarray, Q: np.ndarray) -> dict[str, float]:
        """(G, a) along the scales of the effects; whether its proposal was accepted (1, else 0)."""
        scaling, g = self.prior.scaling, self.g
        if scaling is None:
            return {}
        if self.left is not None:
            g = g + self.left.of_animals(g.shape[1])
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
            if self.left is not None:
                self.left.transform(M)
        return {self.fact: float(accepted)}

    def _refresh(self) -> float:
        """g = X a anew; the largest change."""
        anew = self._products(0, self.chunks, np.zeros_like(self.g))
        drift = float(np.abs(anew - self.g).max())
        self.g = anew
        return drift

    def _products(self, first: int, stop: int, out: np.ndarray) -> np.ndarray:
        """out (T, animals) += X a for chunks first .. stop - 1."""
        store = self.first.genotypes
        for t in range(self.T):
            add_rows(store.array, store.every, self.values, self.a[:, t].copy(), first, stop, out[t])
        return out

    def breeding_values(self) -> np.ndarray:
        """(T, animals) of every animal of the store, with records or not; made once a sweep."""
        if self._values is None:
            store = self.first.genotypes
            out = np.zeros((self.T, store.n_chunks * CHUNK))
            out[:, : self.g.shape[1]] = self.g
            if self.chunks < store.n_chunks:
                self._products(self.chunks, store.n_chunks, out)
            self._values = out[:, : store.n_animals]
        return self._values

    def draws(self) -> dict[str, np.ndarray]:
        genotyped = self.breeding_values()[:, : self.first.n_genotyped]
        own = self.prior.draws() | {"genetic_covariance": np.cov(genotyped, bias=True)}
        out = {marker_name(self.first.joint_key, name): value for name, value in own.items()}
        of_trait = np.diag(self.prior.G), np.diag(own["genetic_covariance"]), self.prior.mean_variances
        for of, *values in zip(self.on_traits, *of_trait, strict=True):
            for name, value in zip(("variance", "genetic_variance", MEAN_VARIANCE), values, strict=True):
                out[marker_name(of.markers.key, name)] = np.array(value)
        return out

    def state(self) -> dict[str, np.ndarray]:
        own: dict[str, np.ndarray] = {
            "a": self.a,
            "state": self.state_of,
            "g": self.g,
            "drift": np.array(self.largest_drift),
        }
        return state_of_term(self.first.joint_key, own, self.prior)

    def restore(self, state: dict[str, np.ndarray]) -> None:
        own = restore_term(self.first.joint_key, state, self.prior)
        self.a, self.state_of, self.g = own["a"].copy(), own["state"].copy(), own["g"].copy()
        self.largest_drift = float(own["drift"])
        self._values = None


def effects_of(steps: Sequence[object]) -> list[EffectsFollowed]:
    """The effects of each term of the design among the steps of a sweep, in the order of the terms."""
    found: list[EffectsFollowed] = []
    for step in steps:
        if isinstance(step, MarkerEffects):
            found.append(step)
        if isinstance(step, JointMarkerEffects):
            found += step.on_traits
    return found


def joint_starting_draws(markers: Markers, spec: JointPriorSpec) -> dict[str, np.ndarray]:
    """(1, 1, ...) of each quantity of all traits of a term that is logged: what a chain starts from."""
    prior = JointPrior(spec, Site(0, markers.number.astype(np.uint64), (0, 0)))
    found: dict[str, np.ndarray] = prior.draws() | {"genetic_covariance": np.zeros_like(prior.G)}
    out = {marker_name(markers.joint_key, name): value[None, None] for name, value in found.items()}
    for t, variance in zip(spec.traits, np.diag(prior.G), strict=True):
        own = {"variance": float(variance), "genetic_variance": 0.0}
        out |= {marker_name(f"{markers.name}.{t}", name): np.full((1, 1), value) for name, value in own.items()}
    return out


class FollowedStates(MomentsOfLocations):
    """Moments of the probability of each state of every SNP, Rao-Blackwellised."""

    def __init__(self, step: JointMarkerEffects, n_draws: int, n_batches: int):
        self.step = step
        super().__init__([step.chances.shape], n_draws, n_batches)

    def add(self, _theta: object) -> None:
        self.moments.add([self.step.chances.astype(np.float64)])

    def __getstate__(self) -> dict[str, Moments]:
        return {"moments": self.moments}  # the step stays with its chain
