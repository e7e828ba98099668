"""Numbers that mean a missing value elsewhere: found where they are unlike all others, and said by check and init."""

import numpy as np
import polars as pl
import pytest

import mmgibbs
from mmgibbs.data.missing_codes import missing_code
from mmgibbs.draft.make import draft

WEIGHTS = np.random.default_rng(4).normal(7.5, 2.0, 200).clip(0.1).round(2)


def with_code(code, times, values=WEIGHTS):
    return np.concatenate([values, np.full(times, float(code)), [np.nan]])


@pytest.mark.parametrize("code, times", [(-9, 1), (-9, 60), (-999, 3), (99, 1), (999, 60), (-99999, 2)])
def test_codes_are_found(code, times):
    found = missing_code(with_code(code, times))
    assert (found.value, found.times, found.low, found.high) == (code, times, WEIGHTS.min(), WEIGHTS.max())


@pytest.mark.parametrize(
    "values",
    [
        with_code(0, 3),  # a few zeros beside small values
        with_code(0, 60),  # and many
        np.repeat([0.0, 1], [950, 50]),  # cases
        np.repeat([0.0, 1, 2], [923, 74, 3]),  # counts of what is rare
        with_code(-8, 40),  # no code
        WEIGHTS - WEIGHTS.mean(),  # negative numbers are measurements
        with_code(-9, 2, WEIGHTS * 5 - 40),  # among them
        with_code(99, 3, WEIGHTS * 12),  # among large ones
        np.repeat([0.0, 1, 2, 3], [60, 30, 20, 10]),  # counts: zeros are the most frequent of all
        with_code(-9, 2, WEIGHTS[:5]),  # too few to say
        np.full(50, -9.0),
        np.full(50, np.nan),
    ],
)
def test_measurements_are_left_alone(values):
    assert missing_code(values) is None


def test_zeros_far_from_all_others_are_found():
    assert missing_code(with_code(0, 1, 250 + WEIGHTS)).times == 1
    assert missing_code(with_code(0, 60, 250 + WEIGHTS)).times == 60


def test_check_names_trait_row_and_key(tmp_path):
    """230 values of -9 would be most of the variance; with the key that the warning names they are missing."""
    records = pl.DataFrame({"animal": [f"a{i}" for i in range(260)], "bwt": [*WEIGHTS, *[-9.0] * 60]})
    analysis = {
        "data": {"phenotypes": records},
        "traits": {"bwt": {}},
        "model": {"random": {"animal": {}}},
        "variances": {"animal": 1.0, "residual": 1.0},
        "sampler": {"method": "blup"},
    }
    (warning,) = [w for w in mmgibbs.check(analysis)["warnings"] if "missing value" in w]
    assert warning.startswith(
        "phenotypes: traits.bwt: 60 of 260 values of column 'bwt' are -9 (the first in row 201), and the others lie "
    )
    assert warning.endswith("does -9 mean a missing value? Then write traits.bwt.missing: ['-9']")
    analysis["traits"]["bwt"] = {"missing": ["-9"]}
    found = mmgibbs.check(analysis)
    assert found["warnings"] == [] and found["data"]["observations"] == {"bwt": 200}


def test_init_says_it_too(tmp_path):
    pl.DataFrame({"animal": [f"a{i}" for i in range(260)], "weight": [*WEIGHTS, *[-9.0] * 60]}).write_csv(
        tmp_path / "r.csv"
    )
    said = "\n".join(draft(tmp_path / "r.csv", output=tmp_path / "a.yaml").said)
    assert "warning: traits.weight: 60 of 260 values of column 'weight' are -9, and the others lie from" in said


def test_codes_of_covariates_and_weights():
    frame = pl.DataFrame({"y": WEIGHTS, "age": WEIGHTS * 10, "w": np.ones(200)})
    coded = frame.with_columns(
        age=pl.when(pl.arange(0, 200) < 3).then(-9.0).otherwise("age"),
        w=pl.when(pl.arange(0, 200) < 2).then(9999.0).otherwise(1 + pl.arange(0, 200) % 3),
    )
    fixed = {"dam age": {"column": "age", "kind": "covariate"}}
    analysis = {
        "data": {"phenotypes": coded, "weights": "w"},
        "traits": {"y": {}},
        "model": {"fixed": fixed},
        "variances": {"residual": 1.0},
        "sampler": {"method": "blup"},
    }
    of_weight, of_age = mmgibbs.check(analysis)["warnings"]
    assert of_weight.startswith("phenotypes: data.weights: 2 of 200 values of column 'w' are 9999 (the first in row 1)")
    assert of_age.startswith("phenotypes: model.fixed.dam age: 3 of 200 values of column 'age' are -9 (the first in ")
    assert "does -9 mean a missing value? Then correct these records or leave them out, as each needs a" in of_age
    assert of_age.endswith("(data.missing: ['', 'NA', '-9'], which holds for every column, names their rows)")
    analysis["data"] = {"phenotypes": frame, "weights": "w"}
    assert mmgibbs.check(analysis)["warnings"] == []
    # records without the trait do not need it
    analysis["data"] = {"phenotypes": coded.with_columns(y=pl.when(pl.col("age") > 0).then("y")), "weights": "w"}
    assert not any("age" in w for w in mmgibbs.check(analysis)["warnings"])


def test_codes_of_covariates_of_random_regressions():
    frame = pl.DataFrame({"animal": [f"a{i % 20}" for i in range(200)], "y": WEIGHTS, "dim": [-9.0, *WEIGHTS[1:]]})
    analysis = {
        "data": {"phenotypes": frame},
        "traits": {"y": {}},
        "model": {
            "random": {"animal": {"effects": {"own": {"level": "animal", "legendre": {"column": "dim", "degree": 1}}}}}
        },
        "variances": {"animal": [[1.0, 0], [0, 1]], "residual": 1.0},
        "sampler": {"method": "blup"},
    }
    (warning,) = mmgibbs.check(analysis)["warnings"]
    assert warning.startswith(
        "phenotypes: model.random.animal.effects.own.legendre: 1 of 200 values of column 'dim' is -9 (the "
    )
    # made by hand for two groups of records, 0 in those of the other
    first = np.arange(200) < 100
    mixed = {"first": np.where(first, 300 + WEIGHTS, 0), "second": np.where(first, 0, 300 + WEIGHTS)}
    analysis["data"]["phenotypes"] = frame.with_columns(**mixed)
    analysis["model"]["random"]["animal"] = {"effects": {"own": {"level": "animal", "covariates": list(mixed)}}}
    assert mmgibbs.check(analysis)["warnings"] == []
    analysis["model"]["random"]["animal"] = {"effects": {"own": {"level": "animal", "covariates": ["dim"]}}}
    analysis["variances"]["animal"] = 1.0
    (warning,) = mmgibbs.check(analysis)["warnings"]
    assert warning.startswith(
        "phenotypes: model.random.animal.effects.own.covariates: 1 of 200 values of column 'dim' is -9"
    )


def test_records_that_a_term_of_snps_leaves_out_are_not_looked_at(tmp_path):
    """Their cells may be as they are: they are of no record that is used."""
    snps = np.random.default_rng(3).integers(0, 3, (40, 10))
    (tmp_path / "snps.csv").write_text(
        "\n".join(
            ["id," + ",".join(f"s{j}" for j in range(10))]
            + [f"a{i}," + ",".join(map(str, row)) for i, row in enumerate(snps)]
        )
    )
    others = [i >= 40 for i in range(60)]
    frame = pl.DataFrame({"animal": [f"a{i}" for i in range(60)], "y": WEIGHTS[:60], "o": others}).with_columns(
        age=pl.when("o").then(pl.lit("?")).otherwise(pl.lit("3.5")),
        sex=pl.when("o").then(pl.lit("?")).otherwise("animal"),
    )
    analysis = {
        "data": {"phenotypes": frame, "genotypes": str(tmp_path / "snps.csv")},
        "traits": {"y": {}},
        "model": {
            "random": {"sex": {}},
            "fixed": {"age": {"kind": "covariate"}},
            "markers": {"snps": {"level": "animal", "without_genotypes": "drop"}},
        },
    }
    assert not any("'age'" in w or "'sex'" in w for w in mmgibbs.check(analysis)["warnings"])
