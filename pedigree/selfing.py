"""Lines derived by selfing: the additive relationship matrix where a plant represents generations of selfing.

Plant i of sire s and dam t has g_i generations of selfing after the cross, by single-seed descent, as plant breeders
record it (an F4 line: g = 3). Write u_i0 for the plant of the cross and u_i1, u_i2, ... u_ig = u_i for its selfed
descendants, each the only one kept, F_ik for their inbreeding, A for the relationships.

Inbreeding. The cross has F_i0 = A_st / 2; a selfed progeny of a plant with F has (1 + F) / 2, so that what is missing
to 1 halves each time (Falconer & Mackay 1996, Introduction to quantitative genetics, chapter 5):

    F_i = 1 - (1 - F_i0) / 2^g

Mendelian sampling. u_ik = u_i,k-1 + m_ik, as both parents are the same plant, and var(m_ik) = (1 - F_i,k-1) / 2 in
units of the additive variance. The terms are independent of one another and of everything that is not a descendant of
i, so that u_i keeps its two parents and their average,

    u_i = (u_s + u_t) / 2 + m_i,        d_i = var(m_i) = d_i0 + sum_k (1 - F_i,k-1) / 2
                                            = d_i0 + (1 - F_i0) (1 - 1/2^g)  =  d_i0 + F_i - F_i0

with d_i0 = 1 - (1 + F_s)/4 - (1 + F_t)/4 of the cross (an unknown parent drops out). The diagonal says the same:
A_ii = 1 + F_i is the variance of the average, (A_ss + A_tt + 2 A_st)/4, plus d_i. Covariances with plants that are no
descendants are those of the average, so A = L D L' with the L of the pedigree as it is written: A^-1 keeps its
structure and its rules, with d_i in the place of d_i0. A founder that was selfed (both parents unknown) has F =
1 - 1/2^g and d = 1 + F. Both parents may be one plant: a generation of selfing that is written as a row of its own.
(Oakey, Verbyla, Cullis, Wei & Pitchford 2007, Theor. Appl. Genet. 114:1319, use this matrix for lines of wheat.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mmgibbs.pedigree.errors import PedigreeError
from mmgibbs.pedigree.inbreeding import inbreeding_with_selfing
from mmgibbs.pedigree.relationship import Relatives, relatives

if TYPE_CHECKING:
    from mmgibbs.pedigree.read import Pedigree

_NONE = ("", "NA")  # besides the values for an unknown parent: no selfing


def selfed_relatives(
    sire: np.ndarray, dam: np.ndarray, generations: np.ndarray, n_groups: int = 0, random_groups: bool = False
) -> Relatives:
    """The structured A^-1 of plants with generations of selfing, (n,) whole numbers; else as `relatives`."""
    F, within = inbreeding_with_selfing(sire, dam, 1.0 - 0.5 ** np.asarray(generations, np.float64))
    return relatives(sire, dam, F, n_groups, random_groups, within)


def relatives_of_lines(pedigree: Pedigree, column: str, random_groups: bool) -> tuple[Relatives, np.ndarray]:
    """(the structured A^-1, generations of selfing) of a pedigree that was read with a column of generations.

    PedigreeError: a value that is no whole number of generations.
    """
    generations = read_generations(pedigree, column)
    groups = pedigree.n_groups
    return selfed_relatives(pedigree.sire, pedigree.dam, generations, groups, random_groups), generations


def read_generations(pedigree: Pedigree, column: str) -> np.ndarray:
    """(n,) int64 generations of selfing by code from a column of the pedigree; 0 where it is empty."""
    import polars as pl

    text = pedigree.more[column]
    given = (text.is_not_null() & ~text.is_in(_NONE)).to_numpy()
    number = np.where(given, text.cast(pl.Float64, strict=False).to_numpy(), 0.0)
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero(~(np.isfinite(number) & (number >= 0) & (number == np.floor(number))))
    if bad.size:
        i = int(bad[np.argmin(pedigree.row[bad])])
        more = f" ({bad.size} such rows)" if bad.size > 1 else ""
        raise PedigreeError(
            f"{_place(pedigree, i)}: column '{column}' has '{text[i]}' for '{pedigree.ids[i]}'; needed the number of "
            f"generations of selfing after the cross, a whole number: 0 (or empty) for none, 1, 2, ...{more}"
        )
    return np.minimum(number, 1000).astype(np.int64)  # F is 1 in 64 bits long before


def _place(pedigree: Pedigree, code: int) -> str:
    return f"{pedigree.name} row {pedigree.row[code]}"
