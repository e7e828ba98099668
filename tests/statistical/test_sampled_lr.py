"""The LR method and cross-validation by sampling: at known variances they are those of BLUP, and of a binary trait the
statistics are what is expected where the model made the records."""

import numpy as np
import polars as pl
import pytest
from helpers.mutants import mutant
from helpers.validation_data import G, analysis_of, beef_frames, binary_analysis, binary_population, small_beef

from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.runs.local import LocalExecutor
from mmgibbs.validation import gibbs
from mmgibbs.validation.evaluation import read_recorded
from mmgibbs.validation.gibbs import validate_by_sampling
from mmgibbs.validation.options import ValidationPlan, resolve_plan
from mmgibbs.validation.run import examine, validate_analysis
from mmgibbs.validation.splits import choose

CUTOFF, DRAWS = 2003, 12_000


def frames():
    return beef_frames(small_beef(240, 3, 4))


def by_blup():
    config = load_config(analysis_of(*frames(), group="herd"))
    plan = ValidationPlan(folds=3, cutoff=CUTOFF, replicates=0)
    return examine(read_recorded(config), plan, lambda _: None)


def by_sampling(samples, update="level"):
    analysis = analysis_of(*frames(), group="herd")
    analysis["variances"] |= {"mode": "fixed"}
    analysis["sampler"] = {"burn_in": 100, "samples": samples, "thin": 1, "seed": 3, "update": update}
    records = read_recorded(load_config(analysis), sampled=True)
    plan, prepared = resolve_plan(ValidationPlan(folds=3, cutoff=CUTOFF)), prepare(records.analysis)
    chosen = choose(records, prepared, plan)
    return validate_by_sampling(records, prepared, plan, chosen, lambda _: None, LocalExecutor())


@pytest.fixture(scope="module")
def both():
    return by_blup(), by_sampling(DRAWS)


def of(found, method):
    names = "effect", "statistic", "estimate", "se", "expected"
    return {(e, s): (v, se, x) for e, s, v, se, x in found.table.filter(method=method).select(names).iter_rows()}


@pytest.mark.slow
def test_predictions_are_those_of_blup(both):
    """Within the Monte Carlo error of 12,000 draws, of which no fewer than one in six is worth an independent one."""
    error = np.sqrt(G * 6 / DRAWS)
    blup, drawn = (b.predictions for b in both)
    assert (blup["animal"] == drawn["animal"]).all() and (blup["method"] == drawn["method"]).all()
    for method in ("kfold", "lr"):
        a, b = (p.filter(method=method) for p in (blup, drawn))
        for column in ("predicted", "observed"):
            difference = (a[column] - b[column]).to_numpy()
            assert np.sqrt((difference**2).mean()) < error, (method, column, difference.std())
            assert error < 0.15 * a[column].std()


def standard_errors(both):
    exact, drawn = (of(found, "lr") for found in both)
    return [(name[1], exact[name][1], drawn[name][1]) for name in exact if name[1] in gibbs.EXPECTED]


@pytest.mark.slow
def test_standard_errors_are_those_of_the_inverse_equations(both):
    found = standard_errors(both)
    assert len(found) == 2
    for name, exact, drawn in found:
        assert abs(drawn / exact - 1) < 0.15, (name, exact, drawn)


@pytest.mark.slow
def test_standard_errors_without_what_the_whole_data_leave_are_noticed(monkeypatch):
    wrong = mutant(gibbs, " - of_whole.var(ddof=1)", "")
    monkeypatch.setattr(gibbs, "_error", wrong._error)
    for name, exact, drawn in standard_errors((by_blup(), by_sampling(1000))):
        assert drawn / exact > 1.15, (name, exact, drawn)


def test_monte_carlo_error_is_taken_out_of_the_variance(both, monkeypatch):
    """Sixty draws leave much of it in p; dispersion is then too small by a share of it."""
    dispersion = lambda found: of(found, "lr")[("", "dispersion")][0]
    exact, right = dispersion(both[0]), dispersion(by_sampling(60, "site"))
    monkeypatch.setattr(gibbs, "subtract_noise", lambda sums, *_: sums)
    left_in = dispersion(by_sampling(60, "site"))
    assert left_in < right - 0.05
    assert abs(right - exact) < abs(left_in - exact)


@pytest.mark.slow
def test_a_binary_trait_is_expected_to_have_no_bias_and_no_dispersion(tmp_path):
    """Breeding values of the liability, of 400 young animals: within four standard errors of what is expected; where
    the records of the young ones are turned round, they are not."""
    phenotypes, pedigree = binary_population()
    (tmp_path / "young.txt").write_text("\n".join(phenotypes["animal"][-400:]))

    def table(name, phenotypes):
        config = binary_analysis(phenotypes, pedigree, str(tmp_path / name), burn_in=200, samples=1000)
        plan = ValidationPlan(method="lr", focal=str(tmp_path / "young.txt"))
        return validate_analysis(config, plan, progress=False, report=False).table

    def z(found, statistic, expected):
        row = found.row(by_predicate=pl.col("statistic") == statistic, named=True)
        return (row["estimate"] - expected) / row["se"]

    right = table("right", phenotypes)
    assert abs(z(right, "bias", 0)) < 4 and abs(z(right, "dispersion", 1)) < 4
    accuracy = right.filter(statistic="accuracy")["estimate"][0]
    assert 0.3 < accuracy < 1
    young = pl.int_range(pl.len()) >= len(phenotypes) - 400
    turned = pl.when(young).then(1 - pl.col("alive")).otherwise("alive").alias("alive")
    wrong = table("wrong", phenotypes.with_columns(turned))
    assert abs(z(wrong, "bias", 0)) > 4 and abs(z(wrong, "dispersion", 1)) > 4
