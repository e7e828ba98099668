"""Simulated cases of mastitis: counts within a lactation of a cow, who was watched for some months of it.

    log rate = mu + lactation + c + u_i + p_i + e        cases ~ Poisson(months x exp(log rate))

with c ~ N(0, HERD_YEAR), u ~ N(0, A GENETIC), permanent environment p ~ N(0, PERMANENT), e ~ N(0, RESIDUAL).
"""

from __future__ import annotations

import numpy as np

from mmgibbs.errors import ConfigError
from mmgibbs.simulation.files import Simulated, term, true_parameters
from mmgibbs.simulation.herd import breed, herd_years

TRAIT = "mastitis_cases"
MEAN = -2.4  # log cases a month, first lactation
GENETIC, PERMANENT, HERD_YEAR, RESIDUAL = 0.35, 0.20, 0.10, 0.30
LACTATIONS, LACTATION = ("1", "2", "3+"), np.array([0.0, 0.3, 0.6])
STAYS = 0.65  # chance of a further lactation
MOST_LACTATIONS = 5
MONTHS = (10.0, 2.0)  # watched: mean and standard deviation, at least LEAST_MONTHS
LEAST_MONTHS = 0.5
STREAM = 5
YEARS = 10


def simulate_mastitis(n_animals: int, seed: int, years: int = YEARS) -> Simulated:
    """Lactations of the cows of a population of n_animals, in its last `years` years.

    Raises ConfigError where the arguments make no such data."""
    herd, rng = breed(n_animals, seed, years, np.array([[GENETIC]]), STREAM)
    last = int(herd.birth_year.max())
    cows = np.flatnonzero(herd.sex == 0).astype(np.int32)
    lactations = np.minimum(rng.geometric(1 - STAYS, cows.size), MOST_LACTATIONS)
    cow, number = np.repeat(cows, lactations), np.concatenate([np.arange(n) for n in lactations])
    year = herd.birth_year[cow] + 2 + number
    seen = (year > last - years) & (year <= last)
    cow, number, year = cow[seen], number[seen], year[seen]
    if not cow.size:
        raise ConfigError(f"found no lactation within {years} years, needed more animals or years")
    lactation = np.minimum(number, len(LACTATIONS) - 1)
    months = np.round(np.maximum(rng.normal(*MONTHS, cow.size), LEAST_MONTHS), 1)
    permanent = np.sqrt(PERMANENT) * rng.standard_normal(herd.n_animals)
    covariance = np.array([[HERD_YEAR]])
    group, group_effect = herd_years(rng, herd.herd[cow], year, covariance)
    log_rate = MEAN + LACTATION[lactation] + group_effect[:, 0] + herd.u[cow, 0] + permanent[cow]
    log_rate += np.sqrt(RESIDUAL) * rng.standard_normal(cow.size)
    records = {
        "herd_year": group,
        "lactation": np.array(LACTATIONS)[lactation],
        "months": months,
        TRAIT: rng.poisson(months * np.exp(log_rate)),
    }
    parameters = true_parameters(
        [
            (term("herd_year", [TRAIT], [TRAIT]), covariance),
            (term("genetic", [TRAIT], [TRAIT], genetic=True), np.array([[GENETIC]])),
            (term("permanent_environment", [TRAIT], [TRAIT]), np.array([[PERMANENT]])),
        ],
        [TRAIT],
        np.array([[RESIDUAL]]),
    )
    effects = ", ".join(f"{n} {e:g}" for n, e in zip(LACTATIONS, LACTATION, strict=True))
    notes = (
        f"phenotypes.csv         one row per lactation; months watched, {TRAIT} within them",
        "",
        f"Fixed effects on the log of cases a month: mean {MEAN:g}, lactation {effects}",
    )
    with_records = np.isin(np.arange(herd.n_animals), cow)
    values = {TRAIT: herd.u[:, 0], "permanent_environment": np.where(with_records, permanent, np.nan)}
    what = "Simulated cases of mastitis; no animal in it ever lived."
    return Simulated(what, herd, values, cow, records, {TRAIT: log_rate}, parameters, _ANALYSIS, notes)


_ANALYSIS = """\
# Cases of mastitis: counts over the months that a cow was watched, several lactations of each.
# Paths of data are relative to this file, the output directory to where the command runs.
name: {name}
data:
  phenotypes: phenotypes.csv
  pedigree: pedigree.csv
traits:
  mastitis_cases: {type: count, exposure: months}
model:
  fixed:
    lactation: {}
  random:
    herd_year: {}
    genetic: {level: animal, relationship: pedigree}
    permanent_environment: {level: animal}
sampler: {chains: 2, burn_in: 1000, samples: 10000, thin: 5, seed: 42}
output: {directory: runs/{name}}
"""
