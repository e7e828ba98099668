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
from importlib import import_module
from math import sqrt
from typing import NamedTuple

import numpy as np

from mmgibbs.draws.elementary import log
from mmgibbs.draws.normal_interval import interval_given_tails, log_normal_interval, tail
from mmgibbs.draws.philox import draw_word, uniform_pair
from mmgibbs.draws.poisson_log_normal import poisson_log_normal
from mmgibbs.draws.purpose import LIABILITY, Site, stream
from mmgibbs.draws.slice_reflection import reflect_in_slice
from mmgibbs.draws.truncated_normal import fill_truncated, truncated_normal, truncated_work_arrays
from mmgibbs.equations.structured import Records
from mmgibbs.machine.threads import ALONE, Threads
from mmgibbs.models.design import Design
from mmgibbs.models.families import Response
from mmgibbs.pedigree.kernels import kernel

CHUNK = 1 << 15  # records behind one partial sum
BLOCK = 1024  # records whose liabilities are drawn side by side
TINY, FAR = 1e-150, 1e100  # probabilities below TINY are handled as logarithms; products stay between 1/FAR and FAR


def first_trait_not_normal(design: Design) -> str | None:
    """Describe the first trait that is not normal, for engines that hold no liabilities; None: there is none."""
    if not design.responses:
        return None
    name = design.traits[design.responses[0].trait]
    return f"trait '{name}', which is not normal; use engine: structured, or serial or pcg on the CPU"


def find_kernel(response: Response) -> Callable:
    """Import the kernel that draws the liabilities of a response: see `Liabilities.draw`."""
    module, _, name = response.kernel.partition(":")
    kernel: Callable = getattr(import_module(f"mmgibbs.engines.{module}"), name)
    return kernel


class Given(NamedTuple):
    """Arguments of the draw of a trait's residuals given the others of the record; kernels unpack it at once."""

    records: Records
    trait: int
    y: np.ndarray  # (n, T)
    e: np.ndarray  # (n, T)
    B: np.ndarray  # (patterns, T) and s (patterns,): `conditional_residuals`
    s: np.ndarray


class Liabilities:
    """The responses of a design in the sweep order of its records, and the passes over them.

    Each pass takes y and e (n, T), which it updates or reads, and Rinv (patterns, T, T) in force; response: its number.
    """

    def __init__(self, responses: Sequence[Response], records: Records, threads: Threads = ALONE):
        self.responses = [r.keep(records.record.astype(np.int64)) for r in responses]
        self.records, self.threads = records, threads
        n = len(records.pattern)
        self._chunks = [(at, min(at + CHUNK, n)) for at in range(0, n, CHUNK)]
        self._streams = [stream(LIABILITY, r.trait) for r in responses]
        self._kernels = [find_kernel(r) for r in responses]
        self._conditionals: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}  # trait -> Rinv, and of it (B, s)

    def draw(
        self,
        response: int,
        cuts: np.ndarray,
        y: np.ndarray,
        e: np.ndarray,
        Rinv: np.ndarray,
        number: int,
        key: tuple[int, int],
    ) -> tuple[float, float]:
        """Draw every liability of the response given theta, the other residuals and its cuts (K + 1,), if any.

        Of categories (a, b): the log density of a scale g of the liabilities is -a g^2/2 - b g plus that of theta,
        a = sum_r w Q_tt e_t^2, b = sum_r w e_t sum_{o != t} Q_to e_o; of others (0, 0).
        """
        r, site = self.responses[response], Site(number, self._streams[response], *key)
        kernel, known = self._kernels[response], r.kernel_arguments(cuts)
        given = self._given(r.trait, y, e, Rinv)
        pieces = self._run_chunks(lambda first, last: kernel(given, *known, first, last, site))
        return (sum(a for a, _ in pieces), sum(b for _, b in pieces)) if r.labels else (0.0, 0.0)

    def reflect(
        self,
        response: int,
        cuts: np.ndarray,
        y: np.ndarray,
        e: np.ndarray,
        Rinv: np.ndarray,
        number: int,
        key: tuple[int, int],
    ) -> None:
        """Draw every liability of the response by over-relaxation (draws/slice_reflection.py), where they are
        truncated normals."""
        r, site = self.responses[response], Site(number, self._streams[response], *key)
        place, ends = r.ends(cuts)
        given = self._given(r.trait, y, e, Rinv)
        self._run_chunks(lambda first, last: reflect_residuals(given, place, ends, first, last, site))

    def _given(self, trait: int, y: np.ndarray, e: np.ndarray, Rinv: np.ndarray) -> Given:
        """`conditional_residuals`, once for each Rinv, and what it is for."""
        known, B, s = self._conditionals.get(trait, (None, Rinv, Rinv))
        if known is not Rinv:
            B, s = conditional_residuals(Rinv, trait)
            self._conditionals[trait] = Rinv, B, s
        return Given(self.records, trait, y, e, B, s)

    def log_ratio(
        self, response: int, cuts: np.ndarray, proposed: np.ndarray, y: np.ndarray, e: np.ndarray, Rinv: np.ndarray
    ) -> float:
        """log p(categories | proposed) - log p(categories | cuts), liabilities integrated out."""
        r = self.responses[response]
        given, known = self._given(r.trait, y, e, Rinv), r.kernel_arguments(cuts)
        return sum(self._run_chunks(lambda first, last: log_ratio_of_cuts(given, *known, proposed, first, last)))

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
        given, known = self._given(r.trait, y, e, Rinv), (*r.kernel_arguments(cuts), s, in_class)
        return sum(self._run_chunks(lambda first, last: log_ratio_of_residual_scale(given, *known, first, last)))

    def _run_chunks(self, kernel: Callable[[int, int], object]) -> list:
        sums_of_chunks: list = [None] * len(self._chunks)

        def call(i: int, first: int, last: int) -> Callable[[], None]:
            def run() -> None:
                sums_of_chunks[i] = kernel(first, last)

            return run

        self.threads([call(i, *ends) for i, ends in enumerate(self._chunks)])
        return sums_of_chunks


def conditional_residuals(Rinv: np.ndarray, trait: int) -> tuple[np.ndarray, np.ndarray]:
    """Return B (patterns, T) and s (patterns,) of the residual `trait` of a record given its others e.

    It has the mean B[p] e and, at weight 1, the standard deviation s[p]; s is 0 where the record lacks the trait.
    """
    Q = Rinv[:, trait, trait]
    lacks = Q == 0.0
    safe = np.where(lacks, 1.0, Q)
    B = -Rinv[:, trait] / safe[:, None]
    B[:, trait] = 0.0
    return np.where(lacks[:, None], 0.0, B), np.where(lacks, 0.0, 1 / np.sqrt(safe))


@kernel(forceinline=True)
def conditional(pattern, weight, e, B, s, r):
    """Return (m, sd) of the residual of record r given its other residuals; sd = 0 where the record lacks the trait.

    pattern and weight are the arrays of `Records`: handing on the tuple counts references of each, which takes 60 ns.
    """
    p, mean = pattern[r], 0.0
    for o in range(e.shape[1]):
        mean += B[p, o] * e[r, o]
    return mean, s[p] / sqrt(np.float64(weight[r])) if weight.size > 0 else s[p]


@kernel
def conditionals(records, trait, y, e, B, s, start, n, mean, sd, eta):
    """`conditional` of the records start ... start + n - 1, and eta = y - e: loops that vectorise. mean: 0 before."""
    pattern, own_y, own_e = records.pattern[start:], y[start:, trait], e[start:, trait]
    for i in range(n):
        eta[i] = np.float64(own_y[i]) - own_e[i]
        sd[i] = s[pattern[i]]
    if records.weight.size > 0:
        weight = records.weight[start:]
        for i in range(n):
            sd[i] /= sqrt(np.float64(weight[i]))
    if e.shape[1] > 1:
        for i in range(n):
            mean[i] = 0.0
            for o in range(e.shape[1]):
                mean[i] += B[pattern[i], o] * e[start + i, o]


@kernel
def draw_categories(given, category, cuts, first, last, site):
    """Liabilities of the records first ... last - 1, from the interval of cuts that their category represents.

    cuts (K + 1,): -inf, t_1, ..., t_{K-1}, inf; category (n,): 0 ... K - 1, -1 where not observed. y and e (n, T):
    updated in place. A record without the trait is passed over. Records go by blocks of BLOCK, which vectorises; the
    draws are those of `truncated_normal`.

    Returns (a, b) of `Liabilities.draw`: w Q_tt is 1/sd^2, and sum_{o != t} Q_to e_o is -Q_tt times the mean.
    """
    (records, trait, y, e, B, s), a, b, level = given, 0.0, 0.0, np.empty(BLOCK, np.uint64)
    mean, sd, eta, residual = np.zeros(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    low, high, work = np.empty(BLOCK), np.empty(BLOCK), truncated_work_arrays(BLOCK)
    for start in range(first, last, BLOCK):
        n = min(BLOCK, last - start)
        conditionals(records, trait, y, e, B, s, start, n, mean, sd, eta)
        for i in range(n):
            level[i] = records.record[start + i]
        categories = category[start : start + n]
        for i in range(n):
            c = np.uint64(max(categories[i], 0))  # records without the trait have some interval too
            low[i], high[i] = cuts[c] - eta[i], cuts[c + np.uint64(1)] - eta[i]
        fill_truncated(
            residual, mean, sd, low, high, level, n, work, site.number, site.stream, 0, site.seed, site.chain
        )
        own_y, own_e = y[start : start + n, trait], e[start : start + n, trait]
        for i in range(n):
            if sd[i] > 0.0:
                own_y[i] = eta[i] + residual[i]
                own_e[i] = residual[i]
                x = residual[i] / (sd[i] * sd[i])
                a += x * residual[i]
                b -= x * mean[i]
    return a, b


@kernel
def draw_intervals(given, lower, upper, first, last, site):
    """Liabilities within lower (n,) ... upper (n,); records where both are equal stay as they are."""
    (records, trait, y, e, B, s), (number, stream, seed, chain) = given, site
    pattern, weight = records.pattern, records.weight
    for r in range(first, last):
        if lower[r] == upper[r]:
            continue
        mean, sd = conditional(pattern, weight, e, B, s, r)
        if sd > 0.0:
            eta = np.float64(y[r, trait]) - e[r, trait]
            m, low, high = mean / sd, (lower[r] - eta) / sd, (upper[r] - eta) / sd
            residual = sd * truncated_normal(m, low, high, number, records.record[r], stream, 0, seed, chain)
            y[r, trait] = eta + residual
            e[r, trait] = residual


@kernel
def reflect_residuals(given, place, ends, first, last, site):
    """Reflect the liability of record r within ends[place[r]] ... ends[place[r] + 1], where it has the trait.

    Records where both are equal stay as they are.
    """
    (records, trait, y, e, B, s), (number, stream, seed, chain) = given, site
    pattern, weight = records.pattern, records.weight
    for r in range(first, last):
        mean, sd = conditional(pattern, weight, e, B, s, r)
        lower, upper = ends[place[r]], ends[place[r] + 1]
        if sd > 0.0 and lower != upper:
            eta = np.float64(y[r, trait]) - e[r, trait]
            u, _ = uniform_pair(number, records.record[r], stream, draw_word(0, 0), seed, chain)
            low, high, z = (lower - eta - mean) / sd, (upper - eta - mean) / sd, (e[r, trait] - mean) / sd
            residual = mean + sd * reflect_in_slice(z, low, high, u)
            y[r, trait] = eta + residual
            e[r, trait] = residual


@kernel
def draw_log_rates(given, count, exposure, first, last, site):
    """Log rates behind count (n,) at exposure (n,)."""
    (records, trait, y, e, B, s), (number, stream, seed, chain) = given, site
    pattern, weight = records.pattern, records.weight
    for r in range(first, last):
        mean, sd = conditional(pattern, weight, e, B, s, r)
        if sd > 0.0:
            eta = np.float64(y[r, trait]) - e[r, trait]
            rate = poisson_log_normal(
                count[r], exposure[r], eta + mean, sd * sd, number, records.record[r], stream, 0, seed, chain
            )
            y[r, trait] = rate
            e[r, trait] = rate - eta


@kernel
def log_ratio_of_cuts(given, category, cuts, proposed, first, last):
    """sum over the records of log P(category | proposed) - log P(category | cuts), liabilities integrated out.

    P(c) = Phi((t_c - mu) / sd) - Phi((t_{c-1} - mu) / sd), mu = eta + m: the *conditional* mean and variance.
    Records whose category touches no cut that moves add nothing and are passed over. Ratios are multiplied, and their
    logarithm taken where the product gets far from 1.
    """
    records, trait, y, e, B, s = given
    pattern, weight, total, product = records.pattern, records.weight, 0.0, 1.0
    moves, touched = (cuts[:-1] != proposed[:-1]) | (cuts[1:] != proposed[1:]), np.empty(BLOCK, np.int64)
    for start in range(first, last, BLOCK):
        n = 0
        for r in range(start, min(start + BLOCK, last)):
            touched[n] = r
            n += (category[r] >= 0) & moves[category[r]]
        for r in touched[:n]:
            mean, sd = conditional(pattern, weight, e, B, s, r)
            if sd > 0.0:
                c, mu, scale = category[r], np.float64(y[r, trait]) - e[r, trait] + mean, 1.0 / sd
                low, high = (cuts[c] - mu) * scale, (cuts[c + 1] - mu) * scale
                new_low, new_high = (proposed[c] - mu) * scale, (proposed[c + 1] - mu) * scale
                tail_low, tail_high = tail(low), tail(high)  # what costs most: not again for a cut that stays
                new_tail_low = tail_low if new_low == low else tail(new_low)
                new_tail_high = tail_high if new_high == high else tail(new_high)
                p = interval_given_tails(low, high, tail_low, tail_high)
                new = interval_given_tails(new_low, new_high, new_tail_low, new_tail_high)
                if p > TINY and new > TINY:
                    product *= new / p
                else:
                    total += log_normal_interval(new_low, new_high) - log_normal_interval(low, high)
                if not FAR > product > 1.0 / FAR:
                    total, product = total + log(product), 1.0
    return total + log(product)


@kernel
def log_ratio_of_residual_scale(given, category, cuts, x, in_class, first, last):
    """sum over the records of the class of log P(category | x R_tt x) - log P(category | R_tt): the conditional mean of
    the residual and its standard deviation go to x times themselves.
    """
    records, trait, y, e, B, s = given
    pattern, weight, total = records.pattern, records.weight, 0.0
    for r in range(first, last):
        c = category[r]
        if c < 0 or not in_class[pattern[r]]:
            continue
        mean, sd = conditional(pattern, weight, e, B, s, r)
        if sd > 0.0:
            eta = np.float64(y[r, trait]) - e[r, trait]
            low, high = cuts[c] - eta, cuts[c + 1] - eta
            total += log_normal_interval((low - x * mean) / (x * sd), (high - x * mean) / (x * sd))
            total -= log_normal_interval((low - mean) / sd, (high - mean) / sd)
    return total
