"""Pedigrees of overlapping generations: cows that calve every year, natural service, AI bulls of heavy-tailed use.

A year runs: cull cows and bulls, fill their places with two-year-olds, mate, calve. Cows stay in the herd they were
born in; natural-service bulls move to a herd; AI bulls are used everywhere, each by its own popularity (lognormal).
Ages are those of a constant yearly survival between first and last use, set so that the mean age of parents at the
birth of their progeny is the generation interval asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mmgibbs.pedigree.inbreeding import continue_inbreeding
from mmgibbs.pedigree.relationship import mendelian_variance

# (number of the first of the animals born now, their sires, their dams, (m, k) breeding values as above) -> (m, k).
# Founders come first and at once.
Inherit = Callable[[int, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
FEMALE, MALE = np.int8(0), np.int8(1)


@dataclass(frozen=True)
class Population:
    """Parameters of a simulated population. Its sizes follow from the number of animals.

    Parameters
    ----------
    years : int, default 40
        Years with calvings; founders are born before them.
    first_year : int, default 1980
        First year with calvings.
    generation_interval : float, default 5.0
        Mean age in years of sires and dams at the birth of their progeny.
    herd_size : float, default 50.0
        Cows per herd, mean of a lognormal distribution.
    calving_rate : float, default 0.9
        Calves per cow and year.
    ai_share : float, default 0.4
        Share of the calves by AI bulls, from 0 to 1. It varies between herds.
    ai_calves_per_bull : float, default 400.0
        Mean number of calves of an AI bull over its life.
    ai_popularity_sd : float, default 0.9
        Standard deviation of the logarithm of an AI bull's popularity.
    cows_per_bull : float, default 30.0
        Cows of a bull in natural service.
    natural_service_age : float or None, default None
        Mean age in years of such bulls at the birth of their calves. None is one year less than the generation
        interval.
    first_age : int, default 2
        Age in years of the youngest parents at the birth of their progeny.
    last_age : int, default 15
        Age in years of the oldest parents.

    Examples
    --------
    >>> from mmgibbs.pedigree import Population
    >>> Population(years=10, ai_share=0.0).herd_size
    50.0
    """

    years: int = 40
    first_year: int = 1980
    generation_interval: float = 5.0
    herd_size: float = 50.0
    calving_rate: float = 0.9
    ai_share: float = 0.4
    ai_calves_per_bull: float = 400.0
    ai_popularity_sd: float = 0.9
    cows_per_bull: float = 30.0
    natural_service_age: float | None = None
    first_age: int = 2
    last_age: int = 15


@dataclass(frozen=True)
class SimulatedPedigree:
    """A simulated pedigree, in the order of birth, so that parents come before their progeny.

    Attributes
    ----------
    sire, dam : ndarray of int32, shape (n,)
        Codes of the parents; -1 is unknown.
    birth : ndarray of int32, shape (n,)
        Year of birth.
    sex : ndarray of int8, shape (n,)
        0 female, 1 male.
    herd : ndarray of int32, shape (n,)
        Herd of birth.
    inbreeding : ndarray of float64, shape (n,), or None
        Coefficients of inbreeding; None without `G`.
    breeding_values : ndarray of float64, shape (n, k), or None
        True breeding values; None without `G`.
    """

    sire: np.ndarray
    dam: np.ndarray
    birth: np.ndarray
    sex: np.ndarray
    herd: np.ndarray
    inbreeding: np.ndarray | None
    breeding_values: np.ndarray | None

    @property
    def n_animals(self) -> int:
        """Number of animals n."""
        return self.sire.size


def simulate_pedigree(
    n_animals: int,
    seed: int,
    population: Population | None = None,
    G: np.ndarray | None = None,
    selection: np.ndarray | None = None,
    accuracy: float = 0.7,
    inherit: Inherit | None = None,
) -> SimulatedPedigree:
    """Simulate a pedigree of overlapping generations, with breeding values if `G` is given.

    Breeding values are u_i = (u_sire + u_dam) / 2 + m_i with m_i ~ N(0, d_i G), where d_i is the Mendelian sampling
    variance with the inbreeding of the parents, 1/2 - (F_s + F_d) / 4.

    Parameters
    ----------
    n_animals : int
        Number of animals, founders included.
    seed : int
        Seed of the random numbers.
    population : Population or None, default None
        Parameters of the population. None takes the defaults.
    G : ndarray, shape (k, k), default None
        Genetic covariance matrix.
    selection : ndarray, shape (k,), default None
        Weights of an index. Replacements are then the best by the index plus an error, bulls among all males of their
        year, heifers within their herd. None draws them at random.
    accuracy : float, default 0.7
        Correlation of the index and its error with the true index among founders, in (0, 1].
    inherit : callable or None, default None
        Gives the values of the index if these are not the breeding values alone, for example genes that parents pass
        on.

    Returns
    -------
    SimulatedPedigree
        The animals, in the order of birth.

    Raises
    ------
    ValueError
        There are too few animals for the population, or arguments do not fit.

    Examples
    --------
    >>> from mmgibbs.pedigree import Population, simulate_pedigree
    >>> herd = simulate_pedigree(1000, seed=1, population=Population(years=10))
    >>> herd.n_animals
    1000
    """
    population = population or Population()
    if population.years < 1 or n_animals < 10 * population.years:
        raise ValueError(f"{n_animals} animals over {population.years} years: needed at least 10 a year")
    if selection is not None and G is None:
        raise ValueError("selection needs G, the genetic covariance matrix")
    if not 0 < accuracy <= 1:
        raise ValueError(f"accuracy of selection must lie in (0, 1], found {accuracy}")
    run = _Simulation(n_animals, np.random.default_rng(seed), population, G, selection, accuracy, inherit)
    return run.result()


def survival(mean_age: float, first: int, last: int) -> float:
    """Solve for a yearly survival s.

    Ages first .. last, with frequencies proportional to s^age, then have this mean.
    """
    ages = np.arange(first, last + 1)
    if not first < mean_age < ages.mean():
        raise ValueError(f"a mean age of {mean_age:g} needs to lie between {first} and {ages.mean():g}")
    low, high = 0.0, 1.0
    for _ in range(60):
        s = 0.5 * (low + high)
        weight = s ** (ages - first)
        low, high = (s, high) if weight @ ages < mean_age * weight.sum() else (low, s)
    return s


class _Parents:
    """Breeding animals of one kind: code, herd they work in, birth year."""

    def __init__(self, survival_rate: float):
        self.survival = survival_rate
        self.code = np.empty(0, np.int32)
        self.herd = np.empty(0, np.int32)
        self.birth = np.empty(0, np.int32)

    def cull(self, year: int, last_age: int, rng: np.random.Generator) -> None:
        stay = (rng.random(self.code.size) < self.survival) & (year - self.birth <= last_age)
        self.code, self.herd, self.birth = self.code[stay], self.herd[stay], self.birth[stay]

    def add(self, code: np.ndarray, herd: np.ndarray, birth: np.ndarray) -> None:
        self.code = np.concatenate([self.code, code])
        self.herd = np.concatenate([self.herd, herd])
        self.birth = np.concatenate([self.birth, birth])


class _Simulation:
    def __init__(
        self,
        n: int,
        rng: np.random.Generator,
        population: Population,
        G: np.ndarray | None,
        selection: np.ndarray | None,
        accuracy: float,
        inherit: Inherit | None = None,
    ):
        p = self.population = population
        self.n, self.rng = n, rng
        self.sire, self.dam = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
        self.birth, self.herd = np.zeros(n, np.int32), np.zeros(n, np.int32)
        self.sex = np.zeros(n, np.int8)
        self.used = 0
        self.chol: np.ndarray | None = None
        self.u: np.ndarray | None = None
        self.F: np.ndarray | None = None
        self.weights: np.ndarray | None = None
        self.inherit, self.value = inherit, np.zeros((0, 0))  # (n, k) what parents are selected by
        if G is not None:
            G = np.atleast_2d(np.asarray(G, dtype=np.float64))
            self.chol = np.linalg.cholesky(G)
            self.u, self.F = np.zeros((n, len(G))), np.zeros(n)
            self.value = self.u if inherit is None else np.zeros((n, len(G)))
        if selection is not None and G is not None:
            self.weights = np.asarray(selection, dtype=np.float64)
            self.index_error = np.sqrt(self.weights @ G @ self.weights * (1 / accuracy**2 - 1))

        natural_age = p.natural_service_age
        if natural_age is None:
            natural_age = (
                max(p.generation_interval - 1, (p.generation_interval + p.first_age) / 2)
                if p.ai_share > 0
                else p.generation_interval
            )
        ai_age = natural_age
        if p.ai_share > 0:  # what makes the mean over all calves the generation interval
            ai_age = (p.generation_interval - (1 - p.ai_share) * natural_age) / p.ai_share
        ages = (p.first_age, p.last_age)
        self.cows = _Parents(survival(p.generation_interval, *ages))
        self.bulls = _Parents(survival(natural_age, *ages))
        self.ai = _Parents(survival(ai_age, *ages))
        self.ai_popularity = np.zeros(n, np.float32)

        # cows N: n = founders + calves = N (1 + replacements of the year before + bulls) + years * calving_rate * N
        young = 1.3 * (1 - self.cows.survival)
        bulls = (1 + 2 * (1 - self.bulls.survival)) / p.cows_per_bull
        n_cows = n / (1 + young + bulls + p.years * p.calving_rate)
        n_herds = max(1, round(n_cows / p.herd_size))
        size = rng.lognormal(0.0, 0.7, n_herds)
        self.herd_cows = np.maximum(2, np.round(size * n_cows / size.sum())).astype(np.int64)
        self.herd_bulls = np.maximum(1, np.round(self.herd_cows / p.cows_per_bull)).astype(np.int64)
        share = np.clip(p.ai_share, 1e-6, 1 - 1e-6)
        self.herd_ai = rng.beta(3 * share, 3 * (1 - share), n_herds) if p.ai_share > 0 else np.zeros(n_herds)
        calves = n / p.years
        per_year = max(1.0, calves * p.ai_share / p.ai_calves_per_bull)
        self.ai_new = per_year if p.ai_share > 0 else 0.0
        self.ai_active = self.ai_new / (1 - self.ai.survival)

    def result(self) -> SimulatedPedigree:
        p = self.population
        self._founders()
        for year in range(p.first_year, p.first_year + p.years):
            if year > p.first_year:
                self._replace(year)
            self._calve(year, years_left=p.first_year + p.years - year)
        return SimulatedPedigree(self.sire, self.dam, self.birth, self.sex, self.herd, self.F, self.u)

    def _founders(self) -> None:
        """Add cows and bulls of all ages in the first year, and those that turn two in the second."""
        p, rng = self.population, self.rng
        ages = np.arange(p.first_age, p.last_age + 1)
        wanted: list[tuple[_Parents | None, np.ndarray, np.ndarray, np.ndarray]] = []  # parents, sex, herd, birth
        n_ai = int(np.ceil(self.ai_active))
        herds = self.herd_cows.size
        for parents, sex, herd in (
            (self.cows, FEMALE, np.repeat(np.arange(herds), self.herd_cows)),
            (self.bulls, MALE, np.repeat(np.arange(herds), self.herd_bulls)),
            (self.ai, MALE, rng.integers(0, herds, n_ai)),
        ):
            frequency = parents.survival ** (ages - p.first_age)
            age = rng.choice(ages, herd.size, p=frequency / frequency.sum())
            wanted.append((parents, np.full(herd.size, sex), herd, p.first_year - age))
        young_cows = np.repeat(
            np.arange(herds), np.ceil(1.3 * (1 - self.cows.survival) * self.herd_cows).astype(np.int64)
        )
        n_young = int(np.ceil(2 * (1 - self.bulls.survival) * self.herd_bulls.sum() + 2 * self.ai_new))
        # year by year the two-year-olds are born first_age years before; the first calves are born in first_year
        for back in range(1, p.first_age):
            for sex, herd in ((FEMALE, young_cows), (MALE, rng.integers(0, herds, n_young))):
                wanted.append((None, np.full(herd.size, sex), herd, np.full(herd.size, p.first_year - back)))
        birth = np.concatenate([w[3] for w in wanted])
        if birth.size >= self.n:
            raise ValueError(
                f"{self.n} animals are too few: the herds need {birth.size} founders; use fewer years or larger herds"
            )
        order = np.argsort(birth, kind="stable")
        code = np.empty(birth.size, np.int32)
        code[order] = np.arange(birth.size, dtype=np.int32)
        self.birth[: birth.size] = birth[order]
        self.sex[: birth.size] = np.concatenate([w[1] for w in wanted])[order]
        self.herd[: birth.size] = np.concatenate([w[2] for w in wanted])[order]
        at = 0
        for of_kind, _, herd, born in wanted:
            if of_kind is not None:
                of_kind.add(code[at : at + born.size], herd.astype(np.int32), born.astype(np.int32))
            at += born.size
        self.ai_popularity[self.ai.code] = rng.lognormal(0.0, p.ai_popularity_sd, n_ai)
        self._breeding_values(0, birth.size)
        self.used = birth.size

    def _replace(self, year: int) -> None:
        p, rng = self.population, self.rng
        for parents in (self.cows, self.bulls, self.ai):
            parents.cull(year, p.last_age, rng)
        born = np.searchsorted(self.birth[: self.used], [year - p.first_age, year - p.first_age + 1])
        young = np.arange(*born, dtype=np.int32)
        merit = rng.standard_normal(young.size)
        if self.weights is not None:
            merit = self.value[young] @ self.weights + self.index_error * merit
        male = self.sex[young] == MALE

        heifers, herd = young[~male], self.herd[young[~male]]
        need = np.maximum(0, self.herd_cows - np.bincount(self.cows.herd, minlength=self.herd_cows.size))
        order = np.lexsort((-merit[~male], herd))
        first = np.searchsorted(herd[order], np.arange(self.herd_cows.size))
        rank = np.arange(order.size) - first[herd[order]]
        chosen = order[rank < need[herd[order]]]
        self.cows.add(heifers[chosen], herd[chosen], self.birth[heifers[chosen]])

        best = young[male][np.argsort(-merit[male], kind="stable")]
        new_ai = min(int(self.ai_new) + int(rng.random() < self.ai_new % 1), max(best.size - 1, 0))
        if self.ai.code.size == 0 and self.ai_new > 0:
            new_ai = max(1, new_ai)
        self._start_ai(best[:new_ai])
        need = np.maximum(0, self.herd_bulls - np.bincount(self.bulls.herd, minlength=self.herd_bulls.size))
        place = rng.permutation(np.repeat(np.arange(need.size, dtype=np.int32), need))
        new = best[new_ai : new_ai + place.size]
        place = place[: new.size]
        self.bulls.add(new, place, self.birth[new])

    def _start_ai(self, bulls: np.ndarray) -> None:
        self.ai.add(bulls, self.herd[bulls], self.birth[bulls])
        self.ai_popularity[bulls] = self.rng.lognormal(0.0, self.population.ai_popularity_sd, bulls.size)

    def _calve(self, year: int, years_left: int) -> None:
        rng, cows = self.rng, self.cows
        n_calves = round((self.n - self.used) / years_left)
        dams = rng.permutation(cows.code.size)[:n_calves]
        if dams.size < n_calves:  # twins
            dams = np.concatenate([dams, rng.integers(0, cows.code.size, n_calves - dams.size)])
        dams = dams[np.argsort(cows.herd[dams], kind="stable")]  # calves of a herd stand together
        herd = cows.herd[dams]
        sire = np.full(n_calves, -1, np.int32)
        by_herd = np.argsort(self.bulls.herd, kind="stable")
        first = np.searchsorted(self.bulls.herd[by_herd], np.arange(self.herd_cows.size + 1))
        count = np.diff(first)[herd]
        use_ai = (rng.random(n_calves) < self.herd_ai[herd]) | (count == 0)
        if self.ai.code.size == 0:
            use_ai[:] = False
        natural = np.flatnonzero(~use_ai)
        pick = first[herd[natural]] + (rng.random(natural.size) * count[natural]).astype(np.int64)
        empty = count[natural] == 0  # a herd without a bull borrows one
        pick[empty] = rng.integers(0, by_herd.size, np.count_nonzero(empty))
        sire[natural] = self.bulls.code[by_herd[pick]]
        if use_ai.any():
            weight = np.cumsum(self.ai_popularity[self.ai.code], dtype=np.float64)
            at = np.searchsorted(weight, rng.random(np.count_nonzero(use_ai)) * weight[-1], side="right")
            sire[use_ai] = self.ai.code[np.minimum(at, weight.size - 1)]
        new = slice(self.used, self.used + n_calves)
        self.sire[new], self.dam[new], self.herd[new] = sire, cows.code[dams], herd
        self.birth[new] = year
        self.sex[new] = rng.integers(0, 2, n_calves)
        self._breeding_values(new.start, new.stop)
        self.used = new.stop

    def _breeding_values(self, first: int, stop: int) -> None:
        """Compute u and F of animals first .. stop - 1, whose parents have theirs."""
        if self.u is None or self.F is None or self.chol is None:
            return
        sire, dam = self.sire[:stop], self.dam[:stop]
        continue_inbreeding(sire, dam, self.F[:stop], first)
        rows = slice(first, stop)
        d = mendelian_variance(sire[rows], dam[rows], self.F)
        sampling = self.rng.standard_normal((stop - first, self.chol.shape[0])) @ self.chol.T
        self.u[rows] = np.sqrt(np.maximum(d, 0.0))[:, None] * sampling  # rounding, where F is 1
        for parent in (sire[rows], dam[rows]):
            known = parent >= 0
            self.u[rows][known] += 0.5 * self.u[parent[known]]
        if self.inherit is not None:
            self.value[rows] = self.inherit(first, sire[rows], dam[rows], self.u[rows])
