"""Running mean, standard deviation and Monte Carlo standard error of millions of location effects; no draw is stored.

The draws x_1, x_2, ... of one element are cut into consecutive batches of L draws. With the mean of batch b written
m_b, the sum of squares splits exactly (Chan, Golub & LeVeque 1983) into a part within and a part between batches:

    sum_t (x_t - m)^2 = sum_b sum_{t in b} (x_t - m_b)^2  +  L sum_b (m_b - m)^2

so four numbers per element suffice: the mean of the batch in progress, the sum of squares within batches, the mean of
the complete batches and the sum of squares of their means. A draw touches the first two only, the other two once per
batch; every step is Welford's (1962) update, which does not cancel where the mean is large beside the standard
deviation.

Batch means (Flegal & Jones 2010) over C chains of n draws each, N = C n, B complete batches in all, m' the mean of
their means:

    sd^2   = sum_t (x_t - m)^2 / (N - 1)
    mcse^2 = (L / N) sum_b (m_b - m')^2 / (B - 1)            ess = sd^2 / mcse^2

The draws of an unfinished last batch count for mean and sd, and for nothing else. Since m' is the mean over all chains,
chains that disagree enlarge the MCSE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mmgibbs.pedigree.kernels import kernel
from mmgibbs.posterior.tracked import HostTheta

LONG_ENOUGH = 8  # draws of a batch whose mean says something of how draws follow each other; of one draw: nothing
_PARTS = ("batch_mean", "within", "between_mean", "between")


@kernel
def _add_draw(x, batch_mean, within, inverse):
    """Welford's update of the batch in progress; `inverse` is one over the draws in it, this one included."""
    for i in range(x.size):
        value = np.float64(x[i])
        deviation = value - batch_mean[i]
        updated = batch_mean[i] + deviation * inverse
        within[i] += deviation * (value - updated)
        batch_mean[i] = updated


@kernel
def _close_batch(batch_mean, between_mean, between, inverse):
    """Welford's update of the batch means; `inverse` is one over the complete batches. The next batch starts at 0."""
    for i in range(batch_mean.size):
        deviation = batch_mean[i] - between_mean[i]
        updated = between_mean[i] + deviation * inverse
        between[i] += deviation * (batch_mean[i] - updated)
        between_mean[i] = updated
        batch_mean[i] = 0.0


def batches_per_chain(n_draws: int, chains: int) -> int:
    """Choose the number of batches per chain of `n_draws` kept draws.

    Over all chains sqrt(N) batches of N = n_draws x chains draws, but at least 100: the MCSE is then within about 7 %,
    and batches grow with the run, as the method needs to be consistent. Where that would leave fewer than 10 draws to a
    batch, batches stay near 10 draws long, down to 50 batches in all; below 500 draws they get shorter still, and the
    MCSE of a slowly mixing level is then too small.
    """
    total = n_draws * chains
    wanted = max(100, int(np.sqrt(total)))
    if total < 10 * wanted:
        wanted = max(50, total // 10)
    return int(min(n_draws, -(-wanted // chains)))


def batch_length(n_draws: int, n_batches: int) -> int:
    """Draws per batch, at least one, so that at least `n_batches` of `n_draws` are completed."""
    return max(1, int(n_draws) // max(1, int(n_batches)))


class Moments:
    """Running moments of one chain for a list of (q, k) arrays, one per term.

    shapes: the shape of each array. n_draws: kept draws that the chain is planned to have; n_batches: batches wanted
    (see batch_length). More draws than planned make more batches. Memory: four float64 per element.
    """

    def __init__(self, shapes: Sequence[tuple[int, ...]], n_draws: int, n_batches: int):
        self.shapes = tuple(tuple(int(d) for d in shape) for shape in shapes)
        self._shapes = list(self.shapes)
        self.batch_length = batch_length(n_draws, n_batches)
        self.n_draws = 0  # draws added so far
        self._first = np.cumsum([0] + [int(np.prod(shape, dtype=np.int64)) for shape in self.shapes])
        n = int(self._first[-1])
        # (elements,) float64, all terms one after another
        self.batch_mean, self.within, self.between_mean, self.between = (np.zeros(n) for _ in _PARTS)

    @property
    def n_batches(self) -> int:
        """Complete batches so far."""
        return self.n_draws // self.batch_length

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, name).nbytes for name in _PARTS)

    def add(self, arrays: Sequence[np.ndarray]) -> None:
        """Add one draw: a float64 or float32 array per term, in the order of `shapes`; the arrays are not kept."""
        if [a.shape for a in arrays] != self._shapes:
            raise ValueError(f"a draw has shapes {[a.shape for a in arrays]}, needed {list(self.shapes)}")
        self.n_draws += 1
        in_batch = (self.n_draws - 1) % self.batch_length + 1
        for a, first, last in zip(arrays, self._first[:-1], self._first[1:], strict=False):
            x = np.ascontiguousarray(a).reshape(-1)
            if x.dtype != np.float32:
                x = x.astype(np.float64, copy=False)
            _add_draw(x, self.batch_mean[first:last], self.within[first:last], 1.0 / in_batch)
        if in_batch == self.batch_length:
            _close_batch(self.batch_mean, self.between_mean, self.between, 1.0 / self.n_batches)

    def state(self) -> dict[str, np.ndarray]:
        """Everything, as plain arrays (not copied): what a checkpoint stores bit for bit."""
        counts = np.array([self.batch_length, self.n_draws], np.int64)
        shapes = np.array([d for shape in self.shapes for d in (len(shape), *shape)], np.int64)
        return {"counts": counts, "shapes": shapes, **{name: getattr(self, name) for name in _PARTS}}

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Moments:
        """The accumulator whose `state()` this is; it takes the arrays over, float64 ones without a copy."""
        flat, shapes = [int(d) for d in state["shapes"]], []
        while flat:
            shapes.append(tuple(flat[1 : 1 + flat[0]]))
            flat = flat[1 + flat[0] :]
        out = cls(shapes, 0, 1)
        out.batch_length, out.n_draws = (int(v) for v in state["counts"])
        for name in _PARTS:
            setattr(out, name, np.asarray(state[name], np.float64))
        return out

    def _mean_and_squares(self, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        """Mean and sum of squared deviations of all draws, the unfinished batch included."""
        complete, rest = self.n_batches * self.batch_length, self.n_draws % self.batch_length
        mean, squares = self.between_mean[rows].copy(), self.within[rows] + self.batch_length * self.between[rows]
        if rest:
            deviation = self.batch_mean[rows] - mean
            mean += deviation * (rest / self.n_draws)
            squares += deviation**2 * (complete * rest / self.n_draws)
        return mean, squares


class MomentsOfLocations:
    """Moments of every level of every term, told of each draw of the locations (posterior/tracked.py)."""

    def __init__(self, shapes: Sequence[tuple[int, ...]], n_draws: int, n_batches: int):
        self.moments = Moments(shapes, n_draws, n_batches)

    def add(self, theta: HostTheta) -> None:
        self.moments.add(theta.arrays())

    def state(self) -> dict[str, np.ndarray]:
        return self.moments.state()

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.moments = Moments.from_state(state)

    def pool(self, further: Sequence[MomentsOfLocations]) -> PooledMoments:
        return pool([self.moments, *(o.moments for o in further)])


@dataclass(frozen=True)
class PooledMoments:
    """Moments over all chains, one array per term in the order of the terms; NaN where unknown."""

    mean: list[np.ndarray]  # (q, k) float64
    sd: list[np.ndarray]  # posterior standard deviation
    mcse: list[np.ndarray]  # Monte Carlo standard error of the mean
    ess: list[np.ndarray]  # effective sample size of the mean; NaN where sd is 0
    n_draws: int  # over all chains
    n_batches: int  # complete ones, over all chains

    @classmethod
    def exact(cls, mean: Sequence[np.ndarray], sd: Sequence[np.ndarray] | None = None) -> PooledMoments:
        """A solution that was computed, not sampled (BLUP): sd where known, MCSE and ESS blank."""
        blank = [np.full(m.shape, np.nan) for m in mean]
        return cls(list(mean), list(sd) if sd is not None else blank, blank, blank, 0, 0)


def pool(moments: Sequence[Moments]) -> PooledMoments:
    """Mean, sd, MCSE and ESS over the chains (formulas above); sd needs two draws, MCSE two complete batches.

    Raises ValueError where the chains differ in shapes or batch length, or hold no draw.
    """
    first = moments[0]
    if any(m.shapes != first.shapes or m.batch_length != first.batch_length for m in moments):
        raise ValueError("chains can be pooled only with the same terms and the same length of batches")
    N, B, L = sum(m.n_draws for m in moments), sum(m.n_batches for m in moments), first.batch_length
    if N == 0:
        raise ValueError("no draws to pool: no chain has kept one")
    out: dict[str, list[np.ndarray]] = {"mean": [], "sd": [], "mcse": [], "ess": []}
    for shape, start, stop in zip(first.shapes, first._first[:-1], first._first[1:], strict=False):
        rows = slice(start, stop)
        mean, squares = _combine([(m.n_draws, *m._mean_and_squares(rows)) for m in moments])
        with np.errstate(divide="ignore", invalid="ignore"):
            sd = np.sqrt(squares / (N - 1)) if N > 1 else np.full(mean.shape, np.nan)
            if B > 1:
                _, between = _combine([(m.n_batches, m.between_mean[rows], m.between[rows]) for m in moments])
                mcse = np.sqrt(between / (B - 1) * (L / N))
            else:
                mcse = np.full(mean.shape, np.nan)
            ess = np.where(sd > 0, (sd / mcse) ** 2, np.nan)
        for name, value in (("mean", mean), ("sd", sd), ("mcse", mcse), ("ess", ess)):
            out[name].append(value.reshape(shape))
    return PooledMoments(out["mean"], out["sd"], out["mcse"], out["ess"], N, B)


def _combine(parts: list[tuple[int, np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sum of squares of several samples, each given as (size, mean, sum of squares)."""
    size, mean, squares = parts[0]
    for other_size, other_mean, other_squares in parts[1:]:
        if other_size == 0:
            continue
        total = size + other_size
        deviation = other_mean - mean
        mean = mean + deviation * (other_size / total)
        squares = squares + other_squares + deviation**2 * (size * other_size / total)
        size = total
    return mean, squares
