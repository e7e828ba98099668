"""How the records of a trait are observed, where they are not its values: categories, bounds, counts.

Behind each such record stands a liability (a log rate, for counts) that follows the linear model; the sampler holds it
in place of y. A trait without a response is observed as it is (normal).

    Categories   y = c where t_{c-1} < l < t_c;  R_tt = 1 and t_1 = 0 by convention
    Interval     lower <= l <= upper, either end possibly infinite; equal where the record is exact
    Count        y ~ Poisson(exposure exp(l))
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Categories:
    """A binary trait (two labels) or an ordinal one: labels from low to high."""

    trait: int
    labels: tuple[str, ...]  # (K,)
    category: np.ndarray  # (n,) int16: 0 ... K - 1; -1 where not observed
    unit_residual = True  # R_tt = 1 sets the scale of the liability

    def start_of_cuts(self) -> np.ndarray:
        """(K + 1,): -inf, t_1 = 0, t_2, ..., inf, from the frequencies of the categories."""
        from scipy.special import ndtri

        cuts = ndtri(self._shares())
        cuts[1:-1] -= cuts[1]
        return cuts

    def start(self) -> np.ndarray:
        """(n,) liabilities: the normal score of each category; NaN where not observed."""
        from scipy.special import ndtri

        shares = self._shares()
        cuts = ndtri(shares)
        density = np.exp(-0.5 * np.where(np.isfinite(cuts), cuts, 0.0) ** 2) / np.sqrt(2 * np.pi)
        density[~np.isfinite(cuts)] = 0.0
        scores = (density[:-1] - density[1:]) / np.diff(shares) - cuts[1]
        return np.where(self.category < 0, np.nan, scores[self.category])

    def _shares(self) -> np.ndarray:
        """(K + 1,) cumulative frequencies, from 0 to 1."""
        counts = np.bincount(self.category[self.category >= 0], minlength=len(self.labels))
        return np.concatenate([[0.0], np.cumsum(counts) / counts.sum()])

    def one_sided_masks(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(n,) bool each: observed; fits the better the lower its liability is; the higher."""
        return self.category >= 0, self.category == 0, self.category == len(self.labels) - 1

    def tally(self) -> dict[str, int]:
        """Records of each category."""
        counts = np.bincount(self.category[self.category >= 0], minlength=len(self.labels))
        return dict(zip(self.labels, counts.tolist(), strict=True))

    def keep(self, rows: np.ndarray) -> Categories:
        """The response of some of the records; rows: (n,) bool, or their numbers."""
        return replace(self, category=self.category[rows])

    def shifted(self, value: float) -> Categories:
        """Thresholds stay where they are: such a trait is not centred."""
        if value != 0:
            raise ValueError("a trait in categories is not centred: its first threshold is 0")
        return self


@dataclass(frozen=True)
class Interval:
    """A trait of which some records are known within bounds alone (censored)."""

    trait: int
    lower: np.ndarray  # (n,) float64, -inf where open; NaN where not observed
    upper: np.ndarray  # (n,) float64, inf where open
    unit_residual = False

    def start(self) -> np.ndarray:
        """(n,) the record, the middle of its interval, or the end that is known; NaN where not observed."""
        both = np.isfinite(self.lower) & np.isfinite(self.upper)
        with np.errstate(invalid="ignore"):
            middle = 0.5 * (self.lower + self.upper)
        return np.where(both, middle, np.where(np.isfinite(self.lower), self.lower, self.upper))

    def one_sided_masks(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(n,) bool each: observed; fits the better the lower its value is; the higher."""
        return ~np.isnan(self.lower), np.isneginf(self.lower), np.isposinf(self.upper)

    def tally(self) -> dict[str, int]:
        """Records by what is known of them; kinds that do not occur are left out."""
        observed, below, above = self.one_sided_masks()
        exact = observed & (self.lower == self.upper)
        kinds = {
            "exact": exact,
            "right-censored": above & ~below,
            "left-censored": below & ~above,
            "within an interval": observed & ~exact & ~below & ~above,
        }
        return {name: int(kind.sum()) for name, kind in kinds.items() if kind.any()}

    def keep(self, rows: np.ndarray) -> Interval:
        return replace(self, lower=self.lower[rows], upper=self.upper[rows])

    def shifted(self, value: float) -> Interval:
        """Bounds of liabilities less `value`."""
        return replace(self, lower=self.lower - value, upper=self.upper - value)


@dataclass(frozen=True)
class Count:
    """A Poisson count at an exposure."""

    trait: int
    count: np.ndarray  # (n,) float64, NaN where not observed
    exposure: np.ndarray  # (n,) float64, above 0
    unit_residual = False

    def start(self) -> np.ndarray:
        """(n,) log rates: log((y + 1/2) / exposure)."""
        return np.log((self.count + 0.5) / self.exposure)

    def one_sided_masks(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(n,) bool each: observed; fits the better the lower its log rate is; the higher, which none does."""
        return ~np.isnan(self.count), self.count == 0, np.zeros(len(self.count), bool)

    def tally(self) -> dict[str, int]:
        """Records of 0, and above."""
        return {"of 0": int((self.count == 0).sum()), "above 0": int((self.count > 0).sum())}

    def keep(self, rows: np.ndarray) -> Count:
        return replace(self, count=self.count[rows], exposure=self.exposure[rows])

    def shifted(self, value: float) -> Count:
        """exposure exp(l) stays as it is where log rates are less `value`."""
        return replace(self, exposure=self.exposure * np.exp(value))


Response = Categories | Interval | Count
