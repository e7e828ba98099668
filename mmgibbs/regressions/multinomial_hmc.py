"""Multinomial logit with a Cauchy or normal prior by Hamiltonian Monte Carlo (Beam, Ghosh & Doyle 2016; Neal 2011).

    y_i ~ Multinomial(n_i, softmax(b_0 + z_i B)),     beta_K = 0,     beta_jk ~ Cauchy(0, scale) or N(0, scale^2)

with the intercepts' scale of their own. Log posterior and gradient, for Z the predictors (standardised where asked for):

    sum_ij y_ij log softmax_ij - sum log(1 + (B / scale)^2),        Z'(Y - n softmax(Z B)) - 2 B / (scale^2 + B^2)

`adaptation: none` is the papers' sampler: fixed step and L, and a burn-in that accepts with probability alpha^(1/T), T falling
from 1000 to 1. Otherwise step size, trajectory length and, where diagonal, masses are learnt during the burn-in and then frozen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mmgibbs.draws.purpose import REGRESSION_ACCEPT, REGRESSION_MOMENTUM, REGRESSION_START, stream
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.regressions import hmc
from mmgibbs.regressions.classes import read_classes
from mmgibbs.regressions.loop import blas_threads
from mmgibbs.regressions.options import option
from mmgibbs.regressions.protocol import Parameter, RegressionData
from mmgibbs.regressions.softmax_gradient import SoftmaxGradient, averaged_softmax, totals

MOMENTUM, ACCEPT, START = (stream(purpose, 0) for purpose in (REGRESSION_MOMENTUM, REGRESSION_ACCEPT, REGRESSION_START))
MOST_DENSE = 20_000  # coefficients of a class for which a dense mass matrix is made


@dataclass(frozen=True)
class MultinomialHMCOptions:
    prior: Literal["cauchy", "normal"] = option("cauchy", "of the coefficients, those of the last class being 0")
    scale: float = option(2.5, "scale of the Cauchy, or standard deviation of the normal prior (default: Gelman et al. 2008)", above=0)
    intercept: bool = option(True, "an intercept for each class but the last")
    intercept_scale: float = option(10.0, "the same for the intercepts", above=0)
    adaptation: Literal["pooled", "separate", "none"] = option(
        "pooled", "what learns step size and trajectory length in the burn-in: all chains together, each by itself, or nothing (fixed step_size and leapfrog_steps)"
    )
    mass: Literal["hessian", "diagonal", "identity"] = option(
        "hessian", "mass matrix: curvature of the log posterior at the classes' frequencies, its diagonal (learnt where there is adaptation), or the identity"
    )
    leapfrog_steps: int = option(100, "leapfrog steps of a trajectory; with adaptation the most of them", least=1)
    step_size: float | None = option(None, "leapfrog step; with adaptation the first one", above=0)
    temperature: float = option(1000.0, "without adaptation: T at the start of the burn-in, which accepts with alpha^(1/T); 1 for none", least=1)
    precision: Literal["double", "single"] = option("double", "single: products with the predictors in float32, their sums in float64")


class MultinomialHMCModel:
    """The plugin. Response: labels (n,) of K >= 2 classes or counts (n, K); the last class is the reference."""

    name = "multinomial_hmc"
    standardise = True
    Options = MultinomialHMCOptions

    @staticmethod
    def prepare(data: RegressionData, options: MultinomialHMCOptions, arrays) -> MultinomialHMCSampler:
        return MultinomialHMCSampler(data, options, arrays)

    @staticmethod
    def predict(draws, predictors, classes) -> np.ndarray:
        """(n, K): softmax averaged over the draws beta (m, p, K - 1) and intercept (m, K - 1)."""
        intercept = draws["intercept"] if "intercept" in draws else np.zeros((len(draws["beta"]), draws["beta"].shape[2]))
        return averaged_softmax(draws["beta"], intercept, predictors)


class MultinomialHMCSampler:
    """State: position (C, K - 1, D), D coefficients of a class, the intercept last, on the scale of the standardised columns; its
    log_density (C,) and gradient; acceptance and steps (C,) of the last trajectory; without adaptation the temperature (C,), else
    what hmc.start_adaptation lists."""

    def __init__(self, data: RegressionData, options: MultinomialHMCOptions, arrays):
        response, classes = read_classes(data.response, data.response_name)
        predictors = data.predictors
        if len(response) != predictors.n:
            raise DataError(f"{data.response_name}: found {len(response)} rows, needed {predictors.n}, one for each row of the predictors")
        if options.adaptation == "none" and options.step_size is None:
            raise ConfigError("step_size: found nothing, needed a number above 0 where adaptation is 'none'")
        if predictors.centre.any() and not options.intercept:
            raise ConfigError("intercept: found false with centred predictors, whose means it takes up; needed true, or standardise: false")
        K, D = len(classes), predictors.p + options.intercept
        if options.mass == "hessian" and D > MOST_DENSE:
            raise ConfigError(
                f"mass: found 'hessian' with {D:,} coefficients for each class, whose matrices take {4 * 8e-9 * D**2:.0f} GB; "
                f"needed at most {MOST_DENSE:,}, or 'diagonal'"
            )
        self.options, self.arrays, self.xp, self.predictors, self.D, self.K = options, arrays, arrays.xp, predictors, D, K
        real = np.float32 if options.precision == "single" else np.float64
        trials = response.sum(1) if response.ndim == 2 else None
        T = totals(predictors, response, K, options.intercept, real)
        self.likelihood = SoftmaxGradient(predictors, T, trials, options.intercept, arrays, real)
        scale = np.full(D, options.scale)
        scale[predictors.p :] = options.intercept_scale
        self.scale = arrays.asarray(scale)
        self.mass, variance = self._masses(response, trials, scale, real)
        self.variance = arrays.asarray(variance)
        self.first_step = options.step_size or (1.0 if options.mass != "identity" else float(np.sqrt(variance.min()))) / ((K - 1) * D) ** 0.25
        self.burn_in = 0
        self.coords = {"predictor": list(predictors.names), "class": classes, "contrast": classes[:-1]}
        self.parameters = {"beta": Parameter(("predictor", "contrast"), "change of the log odds against the last class")}
        if options.intercept:
            self.parameters["intercept"] = Parameter(("contrast",), "log odds against the last class where the predictors are 0")

    def _masses(self, response, trials, scale, real):
        """The mass matrix, and inverse curvatures (K - 1, D): S (x) A at the classes' frequencies f, S = diag(f) - f f', A = Z' diag(n) Z + prior."""
        Z, D = self.predictors, self.D
        n = np.ones(Z.n) if trials is None else trials.astype(np.float64)
        counted = np.bincount(response, minlength=self.K) if trials is None else response.sum(0)
        f = (counted[:-1] + 1.0) / (counted.sum() + self.K)
        S = np.diag(f) - np.outer(f, f)
        prior = (2.0 if self.options.prior == "cauchy" else 1.0) / scale**2 / np.diag(S).mean()
        if self.options.mass != "hessian":
            diagonal = np.append(_square_sums(Z, n, real), n.sum())[:D] + prior
            variance = 1 / np.outer(np.diag(S), diagonal)
            return hmc.DiagonalMass(1.0 if self.options.mass == "identity" else self.arrays.asarray(variance[None])), variance
        A = np.empty((D, D))
        A[: Z.p, : Z.p] = Z.gram(None if trials is None else n, real)
        if self.options.intercept:
            A[Z.p, Z.p], A[: Z.p, Z.p] = n.sum(), Z.transposed_times(n[:, None])[:, 0]
            A[Z.p, : Z.p] = A[: Z.p, Z.p]
        A[np.diag_indices(D)] += prior
        return hmc.KroneckerMass(S, A, self.arrays.asarray), 1 / np.outer(np.diag(S), np.diag(A))

    def target(self, B) -> hmc.Point:
        """Log posterior, up to a constant, and its gradient."""
        value, gradient = self.likelihood(B)
        if self.options.prior == "cauchy":
            value, gradient = value - self.xp.log1p((B / self.scale) ** 2).sum((1, 2)), gradient - 2 * B / (self.scale**2 + B**2)
        else:
            value, gradient = value - ((B / self.scale) ** 2).sum((1, 2)) / 2, gradient - B / self.scale**2
        return hmc.Point(B, value, gradient)

    def adapt_until(self, burn_in: int) -> None:
        self.burn_in = burn_in

    def start(self, keys):
        """Chains start apart, at draws of N(0, M^-1), or of the inverse curvatures where M is the identity."""
        z = self._normals(keys, 0, START)
        B = self.variance**0.5 * z if self.options.mass == "identity" else self.mass.velocity(self.mass.momentum(z))
        zeros = self.xp.zeros(len(keys))
        with blas_threads(1):
            point = self.target(B)
        state = {"position": B, "log_density": point.log_density, "gradient": point.gradient, "acceptance": zeros, "steps": zeros}
        if self.options.adaptation == "none":
            return state | {"temperature": zeros + self.options.temperature}
        learnt = self.options.mass == "diagonal"
        return state | hmc.start_adaptation(B, self.first_step, self.xp.broadcast_to(self.variance, B.shape) if learnt else None, self.xp)

    def step(self, state, sweep: int, keys):
        options, xp, burning = self.options, self.xp, sweep <= self.burn_in
        adaptive = options.adaptation != "none"
        mass = hmc.DiagonalMass(state["variance"]) if "variance" in state else self.mass
        temperature = 1.0 if adaptive or not burning else state["temperature"]
        step, steps = self._lengths(state, sweep)
        start = hmc.Point(state["position"], state["log_density"], state["gradient"])
        with blas_threads(1):  # the threads share the rows instead
            tried = hmc.trajectory(self.target, mass, start, self._normals(keys, sweep, MOMENTUM), step, steps, xp)
        now = hmc.accept(start, tried, self.arrays.uniforms(keys, sweep, ACCEPT, 1).reshape(len(keys)), temperature, xp)
        new = state | {"position": now.position, "log_density": now.log_density, "gradient": now.gradient}
        new |= {"acceptance": tried.acceptance, "steps": steps.astype(np.float64)}
        if not adaptive:
            return new | {"temperature": hmc.cooler(state["temperature"])}
        if not burning:
            return new
        return new | hmc.adapt(state, start, now, tried, mass, sweep, self.first_step, options.leapfrog_steps, options.adaptation == "pooled", xp)

    def _lengths(self, state, sweep: int):
        """Step size and number of leapfrog steps of every chain, (C,) each: ceil(h length / step) at jitter h."""
        options, xp = self.options, self.xp
        if options.adaptation == "none":
            return xp.full(len(state["position"]), options.step_size), xp.full(len(state["position"]), options.leapfrog_steps)
        which = "" if sweep <= self.burn_in else "mean_"
        log_step, log_length = state[which + "log_step"], state[which + "log_length"]
        steps = xp.ceil(hmc.jitter(sweep) * xp.exp(xp.minimum(log_length - log_step, 20.0)))
        return xp.exp(log_step), xp.clip(steps, 1, options.leapfrog_steps).astype(np.int64)

    def _normals(self, keys, sweep: int, purpose: int):
        return self.arrays.normals(keys, sweep, purpose, (self.K - 1) * self.D).reshape(len(keys), self.K - 1, self.D)

    def log(self, state):
        B = self.arrays.fetch(state["position"])
        p = self.predictors.p
        if not self.options.intercept:
            return {"beta": np.swapaxes(B / self.predictors.scale, 1, 2)}
        beta, intercept = self.predictors.to_original_scale(B[..., :p], B[..., p])
        return {"beta": np.swapaxes(beta, 1, 2), "intercept": intercept}

    def statistics(self, state):
        step, _ = self._lengths(state, self.burn_in + 1)
        return {"acceptance_rate": state["acceptance"], "n_steps": state["steps"], "step_size": step, "lp": state["log_density"]}


def _square_sums(Z, n, real) -> np.ndarray:
    """diag(Z' diag(n) Z), (p,)."""
    total = np.zeros(Z.p)
    for first, last, X in Z.blocks(real):
        total += n[first:last] @ ((X - Z.centre) / Z.scale) ** 2
    return total
