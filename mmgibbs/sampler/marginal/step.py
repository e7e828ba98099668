"""All variances, given the records alone: one Metropolis-Hastings move of x in every sweep (moves.py).

Proposals have the shape of the normal density nearest to p(x | y), looked for before the first sweep (target.py). In
burn-in all moves take turns and their steps follow their acceptance (Robbins & Monro 1951). Half-way the mean and the
covariance matrix of the draws join the shape, with the weight of the independence proposals that were accepted against
WORTH for each element, and at three quarters once more. From half-way on there is a surrogate of the density as well,
learnt again at three quarters and at the end from the values at the last proposals (surrogate.py). The move with the
largest expected squared jump for its cost (Pasarica & Gelman 2010) in the second half is the main one from then on. It
takes turns with an autoregression and a random walk: they get out of wherever an independence proposal stays for long.
Costs are counted, not timed: no clock has a say in a draw. (As everywhere, types of CPU differ in the last bits.) After
burn-in nothing is adapted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mmgibbs.engines.base import Integrated
from mmgibbs.sampler.covariances import CovarianceMatrices
from mmgibbs.sampler.marginal.log_cholesky import log_cholesky
from mmgibbs.sampler.marginal.moves import (
    AUTOREGRESSION,
    GRADIENT,
    INDEPENDENCE,
    SURROGATE,
    WALK,
    Shape,
    along_gradient,
    autoregressive,
    independent,
    log_density_back,
    log_uniform,
    walk,
)
from mmgibbs.sampler.marginal.surrogate import Surrogate, along_surrogate, learn, points_kept
from mmgibbs.sampler.marginal.variances import PREFIX, SampledVariances
from mmgibbs.sampler.mixed_model import MixedModel

CYCLE = (WALK, AUTOREGRESSION, None, AUTOREGRESSION, None)  # None: the main move
WITH_SURROGATE = (WALK, None, None, AUTOREGRESSION, None, None)  # where that is the main move
JOINED, WORTH = (0.5, 0.75), 4.0  # parts of burn-in
MIN_BURN_IN = 100  # sweeps of burn-in from which the moves are compared
COST = np.array([1.0, 1.0, 1.0, 3.0, 1.0])  # evaluations of each kind: with a gradient C^-1 and sums over C besides
ACCEPTANCE = {AUTOREGRESSION: 0.5, WALK: 0.35, GRADIENT: 0.57}  # that steps aim at
MIN_GRADIENT_ELEMENTS = 4  # elements from which there are moves along the gradient
MAX_STEP = 0.9  # b of an autoregression: beyond it is an independence proposal


class MarginalVariances(SampledVariances):
    """psi | y of a chain; key = (seed, chain). It says how likely its proposal was accepted."""

    def __init__(
        self,
        model: MixedModel,
        likelihood: Integrated,
        matrices: CovarianceMatrices,
        burn_in: int,
        key: tuple[int, int],
    ):
        super().__init__(model, log_cholesky(model), likelihood, matrices, burn_in, key)
        p = len(self.space)
        self.kinds = [INDEPENDENCE, AUTOREGRESSION, WALK] + ([GRADIENT] if p >= MIN_GRADIENT_ELEMENTS else [])
        self._slope: np.ndarray | None = None  # the gradient at x, where it is known
        self._first = self.shape
        self._log_steps = np.zeros(2 + len(self.blocks))  # of autoregression and gradient, then of each walk
        self._log_steps[0] = np.log(0.5)
        self._main = np.array(INDEPENDENCE if p < MIN_GRADIENT_ELEMENTS else GRADIENT)
        self._sums = np.zeros(2 + p + p * p)  # accepted independence proposals; draws, their sum and products
        self._jumps = np.zeros((len(COST), 2))  # of each kind: sum of expected squared jumps, and proposals
        self._points = np.full((points_kept(p), p + 1), np.nan)  # x of proposals in burn-in and log p(x | y), in turn
        self._surrogate: Surrogate | None = None

    def _start(self, x: np.ndarray) -> None:
        super()._start(x)
        self._slope = None

    def __call__(self, number: int) -> Mapping[str, float]:
        if not len(self.space):
            if number == 1:
                self._start(self._x)
            return {"variance_acceptance": 0.0}
        if number == 1:
            self._begin()
        kind = self._kind(number)
        probability = self._move(kind, number)
        self._adapt(number)
        return {"variance_acceptance": probability}

    # Where a chain starts

    def _begin(self) -> None:
        """Begin from the starts of the chain; proposals have the shape of the mode."""
        before, first = self.space, self.target.mode_density(self.space.x(self.space.start))
        self._take_space(before.extrapolate(first.center, first.sd))
        center = self.space.x(before.psi(first.center)[0])
        turned = before.slopes(first.center) / self.space.slopes(center)
        self._first = self.target.nearest(Shape(center, turned[:, None] * first.root))
        self._take_shape(self._first)
        self._start(self.space.x(self._psi_of_matrices()))

    # Moves

    def _kind(self, number: int) -> int:
        """Return the kind of the proposal of a sweep; in burn-in all kinds take turns."""
        turns = self._turns(number)
        kind = turns[number % len(turns)]
        return int(self._main) if kind is None else kind

    def _turns(self, number: int) -> Sequence[int | None]:
        """The kinds that take turns."""
        if number <= self.burn_in:
            return self.kinds if self._surrogate is None else [*self.kinds, SURROGATE]
        return WITH_SURROGATE if self._main == SURROGATE else CYCLE

    def _move(self, kind: int, number: int) -> float:
        """The probability with which the proposal was accepted."""
        block = number // len(self._turns(number)) % len(self.blocks)
        x, log_ratio = self._x, 0.0
        if kind == INDEPENDENCE:
            proposed, log_ratio = independent(x, self.shape, number, self.key)
        elif kind == AUTOREGRESSION:
            step = float(np.exp(self._log_steps[0]))
            proposed, log_ratio = autoregressive(x, self.shape, step, number, self.key)
        elif kind == WALK:
            step = float(np.exp(self._log_steps[2 + block]))
            proposed = walk(x, self.blocks[block], self._roots[block], step, number, self.key)
        elif kind == SURROGATE:
            assert self._surrogate is not None
            proposed, log_ratio = along_surrogate(x, self.shape, self._surrogate, number, self.key)
        else:
            if self._slope is None:
                self._slope = self.target.gradient(x, kept=True)
            step = float(np.exp(self._log_steps[1]))
            proposed, log_ratio = along_gradient(x, self._slope, self.shape, step, number, self.key)
        value, psi = self.target.evaluate(proposed)
        slope = None
        if kind == GRADIENT and np.isfinite(value):
            slope = self.target.gradient(proposed)
            log_ratio += log_density_back(x, proposed, slope, self.shape, step)
        log_ratio = log_ratio + value - self._value if np.isfinite(value) else -np.inf
        probability = float(np.exp(min(log_ratio, 0.0)))
        self._learn(kind, block, number, probability, proposed - x)
        if number <= self.burn_in:
            self._points[number % len(self._points)] = *proposed, value
        if log_uniform(kind, number, self.key) < log_ratio:
            self._x, self._value, self._psi, self._slope = proposed, value, psi, slope
            self.likelihood.keep()
        return probability

    def _learn(self, kind: int, block: int, number: int, probability: float, jump: np.ndarray) -> None:
        """Learn from a proposal in burn-in: adapt the steps to acceptance; add up the jumps of its second half."""
        if number > self.burn_in:
            return
        if kind == INDEPENDENCE and number <= JOINED[-1] * self.burn_in:
            self._sums[0] += probability
        if kind in ACCEPTANCE:
            which = {AUTOREGRESSION: 0, GRADIENT: 1, WALK: 2 + block}[kind]
            self._log_steps[which] += (probability - ACCEPTANCE[kind]) * 4.0 / np.sqrt(10.0 + number)
            self._log_steps[0] = min(self._log_steps[0], np.log(MAX_STEP))
        if number > JOINED[0] * self.burn_in:
            self._jumps[kind] += probability * float(np.mean((jump / self.shape.sd) ** 2)), 1.0

    def _adapt(self, number: int) -> None:
        """Half-way through burn-in, at three quarters and at its end."""
        if number <= JOINED[-1] * self.burn_in:
            x = self._x
            self._sums[1:] += np.concatenate([[1.0], x, np.outer(x, x).ravel()])
        if self.burn_in >= MIN_BURN_IN and number in [int(share * self.burn_in) for share in JOINED]:
            self._take_shape(self._joined_with_draws())
            self._surrogate = self._learnt()
        if self.burn_in >= MIN_BURN_IN and number == self.burn_in:
            gains = self._jumps[:, 0] / np.maximum(self._jumps[:, 1], 1.0) / COST
            if self._surrogate is None:  # there was one for a while
                gains[SURROGATE] = 0.0
            self._main = np.array(int(np.argmax(gains)))
            if self._main == SURROGATE:  # of the same shape, so that the one before serves where there is none
                self._surrogate = self._learnt() or self._surrogate
            self._points = self._points[:0]  # all is learnt

    def _learnt(self) -> Surrogate | None:
        """Fit the surrogate to the last proposals, in the coordinates of the current shape."""
        known = self._points[np.isfinite(self._points[:, -1])]
        return learn(self.shape, known[:, :-1], known[:, -1])

    def _joined_with_draws(self) -> Shape:
        """The shape of the approximation, moved towards mean and covariance of the draws of burn-in."""
        p, (accepted, n) = self._x.size, self._sums[:2]
        share = accepted / (accepted + WORTH * p)
        mean = self._sums[2 : 2 + p] / n
        apart = mean - self._first.center
        of_draws = self._sums[2 + p :].reshape(p, p) / n - np.outer(mean, mean)
        before = self._first.root @ self._first.root.T
        covariance = share * of_draws + (1 - share) * before + share * (1 - share) * np.outer(apart, apart)
        return Shape(self._first.center + share * apart, np.linalg.cholesky(covariance))

    # As every step

    def state(self) -> dict[str, np.ndarray]:
        state = {"x": self._x, "scale": self.space.elements.scale, "main": self._main, "steps": self._log_steps}
        state |= {"sums": self._sums, "jumps": self._jumps} | self.shape._asdict()
        state |= {f"first_{name}": array for name, array in self._first._asdict().items()}
        state["known"] = self._points
        if self._surrogate is not None:
            state |= {f"surrogate_{name}": array for name, array in self._surrogate._asdict().items()}
        return {PREFIX + name: array for name, array in state.items()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        arrays = {n.removeprefix(PREFIX): a.copy() for n, a in state.items() if n.startswith(PREFIX)}
        self._take_space(self.space.with_scale(arrays["scale"]))
        self._first = Shape(*(arrays[f"first_{name}"] for name in Shape._fields))
        self._take_shape(Shape(*(arrays[name] for name in Shape._fields)))
        self._log_steps, self._sums, self._jumps, self._main = (
            arrays["steps"],
            arrays["sums"],
            arrays["jumps"],
            arrays["main"],
        )
        self._points, self._surrogate = arrays["known"], None
        if "surrogate_points" in arrays:
            self._surrogate = Surrogate(*(arrays[f"surrogate_{name}"] for name in Surrogate._fields))
        self._start(arrays["x"])
