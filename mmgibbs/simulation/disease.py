"""Simulated pneumonia of calves: ill or well, the liability above 0 or not.

    l = mu + sex + season + c + u_i + e        c ~ N(0, CONTEMPORARY_GROUP), u ~ N(0, A GENETIC), e ~ N(0, 1)

mu follows from the incidence that is asked for.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.simulation import arguments
from mmgibbs.simulation.files import Simulated, term, true_parameters
from mmgibbs.simulation.herd import breed, cut_categories, cut_points, herd_years
from mmgibbs.simulation.simulate import SEXES

TRAIT, LABELS = "pneumonia", ("well", "ill")
INCIDENCE = 0.2
GENETIC, CONTEMPORARY_GROUP = 0.50, 0.25  # residual variance 1
SEASONS, SEASON = ("spring", "summer", "autumn", "winter"), np.array([0.0, -0.3, 0.3, 0.6])
SEX = np.array([-0.2, 0.0])
OBSERVED = 0.95
STREAM = 3
YEARS = 10


def simulate_disease(n_animals: int, seed: int, years: int = YEARS, incidence: float = INCIDENCE) -> Simulated:
    """Calves of a population of n_animals, of which the share `incidence` is expected to be ill.

    Raises ConfigError where the arguments make no such data."""
    incidence = arguments.share("incidence", incidence)
    herd, rng = breed(n_animals, seed, years, np.array([[GENETIC]]), STREAM)
    born = (herd.birth_year >= herd.birth_year.max() - years + 1) & (rng.random(herd.n_animals) < OBSERVED)
    calf = np.flatnonzero(born).astype(np.int32)
    sex, season = herd.sex[calf], rng.integers(0, len(SEASONS), calf.size)
    covariance = np.array([[CONTEMPORARY_GROUP]])
    group, group_effect = herd_years(rng, herd.herd[calf], herd.birth_year[calf], covariance)
    fixed = SEX[sex] + SEASON[season]
    (cut,) = cut_points(fixed, np.sqrt(GENETIC + CONTEMPORARY_GROUP + 1.0), (1 - incidence, incidence))
    liability = fixed - cut + group_effect[:, 0] + herd.u[calf, 0] + rng.standard_normal(calf.size)
    records = {
        "contemporary_group": group,
        "sex": np.array(SEXES)[sex],
        "season": np.array(SEASONS)[season],
        TRAIT: cut_categories(liability, np.zeros(1), LABELS, TRAIT),
    }
    parameters = true_parameters(
        [
            (term("contemporary_group", [TRAIT], [TRAIT]), covariance),
            (term("animal", [TRAIT], [TRAIT], genetic=True), np.array([[GENETIC]])),
        ],
        [TRAIT],
        np.eye(1),
    )
    notes = (
        f"phenotypes.csv         one row per calf; {TRAIT} {' or '.join(LABELS)}",
        "",
        "Fixed effects on the liability",
        f"mean ({SEXES[1]}, {SEASONS[0]}): {-cut:.4f}; expected incidence {incidence:g}",
        f"{SEXES[0]} minus {SEXES[1]}: {SEX[0]:g}",
        *(f"{name} minus {SEASONS[0]}: {effect:g}" for name, effect in zip(SEASONS[1:], SEASON[1:], strict=True)),
    )
    what = "Simulated calves with and without pneumonia; no animal in it ever lived."
    values = {TRAIT: herd.u[:, 0]}
    return Simulated(what, herd, values, calf, records, {TRAIT: liability}, parameters, _ANALYSIS, notes)


_ANALYSIS = """\
# A disease, yes or no: an animal model for its liability, contemporary groups random.
# Paths of data are relative to this file, the output directory to where the command runs.
name: {name}
data:
  phenotypes: phenotypes.csv
  pedigree: pedigree.csv
traits:
  pneumonia: {type: binary, positive: ill}
model:
  fixed:
    sex: {}
    season: {}
  random:
    contemporary_group: {}
    animal: {relationship: pedigree}
sampler: {chains: 2, burn_in: 1000, samples: 10000, thin: 5, seed: 42}
output: {directory: runs/{name}}
"""
