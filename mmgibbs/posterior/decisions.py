"""Decisions: of every kept draw the ranks of the candidates for selection are counted, and no draw is stored.

A criterion gives candidate i the score s_i = sum_c w_c theta_ic, a weighted sum of the components of its level: a trait
alone, or an index of several; an index may weigh probabilities of categories and expected counts too
(probabilities.py). Where SNPs have effects on a trait, theta_ic is the total breeding value (totals.py). In draw t it
has the rank r_it among the m candidates, 1 for the highest score. Over all N draws of all chains

    P(top x)        = #{t: r_it <= n_x} / N,   n_x = x m / 100 to the nearest whole number (a half: up), at least 1
    rank interval   from the smallest r with #{t: r_it <= r} >= N (1 - c) / 2 to the smallest with >= N (1 + c) / 2
    gain of a set S = mean of s_i over S - mean of s_i over all candidates

A gain is linear in the scores: the posterior mean of the gain of a set that is chosen at the end, from all draws, is
the gain of the posterior means. Its standard deviation would need the covariances of all pairs of candidates, which are
not kept. What is streamed besides is the gain of the n_x candidates that each draw itself puts first: the gain of
selecting with perfect knowledge, which no selection can exceed on average.

P(top x) has the Monte Carlo standard error of batch means, as the moments of the levels have (moments.py): with
c_b the draws of batch b (L draws) in which the candidate is among the best, over B complete batches

    mcse^2 = (L / N) sum_b (c_b - c')^2 / L^2 / (B - 1)                 c' = the mean of the c_b

Batches of fewer than LONG_ENOUGH draws (runs of fewer than some 400) do not show how draws follow each other, and every
draw would seem to be independent: MCSE and ESS are then NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from mmgibbs.posterior.moments import LONG_ENOUGH, Moments, PooledMoments, pool
from mmgibbs.posterior.probabilities import Probabilities
from mmgibbs.posterior.totals import TotalValues
from mmgibbs.posterior.tracked import Theta
from mmgibbs.posterior.zero_counts import raise_errors_of_unseen

EXACT = 2000  # candidates up to which every rank is counted
RELATIVE = 10  # beyond: ranks from 2 RELATIVE on are in bins that are at most their first rank / RELATIVE wide


def rank_bins(m: int) -> np.ndarray:
    """Divide the ranks 1 to m into bins: bin b holds the ranks bins[b] to bins[b + 1] - 1, (bins + 1,) int64."""
    if m <= EXACT:
        return np.arange(1, m + 2)
    bins = [1]
    while bins[-1] <= m:
        bins.append(bins[-1] + max(1, bins[-1] // RELATIVE))
    bins[-1] = m + 1
    return np.array(bins)


@dataclass(frozen=True)
class Decisions:
    """Candidates to choose among, and the values to choose by."""

    term: str
    codes: np.ndarray  # (m,) int64 levels of the candidates
    weights: np.ndarray  # (criteria, k) float64 of the components of a level
    selected: tuple[int, ...]  # n_x: how many are chosen, for each top
    rank_interval: float = 0.9  # c, the probability of a rank interval
    # of traits on the scale of their records: probabilities of categories, expected counts, with (criteria, columns)
    # float64 weights of their columns
    on_records: tuple[tuple[Probabilities, np.ndarray], ...] = ()
    # of the candidates, in their order: components whose levels are a part of breeding values, SNP effects the other
    totals: tuple[TotalValues, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes that one chain keeps."""
        m, bins = self.codes.size, rank_bins(self.codes.size).size - 1
        return len(self.weights) * m * (4 * 8 + 4 * bins + 16 * len(self.selected))


class DecisionCounts:
    """Counts of ranks that one chain keeps. `n_draws`, `n_batches`: as for moments.Moments; term: of the candidates."""

    def __init__(self, asked: Decisions, n_draws: int, n_batches: int, term: int = 0):
        m, criteria, tops = asked.codes.size, len(asked.weights), len(asked.selected)
        bins = rank_bins(m)
        self.asked, self.term = asked, term
        self.moments = Moments([(criteria, m), (criteria, tops)], n_draws, n_batches)  # of scores; of gains at best
        self.bin_of_rank = np.repeat(np.arange(bins.size - 1), np.diff(bins))  # (m,) by rank - 1
        self.ranks = np.zeros((criteria, bins.size - 1, m), np.int32)  # draws with a rank in the bin
        self.top = np.zeros((criteria, tops, m), np.int32)  # draws among the n_x best
        self.top_in_batch = np.zeros_like(self.top)  # of these, in the batch in progress
        self.top_squares = np.zeros(self.top.shape, np.int64)  # sum of c_b^2 over the complete batches

    def add(self, theta: Theta) -> None:
        rows = self.levels(theta)
        if self.asked.on_records:
            self.count(rows, theta.parameters)
        else:
            self.count(rows)

    def levels(self, theta: Theta) -> np.ndarray:
        """Return the breeding values of the candidates, (m, k)."""
        return theta.levels(self.term, self.asked.codes)

    def count(self, rows: np.ndarray, drawn: Mapping[str, np.ndarray] | None = None) -> None:
        """Count one draw; rows: (m, k) float64 levels of the candidates, drawn: the parameters beside them."""
        scores = np.einsum("mk,sk->sm", rows, self.asked.weights)
        for of, weights in self.asked.on_records:
            assert drawn is not None, "probabilities follow from thresholds and variances"
            thresholds = drawn.get(of.thresholds, np.empty(0))
            scores += weights @ of.evaluate(rows[:, of.component], drawn[of.liability], thresholds).T
        gains = np.empty((len(scores), len(self.asked.selected)))
        for s, score in enumerate(scores):
            order = np.argsort(-score, kind="stable")
            self.ranks[s, self.bin_of_rank, order] += 1
            for x, n in enumerate(self.asked.selected):
                best = order[:n]
                self.top[s, x, best] += 1
                self.top_in_batch[s, x, best] += 1
                gains[s, x] = score[best].mean() - score.mean()
        self.moments.add([scores, gains])
        if self.moments.n_draws % self.moments.batch_length == 0:
            self.top_squares += self.top_in_batch.astype(np.int64) ** 2
            self.top_in_batch[:] = 0

    _COUNTS = ("ranks", "top", "top_in_batch", "top_squares")

    def state(self) -> dict[str, np.ndarray]:
        """Everything, as plain arrays (not copied)."""
        return {name: getattr(self, name) for name in self._COUNTS} | self.moments.state()

    def restore(self, state: dict[str, np.ndarray]) -> None:
        for name in self._COUNTS:
            getattr(self, name)[:] = state[name]
        self.moments = Moments.from_state(state)

    def pool(self, further: Sequence[DecisionCounts]) -> Decided:
        """The candidates over all chains."""
        return decide([self, *further])


@dataclass(frozen=True)
class Decided:
    """The candidates over all chains."""

    scores: PooledMoments  # one array (criteria, m), then the gains with perfect knowledge (criteria, tops)
    top: np.ndarray  # (criteria, tops, m) P(top x)
    top_mcse: np.ndarray  # NaN with fewer than two complete batches, or short ones
    rank: np.ndarray  # (3, criteria, m) int64: low, median and high; of a bin its first, its middle and its last rank
    gain_by_mean: np.ndarray  # (criteria, tops) posterior mean of the gain of the n_x with the highest posterior means
    gain_by_top: np.ndarray  # of the n_x with the highest P(top x); the posterior mean decides between equal ones
    batch_length: int = LONG_ENOUGH  # draws of a batch; below LONG_ENOUGH no MCSE and no ESS is given


def decide(chains: Sequence[DecisionCounts]) -> Decided:
    """Pool the counts of all chains and decide."""
    asked, scores, length = chains[0].asked, pool([c.moments for c in chains]), chains[0].moments.batch_length
    if length < LONG_ENOUGH:
        unknown = [np.full(m.shape, np.nan) for m in scores.mean]
        scores = replace(scores, mcse=unknown, ess=unknown)
    top: np.ndarray = reduce(np.add, (c.top.astype(np.int64) for c in chains))
    return Decided(
        scores,
        top / scores.n_draws,
        _top_mcse(chains, top, scores),
        _rank_quantiles(reduce(np.add, (c.ranks for c in chains)), scores.n_draws, asked.rank_interval),
        *_gains(scores.mean[0], top, asked.selected),
        length,
    )


def _top_mcse(chains: Sequence[DecisionCounts], top: np.ndarray, scores: PooledMoments) -> np.ndarray:
    """Standard errors of the shares of draws, from the means of batches; NaN where batches are too few or short.

    A candidate that is in no draw among the top, or in every one, has at least the error of a count of zero.
    """
    N, B, L = scores.n_draws, scores.n_batches, chains[0].moments.batch_length
    if B < 2 or L < LONG_ENOUGH:
        return np.full(top.shape, np.nan)
    complete = top - sum(c.top_in_batch for c in chains)
    between = sum(c.top_squares for c in chains) - complete.astype(np.float64) ** 2 / B
    errors = np.sqrt(np.maximum(between, 0.0) / (B - 1) / (L * N))
    effective = np.clip(np.nan_to_num(scores.ess[0], nan=B), 1, N)[:, None, :]  # (criteria, 1, m)
    return raise_errors_of_unseen(top / N, errors, N, effective)


def _rank_quantiles(ranks: np.ndarray, N: int, c: float) -> np.ndarray:
    """Compute quantiles of ranks, (3, criteria, m), from counts (criteria, bins, m)."""
    bins = rank_bins(ranks.shape[-1])
    needed = [max(1, int(np.ceil(N * q - 1e-9))) for q in ((1 - c) / 2, 0.5, (1 + c) / 2)]
    below = np.zeros((3, ranks.shape[0], ranks.shape[2]), np.int64)  # bins wholly below the quantile
    counted = np.zeros_like(below[0])
    for b in range(ranks.shape[1]):
        counted += ranks[:, b]
        for quantile, draws in zip(below, needed, strict=True):
            quantile += counted < draws
    first, last = bins[:-1], bins[1:] - 1
    return np.stack([first[below[0]], (first[below[1]] + last[below[1]]) // 2, last[below[2]]])


def _gains(mean: np.ndarray, top: np.ndarray, selected: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Gains of two selections; mean: (criteria, m) scores, top: (criteria, tops, m) counts."""
    by_mean, by_top = np.empty((2, len(mean), len(selected)))
    for s, score in enumerate(mean):
        for x, n in enumerate(selected):
            by_mean[s, x] = np.sort(score)[::-1][:n].mean() - score.mean()
            by_top[s, x] = score[np.lexsort((-score, -top[s, x]))[:n]].mean() - score.mean()
    return by_mean, by_top
