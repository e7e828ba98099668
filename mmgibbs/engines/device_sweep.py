"""What the sampler and an engine on a device say to each other where the device makes whole sweeps alone.

The steps of the sampler write into a `VariancePlan` what they draw. `engine.make_variances(plan)` makes of it
`DeviceVariances`, on which the steps launch their kernels, once: what was launched is repeated as a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from mmgibbs.machine.ring import Ring
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.residual import ResidualModel

RESIDUAL = "R"  # name of the residual matrices, (classes, T, T)


def accepted_name(term: int) -> str:
    """Name the value that says whether the scaling of a term was accepted."""
    return f"accepted.{term}"


def auxiliary_name(matrix: str) -> str:
    """Name the auxiliary variables of a matrix."""
    return f"auxiliary.{matrix}"


def cuts_name(response: int) -> str:
    """Name the cuts of a trait in categories."""
    return f"cuts.{response}"


def log_step_name(response: int) -> str:
    """Name the logarithm of the step of the thresholds of a trait."""
    return f"log_step.{response}"


def moved_name(response: int) -> str:
    """Name the value that says whether the thresholds of a trait moved."""
    return f"moved.{response}"


def scale_step_name(name: str) -> str:
    """Name the logarithm of the step of a residual scale."""
    return f"{name}.log_step"


def scale_moved_name(name: str) -> str:
    """Name the value that says whether a residual scale moved."""
    return f"{name}.moved"


class SampledTerm(NamedTuple):
    """The covariance matrix of a term, given the start of its auxiliary variables where it has some."""

    name: str
    covariance: CovarianceModel
    n_levels: int  # with a prior


class ScaledTerm(NamedTuple):
    """L of a term whose effects are scaled: see sampler/interweave.py, CholeskyPrior."""

    elements: tuple[tuple[int, int], ...]  # (row, column)
    exponents: np.ndarray  # (k,)


class AuxiliaryVariables(NamedTuple):
    """Auxiliary variables of the scale prior of a matrix: see sampler/auxiliaries.py."""

    matrix: str
    covariance: CovarianceModel
    term: int  # of its draws
    residual_class: int | None


class ScaledResidual(NamedTuple):
    """The residual scale of a trait in one class of records: see sampler/residual_scales.py."""

    name: str
    of_class: int
    step: float
    wanted_acceptance: float


class ObservedTrait(NamedTuple):
    """A trait that is not normal: its thresholds, liabilities and their scale (sampler/liabilities.py)."""

    response: int
    trait: int
    log_gap_steps: np.ndarray  # (gaps,) of the walk of the thresholds, at a log_step of 0
    wanted_acceptance: float
    is_scaled: bool
    power: float  # what M is whatever the draws are, matrices under a flat prior that move along included
    moving: tuple[tuple[int, tuple[int, ...]], ...]  # terms whose matrix moves along: its components of the trait
    staying: tuple[tuple[int, tuple[int, ...]], ...]  # the other terms with a prior
    residual_scales: tuple[ScaledResidual, ...]


@dataclass
class VariancePlan:
    """Plan of the draws of a sweep on the device; `burn_in` sweeps are discarded, then every `thin`-th is kept.

    values: name -> shape of all that is drawn, in the order of a kept draw.
    """

    residual: ResidualModel
    burn_in: int
    thin: int
    values: dict[str, tuple[int, ...]] = field(default_factory=dict)
    terms: dict[int, SampledTerm] = field(default_factory=dict)
    scaled: dict[int, ScaledTerm] = field(default_factory=dict)
    auxiliaries: list[AuxiliaryVariables] = field(default_factory=list)
    traits: list[ObservedTrait] = field(default_factory=list)
    samples_residual: bool = False  # any of it


class DeviceVariances(Protocol):
    """Variances and other values of one chain that a device draws, and the launches of its steps.

    `load(values, number, key)`: take the values before sweep `number`; `repeat(name, launch)`: queue a sweep, or a part
    of it; `ring`: counts kept draws, whose values `split` takes apart by name. `read` and `find_lost` wait for what was
    queued: the values, and the first sweep and the number of a matrix that could not be drawn (those of the terms
    first).
    """

    plan: VariancePlan
    ring: Ring

    def load(self, values: Mapping[str, np.ndarray], number: int, key: tuple[int, int]) -> None: ...
    def repeat(self, name: str, launch: Callable[[], None]) -> None: ...
    def split(self, values: np.ndarray) -> dict[str, np.ndarray]: ...
    def read(self) -> dict[str, np.ndarray]: ...
    def find_lost(self) -> tuple[int, int] | None: ...
    def launch_locations(self) -> None: ...
    def launch_products(self, term: int) -> None: ...
    def launch_scaling(self, term: int) -> None: ...
    def launch_residuals(self) -> None: ...
    def launch_trait(self, number: int) -> None: ...
    def launch_end(self) -> None: ...


class ClassDraws(NamedTuple):
    """Draws of a sweep over the effects of p SNPs under a mixture of K classes; classes and chances are written.

    K = 0: a normal for each effect, variance (1, p).
    """

    classes: np.ndarray  # (p,) int8
    prior: tuple[np.ndarray, np.ndarray]  # Classes of sampler/markers/arguments.py
    compared: tuple[np.ndarray, np.ndarray]  # another prior, or none: K = 0
    z: np.ndarray  # (p,) standard normals
    u: np.ndarray  # (p,) uniforms
    chances: np.ndarray  # (p, K) float32, filled where no prior is compared


class StateDraws(NamedTuple):
    """Draws of a sweep over effects on T traits, all traits at once, of K states; classes and chances are written."""

    classes: np.ndarray  # (p,) int8, the states
    states: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # States of sampler/markers/arguments.py
    z: np.ndarray  # (p, T) standard normals
    u: np.ndarray  # (p,) uniforms
    chances: np.ndarray  # (p, K) float32


class SiteDraws(NamedTuple):
    """Draws of a sweep over effects on T traits, one trait at a time; classes, inside and chances are written."""

    classes: np.ndarray  # (p,) int8, the states
    sites: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # SingleSites of sampler/markers/arguments.py
    z: np.ndarray  # (p, T) standard normals
    z_outside: np.ndarray  # (p, T) those of the effects that a state leaves out
    u: np.ndarray  # (p, T) uniforms
    inside: np.ndarray  # (p, T) float32 probability of an effect
    chances: np.ndarray  # (p, K) float32
