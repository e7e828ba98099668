"""Simulated calvings: birth weight beside calving ease, scores cut from a liability with direct and maternal effects.

The calf i of dam j, born in contemporary group c (herd x year), has

    birth weight         y1 = mu1 + sex1 + dam age1 + c1 + direct1_i                + e1        kg
    liability            l2 = mu2 + sex2 + dam age2 + c2 + direct2_i + maternal_j   + e2
    calving ease         category k where t_{k-1} < l2 < t_k,  t_1 = 0

with (direct1, direct2, maternal) ~ N(0, A (x) GENETIC), c ~ N(0, CONTEMPORARY_GROUP), e ~ N(0, RESIDUAL), the residual
variance of the liability 1. mu2 and the thresholds follow from the shares of the scores. Some calves were not weighed
or not scored; a calf without a recorded dam has no record.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from mmgibbs.errors import ConfigError, option_name
from mmgibbs.simulation import arguments
from mmgibbs.simulation.files import Simulated, term, true_parameters
from mmgibbs.simulation.herd import breed, cut_categories, cut_points, herd_years
from mmgibbs.simulation.simulate import DAM_AGES, SEXES, dam_age_classes

TRAITS = ("birth_weight", "calving_ease")
CATEGORIES, SHARES = ("easy", "assisted", "difficult"), (0.70, 0.20, 0.10)
COMPONENTS = ("direct:birth_weight", "direct:calving_ease", "maternal:calving_ease")
GENETIC = np.array([[7.0, 1.0, -0.2], [1.0, 0.4, -0.08], [-0.2, -0.08, 0.25]])  # kg^2, kg, 1
CONTEMPORARY_GROUP = np.array([[2.25, 0.2], [0.2, 0.2]])
RESIDUAL = np.array([[11.0, 1.0], [1.0, 1.0]])
MEAN_BIRTH_WEIGHT = 38.0  # kg, bull calf of a dam of 5 to 9 years
SEX = np.array([[-2.5, -0.4], [0.0, 0.0]])
DAM_AGE = np.array([[-2.5, 1.2], [-1.2, 0.4], [-0.4, 0.1], [0.0, 0.0], [-0.3, 0.1]])
WEIGHED, SCORED = 0.85, 0.95
STREAM = 2  # of random numbers, a different one for every kind of data
YEARS = 10


def simulate_calving(
    n_animals: int,
    seed: int,
    years: int = YEARS,
    categories: Sequence[str] = CATEGORIES,
    shares: Sequence[float] = SHARES,
) -> Simulated:
    """Calvings of a population of n_animals; categories (K,) from low to high and their expected shares (K,).

    Raises ConfigError where the arguments make no such data."""
    categories, shares = _checked(categories, shares)
    herd, rng = breed(n_animals, seed, years, GENETIC, STREAM)
    calf = np.flatnonzero(herd.dam >= 0).astype(np.int32)
    dam, sex = herd.dam[calf], herd.sex[calf]
    age = (herd.birth_year[calf] - herd.birth_year[dam]).astype(int)
    group, group_effect = herd_years(rng, herd.herd[calf], herd.birth_year[calf], CONTEMPORARY_GROUP)
    fixed = SEX[sex] + DAM_AGE[dam_age_classes(age)]
    y = fixed + group_effect + rng.standard_normal((calf.size, 2)) @ np.linalg.cholesky(RESIDUAL).T
    y += herd.u[calf, :2]
    y[:, 1] += herd.u[dam, 2]
    cuts = cut_points(fixed[:, 1], np.sqrt(liability_variance()), shares)
    thresholds, mean = cuts - cuts[0], np.array([MEAN_BIRTH_WEIGHT, -cuts[0]])
    y += mean
    scores = cut_categories(y[:, 1], thresholds, categories, TRAITS[1])
    weighed, scored = rng.random(calf.size) < WEIGHED, rng.random(calf.size) < SCORED
    records = {
        "contemporary_group": group,
        "sex": np.array(SEXES)[sex],
        "dam_age": age,
        "dam_age_class": np.array(DAM_AGES)[dam_age_classes(age)],
        "birth_weight": np.where(weighed, np.round(y[:, 0], 1), np.nan),
        "calving_ease": np.where(scored, scores, ""),
    }
    cut_categories(y[scored, 1], thresholds, categories, TRAITS[1])
    parameters = true_parameters(
        [
            (term("contemporary_group", TRAITS, TRAITS), CONTEMPORARY_GROUP),
            (term("genetic", COMPONENTS, TRAITS, genetic=True), GENETIC),
        ],
        TRAITS,
        RESIDUAL,
        [(TRAITS[1], categories, thresholds)],
    )
    return Simulated(
        "Simulated calvings; no animal in it ever lived.",
        herd,
        {c.replace(":", "_"): herd.u[:, i] for i, c in enumerate(COMPONENTS)},
        calf,
        records,
        {"calving_ease": y[:, 1]},
        parameters,
        _ANALYSIS.replace("{calving_ease}", _trait(categories)),
        _notes(mean, thresholds, categories, shares),
    )


def liability_variance() -> float:
    """V of the liability of calving ease: groups, direct, direct-maternal, maternal, residual."""
    return float(CONTEMPORARY_GROUP[1, 1] + GENETIC[1, 1] + GENETIC[1, 2] + GENETIC[2, 2] + RESIDUAL[1, 1])


def _checked(categories: Sequence[str], shares: Sequence[float]) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return both as tuples; ConfigError where they make no scores."""
    names = "a list of names, from low to high"
    given, categories = categories, arguments.several("categories", categories, names)
    if not all(isinstance(name, str) for name in categories):
        raise arguments.wrong("categories", given, names)
    shares = arguments.several("shares", shares, "a list of shares, one for each category")
    if len(categories) < 2 or len(set(categories)) < len(categories):
        raise ConfigError(
            f"{option_name('categories')}: found {', '.join(categories)}, needed two or more different ones"
        )
    wrong = [c for c in categories if not c.strip() or not set(c).isdisjoint("[],:/=|{}'\"\n")]
    if wrong:
        raise ConfigError(
            f"{option_name('categories')}: found {wrong[0]!r}, needed names without brackets, quotes, and , : / = |"
        )
    if len(shares) != len(categories):
        raise ConfigError(
            f"{option_name('shares')}: found {len(shares)} for {len(categories)} categories, needed one for each"
        )
    for share in shares:
        arguments.share("shares", share)
    if abs(sum(shares) - 1) > 1e-6:
        shown = ", ".join(f"{s:g}" for s in shares)
        raise ConfigError(f"{option_name('shares')}: found {shown}, needed shares above 0 whose sum is 1")
    return categories, shares


def _trait(categories: Sequence[str]) -> str:
    """Numbers in their order need no list."""
    numbers = all(c.isdecimal() for c in categories)
    if numbers and sorted(categories, key=int) == list(categories):
        return "{type: ordinal}"
    return f"{{type: ordinal, categories: [{', '.join(map(json.dumps, categories))}]}}"


_ANALYSIS = """\
# Calving ease in scores beside birth weight: direct and maternal genetic effects, contemporary groups random.
# Paths of data are relative to this file, the output directory to where the command runs.
name: {name}
data:
  phenotypes: phenotypes.csv
  pedigree: pedigree.csv
traits:
  birth_weight: {}
  calving_ease: {calving_ease}
model:
  fixed:
    sex: {}
    dam_age: {column: dam_age_class}
  random:
    contemporary_group: {}
    genetic:
      relationship: pedigree
      effects:
        direct: {level: animal}
        maternal: {level: dam, traits: [calving_ease]}
sampler: {chains: 2, burn_in: 1000, samples: 10000, thin: 5, seed: 42}
output: {directory: runs/{name}}
"""


def _notes(
    mean: np.ndarray, thresholds: np.ndarray, categories: Sequence[str], shares: Sequence[float]
) -> tuple[str, ...]:
    rows = zip(DAM_AGES, DAM_AGE, strict=True)
    return (
        "phenotypes.csv         one row per calf; birth_weight in kg, calving_ease a score, empty where not recorded",
        "",
        "Fixed effects (birth weight in kg, liability of calving ease)",
        f"mean ({SEXES[1]}, dam of 5 to 9 years): {mean[0]:g}  {mean[1]:.4f}",
        f"{SEXES[0]} minus {SEXES[1]}: {SEX[0, 0]:g}  {SEX[0, 1]:g}",
        *(f"dam of {age} years: {effect[0]:g}  {effect[1]:g}" for age, effect in rows),
        f"thresholds of calving ease: {'  '.join(f'{t:.4f}' for t in thresholds)}",
        f"expected shares of {', '.join(categories)}: {'  '.join(f'{s:g}' for s in shares)}",
    )
