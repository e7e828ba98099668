"""Hamiltonian Monte Carlo for several chains side by side: integrator, masses, acceptance, adaptation. It knows no model.

A target is a function position (C, K, D) -> Point with log density and gradient. With a mass matrix M and momenta eta ~ N(0, M),

    H(q, eta) = -log p(q) + eta' M^-1 eta / 2,      dq/dt = M^-1 eta,      d eta/dt = d log p / dq.

Neal (2011); step size by dual averaging (Hoffman & Gelman 2014); trajectory length by ChEES (Hoffman, Radul & Sountsov 2021);
annealed acceptance as in Beam, Ghosh & Doyle (2016).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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


def each(values):
    """(C,) -> (C, 1, 1)."""
    return values[:, None, None]


def leapfrog(target: Target, velocity: Callable[[Array], Array], start: Point, momentum, step, steps) -> tuple[Point, Array]:
    """Half kick, (drift, kick) x (L - 1), drift, half kick; step (C,) and steps L (C,) of each chain. Chains that are done stand still."""
    point, momentum = start, momentum + each(step / 2) * start.gradient
    for s in range(1, int(steps.max()) + 1):
        drift = step * (s <= steps)
        kick = drift / 2 + step / 2 * (s < steps)
        point = target(point.position + each(drift) * velocity(momentum))
        momentum = momentum + each(kick) * point.gradient
    return point, momentum


# Masses: momentum(z) ~ N(0, M) for standard normal z; velocity(momentum) = M^-1 momentum; times(x) = M x


class DiagonalMass:
    """M = diag(1 / inverse), inverse (C or 1, K, D) or a number."""

    def __init__(self, inverse):
        self.inverse = inverse

    def momentum(self, z):
        return z / self.inverse**0.5

    def velocity(self, momentum):
        return momentum * self.inverse

    def times(self, x):
        return x / self.inverse


class KroneckerMass:
    """M = S (x) A with S (K, K) and A (D, D) positive definite: M X = S X A for X (K, D)."""

    def __init__(self, S: np.ndarray, A: np.ndarray, asarray=np.asarray):
        self.S, self.A = asarray(S), asarray(A)
        self.root_S, self.root_A = (asarray(np.linalg.cholesky(m)) for m in (S, A))
        self.inverse_S, self.inverse_A = (asarray(np.linalg.inv(m)) for m in (S, A))

    def momentum(self, z):
        return self.root_S @ z @ self.root_A.T

    def velocity(self, momentum):
        return self.inverse_S @ momentum @ self.inverse_A

    def times(self, x):
        return self.S @ x @ self.A


# One trajectory and its acceptance


@dataclass(frozen=True)
class Trajectory:
    end: Point
    momentum: Array  # at the end, (C, K, D)
    energy_error: Array  # H(end) - H(start), (C,); infinite where the trajectory diverged
    acceptance: Array  # min(1, exp(-energy error)), (C,)


def trajectory(target: Target, mass, start: Point, z, step, steps, xp=np) -> Trajectory:
    """From momenta made of standard normals z (C, K, D)."""
    momentum = mass.momentum(z)
    with np.errstate(over="ignore", invalid="ignore"):  # a diverging trajectory is refused by its energy
        end, last = leapfrog(target, mass.velocity, start, momentum, step, steps)
        error = energy(mass, end, last) - energy(mass, start, momentum)
    error = xp.where(xp.isfinite(error), error, np.inf)
    return Trajectory(end, last, error, xp.exp(-xp.maximum(error, 0.0)))


def energy(mass, point: Point, momentum):
    """H, (C,)."""
    return (momentum * mass.velocity(momentum)).sum((1, 2)) / 2 - point.log_density


def accept(start: Point, tried: Trajectory, uniform, temperature=1.0, xp=np) -> Point:
    """The end where log u < -energy error / T, else the start; uniform (C,)."""
    moved = xp.log(uniform) < -tried.energy_error / temperature
    end = tried.end
    return Point(
        xp.where(each(moved), end.position, start.position),
        xp.where(moved, end.log_density, start.log_density),
        xp.where(each(moved), end.gradient, start.gradient),
    )


def cooler(temperature):
    """T_t = max(1, 0.9 T_(t-1)), Beam, Ghosh & Doyle's annealing of the burn-in."""
    return (0.9 * temperature).clip(1.0)


# Adaptation: what is learnt stands in the state, (C, ...), and is frozen after the burn-in


def jitter(sweep: int) -> float:
    """Where in (0, 1) trajectory `sweep` ends: the van der Corput sequence in base 2."""
    bits = f"{sweep:b}"
    return sum(2.0**-i for i, bit in enumerate(reversed(bits), 1) if bit == "1")


def start_adaptation(position, step: float, variance=None, xp=np) -> State:
    """step: the first step size; trajectories start at length 1; variance: of every coefficient, (C, K, D), where the masses are learnt too."""
    zeros = xp.zeros(len(position))
    log_step = zeros + np.log(step)
    learnt = {"log_step": log_step, "mean_log_step": log_step, "shortfall": zeros, "log_length": zeros, "mean_log_length": zeros}
    learnt |= {"square_slope": zeros, "centre": position}
    return learnt if variance is None else learnt | {"variance": variance}


def adapt(state: State, start: Point, now: Point, tried: Trajectory, mass, sweep: int, first_step: float, most_steps: int, pooled: bool, xp=np) -> State:
    """What `state` has learnt after trajectory `sweep`, 1 the first; pooled: all chains learn the same, from all of them.

    Dual averaging of the log step with t_0 = 10, gamma = 0.05, kappa = 0.75. The log length climbs the ChEES criterion in the norm
    of the mass matrix, E (|q' - c|_M^2 - |q - c|_M^2)^2 / 4, whose slope in the length is h (|q' - c|_M^2 - |q - c|_M^2)(q' - c)'eta' at
    jitter h. Centre and variance forget: a trajectory's weight grows with t^2, so the way from the start counts little.
    """

    def pool(values):
        return xp.broadcast_to(values.mean(0), values.shape).copy() if pooled else values

    t, h = float(sweep), jitter(sweep)
    shortfall = state["shortfall"] + (WANTED_ACCEPTANCE - pool(tried.acceptance) - state["shortfall"]) / (t + 10)
    log_step = np.log(10 * first_step) - t**0.5 / 0.05 * shortfall
    mean_log_step = state["mean_log_step"] + t**-0.75 * (log_step - state["mean_log_step"])

    before, after = start.position - state["centre"], tried.end.position - state["centre"]
    with np.errstate(over="ignore", invalid="ignore"):
        gain = (after * mass.times(after)).sum((1, 2)) - (before * mass.times(before)).sum((1, 2))
        slope = h * gain * (after * tried.momentum).sum((1, 2))
    usable = xp.isfinite(slope) & (tried.acceptance > 0)
    slope = pool(xp.where(usable, tried.acceptance * slope, 0.0)) / (pool(tried.acceptance) + 1e-12)
    square = 0.95 * state["square_slope"] + 0.05 * slope**2
    rise = slope / xp.sqrt(square / (1 - 0.95**t) + 1e-300)
    log_length = xp.clip(state["log_length"] + LEARNING_RATE * rise, mean_log_step, mean_log_step + np.log(most_steps))
    mean_log_length = state["mean_log_length"] + t**-0.75 * (log_length - state["mean_log_length"])

    newest = 3 / (t + 6)
    centre = state["centre"] + newest * (pool(now.position) - state["centre"])
    learnt = {"log_step": log_step, "mean_log_step": mean_log_step, "shortfall": shortfall, "log_length": log_length}
    learnt |= {"mean_log_length": mean_log_length, "square_slope": square, "centre": centre}
    if "variance" in state:
        square_distance = pool((now.position - state["centre"]) * (now.position - centre))
        learnt["variance"] = state["variance"] + newest * (square_distance - state["variance"])
    return learnt
