"""The residuals: one covariance matrix R for all records, or one for each class of records.

    e_r ~ N(0, R_c(r)[P_r, P_r] / w_r)          c(r) the class of record r, P_r its missing pattern

Kernels read R only as Rinv[p], so a row p of `Design.patterns` represents a class and a missing pattern, and
`Design.pattern_class` says which class. What is left to know of classes is here, in the augmentation of missing
residuals (engines/augment.py) and in the step that draws R (sampler/covariances.py). Each R_c is drawn from

    R_c | . ~ IW(nu_c + n_c, S_c + sum of w_r e_r e_r' over its own n_c records)

Foulley & Quaas (1995) write of models of this kind.

Residuals of different records are independent unless a design has `correlated` records, with which every record has
one trait: R is then block-diagonal with a block R_tt K of each trait and class (likelihood/correlated.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.relationships.base import Relationship

Blocks = Sequence[tuple[int, ...]]  # a partition of the traits


class ClassBlocks(NamedTuple):
    """Classes of residuals as the sums of residual products need them."""

    of_class: tuple[Blocks, ...]  # traits that may covary
    class_of_pattern: np.ndarray  # (patterns,) int64


@dataclass(frozen=True)
class CorrelatedRecords:
    """Records of one trait and class whose residuals are correlated, e ~ N(0, R_tt K).

    The levels of K are *cells*, such as the plots of a field: each has one of the records, or none.
    """

    trait: int
    residual_class: int
    relationship: Relationship
    records: np.ndarray  # (r,) int64
    cells: np.ndarray  # (r,) int64, each once
    variance: float | None = None  # R_tt where the covariance matrix is given, as that of adjusted means


@dataclass(frozen=True)
class ResidualModel:
    """The residual covariance matrices: one, or one of each class."""

    matrices: tuple[CovarianceModel, ...]
    classes: tuple[str, ...] = ()  # their names; none: one matrix for all records

    def __post_init__(self) -> None:
        assert len(self.matrices) == max(1, len(self.classes))

    @property
    def start(self) -> np.ndarray:
        """(T, T), or (classes, T, T)."""
        return np.stack([m.start for m in self.matrices]) if self.classes else self.matrices[0].start

    @property
    def fixed(self) -> bool:
        """Nothing of it is sampled."""
        return all(m.fixed for m in self.matrices)


def stack_classes(R: np.ndarray) -> np.ndarray:
    """(classes, T, T) of R (T, T) or (classes, T, T)."""
    R = np.asarray(R, np.float64)
    return R if R.ndim == 3 else R[None]


def fold_classes(
    pattern: np.ndarray, patterns: np.ndarray, of_record: np.ndarray, n_classes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(pattern (n,) int32, patterns (p, T) bool, class (p,) int64): the missing patterns of each class that has records
    with it, pattern by pattern, so that one class leaves them as they are.
    """
    both, folded = np.unique(pattern.astype(np.int64) * n_classes + of_record, return_inverse=True)
    return folded.ravel().astype(np.int32), patterns[both // n_classes], both % n_classes
