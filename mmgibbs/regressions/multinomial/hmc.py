"""Multinomial logit with a Cauchy or normal prior by Hamiltonian Monte Carlo (Beam, Ghosh & Doyle 2016; Neal 2011).

    y_i ~ Multinomial(n_i, softmax(b_0 + z_i B)),     beta_K = 0,     beta_jk ~ Cauchy(0, scale) or N(0, scale^2)

with a scale of their own for the intercepts. Log posterior and gradient, Z the predictors, standardised where asked
for:

    sum_ij y_ij log softmax_ij - sum log(1 + (B / scale)^2),        Z'(Y - n softmax(Z B)) - 2 B / (scale^2 + B^2)

`adaptation: none` is the paper's sampler: fixed step and L, and a burn-in that accepts with probability alpha^(1/T), T
falling from 1000 to 1. Otherwise step size, trajectory length and masses are learnt during the burn-in and then frozen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mmgibbs.draws.purpose import REGRESSION_ACCEPT, REGRESSION_MOMENTUM, REGRESSION_START, stream
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.machine.threads import blas_threads
from mmgibbs.regressions.arrays.base import Arrays, Host
from mmgibbs.regressions.classes import read_classes
from mmgibbs.regressions.description import Columns, Description
from mmgibbs.regressions.multinomial import hamiltonian as hmc
from mmgibbs.regressions.multinomial.description import multinomial_description
from mmgibbs.regressions.multinomial.hmc_device import MultinomialHMCChains
from mmgibbs.regressions.multinomial.softmax_curvature import SoftmaxCurvature
from mmgibbs.regressions.multinomial.softmax_gradient import SoftmaxGradient, averaged_softmax, totals
from mmgibbs.regressions.options import option
from mmgibbs.regressions.predictors import Predictors
from mmgibbs.regressions.protocol import Array, Keys, Parameter, RegressionData, State

MOMENTUM, ACCEPT, START = (stream(purpose, 0) for purpose in (REGRESSION_MOMENTUM, REGRESSION_ACCEPT, REGRESSION_START))
SOON = 10  # sweeps before the running mean is worth a new mass matrix
MOST_DENSE = 20_000  # coefficients of a class for which a dense mass matrix is made


@dataclass(frozen=True)
class MultinomialHMCOptions:
    prior: Literal["cauchy", "normal"] = option("cauchy", "of the coefficients, those of the last class being 0")
    scale: float = option(
        2.5, "of the Cauchy prior (Gelman et al. 2008); standard deviation of the normal one", above=0
    )
    intercept: bool = option(True, "an intercept for each class but the last")
    intercept_scale: float = option(10.0, "the same for the intercepts", above=0)
    adaptation: Literal["pooled", "separate", "none"] = option(
        "pooled",
        "what learns in the burn-in: all chains together, each by itself, or nothing (step_size and "
        "leapfrog_steps stay as they are given)",
    )
    mass: Literal["hessian", "diagonal", "identity"] = option(
        "hessian",
        "mass matrix: the Hessian at the classes' frequencies, with adaptation at the running mean; its diagonal, "
        "with adaptation the running variances; or the identity",
    )
    leapfrog_steps: int = option(
        100, "leapfrog steps of a trajectory; with adaptation the most of them", least=1, most=1_000_000
    )
    step_size: float | None = option(None, "leapfrog step; with adaptation the first one", above=0)
    temperature: float = option(
        1000.0, "without adaptation: T at the start of the burn-in; 1 for no annealing", least=1
    )
    precision: Literal["double", "single"] = option("double", "type of products with the predictors; sums are float64")


class MultinomialHMCModel:
    """The plugin. Response: labels (n,) of K >= 2 classes or counts (n, K); the last class is the reference."""

    name = "multinomial_hmc"
    standardise = True
    Options = MultinomialHMCOptions

    @staticmethod
    def prepare(data: RegressionData, options: MultinomialHMCOptions, arrays: Arrays) -> MultinomialHMCSampler:
        """DataError for a response that is none; ConfigError for options that cannot be combined."""
        response, classes = read_classes(data.response, data.response_name)
        X = data.predictors
        if len(response) != X.n:
            needed = f"needed {X.n}, one for each row of the predictors"
            raise DataError(f"{data.response_name}: found {len(response)} rows, {needed}")
        if options.adaptation == "none" and options.step_size is None:
            raise ConfigError("step_size: found nothing, needed a number above 0 where adaptation is 'none'")
        if X.origin.any() and not options.intercept:
            raise ConfigError(
                "intercept: found false with centred predictors, whose means it absorbs; "
                "needed true, or standardise: false"
            )
        D = X.p + options.intercept
        if options.mass == "hessian" and D > MOST_DENSE:
            raise ConfigError(
                f"mass: found 'hessian' with {D:,} coefficients for each class, whose matrices take "
                f"{3 * 8e-9 * D**2:.0f} GB; needed at most {MOST_DENSE:,}, or 'diagonal'"
            )
        return MultinomialHMCSampler(X, response, classes, options, arrays)

    @staticmethod
    def predict(draws: Mapping[str, np.ndarray], predictors: Predictors, classes: list | None) -> np.ndarray:
        """(n, K): softmax averaged over the draws beta (m, p, K - 1) and intercept (m, K - 1)."""
        m, _, K = draws["beta"].shape
        return averaged_softmax(draws["beta"], draws.get("intercept", np.zeros((m, K))), predictors)


class MultinomialHMCSampler:
    """State, (C, ...), D coefficients of a class, the intercept last, on the scale of the standardised columns:

    position, gradient (C, K - 1, D) and log_density of it; acceptance and steps of the last trajectory; without
    adaptation the temperature, else what hmc.Adaptation lists; for a Hessian that is renewed, at (C, K - 1, D): where
    it is taken.
    """

    has_kernels = True

    def __init__(
        self,
        predictors: Predictors,
        response: np.ndarray,
        classes: list,
        options: MultinomialHMCOptions,
        arrays: Arrays,
    ):
        # a GPU has kernels, see `plan_device_chains`
        self.arrays = arrays = arrays if isinstance(arrays, Host) else Host()
        self.X, self.options = predictors, options
        self.K, self.D = len(classes), predictors.p + options.intercept
        self.adaptive = options.adaptation != "none"
        self.has_learnt_masses = self.adaptive and options.mass == "diagonal"
        self.real = real = np.float32 if options.precision == "single" else np.float64
        T = totals(predictors, response, self.K, options.intercept, real)
        trials = response.sum(1) if response.ndim == 2 else None
        self.likelihood = SoftmaxGradient(predictors, T, trials, options.intercept, arrays, real)
        self.scale = np.append(np.full(predictors.p, options.scale), [options.intercept_scale] * options.intercept)
        steepest = (2 if options.prior == "cauchy" else 1) / self.scale**2
        self.curvature = SoftmaxCurvature(predictors, response, self.K, steepest, options.intercept, real)
        variance = self.curvature.inverse_diagonal()
        self.variance = variance[None]
        self.mass, self.at = self._first_mass()
        self.renewed = self.mass, self.at  # the latest mass matrix and where it belongs
        largest = 1.0 if options.mass != "identity" else float(np.sqrt(variance.min()))
        self.first_step = options.step_size or largest / variance.size**0.25
        self.learner = hmc.Adaptation(self.first_step, options.leapfrog_steps, options.adaptation == "pooled")
        self.adapt_until(0)
        self.coords = {"predictor": list(predictors.names), "class": classes, "contrast": classes[:-1]}
        against = "log odds against the last class"
        self.parameters = {"beta": Parameter(("predictor", "contrast"), f"change of the {against}")}
        if options.intercept:
            self.parameters["intercept"] = Parameter(("contrast",), f"{against} where the predictors are 0")

    def target(self, B: Array) -> hmc.Point:
        """Log posterior, up to a constant, and its gradient."""
        value, gradient = self.likelihood(B)
        if self.options.prior == "cauchy":
            value = value - np.log1p((B / self.scale) ** 2).sum((1, 2))
            gradient = gradient - 2 * B / (self.scale**2 + B**2)
        else:
            value = value - ((B / self.scale) ** 2).sum((1, 2)) / 2
            gradient = gradient - B / self.scale**2
        return hmc.Point(B, value, gradient)

    def adapt_until(self, burn_in: int) -> None:
        self.burn_in = burn_in
        self.renewals = {burn_in // 16, burn_in // 8, burn_in // 4, burn_in // 2} - set(range(SOON))

    def start(self, keys: Keys) -> State:
        """Chains start apart, at draws of N(0, M^-1), or of the inverse curvatures where M is the identity."""
        z = self._normals(keys, 0, START)
        B = self.variance**0.5 * z if self.options.mass == "identity" else self.mass.velocity(self.mass.momentum(z))
        with blas_threads(1):
            now = self.target(B)
        zeros = np.zeros(len(keys))
        state = {"position": B, "log_density": now.log_density, "gradient": now.gradient}
        state |= {"acceptance": zeros, "steps": zeros}
        if not self.adaptive:
            return state | {"temperature": zeros + self.options.temperature}
        if self.at is not None:
            state["at"] = np.broadcast_to(self.at, B.shape)
        return state | self.learner.start(B, self.variance if self.has_learnt_masses else None)

    def step(self, state: State, sweep: int, keys: Keys) -> State:
        burning = sweep <= self.burn_in
        start = hmc.Point(state["position"], state["log_density"], state["gradient"])
        mass, (step, steps) = self.select_mass(state), self._lengths(state, sweep)
        with blas_threads(1):  # the threads share the rows instead
            tried = hmc.trajectory(self.target, mass, start, self._normals(keys, sweep, MOMENTUM), step, steps)
        annealed = burning and not self.adaptive
        uniform = self.arrays.uniforms(keys, sweep, ACCEPT, 1).reshape(len(keys))
        now = hmc.accept(start, tried, uniform, state["temperature"] if annealed else 1.0)
        new = state | {"position": now.position, "log_density": now.log_density, "gradient": now.gradient}
        new |= {"acceptance": tried.acceptance, "steps": steps.astype(np.float64)}
        if annealed:
            new["temperature"] = hmc.cooler(state["temperature"])
        elif burning:
            new |= self.learner.learn(state, start, now, tried, mass, sweep)
            if "at" in state and sweep in self.renewals:
                new["at"] = new["centre"]
        return new

    def plan_device_chains(self, keys: Keys, burn_in: int, thin: int) -> MultinomialHMCChains:
        """Plan the same chains on a GPU, see protocol.DeviceSampler."""
        return MultinomialHMCChains(self, keys, burn_in, thin)

    def log(self, state: State) -> dict:
        B, p = state["position"], self.X.p
        if not self.options.intercept:
            return {"beta": np.swapaxes(B / self.X.scale, 1, 2)}
        beta, intercept = self.X.to_original_scale(B[..., :p], B[..., p])
        return {"beta": np.swapaxes(beta, 1, 2), "intercept": intercept}

    def statistics(self, state: State) -> dict:
        """Names as in ArviZ; lp: log density of the standardised coefficients, up to a constant."""
        step, _ = self._lengths(state, self.burn_in + 1)
        facts = {"acceptance_rate": state["acceptance"], "n_steps": state["steps"]}
        return facts | {"step_size": step, "lp": state["log_density"]}

    def describe(self, columns: Columns) -> Description:
        o = self.options
        law = lambda scale: f"Cauchy(0, {scale:g})" if o.prior == "cauchy" else f"N(0, {scale:g}²)"
        priors = [f"β_{{jk}} ~ {law(o.scale)}", *([f"α_{{k}} ~ {law(o.intercept_scale)}"] if o.intercept else [])]
        return multinomial_description(columns, self.coords["class"], self.X, o.intercept, priors)

    def _first_mass(self) -> tuple[hmc.Mass, np.ndarray | None]:
        if self.options.mass == "hessian":
            at = self.curvature.position()[None]
            return self.curvature.mass(at), at
        return hmc.DiagonalMass(1.0 if self.options.mass == "identity" else self.variance), None

    def select_mass(self, state: State) -> hmc.Mass:
        """The mass matrix of a state: learnt variances, or the Hessian where it says, kept until it says otherwise."""
        if "variance" in state:
            return hmc.DiagonalMass(state["variance"])
        if "at" not in state:
            return self.mass
        at = state["at"][:1] if self.options.adaptation == "pooled" else state["at"]
        renewed_at = self.renewed[1]
        if renewed_at is None or not np.array_equal(np.broadcast_to(renewed_at, at.shape), at):
            self.renewed = self.curvature.mass(at), at
        return self.renewed[0]

    def _lengths(self, state: State, sweep: int) -> tuple[Array, Array]:
        """Step size and number of leapfrog steps of every chain, (C,) each."""
        if self.adaptive:
            return self.learner.lengths(state, sweep, burning=sweep <= self.burn_in)
        C = len(state["position"])
        return np.full(C, self.options.step_size), np.full(C, self.options.leapfrog_steps)

    def _normals(self, keys: Keys, sweep: int, purpose: int) -> Array:
        return self.arrays.normals(keys, sweep, purpose, (self.K - 1) * self.D).reshape(len(keys), self.K - 1, self.D)
