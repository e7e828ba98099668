"""Simulated productive life of cows, of which many are still alive on the day when the data are collected.

    log days = mu + age at first calving + c + u_i + e

with c ~ N(0, HERD_YEAR), u ~ N(0, A GENETIC), e ~ N(0, RESIDUAL), days from first calving to culling.
A cow that would be culled after the collection of the data is alive, and her days are those until then
(right-censored). Lives are drawn apart from the calvings of the pedigree.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.errors import ConfigError
from mmgibbs.simulation.files import Simulated, term, true_parameters
from mmgibbs.simulation.herd import breed, censor_days, herd_years

TRAIT, STATUS = "productive_life", ("alive", "culled")
MEAN = 7.3  # log days: half of the cows live longer than 1,480 days
GENETIC, HERD_YEAR, RESIDUAL = 0.12, 0.05, 0.30
AGES, AGE = ("2", "3"), np.array([0.0, -0.15])  # at first calving, years
AT_TWO = 0.7  # share of heifers that calve at two years
STREAM = 4
YEARS = 10


def simulate_longevity(n_animals: int, seed: int, years: int = YEARS) -> Simulated:
    """Cows of a population of n_animals whose first calving fell into `years` years; data are collected at their end.

    Raises ConfigError where the arguments make no such data."""
    herd, rng = breed(n_animals, seed, years, np.array([[GENETIC]]), STREAM)
    cow = np.flatnonzero(herd.sex == 0).astype(np.int32)
    age = 2 + (rng.random(cow.size) >= AT_TWO)
    year, last = herd.birth_year[cow] + age, int(herd.birth_year.max())
    calved = (year > last - years) & (year <= last)
    cow, age, year = cow[calved], age[calved], year[calved]
    if not cow.size:
        raise ConfigError(f"found no cow that calved within {years} years, needed more animals or years")
    first_calving = _day(year, rng.integers(0, 365, cow.size))
    collected = np.datetime64(f"{last}-12-31")
    covariance = np.array([[HERD_YEAR]])
    group, group_effect = herd_years(rng, herd.herd[cow], year, covariance)
    log_days = MEAN + AGE[age - 2] + group_effect[:, 0] + herd.u[cow, 0]
    log_days += np.sqrt(RESIDUAL) * rng.standard_normal(cow.size)
    watched = np.maximum((collected - first_calving).astype(np.int64), 1)
    days, ended = censor_days(np.exp(log_days), watched)
    records = {
        "herd_year": group,
        "age_at_first_calving": np.array(AGES)[age - 2],
        "first_calving": first_calving.astype(str),
        "days": days,
        "status": np.where(ended, STATUS[1], STATUS[0]),
    }
    parameters = true_parameters(
        [
            (term("herd_year", [TRAIT], [TRAIT]), covariance),
            (term("animal", [TRAIT], [TRAIT], genetic=True), np.array([[GENETIC]])),
        ],
        [TRAIT],
        np.array([[RESIDUAL]]),
    )
    notes = (
        "phenotypes.csv         one row per cow; days from first calving to culling, or to the collection of the data",
        f"                       on {collected} where status is {STATUS[0]}: {np.count_nonzero(~ended)} of {cow.size}",
        "",
        f"Fixed effects on log days: mean {MEAN:g} (first calving at {AGES[0]} years), at {AGES[1]} years {AGE[1]:g}",
    )
    what = "Simulated productive life of cows; no animal in it ever lived."
    values = {TRAIT: herd.u[:, 0]}
    return Simulated(what, herd, values, cow, records, {TRAIT: log_days}, parameters, _ANALYSIS, notes)


def _day(year: np.ndarray, day: np.ndarray) -> np.ndarray:
    """(n,) datetime64[D]: a day of the year."""
    return (year - 1970).astype("datetime64[Y]").astype("datetime64[D]") + day


_ANALYSIS = """\
# Productive life of cows, many of which are still alive: log days, right-censored.
# Paths of data are relative to this file, the output directory to where the command runs.
name: {name}
data:
  phenotypes: phenotypes.csv
  pedigree: pedigree.csv
traits:
  productive_life: {type: censored, column: days, censored: status, values: {right: [alive], none: [culled]}, log: true}
model:
  fixed:
    age_at_first_calving: {}
  random:
    herd_year: {}
    animal: {relationship: pedigree}
sampler: {chains: 2, burn_in: 1000, samples: 10000, thin: 5, seed: 42}
output: {directory: runs/{name}}
"""
