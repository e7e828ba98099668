"""Simulated traits that are not normal are what their docstrings and provenance notes say."""

import argparse
import shlex
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from mmgibbs.config.schema import FILE as SCHEMA
from mmgibbs.errors import ConfigError, as_a_command
from mmgibbs.runs.run import check, run
from mmgibbs.simulation import calving, command, disease, files, longevity, mastitis
from mmgibbs.simulation.herd import cut_points
from mmgibbs.simulation.simulate import DAM_AGES, SEXES

SHORT = ["sampler.chains=1", "sampler.burn_in=5", "sampler.samples=10", "sampler.thin=1"]
ANIMALS = 20_000
LARGE = {name: simulate for name, (simulate, _, _) in command.KINDS.items()}


@pytest.fixture(scope="module", params=LARGE)
def large(request):
    return request.param, LARGE[request.param](ANIMALS, seed=3)


@pytest.fixture(scope="module")
def calvings():
    return calving.simulate_calving(ANIMALS, seed=3)


def write(path, *words):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    target = path / "data"
    assert command.main(parser.parse_args([str(target), *map(str, words)])) == 0
    return target


def within_groups(values, group):
    """Sum of squares within groups over its degrees of freedom."""
    groups, code = np.unique(group, return_inverse=True)
    mean = np.bincount(code, values) / np.bincount(code)
    return np.sum((values - mean[code]) ** 2) / (values.size - groups.size)


def what_is_left(name, s):
    """True liability less everything but herd-year (its mean included) and residual."""
    r, u = s.records, s.herd.u[s.animal]
    (trait,) = s.liabilities
    left = s.liabilities[trait] - u[:, 1 if name == "calving_ease" else 0]
    if name == "calving_ease":
        left = left - s.herd.u[s.herd.dam[s.animal], 2] - calving.SEX[place(r["sex"], SEXES), 1]
        return left - calving.DAM_AGE[place(r["dam_age_class"], DAM_AGES), 1]
    if name == "disease":
        left = left - disease.SEX[place(r["sex"], SEXES)]
        return left - disease.SEASON[place(r["season"], disease.SEASONS)]
    if name == "longevity":
        return left - longevity.AGE[place(r["age_at_first_calving"], longevity.AGES)]
    left = left - mastitis.LACTATION[place(r["lactation"], mastitis.LACTATIONS)]
    return left - s.values["permanent_environment"][s.animal]


def place(values, labels):
    return np.array([labels.index(v) for v in values])


RESIDUAL = {"calving_ease": 1.0, "disease": 1.0, "longevity": longevity.RESIDUAL, "mastitis": mastitis.RESIDUAL}


def check_residual(name, s, left):
    group = s.records["herd_year" if name in ("longevity", "mastitis") else "contemporary_group"]
    found = within_groups(left, group)
    assert abs(found / RESIDUAL[name] - 1) < 4 * np.sqrt(2 / left.size), found


def test_liabilities_are_the_stated_model(large):
    name, s = large
    check_residual(name, s, what_is_left(name, s))


def test_a_model_without_breeding_values_would_be_seen(large):
    name, s = large
    with pytest.raises(AssertionError):
        check_residual(name, s, what_is_left(name, s) + s.herd.u[s.animal, 0])


@pytest.mark.parametrize("name", LARGE)
def test_same_seed_same_data(name):
    again, other = (LARGE[name](600, seed=seed, years=6) for seed in (4, 5))
    twice = LARGE[name](600, seed=4, years=6)
    for column, values in again.records.items():
        np.testing.assert_array_equal(values, twice.records[column], err_msg=column)
    assert not np.array_equal(again.herd.u, other.herd.u)


def test_scores_are_liabilities_cut_at_the_thresholds(calvings):
    liability, score = calvings.liabilities["calving_ease"], calvings.records["calving_ease"]
    threshold = calvings.parameters["threshold[calving_ease:assisted|difficult]"]
    expected = np.array(calving.CATEGORIES)[(liability > 0).astype(int) + (liability > threshold)]
    scored = score != ""
    assert 0.93 < scored.mean() < 0.97 and (score == expected)[scored].all()
    shares = [(expected == c).mean() for c in calving.CATEGORIES]
    np.testing.assert_allclose(shares, calving.SHARES, atol=0.02)
    weight = calvings.records["birth_weight"]
    assert 0.83 < np.isfinite(weight).mean() < 0.87 and np.nanmax(np.abs(weight * 10 % 1 - 0.5)) > 0.49


def test_birth_weight_and_calving_ease_covary_as_stated(calvings):
    r, u, animal = calvings.records, calvings.herd.u, calvings.animal
    weight = r["birth_weight"] - u[animal, 0] - calving.SEX[place(r["sex"], SEXES), 0]
    weight = weight - calving.DAM_AGE[place(r["dam_age_class"], DAM_AGES), 0]
    left, known = what_is_left("calving_ease", calvings), np.isfinite(weight)
    group, n = r["contemporary_group"][known], int(known.sum())
    total, first, second = (within_groups(x[known], group) for x in (weight + left, weight, left))
    assert abs(first / calving.RESIDUAL[0, 0] - 1) < 4 * np.sqrt(2 / n)
    covariance = (total - first - second) / 2
    error = np.sqrt((calving.RESIDUAL[0, 0] + calving.RESIDUAL[0, 1] ** 2) / n)
    assert abs(covariance - calving.RESIDUAL[0, 1]) < 4 * error


def test_ill_is_above_0_and_incidence_is_as_asked():
    s = disease.simulate_disease(ANIMALS, seed=3, incidence=0.04)
    ill = s.records["pneumonia"] == "ill"
    np.testing.assert_array_equal(ill, s.liabilities["pneumonia"] > 0)
    assert ill.mean() == pytest.approx(0.04, abs=0.008)


def test_days_end_with_the_collection_of_the_data():
    s = longevity.simulate_longevity(ANIMALS, seed=3)
    days, alive = s.records["days"], s.records["status"] == "alive"
    true = np.maximum(np.ceil(np.exp(s.liabilities["productive_life"])), 1)
    np.testing.assert_array_equal(days[~alive], true[~alive])
    assert (days[alive] < true[alive]).all() and days.min() >= 1
    calved = [date.fromisoformat(d) for d in s.records["first_calving"]]
    ends = np.array([c + timedelta(days=int(d)) for c, d in zip(calved, days)])
    collected = date(int(s.herd.birth_year.max()), 12, 31)
    assert (ends[alive & (days > 1)] == collected).all() and (ends[~alive] <= collected).all()
    assert 0.4 < alive.mean() < 0.6
    birth = s.herd.birth_year[s.animal]
    np.testing.assert_array_equal([c.year for c in calved], birth + s.records["age_at_first_calving"].astype(int))


def test_cases_are_poisson_at_their_rate():
    s = mastitis.simulate_mastitis(ANIMALS, seed=3)
    rate = s.records["months"] * np.exp(s.liabilities["mastitis_cases"])
    cases = s.records["mastitis_cases"]
    assert abs((cases - rate).sum()) < 4 * np.sqrt(rate.sum())
    chi_square = ((cases - rate) ** 2 / rate).mean()
    assert chi_square == pytest.approx(1.0, abs=0.1)
    assert s.records["months"].min() >= mastitis.LEAST_MONTHS and np.bincount(s.animal).max() > 2


def test_cut_points_and_true_parameters_by_hand(calvings):
    np.testing.assert_allclose(cut_points(np.array([3.0]), 2.0, (0.2, 0.8)), [3 - 2 * 0.8416212336])
    np.testing.assert_allclose(cut_points(np.array([-1.0, 5.0]), 2.0, (0.25, 0.25, 0.5))[1], 2.0)
    p = calvings.parameters
    assert p["h2[calving_ease]"] == pytest.approx(0.4 / (0.2 + 0.4 - 0.08 + 0.25 + 1))
    assert p["ratio[genetic.maternal:calving_ease]"] == pytest.approx(0.25 / 1.77)
    assert p["genetic.corr[direct:birth_weight,direct:calving_ease]"] == pytest.approx(1 / np.sqrt(7 * 0.4))
    assert p["residual.var[calving_ease]"] == 1.0 and p["residual.cov[birth_weight,calving_ease]"] == 1.0
    assert disease.simulate_disease(600, 1, 6).parameters["h2[pneumonia]"] == pytest.approx(0.5 / 1.75)
    assert mastitis.simulate_mastitis(600, 1, 6).parameters["h2[mastitis_cases]"] == pytest.approx(0.35 / 0.95)


@pytest.mark.parametrize("traits", command.KINDS)
def test_files_and_an_analysis_that_runs(traits, tmp_path, capsys):
    target = write(tmp_path, "--traits", traits, "--animals", 600, "--years", 6)
    assert f"next: mmgibbs run {shlex.quote(str(target / 'analysis.yaml'))}" in capsys.readouterr().out
    assert sorted(p.name for p in target.iterdir()) == sorted([*files.FILES, SCHEMA, "simulation.json"])
    note = (target / "PROVENANCE.txt").read_text()
    assert f"mmgibbs simulate DIRECTORY --traits {traits} --animals 600 --years 6 --seed 1" in note
    phenotypes = pl.read_csv(target / "phenotypes.csv", infer_schema_length=None)
    liabilities = pl.read_csv(target / "true_liabilities.csv", infer_schema_length=None)
    assert phenotypes["animal"].equals(liabilities["animal"]) and phenotypes.height > 50
    values = pl.read_csv(target / "true_values.csv", infer_schema_length=None)
    assert values["animal"].equals(pl.read_csv(target / "pedigree.csv")["animal"])
    result = run(target / "analysis.yaml", SHORT, directory=tmp_path / "run", progress=False)
    truth = pl.read_csv(target / "true_parameters.csv", infer_schema_length=None)
    reported = set(result.summary["parameter"])
    assert set(truth["parameter"]) <= reported
    with pytest.raises(ConfigError, match="overwrite=True"):
        write(tmp_path, "--traits", traits, "--animals", 600, "--years", 6)


@pytest.mark.parametrize(
    ("categories", "shares", "said"),
    [
        ("1,2,3,4", "0.5,0.2,0.2,0.1", "calving_ease: {type: ordinal}"),
        ("no help,some help,a vet", "0.5,0.3,0.2", 'categories: ["no help", "some help", "a vet"]'),
        ("yes,no", "0.5,0.5", 'categories: ["yes", "no"]'),
        ("3,2,1", "0.5,0.3,0.2", 'categories: ["3", "2", "1"]'),
    ],
)
def test_categories_are_named_or_numbered(categories, shares, said, tmp_path):
    words = ("--traits", "calving_ease", "--animals", 1500, "--categories", categories, "--shares", shares)
    target = write(tmp_path, *words)
    assert said in (target / "analysis.yaml").read_text()
    check(target / "analysis.yaml")
    scores = pl.read_csv(target / "phenotypes.csv", infer_schema=False)["calving_ease"].drop_nulls()
    assert set(scores) == set(categories.split(","))
    named = pl.read_csv(target / "true_parameters.csv")["parameter"].str.starts_with("threshold[").sum()
    assert named == len(categories.split(",")) - 2


@pytest.mark.parametrize(
    "words", [["--shares", "0.5,much"], ["--shares", "0.5,nan"], ["--incidence", "rare"], ["--traits", "milk"]]
)
def test_words_that_are_no_options(tmp_path, words, capsys):
    with pytest.raises(SystemExit):
        write(tmp_path, *words)
    assert "_numbers" not in capsys.readouterr().err  # no name of the source


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--incidence", 0.1], "--incidence cannot be combined with --traits weights; needed --traits disease"),
        (["--traits", "disease", "--shares", "0.5,0.5"], "--shares cannot be combined with --traits disease"),
        (["--traits", "disease", "--incidence", 1e-9], "found no record of 'ill'"),
        (["--traits", "calving_ease", "--categories", "a,b"], "shares: found 3 for 2 categories"),
        (["--traits", "calving_ease", "--categories", "a,a,b"], "needed two or more different ones"),
        (["--traits", "calving_ease", "--categories", "a|b,c,d"], "found 'a|b', needed names without"),
        (["--qtl", "20"], "--qtl: found without --snps, needed --snps N"),
        (["--hide-qtl"], "--hide-qtl: found without --snps, needed --snps N"),
        (["--traits", "calving_ease", "--shares", "0.5,0.4,0.2"], "shares: found 0.5, 0.4, 0.2, needed shares above 0"),
        (["--traits", "calving_ease", "--shares", "0.5,0.499999999,0.000000001"], "found no record of 'difficult'"),
        (["--traits", "mastitis", "--animals", 5], "at least 10 a year"),
    ],
)
def test_arguments_that_make_no_data(tmp_path, words, message):
    with as_a_command(), pytest.raises(ConfigError) as caught:
        write(tmp_path, *words)
    assert message in str(caught.value)
    assert not (tmp_path / "data").exists()
