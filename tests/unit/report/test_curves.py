"""Variances along the covariate of a random regression, against the sums written out."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from helpers.finished_run import describe_random

from mmgibbs.posterior.variance_shares import DAM_COLUMNS, SIRE_COLUMNS
from mmgibbs.report import plots
from mmgibbs.report.curves import PARENTS, curves_of_variance
from mmgibbs.report.finished import Finished

RNG = np.random.default_rng(6)
DRAWS = {
    "genetic.var[rr.0:weight]": RNG.uniform(20, 30, (2, 50)),
    "genetic.var[rr.1:weight]": RNG.uniform(3, 4, (2, 50)),
    "genetic.cov[rr.0:weight,rr.1:weight]": RNG.uniform(1, 2, (2, 50)),
    "litter.var[weight]": RNG.uniform(2, 3, (2, 50)),
    "residual.var[weight]": RNG.uniform(9, 10, (2, 50)),
}


def run(
    draws=DRAWS, traits=("weight",), markers=None, relationship="pedigree", legendre=None, level="animal", **effects
):
    rr = {"level": level, "legendre": legendre or {"column": "age", "degree": 1, "range": [1.0, 6.0]}}
    random = {
        "genetic": {"relationship": relationship, "effects": {"rr": rr | {"traits": ["weight"]}, **effects}},
        "litter": {"relationship": "identity", "level": "litter", "traits": ["weight"]},
    }
    analysis = {"traits": {name: {} for name in traits}, "model": {"random": random, "markers": markers or {}}}
    return Finished(
        Path("."), {"analysis": analysis, "relationships": describe_random(analysis)}, pl.DataFrame(), draws=dict(draws)
    )


def curves(of):
    return curves_of_variance(of, plots.Figures())


def test_variance_and_heritability_are_those_of_the_draws():
    (found,) = curves(run())
    v0, v1, c, litter, residual = (values.reshape(-1) for values in DRAWS.values())
    rows = [[cell.value for cell in row] for row in found["table"].rows]
    assert [row[0] for row in rows] == [1.0, 2.25, 3.5, 4.75, 6.0]
    for row in rows:
        phi = np.sqrt(0.5), np.sqrt(1.5) * (2 * (row[0] - 1) / 5 - 1)
        variance = phi[0] ** 2 * v0 + phi[1] ** 2 * v1 + 2 * phi[0] * phi[1] * c
        share = variance / (variance + litter + residual)
        expected = [f(of) for of in (variance, share) for f in (np.mean, *_ends)]
        assert row[1:] == pytest.approx(expected, rel=1e-12)
    assert [heading for heading, *_ in found["figures"]] == ["Genetic variance along age", "Heritability along age"]
    caption = found["figures"][1][2]
    assert "the sum of those of genetic, litter and residual. The band is the 95 % interval" in caption
    assert all(">covariate of the curve<" in svg and "var(--band)" in svg for _, svg, _ in found["figures"])


_ends = (lambda of: np.percentile(of, 2.5), lambda of: np.percentile(of, 97.5))


def test_estimates_and_independent_coefficients():
    (found,) = curves(run({name: values[:1, :1] for name, values in DRAWS.items()}))
    assert [c.label for c in found["table"].columns] == ["age", "Variance", "Heritability"]
    assert "band" not in found["figures"][0][2] and found["table"].note == ""
    (found,) = curves(run({name: values for name, values in DRAWS.items() if ".cov[" not in name}))
    at_low = 0.5 * DRAWS["genetic.var[rr.0:weight]"] + 1.5 * DRAWS["genetic.var[rr.1:weight]"]
    assert found["table"].rows[0][1].value == pytest.approx(at_low.mean())


@pytest.mark.parametrize(
    "of",
    [
        run(markers={"snps": {"traits": ["weight"]}}),
        run({name.replace("residual.var[weight]", "residual.var[weight|in]"): v for name, v in DRAWS.items()}),
        run({name: values for name, values in DRAWS.items() if not name.startswith("litter")}),
        run(relationship="kinship.txt"),
    ],
    ids=["SNP effects", "residual classes", "a variance without draws", "a relationship file"],
)
def test_where_the_sum_is_not_known_there_is_no_heritability(of):
    (found,) = curves(of)
    assert len(found["figures"]) == 1 and len(found["table"].columns) == 4
    assert ("Genetic" in found["figures"][0][0]) == (of.relationships["genetic"]["symbol"] == "A")


@pytest.mark.parametrize("level", ["sire", "Dam"])
def test_parents_have_neither_heritability_nor_the_genetic_variance(level):
    assert set(PARENTS) == {*SIRE_COLUMNS, *DAM_COLUMNS}
    (found,) = curves(run(level=level))
    assert [heading for heading, *_ in found["figures"]] == ["Variance along age"]
    assert len(found["table"].columns) == 4


def test_heritability_needs_the_sum_of_one_trait():
    (found,) = curves(run(maternal={"level": "dam", "traits": ["weight"]}))
    assert found["label"] == "genetic.rr, weight, along age"
    assert [heading for heading, *_ in found["figures"]] == ["Genetic variance along age"]
    of = run({**DRAWS, "chips.var[weight]": DRAWS["litter.var[weight]"]})
    of.record["analysis"]["model"]["random"]["chips"] = {"relationship": "genomic", "level": "animal"}
    of.record["relationships"] |= {"chips": {"symbol": "G", "related": True}}
    assert [heading for heading, *_ in curves(of)[0]["figures"]] == ["Genetic variance along age"]
    (found,) = curves(run(traits=("weight", "length"), markers={"snps": {"traits": ["length"]}}))
    assert len(found["figures"]) == 2


@pytest.mark.parametrize(
    "of",
    [
        run(legendre={"column": "age", "degree": 1, "range": None}),
        run({}),
        replace(run(), record={"analysis": {"model": {}}}, draws={"beta[x]": None}),  # too many to be copied
    ],
    ids=["a range that is not stated", "no draws", "a regression"],
)
def test_where_nothing_is_known_nothing_is_shown(of):
    assert curves(of) == []
