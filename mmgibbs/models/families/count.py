"""Counts: y ~ Poisson(exposure exp(l))."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mmgibbs.errors import DataError
from mmgibbs.models.families.base import EffectiveDraws, Response, TraitTable
from mmgibbs.pedigree.messages import format_number

MOST_COUNTED = 1e9  # expected counts beyond are cut: a generator of counts knows no larger ones
NODES = 24  # of Gauss-Hermite quadrature over the residual


@dataclass(frozen=True)
class Count(Response):
    """A Poisson count at an exposure."""

    count: np.ndarray  # (n,) float64, NaN where not observed
    exposure: np.ndarray  # (n,) float64, above 0

    kind: ClassVar[str] = "count"
    meaning: ClassVar[str] = "a count"
    keys: ClassVar[tuple[str, ...]] = ("exposure",)
    formula_names: ClassVar[tuple[str, ...]] = ("count", "poisson")
    link: ClassVar[str] = "log rate"
    criterion: ClassVar[str] = "expected_count[{}]"
    one_sided: ClassVar[str] = "counts of 0"
    alike: ClassVar[str] = "the tested records, or their predictions, do not vary"
    kernel: ClassVar[str] = "liabilities:draw_log_rates"
    is_on_gpu: ClassVar[bool] = True
    effective_draws: ClassVar[EffectiveDraws] = EffectiveDraws(0.09, 0.025)  # measured with 3,190 records

    @classmethod
    def read(cls, trait: int, table: TraitTable) -> Count:
        count = table.numbers()
        wrong = np.flatnonzero((count < 0) | (count % 1 > 0))
        if len(wrong):
            raise table.refuse(
                wrong,
                lambda i: f"found {format_number(count[i])} in {table.place}",
                "a count: a whole number from 0",
                lambda i: [format_number(count[i])],
            )
        if (count == 0).any() and not (count > 0).any():
            raise DataError(
                f"{table.name}: found no count above 0 in {table.place}; needed some: the log of a rate of 0 is "
                "not finite"
            )
        return cls(trait, count, read_exposure(table, count))

    def start(self) -> np.ndarray:
        """Log rates: log((y + 1/2) / exposure)."""
        return np.log((self.count + 0.5) / self.exposure)

    def one_sided_masks(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return ~np.isnan(self.count), self.count == 0, np.zeros(len(self.count), bool)

    def tally(self) -> dict[str, int]:
        """Records of 0, and above."""
        return {"of 0": int((self.count == 0).sum()), "above 0": int((self.count > 0).sum())}

    def values(self) -> np.ndarray:
        return self.count

    def exposures(self) -> np.ndarray:
        return self.exposure

    def shifted(self, value: float) -> Count:
        """exposure exp(l) stays as it is where log rates are less `value`."""
        return replace(self, exposure=self.exposure * np.exp(value))

    def describe_scales(self) -> Mapping[str, str]:
        return {"h2": "liability, a log rate", "h2_observed": "the count at the exposures of the records"}

    def predict(self, eta: np.ndarray, V: np.ndarray, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Probability of the count that was observed, and the expected one."""
        p = compute_probability(self.count, np.log(self.exposure) + eta, V)
        return p[:, None], self.exposure * self.expect(eta, V)

    @classmethod
    def expect(cls, eta: np.ndarray, V: np.ndarray | float) -> np.ndarray:
        return np.exp(eta + 0.5 * V)

    @classmethod
    def find_moments(cls, eta: np.ndarray, V: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
        mean = float(np.exp(eta + 0.5 * V) @ weight)
        return mean, float(np.exp(2 * eta + 2 * V) @ weight) - mean**2 + mean

    def simulate(self, liability: np.ndarray, cuts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.poisson(np.minimum(self.exposure * np.exp(liability), MOST_COUNTED)).astype(float)


def read_exposure(table: TraitTable, values: np.ndarray) -> np.ndarray:
    """(n,) the exposure of the records that have one of these values, else 1."""
    column = table.keys.exposure
    if not column:
        return np.ones(len(values))
    exposure = table.numbers("exposure")
    wrong = np.flatnonzero(~(exposure > 0) & ~np.isnan(values))
    if len(wrong):

        def describe(i: int) -> str:
            cell = "no value" if np.isnan(exposure[i]) else format_number(exposure[i])
            return f"found {cell} in column '{column}' ({table.path}.exposure)"

        raise table.refuse(wrong, describe, "an exposure above 0")
    return np.where(exposure > 0, exposure, 1.0)


def compute_probability(count: np.ndarray, eta: np.ndarray, V: np.ndarray) -> np.ndarray:
    """(n,) integral of Poisson(count; exp(eta + e)) over e ~ N(0, V), by Gauss-Hermite quadrature about the mode.

    The mode of the integrand in e solves y - exp(eta + e) = e / V; there the nodes are as wide as the integrand.
    """
    from scipy.special import gammaln

    e = np.zeros(len(eta))
    for _ in range(50):
        rate = np.exp(np.minimum(eta + e, 50.0))
        step = (count - rate - e / V) / (rate + 1 / V)
        e += np.clip(step, -2.0, 2.0)
    width = 1 / np.sqrt(np.exp(np.minimum(eta + e, 50.0)) + 1 / V)
    x, w = np.polynomial.hermite_e.hermegauss(NODES)
    at = e[:, None] + width[:, None] * x
    rate = np.exp(np.minimum(eta[:, None] + at, 50.0))
    log_p = count[:, None] * (eta[:, None] + at) - rate - gammaln(count + 1)[:, None] - 0.5 * at**2 / V[:, None]
    return (w * np.exp(log_p + 0.5 * x**2)).sum(1) * width / np.sqrt(2 * np.pi * V)
