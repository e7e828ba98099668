"""Passes over the records for traits that are not normal: liabilities, and what moves them together.

A record r with missing pattern p observes trait t through its liability l = eta + e (Sorensen & Gianola 2002). Given
the other residuals of the record, with Q = R_p^-1 (zero-padded) and weight w (Korsgaard et al. 1999),

    e_t | e_others ~ N(m, v),     v = 1 / (w Q_tt),     m = -sum_{o != t} Q_to e_o / Q_tt

    categories   l in (t_{c-1}, t_c), where c is the category: a truncated normal
    interval     l in (lower, upper), either end possibly infinite; the record itself where both are equal
    count        y ~ Poisson(exposure exp(l)): draws/poisson_log_normal.py

y[r, t] holds l, and e[r, t] follows. Records are independent given theta: any number of threads gives the same bits.
Sums run over chunks of CHUNK records, then over the chunks, in sweep order: they too do not depend on the threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np
from numba import njit

from mmgibbs.draws.normal_interval import log_normal_interval
from mmgibbs.draws.poisson_log_normal import poisson_log_normal
from mmgibbs.draws.purpose import LIABILITY, stream
from mmgibbs.draws.truncated_normal import truncated_normal
from mmgibbs.equations.structured import Records
from mmgibbs.machine.threads import ALONE, Threads
from mmgibbs.model.design import Design
from mmgibbs.model.response import Categories, Count, Interval, Response

CHUNK = 1 << 15  # records behind one partial sum


def other_than_normal(design: Design) -> str | None:
    """The first trait that is not normal, in words: what engines say that hold no liabilities."""
    if not design.responses:
        return None
    name = design.traits[design.responses[0].trait]
    return f"trait '{name}', which is not normal; use engine: serial, structured or pcg on the CPU"


class Liabilities:
    """The responses of a design in the sweep order of its records, and the passes over them.

    Each pass takes y and e (n, T), which it updates or reads, and Rinv (patterns, T, T) in force; response: its number.
    """

    def __init__(self, responses: Sequence[Response], records: Records, threads: Threads = ALONE):
        self.responses = [r.keep(records.record.astype(np.int64)) for r in responses]
        self.records, self.threads = records, threads
        n = len(records.pattern)
        self._chunks = [(at, min(at + CHUNK, n)) for at in range(0, n, CHUNK)]

    def draw(
        self,
        response: int,
        cuts: np.ndarray,
        y: np.ndarray,
        e: np.ndarray,
        Rinv: np.ndarray,
        number: int,
        key: tuple[int, int],
    ) -> None:
        """Every liability of the response given theta, the other residuals and its cuts (K + 1,) where it has some."""
        r = self.responses[response]
        site = number, stream(LIABILITY, r.trait), *key
        match r:
            case Categories():
                of = draw_categories, (self.records, r.category, cuts, r.trait, y, e, Rinv)
            case Interval():
                of = draw_intervals, (self.records, r.lower, r.upper, r.trait, y, e, Rinv)
            case Count():
                of = draw_log_rates, (self.records, r.count, r.exposure, r.trait, y, e, Rinv)
        kernel, arguments = of
        self._over_chunks(lambda first, last: kernel(*arguments, first, last, *site))

    def log_ratio(
        self, response: int, cuts: np.ndarray, proposed: np.ndarray, y: np.ndarray, e: np.ndarray, Rinv: np.ndarray
    ) -> float:
        """log p(categories | proposed) - log p(categories | cuts), liabilities integrated out."""
        r = self.responses[response]
        assert isinstance(r, Categories), "cuts are of categories"
        arguments = self.records, r.category, cuts, proposed, r.trait, y, e, Rinv
        return sum(self._over_chunks(lambda first, last: log_ratio_of_cuts(*arguments, first, last)))

    def log_ratio_of_scale(
        self,
        response: int,
        cuts: np.ndarray,
        s: float,
        in_class: np.ndarray,
        y: np.ndarray,
        e: np.ndarray,
        Rinv: np.ndarray,
    ) -> float:
        """log p(categories | s) - log p(categories | 1) of the records whose pattern is in_class (patterns,) bool, s
        times the residual standard deviation of the trait, liabilities integrated out.
        """
        r = self.responses[response]
        assert isinstance(r, Categories), "the residual variance of others is drawn given their liabilities"
        arguments = self.records, r.category, cuts, s, in_class, r.trait, y, e, Rinv
        return sum(self._over_chunks(lambda first, last: log_ratio_of_residual_scale(*arguments, first, last)))

    def scale_sums(self, trait: int, e: np.ndarray, Rinv: np.ndarray) -> tuple[float, float]:
        """(a, b) of the log density -a g^2/2 - b g of a scale g of the liabilities of a trait."""
        sums = self._over_chunks(lambda first, last: scale_sums(self.records, trait, e, Rinv, first, last))
        return sum(a for a, _ in sums), sum(b for _, b in sums)

    def _over_chunks(self, kernel: Callable[[int, int], object]) -> list:
        found: list = [None] * len(self._chunks)

        def call(i: int, first: int, last: int) -> Callable[[], None]:
            def run() -> None:
                found[i] = kernel(first, last)

            return run

        self.threads([call(i, *ends) for i, ends in enumerate(self._chunks)])
        return found


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def conditional(records, e, Rinv, trait, r):
    """(m, v) of residual `trait` of record r given its other residuals; v = 0 where the record lacks the trait."""
    Q = Rinv[records.pattern[r]]
    if Q[trait, trait] == 0.0:
        return 0.0, 0.0
    mean = 0.0
    for o in range(e.shape[1]):
        if o != trait:
            mean -= Q[trait, o] * e[r, o]
    w = np.float64(records.weight[r]) if records.weight.size > 0 else 1.0
    return mean / Q[trait, trait], 1.0 / (w * Q[trait, trait])


@njit(cache=True, nogil=True, error_model="numpy")
def draw_categories(records, category, cuts, trait, y, e, Rinv, first, last, number, stream, seed, chain):
    """Liabilities of the records first ... last - 1, from the interval of cuts that their category stands for.

    cuts (K + 1,): -inf, t_1, ..., t_{K-1}, inf; category (n,): 0 ... K - 1, -1 where not observed. y and e (n, T):
    updated in place. A record without the trait is passed over.
    """
    for r in range(first, last):
        mean, variance = conditional(records, e, Rinv, trait, r)
        if variance > 0.0:
            eta, sd, c = np.float64(y[r, trait]) - e[r, trait], sqrt(variance), category[r]
            low, high = (cuts[c] - eta) / sd, (cuts[c + 1] - eta) / sd
            residual = sd * truncated_normal(mean / sd, low, high, number, records.record[r], stream, 0, seed, chain)
            y[r, trait] = eta + residual
            e[r, trait] = residual


@njit(cache=True, nogil=True, error_model="numpy")
def draw_intervals(records, lower, upper, trait, y, e, Rinv, first, last, number, stream, seed, chain):
    """Liabilities within lower (n,) ... upper (n,); records where both are equal stay as they are."""
    for r in range(first, last):
        if lower[r] == upper[r]:
            continue
        mean, variance = conditional(records, e, Rinv, trait, r)
        if variance > 0.0:
            eta, sd = np.float64(y[r, trait]) - e[r, trait], sqrt(variance)
            low, high = (lower[r] - eta) / sd, (upper[r] - eta) / sd
            residual = sd * truncated_normal(mean / sd, low, high, number, records.record[r], stream, 0, seed, chain)
            y[r, trait] = eta + residual
            e[r, trait] = residual


@njit(cache=True, nogil=True, error_model="numpy")
def draw_log_rates(records, count, exposure, trait, y, e, Rinv, first, last, number, stream, seed, chain):
    """Log rates behind count (n,) at exposure (n,)."""
    for r in range(first, last):
        mean, variance = conditional(records, e, Rinv, trait, r)
        if variance > 0.0:
            eta = np.float64(y[r, trait]) - e[r, trait]
            rate = poisson_log_normal(
                count[r], exposure[r], eta + mean, variance, number, records.record[r], stream, 0, seed, chain
            )
            y[r, trait] = rate
            e[r, trait] = rate - eta


@njit(cache=True, nogil=True, error_model="numpy")
def log_ratio_of_cuts(records, category, cuts, proposed, trait, y, e, Rinv, first, last):
    """sum over the records of log P(category | proposed) - log P(category | cuts), liabilities integrated out.

    P(c) = Phi((t_c - mu) / sqrt v) - Phi((t_{c-1} - mu) / sqrt v), mu = eta + m: the *conditional* mean and variance.
    Records whose category touches no cut that moves add nothing and are passed over.
    """
    total = 0.0
    for r in range(first, last):
        c = category[r]
        if c < 0 or (cuts[c] == proposed[c] and cuts[c + 1] == proposed[c + 1]):
            continue
        mean, variance = conditional(records, e, Rinv, trait, r)
        if variance > 0.0:
            mu, scale = np.float64(y[r, trait]) - e[r, trait] + mean, 1.0 / sqrt(variance)
            total += log_normal_interval((proposed[c] - mu) * scale, (proposed[c + 1] - mu) * scale)
            total -= log_normal_interval((cuts[c] - mu) * scale, (cuts[c + 1] - mu) * scale)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def log_ratio_of_residual_scale(records, category, cuts, s, in_class, trait, y, e, Rinv, first, last):
    """sum over the records of the class of log P(category | s R_tt s) - log P(category | R_tt): the conditional mean of
    the residual and its standard deviation go to s times themselves.
    """
    total = 0.0
    for r in range(first, last):
        c = category[r]
        if c < 0 or not in_class[records.pattern[r]]:
            continue
        mean, variance = conditional(records, e, Rinv, trait, r)
        if variance > 0.0:
            eta, sd = np.float64(y[r, trait]) - e[r, trait], sqrt(variance)
            low, high = cuts[c] - eta, cuts[c + 1] - eta
            total += log_normal_interval((low - s * mean) / (s * sd), (high - s * mean) / (s * sd))
            total -= log_normal_interval((low - mean) / sd, (high - mean) / sd)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def scale_sums(records, trait, e, Rinv, first, last):
    """(a, b): sum_r w Q_tt e_t^2 and sum_r w e_t sum_{o != t} Q_to e_o, which the scale of liabilities depends on."""
    a, b = 0.0, 0.0
    for r in range(first, last):
        Q = Rinv[records.pattern[r]]
        w = np.float64(records.weight[r]) if records.weight.size > 0 else 1.0
        residual, others = np.float64(e[r, trait]), 0.0
        for o in range(e.shape[1]):
            if o != trait:
                others += Q[trait, o] * e[r, o]
        a += w * Q[trait, trait] * residual * residual
        b += w * residual * others
    return a, b
