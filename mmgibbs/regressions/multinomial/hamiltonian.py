"""Hamiltonian Monte Carlo for chains side by side: integrator, masses, acceptance, adaptation. It knows no model.

A target is a function position (C, K, D) -> Point with log density and gradient. With mass matrix M, momenta eta ~ N(0,
M),

    H(q, eta) = -log p(q) + eta' M^-1 eta / 2,      dq/dt = M^-1 eta,      d eta/dt = d log p / dq.

Neal (2011); step size by dual averaging (Hoffman & Gelman 2014); trajectory length by ChEES (Hoffman, Radul & Sountsov
2021); annealed acceptance as in Beam, Ghosh & Doyle (2016).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mmgibbs.regressions.protocol import Array, State

WANTED_ACCEPTANCE = 0.8
LEARNING_RATE = 0.025  # of the log trajectory length


@dataclass(frozen=True)
class Point:
    """A position with what the target says of it."""

    position: Array  # (C, K, D)
    log_density: Array  # (C,)
    gradient: Array  # (C, K, D)


Target = Callable[[Array], Point]


def expand_chains(values: Array) -> Array:
    """(C,) -> (C, 1, 1)."""
    return values[:, None, None]


def leapfrog(
    target: Target, velocity: Callable[[Array], Array], start: Point, momentum: Array, step: Array, steps: Array
) -> tuple[Point, Array]:
    """Half kick, (drift, kick) x (L - 1), drift, half kick; step (C,), L = steps (C,).

    Chains that are done stand still.
    """
    point, momentum = start, momentum + expand_chains(step / 2) * start.gradient
    for s in range(1, int(steps.max()) + 1):
        drift = step * (s <= steps)
        kick = drift / 2 + step / 2 * (s < steps)
        point = target(point.position + expand_chains(drift) * velocity(momentum))
        momentum = momentum + expand_chains(kick) * point.gradient
    return point, momentum


class Mass(Protocol):
    """A mass matrix M, of each chain or of all."""

    def momentum(self, z: Array) -> Array: ...
    def velocity(self, momentum: Array) -> Array: ...
    def times(self, x: Array) -> Array: ...


# Masses: momentum(z) ~ N(0, M) for standard normal z; velocity(momentum) = M^-1 momentum; times(x) = M x


class DiagonalMass:
    """M = diag(1 / inverse), inverse (C or 1, K, D) or a number."""

    def __init__(self, inverse: Array | float):
        self.inverse = inverse

    def momentum(self, z: Array) -> Array:
        return z / self.inverse**0.5

    def velocity(self, momentum: Array) -> Array:
        return momentum * self.inverse

    def times(self, x: Array) -> Array:
        return x / self.inverse


class KroneckerMass:
    """M = S (x) A with S (1 or C, K, K) and A (1 or C, D, D) positive definite: M X = S X A for X (K, D)."""

    def __init__(self, S: np.ndarray, A: np.ndarray):
        self.S, self.A = S, A
        self.root_S, self.root_A = np.linalg.cholesky(S), np.linalg.cholesky(A).swapaxes(1, 2)
        self.inverse_S, self.inverse_A = np.linalg.inv(S), np.linalg.inv(A)

    def momentum(self, z: Array) -> Array:
        return self.root_S @ z @ self.root_A

    def velocity(self, momentum: Array) -> Array:
        return self.inverse_S @ momentum @ self.inverse_A

    def times(self, x: Array) -> Array:
        return self.S @ x @ self.A


# One trajectory and its acceptance


@dataclass(frozen=True)
class Trajectory:
    end: Point
    momentum: Array  # at the end, (C, K, D)
    energy_error: Array  # H(end) - H(start), (C,); infinite where the trajectory diverged
    acceptance: Array  # min(1, exp(-energy error)), (C,)


def trajectory(target: Target, mass: Mass, start: Point, z: Array, step: Array, steps: Array) -> Trajectory:
    """Run a trajectory from momenta made of standard normals z (C, K, D)."""
    momentum = mass.momentum(z)
    with np.errstate(over="ignore", invalid="ignore"):  # a diverging trajectory is refused by its energy
        end, last = leapfrog(target, mass.velocity, start, momentum, step, steps)
        error = energy(mass, end, last) - energy(mass, start, momentum)
    error = np.where(np.isfinite(error), error, np.inf)
    return Trajectory(end, last, error, np.exp(-np.maximum(error, 0.0)))


def energy(mass: Mass, point: Point, momentum: Array) -> Array:
    """H, (C,)."""
    return (momentum * mass.velocity(momentum)).sum((1, 2)) / 2 - point.log_density


def accept(start: Point, tried: Trajectory, uniform: Array, temperature: Array | float = 1.0) -> Point:
    """The end where log u < -energy error / T, else the start; uniform (C,)."""
    moved = np.log(uniform) < -tried.energy_error / temperature
    end = tried.end
    return Point(
        np.where(expand_chains(moved), end.position, start.position),
        np.where(moved, end.log_density, start.log_density),
        np.where(expand_chains(moved), end.gradient, start.gradient),
    )


def cooler(temperature: Array) -> Array:
    """T_t = max(1, 0.9 T_(t-1)), Beam, Ghosh & Doyle's annealing of the burn-in."""
    return (0.9 * temperature).clip(1.0)


# Adaptation: what is learnt stands in the state, (C, ...), and is frozen after the burn-in


def jitter(sweep: int) -> float:
    """Return the position in (0, 1) where trajectory `sweep` ends: the van der Corput sequence in base 2."""
    bits = f"{sweep:b}"
    return sum(2.0**-i for i, bit in enumerate(reversed(bits), 1) if bit == "1")


@dataclass(frozen=True)
class Adaptation:
    """Step size by dual averaging, length by ChEES, running means and variances; pooled: learnt from all chains at
    once.

    In the state, (C,) each: log_step, log_length and their means mean_log_step, mean_log_length, which hold after the
    burn-in; shortfall (of the acceptance), square_slope (of ChEES); and (C, K, D) centre and, for learnt masses,
    variance.
    """

    first_step: float
    most_steps: int
    pooled: bool

    def start(self, position: Array, variance: Array | None = None) -> State:
        """Trajectories start at length 1; variance (1, K, D): of every coefficient, where it is to be learnt."""
        zeros = np.zeros(len(position))
        log_step = zeros + np.log(self.first_step)
        learnt = {"log_step": log_step, "mean_log_step": log_step, "log_length": zeros, "mean_log_length": zeros}
        learnt |= {"shortfall": zeros, "square_slope": zeros, "centre": position}
        return learnt if variance is None else learnt | {"variance": np.broadcast_to(variance, position.shape)}

    def lengths(self, state: State, sweep: int, burning: bool) -> tuple[Array, Array]:
        """Step size and number of leapfrog steps of every chain, (C,) each: ceil(h length / step) at jitter h."""
        which = "" if burning else "mean_"
        log_step, log_length = state[which + "log_step"], state[which + "log_length"]
        steps = np.ceil(jitter(sweep) * np.exp(np.minimum(log_length - log_step, 20.0)))
        return np.exp(log_step), np.clip(steps, 1, self.most_steps).astype(np.int64)

    def learn(self, state: State, start: Point, now: Point, tried: Trajectory, mass: Mass, sweep: int) -> State:
        """Update the adaptation after trajectory `sweep`, 1 the first."""
        steps, lengths = self._step(state, tried, sweep), self._length(state, start, tried, mass, sweep)
        return steps | lengths | self._moments(state, now, sweep)

    def _pool(self, values: Array) -> Array:
        return np.broadcast_to(values.mean(0), values.shape).copy() if self.pooled else values

    def _step(self, state: State, tried: Trajectory, t: int) -> State:
        """Dual averaging with t_0 = 10, gamma = 0.05, kappa = 0.75."""
        shortfall = WANTED_ACCEPTANCE - self._pool(tried.acceptance)
        shortfall = state["shortfall"] + (shortfall - state["shortfall"]) / (t + 10)
        log_step = np.log(10 * self.first_step) - t**0.5 / 0.05 * shortfall
        mean = self._mean(state["mean_log_step"], log_step, t)
        return {"log_step": log_step, "mean_log_step": mean, "shortfall": shortfall}

    def _length(self, state: State, start: Point, tried: Trajectory, mass: Mass, t: int) -> State:
        """The ChEES criterion in the norm of the mass matrix, E (|q' - c|_M^2 - |q - c|_M^2)^2 / 4, rises in the length
        by h (|q' - c|_M^2 - |q - c|_M^2)(q' - c)'eta' at jitter h; its log climbs by Adam, without momentum."""
        before, after = start.position - state["centre"], tried.end.position - state["centre"]
        with np.errstate(over="ignore", invalid="ignore"):
            gain = (after * mass.times(after)).sum((1, 2)) - (before * mass.times(before)).sum((1, 2))
            slope = jitter(t) * gain * (after * tried.momentum).sum((1, 2))
        usable = np.isfinite(slope) & (tried.acceptance > 0)
        slope = self._pool(np.where(usable, tried.acceptance * slope, 0.0)) / (self._pool(tried.acceptance) + 1e-12)
        square = 0.95 * state["square_slope"] + 0.05 * slope**2
        rise = slope / np.sqrt(square / (1 - 0.95**t) + 1e-300)
        least = state["mean_log_step"]
        log_length = np.clip(state["log_length"] + LEARNING_RATE * rise, least, least + np.log(self.most_steps))
        mean = self._mean(state["mean_log_length"], log_length, t)
        return {"log_length": log_length, "mean_log_length": mean, "square_slope": square}

    def _moments(self, state: State, now: Point, t: int) -> State:
        """Weights grow with t^2, so that the way from the start counts little."""
        weight, old = 3 / (t + 6), state["centre"]
        centre = old + weight * (self._pool(now.position) - old)
        if "variance" not in state:
            return {"centre": centre}
        square = self._pool((now.position - old) * (now.position - centre))
        return {"centre": centre, "variance": state["variance"] + weight * (square - state["variance"])}

    @staticmethod
    def _mean(mean: Array, value: Array, t: int) -> Array:
        return mean + t**-0.75 * (value - mean)
