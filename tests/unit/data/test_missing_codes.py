"""Numbers that mean a missing value elsewhere: found where they are unlike all others, and said by check and init."""

import numpy as np
import polars as pl
import pytest

import mmgibbs
from mmgibbs.config import load_config
from mmgibbs.data.missing_codes import find_missing_codes, find_score_codes, looks_like_code
from mmgibbs.data.prepare import prepare
from mmgibbs.draft.make import draft
from mmgibbs.errors import DataError

WEIGHTS = np.random.default_rng(4).normal(7.5, 2.0, 200).clip(0.1).round(2)


def with_code(code, times, values=WEIGHTS):
    return np.concatenate([values, np.full(times, float(code)), [np.nan]])


@pytest.mark.parametrize("code, times", [(-9, 1), (-9, 60), (-999, 3), (99, 1), (999, 60), (-99999, 2)])
def test_codes_are_found(code, times):
    found = find_missing_codes(with_code(code, times))
    assert found.codes == ((code, times),) and (found.low, found.high) == (WEIGHTS.min(), WEIGHTS.max())


@pytest.mark.parametrize(
    ("code", "times", "values"),
    [
        (-999.9, 5, 100 + 3 * WEIGHTS),
        (-99.9, 2, WEIGHTS),
        (99.9, 2, WEIGHTS),
        (-9.99, 4, WEIGHTS / 3),
        (99999.99, 3, 1000 * WEIGHTS),
        (-1, 4, WEIGHTS),
        (-888, 2, WEIGHTS),
        (88, 2, WEIGHTS),
        (32767, 2, np.round(100 * WEIGHTS)),
        (-2147483648, 2, np.round(100 * WEIGHTS)),
        (123.45, 3, WEIGHTS),  # no usual code, but the same number far from all others
        (-5000, 7, 10 * WEIGHTS),
        (1e9, 3, WEIGHTS),
    ],
)
def test_other_codes_are_found_where_they_occur_several_times(code, times, values):
    assert find_missing_codes(with_code(code, times, values)).codes == ((code, times),)


@pytest.mark.parametrize("times", [2, 5, 30])
def test_a_zero_beside_measurements_is_asked_about(times):
    """It is 2.9 standard deviations from the nearest, which are not so far from each other."""
    values = np.random.default_rng(6).uniform(2.5, 5.4, 60).round(2)
    assert find_missing_codes(with_code(0, times, values)).codes == ((0, times),)
    assert find_missing_codes(with_code(0, times, np.round(10 * values))) is None  # counts may be 0


@pytest.mark.parametrize("seed", range(60))
def test_a_zero_beside_small_measurements_is_left_alone(seed):
    """Sizes of what only some animals have: near 0, or with gaps of their own."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(15, 400))
    sizes = (rng.gamma(2, 30, n), rng.lognormal(1, 0.8, n), rng.exponential(3, n), 8 * rng.weibull(1.5, n))[seed % 4]
    found = find_missing_codes(np.concatenate([sizes.round(2), np.zeros(int(rng.integers(2, 40)))]))
    assert found is None or all(code.value != 0 for code in found.codes)


def test_several_codes():
    """-9 for what was not measured, -99 for what was refused; 999 at the other end."""
    values = np.concatenate([100 + WEIGHTS, np.repeat([-9.0, -99.0, 999.0], [20, 5, 7])])
    found = find_missing_codes(values)
    assert found.codes == ((-99, 5), (-9, 20), (999, 7)) and found.low == 100 + WEIGHTS.min()
    said = found.describe("traits.y", "y", "x")
    assert "5 of 232 values of column 'y' are -99, 20 are -9, 7 are 999, and the others" in said
    assert found.written(["NA", "-9"]) == "['NA', '-9', '-99', '999']"


@pytest.mark.parametrize(
    "values",
    [
        np.concatenate([np.random.default_rng(1).normal(5, 9, 300).round(), [-9.0] * 12]),  # temperatures
        np.repeat([-9.0, -8, -6, -3, 0, 2], 12),
        np.round(np.exp(np.random.default_rng(2).normal(3, 1.5, 500))),  # large whole numbers, skewed
        np.repeat([0.0, 1, 2, 5, 10, 20, 100], 30),  # doses
        2.0 ** np.random.default_rng(3).integers(0, 12, 200),  # titres
        np.repeat([0.0, 1, 2, 3, 60], [300, 60, 20, 5, 2]),  # a large count, twice
        np.concatenate([np.zeros(400), np.random.default_rng(4).gamma(2, 30, 100)]),  # zeros, and what is above
        np.concatenate([np.arange(1.0, 41), [5000.0, 5000.0]]),
        with_code(123.45, 2),
        np.repeat([-1.0, 0, 1, 2, 3], 20),  # scores from -1
        np.concatenate([WEIGHTS, [30.0] * 5]),  # where a scale ends
    ],
)
def test_odd_measurements_are_left_alone(values):
    assert find_missing_codes(values) is None


@pytest.mark.parametrize(
    ("scores", "code"), [([1, 2, 3, 4, 5, 9], 9), ([0, 1, 2, 99], 99), ([-9, 0, 1, 2], -9), ([-1, 1, 2, 3], -1)]
)
def test_codes_among_scores(scores, code):
    assert find_score_codes(np.repeat(np.array(scores, float), 4)).codes == ((code, 4),)


@pytest.mark.parametrize("scores", [range(1, 10), [1, 3, 5, 7, 9], [-1, 0, 1], [1, 2, 3, 4, 5, 7, 9], [0, 1], [1, 9]])
def test_scores_are_left_alone(scores):
    assert find_score_codes(np.repeat(np.array(scores, float), 4)) is None


def of_trait(cells, **keys):
    frame = pl.DataFrame({"y": cells, "u": cells, "s": ["exact"] * len(cells)}, strict=False)
    return prepare(load_config({"data": {"phenotypes": frame}, "traits": {"y": keys}, "model": {}}))


TENTHS = [round(20 + (i * 7) % 11 + i / 10, 1) for i in range(60)]


@pytest.mark.parametrize(
    ("cells", "keys", "path", "code"),
    [
        ([*TENTHS, -99.9, -99.9], {}, "traits.y", "-99.9"),
        ([*[1, 2, 3, 2, 1] * 8, 9, 9], {"type": "ordinal"}, "traits.y", "9"),
        ([*range(14), 999, 999], {"type": "count"}, "traits.y", "999"),
        ([*TENTHS, 9999], {"type": "censored", "lower": "y", "upper": "u"}, "traits.y.lower", "9999"),
        (
            [*TENTHS, -999],
            {"type": "censored", "censored": "s", "values": {"right": ["alive"], "none": ["exact"]}},
            "traits.y",
            "-999",
        ),
    ],
)
def test_codes_of_every_type_of_trait(cells, keys, path, code):
    said = [w for w in of_trait([str(c) for c in cells], **keys).warnings if "missing value" in w]
    assert said[0].startswith(f"phenotypes: {path}: ") and said[0].endswith(f"write traits.y.missing: ['{code}']")
    assert not [w for w in of_trait([str(c) for c in cells], **keys, missing=[code]).warnings if "missing value" in w]


@pytest.mark.parametrize(
    ("cells", "keys", "cell"),
    [
        (["0", "1", "9", "1", "0"], {"type": "binary"}, "9"),
        (["9", "0", "1", "1", "0"], {"type": "binary"}, "9"),
        (["easy", "hard", "-9"], {"type": "ordinal", "categories": ["easy", "hard"]}, "-9"),
        (["0", "3", "-9", "4"], {"type": "count"}, "-9"),
        (["2.5", "-9", "3.5"], {"type": "censored", "lower": "y", "upper": "u", "log": True}, "-9"),
    ],
)
def test_refused_codes_name_the_key(cells, keys, cell):
    with pytest.raises(DataError) as error:
        of_trait(cells, **keys)
    assert f"found '{cell}'" in str(error.value) or f"found {cell}" in str(error.value)
    assert f"; where {cell} means a missing value, write traits.y.missing: ['{cell}']" in str(error.value)
    assert of_trait(cells, **keys, missing=[cell]).design.n_records == len(cells) - 1


@pytest.mark.parametrize("cell", ["-9", "0", "-1", "99.9", "-999.9", "?", "NA", "unknown", "-"])
def test_cells_that_may_mean_a_missing_value(cell):
    assert looks_like_code(cell)


@pytest.mark.parametrize("cell", ["1", "2", "19", "8", "-2", "hard", "0.5", "909"])
def test_cells_that_do_not(cell):
    assert not looks_like_code(cell)


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
    assert find_missing_codes(values) is None


def test_zeros_far_from_all_others_are_found():
    assert find_missing_codes(with_code(0, 1, 250 + WEIGHTS)).codes == ((0, 1),)
    assert find_missing_codes(with_code(0, 60, 250 + WEIGHTS)).codes == ((0, 60),)


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
    frame = pl.DataFrame({"y": WEIGHTS, "age": WEIGHTS[::-1] * 10, "w": np.ones(200)})
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
    assert "does 9999 mean a missing value? Then correct these records or leave them out, as each needs a" in of_weight
    assert of_weight.endswith("(data.missing: ['', 'NA', '9999'], which holds for every column, names their rows)")
    assert of_age.endswith(
        "does -9 mean a missing value? Then write model.fixed.dam age.missing: ['-9'], and correct these records, or "
        "leave them out with model.fixed.dam age.without_value: drop"
    )
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
