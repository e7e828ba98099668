"""Optimum contributions: the parents with the highest mean breeding value at a limit of coancestry (Meuwissen 1997).

With b the breeding values, K twice the coancestry and E the two sexes of the candidates (m, 2),

    maximise b'c    subject to    E'c = (1/2, 1/2),    lowest <= c <= highest,    c'Kc / 2 <= limit

(of plants that may be either parent, E is a column of ones and E'c = 1).

At a trade-off t, c maximises the concave function t b'c - c'Kc / 2 over the first two. With g = t b - K c, the
conditions of Karush, Kuhn and Tucker are that there are m_s, one for each sex, with

    g_i = m_s  where  lowest_i < c_i < highest_i,      g_i <= m_s  where  c_i = lowest_i,      g_i >= m_s  at highest_i

Each step of the active-set method solves these equations for the candidates between their limits (F),

    d = K_FF^-1 (g_F - E_F m),    m = (E_F' K_FF^-1 E_F)^-1 E_F' K_FF^-1 g_F

and goes along d until a limit is reached, or further along the projection of d where that is better. Candidates at a
limit whose g is on the wrong side of m_s are released. The function increases in each step, so that the method ends at
the optimum. On one set F, c is linear in t: the t with c'Kc / 2 = limit follows from a quadratic equation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq

from mmgibbs.errors import ModelError
from mmgibbs.population.contributions.coancestry import Coancestry

LOWEST, FREE, HIGHEST = -1, 0, 1
MAX_STEPS = 5000
MAX_TRADE_OFFS = 100
NARROWEST_BRACKET = 1e-12  # of trade-offs, relative
START_TRADE_OFFS = (1e-3, 1e3)  # the next search starts within these
MAX_CHANGE = 4.0  # of the trade-off from one to the next
LOWEST_TRADE_OFF, HIGHEST_TRADE_OFF = 1e-6, 1e6  # in 1 / SD of the breeding values; beyond: 0, and the highest gain
RELATIVE_TOLERANCE = 1e-9
MAX_CLIMBS, MAX_HALVINGS = 50, 30
LEAST_SHARE_OF_SLOPE = 0.2  # that a step along the projected gradient gains
LEAST_SHARE_OF_LARGEST = 0.05  # of the largest gain of a step; below, steps end
COANCESTRY_TOLERANCE = 1e-8


@dataclass(frozen=True)
class Limits:
    """Limits of contributions: halves of two sexes, or all of plants that may be either parent; and bounds."""

    is_male: np.ndarray | None  # (m,) bool; None: each may be either parent
    lowest: np.ndarray  # (m,)
    highest: np.ndarray  # (m,)

    def sexes(self) -> tuple[np.ndarray, ...]:
        """Numbers of the males and of the females; of all candidates where each may be either parent."""
        if self.is_male is None:
            return (np.arange(self.lowest.size),)
        return np.flatnonzero(self.is_male), np.flatnonzero(~self.is_male)

    @property
    def share(self) -> float:
        """The sum of the contributions of a sex."""
        return 1.0 if self.is_male is None else 0.5

    def choose(self, places: np.ndarray) -> Limits:
        """Select the limits of some candidates."""
        is_male = None if self.is_male is None else self.is_male[places]
        return Limits(is_male, self.lowest[places], self.highest[places])

    def leave_one_plan(self) -> bool:
        """Check whether the bounds fix every contribution: those of a sex add to its share."""
        return all(
            self.lowest[sex].sum() > self.share - RELATIVE_TOLERANCE
            or self.highest[sex].sum() < self.share + RELATIVE_TOLERANCE
            for sex in self.sexes()
        )


@dataclass(frozen=True)
class Plan:
    """Contributions of all candidates, halves of the sexes."""

    contributions: np.ndarray  # (m,)
    gain: float  # b'c
    coancestry: float  # c'Kc / 2
    trade_off: float  # t; inf of the highest gain
    multipliers: tuple[float, ...] = (np.nan, np.nan)  # m_s of males and females
    steps: int = 0


def select_best(b: np.ndarray, limits: Limits) -> np.ndarray:
    """(m,) contributions of the highest gain, whatever the coancestry: the best candidates up to their limits."""
    c = limits.lowest.copy()
    for sex in limits.sexes():
        order = sex[np.argsort(-b[sex], kind="stable")]
        more = np.cumsum(limits.highest[order] - limits.lowest[order])
        missing = limits.share - limits.lowest[sex].sum()
        full = np.clip(missing - np.concatenate([[0.0], more[:-1]]), 0.0, limits.highest[order] - limits.lowest[order])
        c[order] += full
    return c


def project(c: np.ndarray, lowest: np.ndarray, highest: np.ndarray, total: float) -> np.ndarray:
    """The nearest point to c with these bounds and this sum: c - x within the bounds, x by Brent's method."""
    excess = lambda x: float(np.clip(c - x, lowest, highest).sum() - total)
    first, last = float((c - highest).min()), float((c - lowest).max())
    if excess(first) <= 0:
        return highest.copy()
    if excess(last) >= 0:
        return lowest.copy()
    return np.asarray(np.clip(c - brentq(excess, first, last, xtol=1e-16, rtol=1e-15), lowest, highest))


class ActiveSet:
    """The optimum at a trade-off, each time starting from the one before."""

    def __init__(self, K: Coancestry, limits: Limits, start: np.ndarray):
        """start: (m,) contributions within the limits."""
        self.K, self.limits, self.c = K, limits, start.copy()
        self.n_sexes, self.sex = len(limits.sexes()), np.zeros(start.size, np.int64)
        for number, sex in enumerate(limits.sexes()):
            self.sex[sex] = number
        self.can_change = limits.highest > limits.lowest
        self.status = np.full(start.size, FREE, np.int8)
        self._bind(np.arange(start.size))

    def solve(self, b: np.ndarray, t: float) -> Plan:
        """Return the plan at trade-off t. ModelError after MAX_STEPS."""
        is_stuck = False  # nothing was gained since candidates were released
        for step in range(1, MAX_STEPS + 1):
            g = t * b - self.K.times(self.c)
            free = np.flatnonzero(self.status == FREE)
            direction, multipliers = self._find_direction(free, g)
            tolerance = RELATIVE_TOLERANCE * max(float(np.abs(g).max()), t * float(np.ptp(b)), 1e-12)
            residual = g[free] - multipliers[self.sex[free]]
            if np.abs(residual).max(initial=0.0) > tolerance:
                is_stuck = not self._move(free, direction, g) and is_stuck
                continue
            multipliers = self._complete(multipliers, g)
            violation = np.where(self.can_change, -self.status * (g - multipliers[self.sex]), 0.0)
            if violation.max() <= tolerance:
                m = tuple(multipliers.tolist())
                return Plan(self.c.copy(), float(b @ self.c), self.K.mean(self.c), t, m, step)
            if is_stuck or not self._climb(g, float(violation.max())):
                self._release(violation, g)
            is_stuck = not is_stuck
        raise ModelError(f"contributions: no optimum after {MAX_STEPS:,} steps; try another limit of coancestry")

    def change_by_trade_off(self, b: np.ndarray) -> np.ndarray:
        """dc/dt while the free candidates stay the same, (m,)."""
        free, out = np.flatnonzero(self.status == FREE), np.zeros(self.c.size)
        out[free] = self._find_direction(free, b)[0]
        return out

    def _find_direction(self, free: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """d (f,) and the multipliers, one for each sex, NaN without free candidates."""
        multipliers = np.full(self.n_sexes, np.nan)
        if not free.size:
            return np.empty(0), multipliers
        sexes = np.unique(self.sex[free])
        E = (self.sex[free][:, None] == sexes).astype(float)
        solved = self.K.solve(free, np.column_stack([g[free], E]))
        multipliers[sexes] = np.linalg.solve(E.T @ solved[:, 1:], E.T @ solved[:, 0])
        return solved[:, 0] - solved[:, 1:] @ multipliers[sexes], multipliers

    def _move(self, free: np.ndarray, d: np.ndarray, g: np.ndarray) -> bool:
        """Go along d; whether the function increases."""
        c, lowest, highest = self.c[free], self.limits.lowest[free], self.limits.highest[free]
        with np.errstate(divide="ignore", invalid="ignore"):
            lengths = np.where(d > 0, (highest - c) / d, np.where(d < 0, (lowest - c) / d, np.inf))
        length = min(1.0, float(lengths.min()))
        new = np.clip(c + length * d, lowest, highest)
        at_limit = lengths <= length * (1 + 1e-12)
        new[at_limit] = np.where(d > 0, highest, lowest)[at_limit]
        increase = length * (1 - length / 2) * float(d @ g[free])
        if length < 1:
            projected = self._project(c + d, free)
            change = np.zeros(self.c.size)
            change[free] = projected - c
            other_increase = float(change @ g - 0.5 * change @ self.K.times(change))
            if other_increase > increase:
                new, increase = projected, other_increase
        self.c[free] = new
        self._bind(free)
        return increase > 0

    def _bind(self, candidates: np.ndarray) -> None:
        """Bind those of these candidates that are at a limit: they are no longer free."""
        lowest, highest = self.limits.lowest[candidates], self.limits.highest[candidates]
        self.status[candidates[self.c[candidates] >= highest]] = HIGHEST
        self.status[candidates[self.c[candidates] <= lowest]] = LOWEST

    def _complete(self, multipliers: np.ndarray, g: np.ndarray) -> np.ndarray:
        """The multiplier of a sex without free candidates: between those that could increase and decrease."""
        out = multipliers.copy()
        for sex in np.flatnonzero(np.isnan(multipliers)):
            changing = (self.sex == sex) & self.can_change
            ends = [g[changing & (self.status == LOWEST)], g[changing & (self.status == HIGHEST)]]
            values = [
                end.max() if status == LOWEST else end.min()
                for end, status in zip(ends, (LOWEST, HIGHEST), strict=True)
                if end.size
            ]
            out[sex] = np.mean(values) if values else 0.0
        return out

    def _climb(self, g: np.ndarray, steepest: float) -> bool:
        """Steps along the projected gradient, which change the sets of many candidates at once; whether any gained.

        The lengths are those of Barzilai and Borwein; steps end once they gain little (More & Toraldo 1991).
        """
        length, largest = 1.0 / steepest, 0.0
        for _ in range(MAX_CLIMBS):
            for _ in range(MAX_HALVINGS):
                change = self._project(self.c + length * g) - self.c
                K_change = self.K.times(change)
                slope, curvature = float(change @ g), float(change @ K_change)
                if curvature <= (2 - LEAST_SHARE_OF_SLOPE) * slope or slope <= 0:
                    break
                length *= min(0.5, slope / curvature)
            increase = slope - curvature / 2
            if slope <= 0 or increase <= 0:
                break
            self.c = np.clip(self.c + change, self.limits.lowest, self.limits.highest)
            g = g - K_change
            if increase <= LEAST_SHARE_OF_LARGEST * largest:
                break
            largest = max(largest, increase)
            length = float(change @ change) / curvature
        self.status[:] = FREE
        self._bind(np.arange(self.c.size))
        return largest > 0

    def _project(self, c: np.ndarray, candidates: np.ndarray | None = None) -> np.ndarray:
        """The nearest contributions of all or of some candidates, with the present sum of each sex."""
        chosen = np.arange(self.c.size) if candidates is None else candidates
        out = np.empty(chosen.size)
        for sex in range(self.n_sexes):
            of_sex = self.sex[chosen] == sex
            if of_sex.any():
                these = chosen[of_sex]
                total = float(self.c[these].sum())
                out[of_sex] = project(c[of_sex], self.limits.lowest[these], self.limits.highest[these], total)
        return out

    def _release(self, violation: np.ndarray, g: np.ndarray) -> None:
        """Release the fewest candidates that can change, so that the function increases."""
        worst = int(np.argmax(violation))
        of_sex = (self.sex == self.sex[worst]) & self.can_change
        if (self.status[of_sex] == FREE).any():
            self.status[worst] = FREE
        else:  # one up and one down
            self.status[np.argmax(np.where(of_sex & (self.status == LOWEST), g, -np.inf))] = FREE
            self.status[np.argmin(np.where(of_sex & (self.status == HIGHEST), g, np.inf))] = FREE


class ContributionOptimiser:
    """Optimum contributions of candidates at limits of coancestry, for one or many vectors of breeding values.

    Each search begins where the last one ended.
    """

    def __init__(self, K: Coancestry, limits: Limits):
        self.K, self.limits = K, limits
        self._solver: ActiveSet | None = None
        self._t = 1.0
        self.lowest_range = (0.0, np.inf)  # of the lowest coancestry, where no plan was within a limit

    def find_highest_gain(self, b: np.ndarray) -> Plan:
        """The plan of the highest gain, whatever its coancestry."""
        c = select_best(b, self.limits)
        return Plan(c, float(b @ c), self.K.mean(c), np.inf)

    def solve(self, b: np.ndarray, t: float) -> Plan:
        """The plan at a trade-off t, in units of 1 / SD(b); 0 is the lowest coancestry."""
        if self._solver is None:
            self._solver = ActiveSet(self.K, self.limits, select_best(b, self.limits))
        plan = self._solver.solve(_standardise(b), t)
        return replace(plan, gain=float(b @ plan.contributions))

    def limit_coancestry(self, b: np.ndarray, limit: float) -> Plan | None:
        """The highest gain with c'Kc / 2 <= limit; None where no plan has so little coancestry."""
        highest = self.find_highest_gain(b)
        if highest.coancestry <= limit:
            return highest
        low, high, t, plan = 0.0, np.inf, self._t, None
        for _ in range(MAX_TRADE_OFFS):
            now = self.solve(b, t)
            excess = (now.coancestry - limit) / max(abs(limit), 1e-12)
            if excess <= COANCESTRY_TOLERANCE:
                low, plan = t, now
            else:
                high = t
                self.lowest_range = self._bound_lowest(b, now)
                if plan is None and self.lowest_range[0] > limit:
                    return None
            is_done = abs(excess) <= COANCESTRY_TOLERANCE or low >= high * (1 - NARROWEST_BRACKET)
            if is_done or t == 0 or (high == np.inf and t > HIGHEST_TRADE_OFF):
                break
            t = self._propose(b, now, limit, low, high)
        if plan is not None:
            self._t = float(np.clip(plan.trade_off, *START_TRADE_OFFS))
        return plan

    def _bound_lowest(self, b: np.ndarray, now: Plan) -> tuple[float, float]:
        """Bounds of the lowest coancestry: t b'c - c'Kc / 2 of any plan is at most that of the optimum at t."""
        scaled = _standardise(b)
        lowest_gain = float(scaled @ select_best(-b, self.limits))
        return now.coancestry - now.trade_off * (float(scaled @ now.contributions) - lowest_gain), now.coancestry

    def _propose(self, b: np.ndarray, now: Plan, limit: float, low: float, high: float) -> float:
        """The next trade-off: by the quadratic of the present free candidates where that is within the bracket."""
        assert self._solver is not None
        t = now.trade_off
        change = self._solver.change_by_trade_off(_standardise(b))
        K_change = self.K.times(change)
        square, line, constant = 0.5 * change @ K_change, K_change @ now.contributions, now.coancestry - limit
        if square > 0 and (root := line**2 - 4 * square * constant) >= 0:
            proposed = t + (-line + np.sqrt(root)) / (2 * square)
            if max(low, t / MAX_CHANGE) < proposed < min(high, t * MAX_CHANGE):
                return float(proposed)
        if np.isinf(high):
            return t * MAX_CHANGE
        if low > 0:
            return float(np.sqrt(low * high))
        return t / MAX_CHANGE if t > LOWEST_TRADE_OFF else 0.0


def _standardise(b: np.ndarray) -> np.ndarray:
    """Return b in standard deviations; equal values stay 0."""
    spread = float(np.std(b))
    return (b - b.mean()) / spread if spread > 0 else np.zeros(b.size)
