"""The textbook case, five calves of eight animals, variances known: BLUP and Gibbs against printed numbers."""

import numpy as np
import polars as pl
import pytest
from helpers.support import published
from scipy import stats

import mmgibbs

G2, R2 = [[20.0, 18.0], [18.0, 40.0]], [[40.0, 11.0], [11.0, 30.0]]


def tables():
    first, second = published("weaning_gain"), published("weaning_gain_bivariate")["second_trait_by_id"]
    rows = [dict(zip(first["records"][0], row, strict=True)) for row in first["records"][1:]]
    records = pl.DataFrame(
        [{"animal": str(r["id"]), "sex": r["sex"], "WWG": r["gain"], "PWG": second[str(r["id"])]} for r in rows]
    )
    columns = ["animal", "sire", "dam"]
    return records, pl.DataFrame(first["pedigree"], schema=columns, orient="row").with_columns(
        pl.col(columns).cast(pl.String)
    )


def analysis(traits, genetic, residual, directory, **sampler):
    records, pedigree = tables()
    return {
        "name": "weaning_gain",
        "data": {"phenotypes": records, "pedigree": pedigree},
        "traits": list(traits),
        "model": {"fixed": {"sex": {}}, "random": {"genetic": {"level": "animal", "relationship": "pedigree"}}},
        "variances": {"genetic": {"start": genetic}, "residual": {"start": residual}, "mode": "fixed"},
        "sampler": sampler,
        "output": {"directory": str(directory)},
    }


def univariate(directory="unused", **sampler):
    return analysis(["WWG"], 20, 40, directory, **sampler)


def bivariate(directory="unused", **sampler):
    return analysis(["WWG", "PWG"], G2, R2, directory, **sampler)


def columns_by_trait(solutions, trait, *columns):
    """Sexes as printed (male, female), then animals 1 to 8."""
    of_trait = solutions.filter(pl.col("trait") == trait)
    by_level = {(row["term"], row["level"]): row for row in of_trait.iter_rows(named=True)}
    order = [("sex", "male"), ("sex", "female"), *(("genetic", str(i)) for i in range(1, 9))]
    return [np.array([by_level[at][c] for at in order], float) for c in columns]


def test_blup_univariate(tmp_path):
    solutions = mmgibbs.run(univariate(tmp_path / "run", method="blup"), progress=False).solutions
    mean, sd, reliability = columns_by_trait(solutions, "WWG", "mean", "sd", "reliability")
    expected = published("weaning_gain")["expected"]
    np.testing.assert_allclose(mean, expected["solution"], atol=5.1e-6)
    np.testing.assert_allclose(sd, expected["sep"], atol=5.1e-6)
    np.testing.assert_allclose(reliability[2:], expected["reliability_a1_8"], atol=5.1e-6)


def test_blup_bivariate(tmp_path):
    solutions = mmgibbs.run(bivariate(tmp_path / "run", method="blup"), progress=False).solutions
    expected = published("weaning_gain_bivariate")["expected"]
    for trait, sex in (("WWG", expected["sex"][:2]), ("PWG", expected["sex"][2:])):
        mean, reliability = columns_by_trait(solutions, trait, "mean", "reliability")
        np.testing.assert_allclose(mean, [*sex, *expected[trait]], atol=5.1e-6)
        np.testing.assert_allclose(reliability[2:], expected[f"rel_{trait}"], atol=5.1e-6)


def test_blup_at_another_variance_is_not_the_published_one(tmp_path):
    solutions = mmgibbs.run(
        univariate(tmp_path / "run", method="blup"), ["variances.genetic=20.1"], progress=False
    ).solutions
    (mean,) = columns_by_trait(solutions, "WWG", "mean")
    assert np.abs(mean - published("weaning_gain")["expected"]["solution"]).max() > 1e-4


def scores_of_a_run(directory, *overrides, **sampler):
    """z of the 20 means in solutions.csv, by the MCSE beside them, and of the 16 standard deviations of animals, by sd
    / sqrt(2 ESS).

    The square of a slowly mixing level mixes faster than the level, so the latter errs on the large side."""
    config = bivariate(directory, chains=1, burn_in=500, samples=20_000, thin=2, seed=11, **sampler)
    solutions = pl.read_csv(mmgibbs.run(config, overrides, progress=False).directory / "solutions.csv")
    expected = published("weaning_gain_bivariate")["expected"]
    z = []
    for t, (trait, sex) in enumerate((("WWG", expected["sex"][:2]), ("PWG", expected["sex"][2:]))):
        mean, sd, mcse, ess = columns_by_trait(solutions, trait, "mean", "sd", "mcse", "ess")
        np.testing.assert_allclose(mcse, sd / np.sqrt(ess), rtol=1e-9)
        z.append((mean - [*sex, *expected[trait]]) / mcse)
        exact_sd = np.sqrt(G2[t][t] * (1 - np.array(expected[f"rel_{trait}"])))
        z.append((sd[2:] / exact_sd - 1) * np.sqrt(2 * ess[2:]))
    return np.concatenate(z)


LIMIT = stats.t.isf(1e-3 / 36 / 2, 99)  # 36 comparisons, MCSEs of 100 batches


@pytest.mark.parametrize("update", ["level", "site"])
def test_gibbs_through_the_run_folder(tmp_path, update):
    """The case alone, from tables to solutions.csv, judged by what the run itself reports."""
    assert np.abs(scores_of_a_run(tmp_path / "run", update=update)).max() < LIMIT


@pytest.mark.slow
def test_the_run_folder_of_another_model_is_seen(tmp_path):
    wrong = "variances.genetic.start=[[30, 18], [18, 40]]"
    assert np.abs(scores_of_a_run(tmp_path / "run", wrong)).max() > LIMIT
