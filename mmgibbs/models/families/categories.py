"""Binary and ordinal traits: y = c where t_{c-1} < l < t_c;  R_tt = 1 and t_1 = 0 by convention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from mmgibbs.errors import DataError
from mmgibbs.models.families.base import Cells, EffectiveDraws, Response, TraitTable, list_values
from mmgibbs.pedigree.messages import quoted

MAX_CATEGORIES = 100  # more are a scale, and the walk of their thresholds is hopeless
NOT_IN_A_LABEL = "[],:/=|"  # threshold[trait:low|high]
MIN_COMMON_SHARE = 0.3  # of the records, outside the category that most are in, where the others are not rare
DRAWS_OF_LARGE_LEVELS = EffectiveDraws(0.3, 0.6)  # where no level has few records


@dataclass(frozen=True)
class Categories(Response):
    """An ordinal trait: labels from low to high."""

    labels: tuple[str, ...] = field()  # (K,)
    category: np.ndarray  # (n,) int16: 0 ... K - 1; -1 where not observed

    kind: ClassVar[str] = "ordinal"
    meaning: ClassVar[str] = "ordered classes"
    keys: ClassVar[tuple[str, ...]] = ("categories",)
    formula_names: ClassVar[tuple[str, ...]] = ("ordinal", "cumulative", "threshold")
    link: ClassVar[str] = "liability"
    criterion: ClassVar[str] = "probability[{}:CATEGORY]"
    one_sided: ClassVar[str] = "in one end category"
    alike: ClassVar[str] = "all tested records are of one category"
    has_unit_residual: ClassVar[bool] = True
    kernel: ClassVar[str] = "liabilities:draw_categories"
    is_on_gpu: ClassVar[bool] = True
    is_truncated: ClassVar[bool] = True
    effective_draws: ClassVar[EffectiveDraws] = EffectiveDraws(0.05, 0.5)  # measured with 874 and 2,848 binary records

    @classmethod
    def read(cls, trait: int, table: TraitTable) -> Categories:
        cells = table.cells()
        if table.keys.categories:
            return cls.match(trait, table, cells, tuple(map(table.spell, table.keys.categories)))
        words = sorted(v for v in cells.values if np.isnan(table.number(v)))
        needed_for_dates = table.describe_dates(cells.values) if words else None
        if needed_for_dates is not None:
            raise DataError(f"{table.name}: found {quoted(words[0])} in {table.place}; needed {needed_for_dates}")
        if words:
            raise DataError(
                f"{table.name}: found {quoted(words[0])} in {table.place}, which is not a number; needed "
                f"{table.path}.categories: the values from low to high"
            )
        return cls.match(trait, table, cells, sorted(cells.values, key=table.number))

    @classmethod
    def match(cls, trait: int, table: TraitTable, cells: Cells, labels: Sequence[str]) -> Categories:
        """Number the cells by their places among the labels."""
        number_of = {label: number for number, label in enumerate(labels)}
        numbers = np.array([*(number_of.get(value, -2) for value in cells.values), -1])
        category = numbers[cells.code]
        wrong = np.flatnonzero(category == -2)
        if len(wrong):
            raise table.refuse(
                wrong,
                lambda i: f"found {quoted(cells.find(i))} in {table.place}",
                f"a category ({list_values(labels)}) or missing",
                lambda i: [cells.find(i)],
            )
        if len(labels) > MAX_CATEGORIES:
            raise DataError(
                f"{table.name}: found {len(labels):,} different values in {table.place}, needed at most "
                f"{MAX_CATEGORIES} categories; a trait with more is normal or censored"
            )
        bad = next((c for label in labels for c in label if c in NOT_IN_A_LABEL or not c.isprintable()), None)
        if bad is not None and len(labels) > 2:
            raise DataError(
                f"{table.name}: found a category with the character {bad!r} in {table.place}, needed names without "
                f"{' '.join(NOT_IN_A_LABEL)}: they separate the parts of a parameter's name"
            )
        if len(labels) < 2:
            raise DataError(f"{table.name}: found {len(labels)} category in {table.place}, needed two or more")
        response = cls(trait, tuple(labels), category.astype(np.int16))
        empty = [quoted(label) for label, n in response.tally().items() if n == 0]
        if empty:
            raise DataError(
                f"{table.name}: found no record of {' and '.join(empty)} in {table.place}; needed records in every "
                f"category, or {table.path}.categories without it: its threshold has no posterior"
            )
        return response

    def start_of_cuts(self) -> np.ndarray:
        """From the frequencies of the categories."""
        from scipy.special import ndtri

        cuts = ndtri(self._shares())
        cuts[1:-1] -= cuts[1]
        return cuts

    def start(self) -> np.ndarray:
        """The normal score of each category."""
        from scipy.special import ndtri

        shares = self._shares()
        cuts = ndtri(shares)
        density = np.exp(-0.5 * np.where(np.isfinite(cuts), cuts, 0.0) ** 2) / np.sqrt(2 * np.pi)
        density[~np.isfinite(cuts)] = 0.0
        scores = (density[:-1] - density[1:]) / np.diff(shares) - cuts[1]
        return np.where(self.category < 0, np.nan, scores[self.category])

    def _shares(self) -> np.ndarray:
        """(K + 1,) cumulative frequencies, from 0 to 1."""
        counts = self._counts()
        return np.concatenate([[0.0], np.cumsum(counts) / counts.sum()])

    def _counts(self) -> np.ndarray:
        return np.bincount(self.category[self.category >= 0], minlength=len(self.labels))

    def one_sided_masks(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.category >= 0, self.category == 0, self.category == len(self.labels) - 1

    def sides(self) -> tuple[np.ndarray, np.ndarray, int]:
        seen, _, up = self.one_sided_masks()
        k = self.category.astype(np.int64)
        lower = np.where(seen & (k > 0), k - 2, -2)  # below category 1 is the threshold that is set to 0
        return lower, np.where(seen & ~up, k - 1, -2), len(self.labels) - 2

    def tally(self) -> dict[str, int]:
        """Records of each category."""
        return dict(zip(self.labels, self._counts().tolist(), strict=True))

    def values(self) -> np.ndarray:
        return np.where(self.category < 0, np.nan, self.category.astype(float))

    def shifted(self, value: float) -> Categories:
        """Thresholds stay where they are: such a trait is not centred."""
        if value != 0:
            raise ValueError("a trait in categories is not centred: its first threshold is 0")
        return self

    def kernel_arguments(self, cuts: np.ndarray) -> tuple[np.ndarray, ...]:
        return self.category, cuts

    def ends(self, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.category, cuts

    def expect_draws(self, has_few_records_per_level: bool) -> EffectiveDraws:
        """Liabilities of a rare category move slowly."""
        drawn = self.effective_draws if has_few_records_per_level else DRAWS_OF_LARGE_LEVELS
        counts = self._counts()
        rarity = min(1.0, float(1.0 - counts.max() / counts.sum()) / MIN_COMMON_SHARE)
        return EffectiveDraws(drawn.sweeps, drawn.marginal * rarity**2)

    def describe_scales(self) -> Mapping[str, str]:
        observed = "the 1/0 record of each category; without a category, the score itself"
        of = "share of the category among unrelated animals"
        if len(self.labels) == 2:
            observed, of = "the 1/0 record", f"share of '{self.labels[1]}' among unrelated animals"
        return {"h2": "liability, with a residual variance of 1", "h2_observed": observed, "incidence": of}

    def predict(self, eta: np.ndarray, V: np.ndarray, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities of all categories, and the mean of their numbers."""
        p = compute_probabilities(eta, V, np.concatenate([[0.0], thresholds]))
        return p, p @ np.arange(p.shape[1])

    def simulate(self, liability: np.ndarray, cuts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.searchsorted(cuts[1:-1], liability)


@dataclass(frozen=True)
class Binary(Categories):
    """Two values."""

    kind: ClassVar[str] = "binary"
    meaning: ClassVar[str] = "two classes"
    keys: ClassVar[tuple[str, ...]] = ("positive",)
    formula_names: ClassVar[tuple[str, ...]] = ("binary", "bernoulli", "binomial", "probit")
    criterion: ClassVar[str] = "probability[{}]"

    @classmethod
    def read(cls, trait: int, table: TraitTable) -> Categories:
        cells, where = table.cells(), table.place
        values = sorted(cells.values)
        positive = None if table.keys.positive is None else table.spell(table.keys.positive)
        if positive is not None and positive not in values:
            raise DataError(
                f"{table.name}: found no {quoted(positive)} in {where}, needed it as one of two values "
                f"(found {list_values(values)})"
            )
        if len(values) > 2:
            first_two = _choose_two(table, cells.values)
            is_right = np.array([*(value in first_two for value in cells.values), True])  # missing is right too
            raise table.refuse(
                np.flatnonzero(~is_right[cells.code]),
                lambda i: f"found {quoted(cells.find(i))} in {where}",
                f"one of two values, as {list_values(first_two)}",
                lambda i: [cells.find(i)],
            )
        if len(values) < 2:
            raise DataError(
                f"{table.name}: found {list_values(values)} alone in {where}, needed two values "
                f"(missing are: {table.missing_words()})"
            )
        if positive is not None:
            return cls.match(trait, table, cells, (next(v for v in values if v != positive), positive))
        labels = sorted(values, key=table.number)
        if any(np.isnan(table.number(v)) for v in labels):
            raise DataError(
                f"{table.name}: found the values {list_values(values)} in {where}; needed "
                f"{table.path}.positive: which of them is the event"
            )
        return cls.match(trait, table, cells, labels)


def _choose_two(table: TraitTable, values: Sequence[str]) -> Sequence[str]:
    """The two of a binary trait: those that remain without codes for a missing value, else the first ones."""
    of_trait = [v for v in values if v == "0" or not table.looks_missing(v)]
    return of_trait if len(of_trait) == 2 else values[:2]


def compute_probabilities(eta: np.ndarray, V: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """(n, K) given eta and V (n,) and thresholds (K - 1,)."""
    from scipy.special import ndtr

    below = ndtr((thresholds - eta[:, None]) / np.sqrt(V)[:, None])
    edges = np.zeros((len(eta), 1)), np.ones((len(eta), 1))
    return np.diff(np.hstack([edges[0], below, edges[1]]))
