"""Simulated scores, disease, longevity and counts: their analyses find the true parameters again, data set by data set.

Each of several data sets gives z = (posterior mean - truth) / sqrt(posterior variance + Monte Carlo error^2), of
logarithms for variances. The posterior standard deviation stands for how far data of this size lead astray, so that
over R data sets sum z / sqrt(R) is about N(0, 1) and sum z^2 about chi-square(R). Mutants look for parameters in
another unit, or leave out what is special about the records.
"""

from functools import cache

import numpy as np
import pytest
import yaml
from scipy import stats

from mmgibbs.runs.run import run
from mmgibbs.simulation.files import write
from mmgibbs.simulation.make import KINDS

pytestmark = pytest.mark.slow
DATA_SETS, ANIMALS, FALSE_ALARM = 6, 2000, 1e-3
SHORT = {"chains": 1, "burn_in": 500, "samples": 3000, "thin": 2, "seed": 5}
LOOKED_FOR = {
    "calving_ease": [
        "threshold[calving_ease:assisted|difficult]",
        "contemporary_group.var[calving_ease]",
        "genetic.var[direct:birth_weight]",
        "residual.cov[birth_weight,calving_ease]",
        "ratio[genetic.maternal:calving_ease]",
    ],
    "disease": ["contemporary_group.var[pneumonia]", "animal.var[pneumonia]"],
    "longevity": ["animal.var[productive_life]", "residual.var[productive_life]", "age_at_first_calving"],
    "mastitis": ["genetic.var[mastitis_cases]", "residual.var[mastitis_cases]", "lactation"],
}
LEVEL = {"age_at_first_calving": ("2", 7.3), "lactation": ("1", -2.4)}  # of fixed effects: a level and its true value


def without_censoring(analysis):
    analysis["traits"]["productive_life"]["values"] = {"none": ["alive", "culled"]}


def without_exposure(analysis):
    del analysis["traits"]["mastitis_cases"]["exposure"]


def as_written(analysis):
    pass


def deviations(result, truth, names):
    """(m,) z of each name."""
    out = []
    for name in names:
        if name in LEVEL:
            level, value = LEVEL[name]
            row = result.solutions.filter(term=name, level=level).row(0, named=True)
            out.append((row["mean"] - value) / np.hypot(row["sd"], row["mcse"]))
            continue
        draws, value = result.draws["posterior"][name].to_numpy().ravel(), truth[name]
        if ".var[" in name:
            draws, value = np.log(draws), np.log(value)
        error = np.std([part.mean() for part in np.array_split(draws, 20)], ddof=1) / np.sqrt(20)
        out.append((draws.mean() - value) / np.hypot(draws.std(), error))
    return out


@cache
def found(kind, change, folder):
    """(R,) (result, true parameters) of every data set."""
    rows = []
    for seed in range(DATA_SETS):
        simulated = KINDS[kind][0](ANIMALS, 100 + seed)
        target = write(simulated, folder / f"{kind}{change.__name__}{seed}", "a test")
        analysis = yaml.safe_load((target / "analysis.yaml").read_text())
        for table in ("phenotypes", "pedigree"):
            analysis["data"][table] = str(target / f"{table}.csv")
        analysis["sampler"] |= SHORT
        change(analysis)
        result = run(analysis, directory=target / "run", progress=False)
        rows.append((result, simulated.parameters))
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("simulated")


def power_of_unit(name):
    """Of the residual variance of the liability, in a parameter."""
    if ".var[" in name:
        return 0.0 if "birth_weight" in name else 1.0
    return 0.5 if ".cov[" in name or name.startswith("threshold") else 0.0


def agrees(kind, folder, change=as_written, unit=1.0):
    """Whether the parameters are found; unit: the truth in another unit of the liability (residual variance)."""
    names = LOOKED_FOR[kind]
    z = []
    for result, parameters in found(kind, change, folder):
        truth = {name: value * unit ** power_of_unit(name) for name, value in parameters.items()}
        z.append(deviations(result, truth, names))
    z, m = np.array(z), len(names)
    largest = np.abs(z.sum(axis=0)).max() / np.sqrt(DATA_SETS)
    squares = (z**2).sum(axis=0).max()
    print(kind, change.__name__, unit, z.round(1).tolist(), largest, squares)
    return bool(largest < stats.norm.isf(FALSE_ALARM / m / 2) and squares < stats.chi2.isf(FALSE_ALARM / m, DATA_SETS))


@pytest.mark.parametrize("kind", LOOKED_FOR)
def test_true_parameters_are_found(kind, folder):
    assert agrees(kind, folder)


@pytest.mark.parametrize("kind", ["calving_ease", "disease"])
def test_parameters_of_another_unit_are_not(kind, folder):
    """A residual variance of 3 in place of 1."""
    assert not agrees(kind, folder, unit=3.0)


@pytest.mark.parametrize(("kind", "change"), [("longevity", without_censoring), ("mastitis", without_exposure)])
def test_records_taken_for_others_are_seen(kind, change, folder):
    assert not agrees(kind, folder, change)
