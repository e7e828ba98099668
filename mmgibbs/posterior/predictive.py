"""Records drawn anew from the model, class by class: is what was observed what the model would have?

In every kept draw each chosen record gets a new liability l = eta + e, with eta of all its effects and e ~ N(0, R_tt),
and from it a new category, or a new count. Of each class (a herd, a sex) the shares of the categories are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmgibbs.models.families import Response


@dataclass(frozen=True)
class PredictedClasses:
    """The classes of one effect on one trait, and the records that represent them."""

    trait: int
    draws: str  # what the draws (classes x columns,) are called
    effect: str  # '' where all records are one class
    classes: tuple[str, ...]
    records: np.ndarray  # (n,) int64 in model order
    of_class: np.ndarray  # (n,) int64
    response: Response  # of these records

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the categories; of others, whose mean is predicted, none."""
        return self.response.labels

    @property
    def observed(self) -> np.ndarray:
        """The category of each record, or its value, (n,)."""
        return self.response.values()

    @property
    def columns(self) -> int:
        return max(1, len(self.labels))

    @property
    def sizes(self) -> np.ndarray:
        """Number of records of each class, (classes,)."""
        return np.bincount(self.of_class, minlength=len(self.classes))

    def shares(self, values: np.ndarray) -> np.ndarray:
        """Compute the shares of the categories among values (n,), or their mean: (classes, columns)."""
        if not self.labels:
            sums = np.bincount(self.of_class, values, len(self.classes))[:, None]
        else:
            cells = self.of_class * len(self.labels) + values.astype(np.int64)
            sums = np.bincount(cells, minlength=len(self.classes) * len(self.labels)).reshape(-1, len(self.labels))
        return sums / self.sizes[:, None]

    def predicted(self, eta: np.ndarray, V: np.ndarray, cuts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw records anew and return their shares, (classes, columns); eta and V (n,), cuts (K + 1,)."""
        liability = eta + np.sqrt(V) * rng.standard_normal(eta.size)
        return self.shares(self.response.simulate(liability, cuts, rng))
