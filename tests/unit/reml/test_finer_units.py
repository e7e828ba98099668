"""A random effect that is most of what varies does not push the others to the boundary."""

import numpy as np
import polars as pl
import pytest
from helpers.likelihoods import likelihood_of
from helpers.milk_records import ANALYSIS, no_variance, records
from helpers.selection import first
from reference import models

import mmgibbs
from mmgibbs.errors import ModelError
from mmgibbs.reml.maximise import maximise

RANDOM = "model.random={cow: {}, herd: {}}"
NONE_FIXED = "model.fixed={}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "analysis.yaml").write_text(ANALYSIS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def herds(table, sd):
    """Records of ten herds, whose means have this standard deviation."""
    means = sd * np.random.default_rng(6).standard_normal(10)
    herd = np.arange(180) // 2 % 10
    return table.with_columns(herd=pl.Series(herd), milk=pl.col("milk") + pl.Series(means[herd]))


def estimates(table, *settings, traits="[milk]", name="run"):
    """(mean, sd) by parameter, with NaN, and run.json."""
    table.write_csv("records.csv")
    found = mmgibbs.run("analysis.yaml", [f"traits={traits}", f"output.directory={name}", *settings], progress=False)
    names, sd = found.summary["parameter"], found.summary["sd"].cast(float).to_numpy()
    return (
        dict(zip(names, found.summary["mean"].to_numpy(), strict=True)),
        dict(zip(names, np.where(np.isnan(sd), np.nan, sd), strict=True)),
        found.info,
    )


def not_estimated(info):
    return [note for note in info["notes"] if "on the boundary" in note or "determine" in note or "nothing" in note]


@pytest.mark.parametrize("sd", first(1, [300.0, 1000.0]))
def test_variances_within_herds_are_those_of_a_model_with_fixed_herds(folder, sd):
    """As nearly as herds of that variance are fixed; without starts, from good ones, and of records in other units."""
    table = herds(records(), sd)
    fixed = estimates(table, name="fixed")
    starts = [f"variances.{term}.start={s}" for term, s in (("cow", 1.0), ("herd", sd**2), ("residual", 1.4))]
    without = estimates(table, NONE_FIXED, RANDOM, name="without")
    given = estimates(table, NONE_FIXED, RANDOM, *starts, name="given")
    grams = estimates(table.with_columns(milk=1000.0 * pl.col("milk")), NONE_FIXED, RANDOM, name="grams")
    for (mean, errors, info), unit in ((without, 1.0), (given, 1.0), (grams, 1e6)):
        assert not not_estimated(info)
        for parameter in ("cow.var[milk]", "residual.var[milk]"):
            assert mean[parameter] / unit == pytest.approx(fixed[0][parameter], rel=1e-3)
            assert errors[parameter] / unit == pytest.approx(fixed[1][parameter], rel=1e-3)
        assert mean["herd.var[milk]"] / unit == pytest.approx(without[0]["herd.var[milk]"], rel=1e-4)
        assert errors["herd.var[milk]"] > 0 and errors["ratio[cow:milk]"] > 0
    assert given[2]["log_likelihood"] == pytest.approx(without[2]["log_likelihood"], abs=1e-5)
    history = without[2]["log_likelihoods"]
    assert len(history) == without[2]["iterations"] + 1 and np.all(np.diff(history) > -1e-6)


def test_any_limit_of_iterations_is_kept(folder):
    """Fewer than it needs are a warning, never the maximum in units that are too large."""
    table, failed = herds(records(), 320.0), 0
    whole = estimates(table, NONE_FIXED, RANDOM)
    for limit in range(1, whole[2]["iterations"] + 2):
        limited = NONE_FIXED, RANDOM, f"sampler.max_iterations={limit}"
        mean, _, info = estimates(table, *limited, name=f"limit{limit}")
        assert info["iterations"] <= limit
        if not info["converged"]:
            (warning,) = info["warnings"]
            assert "has not converged" in warning and "more iterations" in warning
            assert "thousands of times another" in warning or "standard errors from the best" in warning
            failed += 1
            continue
        assert mean["cow.var[milk]"] == pytest.approx(whole[0]["cow.var[milk]"], rel=1e-4)
    assert 0 < failed < whole[2]["iterations"] + 1


@pytest.mark.parametrize("sd", [1.0, 300.0])
def test_a_variance_of_0_is_named_however_much_herds_vary(folder, sd):
    table = no_variance().with_columns(herd=pl.Series(np.repeat(np.arange(10), 18)))
    means = sd * np.random.default_rng(6).standard_normal(10)
    table = table.with_columns(milk=pl.col("milk") + pl.Series(means)[table["herd"]])
    table = table.with_columns(cow=pl.col("herd") * 6 + pl.int_range(180) % 6)
    centred = pl.col("milk") - pl.col("milk").mean().over("cow") + pl.col("milk").mean().over("herd")
    mean, errors, info = estimates(table.with_columns(milk=centred), NONE_FIXED, RANDOM)
    (note,) = not_estimated(info)
    assert note.startswith("cow: the variance of milk is on the boundary")
    assert mean["cow.var[milk]"] < 2e-5 and np.isnan(errors["cow.var[milk]"]) and np.isnan(errors["ratio[cow:milk]"])
    assert errors["residual.var[milk]"] > 0 and errors["herd.var[milk]"] > 0


@pytest.mark.parametrize("sd", first(1, [60.0, 1500.0]))
def test_a_correlation_of_1_is_named_however_much_herds_vary(folder, sd):
    """A combination has no variance; in the unit of herds it looks like the variance of milk alone."""
    rng = np.random.default_rng(8)
    cow, own = np.repeat(np.arange(60), 3), rng.standard_normal(60)
    y = np.outer(own[cow], [1.5, 1.0]) + 1.5 * rng.standard_normal((180, 2))
    y[:, 1] += 2 * rng.standard_normal(10)[np.arange(180) // 2 % 10]  # fat of the herds that `herds` gives milk
    table = herds(pl.DataFrame({"cow": cow, "milk": y[:, 0], "fat": y[:, 1]}), sd)
    fixed, found = (
        estimates(table, *s, traits="[milk, fat]", name=n) for s, n in (((), "a"), ((NONE_FIXED, RANDOM), "b"))
    )
    (note,) = not_estimated(found[2])
    assert note.startswith("cow: the matrix is on the boundary: a combination of milk, fat has no variance")
    for parameter in ("cow.var[milk]", "cow.var[fat]"):
        assert found[0][parameter] == pytest.approx(fixed[0][parameter], rel=0.1)


@pytest.mark.parametrize("name", first(4, models.NAMES))
def test_usual_models_take_no_more_iterations(name):
    """Their maxima, on boundaries or not, are those of maximise."""
    from mmgibbs.reml.finer_units import maximise_in_fitting_units

    likelihood, elements, start = likelihood_of(models.example(name))
    alone = maximise(likelihood, elements, start, 1e-5, 100)
    found, units = maximise_in_fitting_units(likelihood, elements, start, 1e-5, 100)
    assert units is elements and found.log_likelihoods == alone.log_likelihoods


def test_starts_without_a_factor_are_named(folder):
    herds(records(), 2.0).write_csv("records.csv")
    held = "variances.herd={start: 1.0e+18, fixed: true}"
    words = r"variances\.\*\.start: .* not positive definite.*; found .* cow .*, herd 1\.0e\+18, residual .*; needed"
    with pytest.raises(ModelError, match=words):
        mmgibbs.run("analysis.yaml", ["traits=[milk]", NONE_FIXED, RANDOM, held], progress=False)
