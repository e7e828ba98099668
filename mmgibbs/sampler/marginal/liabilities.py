"""All variances given the liabilities l of a trait that is not normal, the location effects integrated out.

The liabilities change in every sweep, and p(x | l) with them. In burn-in each sweep makes a move of each kind
(moves.py) whose shape is that of the draws so far. Half-way their mean becomes the reference at which l is summarised
(likelihood/liabilities.py). From the last quarter on, x is over-relaxed about its regression on the summary
(regression.py), which is learnt again at the end of burn-in; then a random walk is made now and then beside it. After
burn-in nothing is adapted. Of a trait in categories the scale of the liabilities is integrated out of the moves and
drawn after them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mmgibbs.draws.gamma import gamma
from mmgibbs.draws.purpose import LIABILITY_SCALE, stream
from mmgibbs.engines.base import HostState, IntegratedLiabilities
from mmgibbs.posterior.draw_names import RESIDUAL
from mmgibbs.sampler.covariances import CovarianceMatrices
from mmgibbs.sampler.liabilities import LiabilityStep
from mmgibbs.sampler.locations import Locations
from mmgibbs.sampler.marginal.log_cholesky import log_cholesky, softplus
from mmgibbs.sampler.marginal.moves import (
    AUTOREGRESSION,
    INDEPENDENCE,
    OVER_RELAXATION,
    WALK,
    Shape,
    autoregressive,
    independent,
    log_uniform,
    over_relaxed,
    walk,
)
from mmgibbs.sampler.marginal.regression import Regression, add_products, learn_regression
from mmgibbs.sampler.marginal.variances import PREFIX, SampledVariances
from mmgibbs.sampler.mixed_model import MixedModel

RELATIVE_SD = 0.3  # of l_ii, before there are draws
FIRST_SHAPE, REFERENCE, FIRST_REGRESSION = 0.25, 0.5, 0.75  # fractions of burn-in
MIN_DRAWS = 10  # of a shape, for each element of x
SHRINKAGE, TINY = 0.01, 1e-8  # added to variances of draws
ACCEPTANCE = {AUTOREGRESSION: 0.5, WALK: 0.35}  # that steps aim at
MAX_STEP = 0.9  # b of an autoregression
SWEEPS_PER_WALK = 4
WITHOUT_REGRESSION = (INDEPENDENCE, AUTOREGRESSION)  # after a burn-in that was too short to learn one


class LiabilityVariances(SampledVariances):
    """psi and the scale of the liabilities, given their direction; key = (seed, chain)."""

    likelihood: IntegratedLiabilities

    def __init__(
        self,
        model: MixedModel,
        engine: HostState,
        likelihood: IntegratedLiabilities,
        liabilities: LiabilityStep,
        matrices: CovarianceMatrices,
        burn_in: int,
        key: tuple[int, int],
    ):
        super().__init__(model, log_cholesky(model), likelihood, matrices, burn_in, key)
        self.engine, self.liabilities = engine, liabilities
        p = len(self.space)
        self._log_steps = np.full(1 + len(self.blocks), np.log(0.5))  # of the autoregression, then of each walk
        self._sums = np.zeros(1 + p + p * p)  # draws, their sum and products, since the last shape
        self._reference = np.full(p, np.nan)  # x at which liabilities are summarised
        n_products = 1 + likelihood.n_summary + p
        self._products = np.zeros((n_products, n_products))
        self._regression: Regression | None = None
        self._scale_stream = stream(LIABILITY_SCALE, 0)

    def __call__(self, number: int) -> Mapping[str, float]:
        likelihood, probability = self.likelihood, 0.0
        if number == 1:
            likelihood.fill(self.engine.y)
            self._begin()
        else:
            self._value = likelihood.take(self.engine.y) + self.space.psi(self._x)[1]
        if len(self.space):
            probability = self._draw_variances(number)
        if likelihood.power:
            self._draw_scale(number)
        self._give()
        return {"variance_acceptance": probability}

    def _begin(self) -> None:
        """Begin from the starts of the chain; s_ii and the first shape follow from usual standard deviations."""
        if not len(self.space):
            self._start(self._x)
            return
        before, e = self.space, self.space.elements
        on_diagonal = e.row == e.column
        l_ii = e.scale * softplus(before.x(before.start))
        self._take_space(before.with_scale(np.where(on_diagonal, RELATIVE_SD * l_ii, e.scale)))
        self._start(self.space.x(self._psi_of_matrices()))
        self._take_shape(Shape(self._x, np.diag(np.where(on_diagonal, 1.0, RELATIVE_SD))))

    # Moves

    def _draw_variances(self, number: int) -> float:
        """Draw the variances and return the mean probability with which proposals were accepted."""
        is_summarised = bool(np.isfinite(self._reference[0]))
        predicted, summary = self.shape, np.zeros(0)
        if is_summarised and (number <= self.burn_in or self._regression is not None):
            summary = self.likelihood.summarise()
            predicted = self.shape if self._regression is None else self._regression.predict(summary)
        kinds = self._kinds(number)
        probability = sum(self._move(kind, number, predicted) for kind in kinds) / len(kinds)
        if number <= self.burn_in:
            if is_summarised:
                add_products(self._products, summary, self._x)
            self._adapt(number)
        return probability

    def _kinds(self, number: int) -> Sequence[int]:
        """The moves of a sweep."""
        if self._regression is None:
            return (INDEPENDENCE, AUTOREGRESSION, WALK) if number <= self.burn_in else WITHOUT_REGRESSION
        if number <= self.burn_in:
            return (OVER_RELAXATION, INDEPENDENCE, WALK)
        return (OVER_RELAXATION, WALK) if number % SWEEPS_PER_WALK == 0 else (OVER_RELAXATION,)

    def _move(self, kind: int, number: int, predicted: Shape) -> float:
        """The probability with which the proposal was accepted; predicted: the shape given the liabilities."""
        x, log_ratio, which = self._x, 0.0, 0
        if kind == OVER_RELAXATION:
            proposed, log_ratio = over_relaxed(x, predicted, number, self.key)
        elif kind == INDEPENDENCE:
            proposed, log_ratio = independent(x, self.shape, number, self.key)
        elif kind == AUTOREGRESSION:
            step = float(np.exp(self._log_steps[0]))
            proposed, log_ratio = autoregressive(x, self.shape, step, number, self.key)
        else:
            block = number // SWEEPS_PER_WALK % len(self.blocks)
            which = 1 + block
            step = float(np.exp(self._log_steps[which]))
            proposed = walk(x, self.blocks[block], self._roots[block], step, number, self.key)
        value, psi = self.target.evaluate(proposed)
        log_ratio = log_ratio + value - self._value if np.isfinite(value) else -np.inf
        probability = float(np.exp(min(log_ratio, 0.0)))
        if number <= self.burn_in and kind in ACCEPTANCE:
            self._log_steps[which] += (probability - ACCEPTANCE[kind]) * 4.0 / np.sqrt(10.0 + number)
            self._log_steps[0] = min(self._log_steps[0], np.log(MAX_STEP))
        if log_uniform(kind, number, self.key) < log_ratio:
            self._x, self._value, self._psi = proposed, value, psi
            self.likelihood.keep()
        return probability

    def _draw_scale(self, number: int) -> None:
        """g^2 ~ chi-square(M) / Q, and what it multiplies."""
        likelihood = self.likelihood
        drawn = gamma(0.5 * likelihood.power, number, 0, self._scale_stream, 0, *self.key)
        g = float(np.sqrt(2.0 * drawn / likelihood.kept_squares()))
        likelihood.scale(g)
        self.engine.responses.scale(self.liabilities.trait, g)
        self.liabilities.cuts[2:-1] *= g

    def _give(self) -> None:
        """The other steps and the engine take the matrices."""
        for name, matrix in self.draws().items():
            self.matrices[name] = matrix
        self.matrices.changed.clear()
        self.engine.take_residual(self.matrices[RESIDUAL])

    # What is learnt in burn-in

    def _adapt(self, number: int) -> None:
        """The shape, the reference and the regression, each at its fraction of burn-in."""
        x, at = self._x, {int(fraction * self.burn_in) for fraction in (FIRST_SHAPE, REFERENCE)}
        if number <= max(at):
            self._sums += np.concatenate([[1.0], x, np.outer(x, x).ravel()])
        if number in at:
            self._learn_shape()
        if number == int(REFERENCE * self.burn_in) and np.isfinite(self.target.evaluate(self.shape.center)[0]):
            self._reference = self.shape.center.copy()
            self.likelihood.take_reference()
        if number in (int(FIRST_REGRESSION * self.burn_in), self.burn_in):
            self._regression = learn_regression(self._products, len(x)) or self._regression

    def _learn_shape(self) -> None:
        """Mean and covariance matrix of the draws since the last shape, if they are enough."""
        p, n = self._x.size, self._sums[0]
        mean = self._sums[1 : 1 + p] / n
        covariance = self._sums[1 + p :].reshape(p, p) / n - np.outer(mean, mean)
        if n >= MIN_DRAWS * p:
            spread = np.diag(covariance).copy()
            self._take_shape(Shape(mean, np.linalg.cholesky(covariance + np.diag(SHRINKAGE * spread + TINY))))
        self._sums[:] = 0.0

    # As every step

    def state(self) -> dict[str, np.ndarray]:
        state = {"x": self._x, "scale": self.space.elements.scale, "steps": self._log_steps, "sums": self._sums}
        state |= {"reference": self._reference, "products": self._products} | self.shape._asdict()
        state["log_determinants"] = np.array(self.likelihood.kept_log_determinants)
        if self._regression is not None:
            state |= {f"regression_{name}": array for name, array in self._regression._asdict().items()}
        return {PREFIX + name: array for name, array in state.items()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        arrays = {n.removeprefix(PREFIX): a.copy() for n, a in state.items() if n.startswith(PREFIX)}
        self._take_space(self.space.with_scale(arrays["scale"]))
        self._take_shape(Shape(*(arrays[name] for name in Shape._fields)))
        self._log_steps, self._sums, self._products = (arrays[name] for name in ("steps", "sums", "products"))
        self._reference, self._regression = arrays["reference"], None
        if "regression_center" in arrays:
            self._regression = Regression(*(arrays[f"regression_{name}"] for name in Regression._fields))
        if np.all(np.isfinite(self._reference)) and len(self.space):
            self.target.evaluate(self._reference)
            self.likelihood.take_reference()
        self._start(arrays["x"])
        self.likelihood.kept_log_determinants = float(arrays["log_determinants"])


class ExactLocations(Locations):
    """Theta | psi, l in every sweep, exactly: liabilities are drawn given them."""

    def __call__(self, number: int) -> None:
        self.engine.sweep(number, self.key)
