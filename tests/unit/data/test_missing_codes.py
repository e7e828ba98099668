"""Numbers that mean a missing value elsewhere, of mixed models and regressions: found where they are unlike others."""

import numpy as np
import polars as pl
import pytest
from helpers.analyses import as_mapping

import mmgibbs
from mmgibbs.config import load_config
from mmgibbs.data.missing_codes import find_missing_codes, find_score_codes, looks_like_code
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import DataError

WEIGHTS = np.random.default_rng(4).normal(7.5, 2.0, 200).clip(0.1).round(2)


def with_code(code, times, values=WEIGHTS):
    return np.concatenate([values, np.full(times, float(code)), [np.nan]])


@pytest.mark.parametrize(
    ("code", "times", "values"),
    [
        (-9, 1, WEIGHTS),
        (99, 1, WEIGHTS),
        (-999.9, 5, 100 + 3 * WEIGHTS),
        (99.9, 2, WEIGHTS),
        (-9.99, 4, WEIGHTS / 3),
        (99999.99, 3, 1000 * WEIGHTS),
        (-1, 4, WEIGHTS),
        (-888, 2, WEIGHTS),
        (32767, 2, np.round(100 * WEIGHTS)),
        (123.45, 3, WEIGHTS),  # no usual code, but the same number far from all others
        (-5000, 7, 10 * WEIGHTS),
    ],
)
def test_codes_are_found(code, times, values):
    found = find_missing_codes(with_code(code, times, values))
    assert found.codes == ((code, times),) and (found.low, found.high) == (values.min(), values.max())


@pytest.mark.parametrize("times", [2, 5, 30])
def test_a_zero_beside_measurements_is_asked_about(times):
    """It is 2.9 standard deviations from the nearest, which are not so far from each other."""
    values = np.random.default_rng(6).uniform(2.5, 5.4, 60).round(2)
    assert find_missing_codes(with_code(0, times, values)).codes == ((0, times),)
    assert find_missing_codes(with_code(0, times, np.round(10 * values))) is None  # counts may be 0


@pytest.mark.parametrize("seed", range(16))
def test_a_zero_beside_small_measurements_is_left_alone(seed):
    """Sizes of what only some animals have: near 0, or with gaps of their own."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(15, 400))
    sizes = (rng.gamma(2, 30, n), rng.lognormal(1, 0.8, n), rng.exponential(3, n), 8 * rng.weibull(1.5, n))[seed % 4]
    found = find_missing_codes(np.concatenate([sizes.round(2), np.zeros(int(rng.integers(2, 40)))]))
    assert found is None or all(code.value != 0 for code in found.codes)


def test_several_codes_and_zeros_far_from_all_others():
    """-9 for what was not measured, -99 for what was refused; 999 at the other end."""
    values = np.concatenate([100 + WEIGHTS, np.repeat([-9.0, -99.0, 999.0], [20, 5, 7])])
    found = find_missing_codes(values)
    assert found.codes == ((-99, 5), (-9, 20), (999, 7)) and found.low == 100 + WEIGHTS.min()
    said = found.describe("traits.y", "y", "x")
    assert "5 of 232 values of column 'y' are -99, 20 are -9, 7 are 999, and the others" in said
    assert found.written(["NA", "-9"]) == "['NA', '-9', '-99', '999']"
    assert find_missing_codes(with_code(0, 1, 250 + WEIGHTS)).codes == ((0, 1),)
    assert find_missing_codes(with_code(0, 60, 250 + WEIGHTS)).codes == ((0, 60),)


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


def test_cells_that_may_mean_a_missing_value():
    codes, others = "-9 0 -1 99.9 -999.9 ? NA unknown -".split(), "1 2 19 8 -2 hard 0.5 909".split()
    assert [looks_like_code(cell) for cell in [*codes, *others]] == [True] * len(codes) + [False] * len(others)


@pytest.mark.parametrize(
    "values",
    [
        with_code(0, 3),  # a few zeros beside small values
        with_code(0, 60),  # and many
        np.repeat([0.0, 1, 2], [923, 74, 3]),  # counts of what is rare
        WEIGHTS - WEIGHTS.mean(),  # negative numbers are measurements
        with_code(-9, 2, WEIGHTS * 5 - 40),  # among them
        with_code(99, 3, WEIGHTS * 12),  # among large ones
        with_code(-9, 2, WEIGHTS[:5]),  # too few to say
        np.full(50, -9.0),
        np.full(50, np.nan),
        np.concatenate([np.random.default_rng(1).normal(5, 9, 300).round(), [-9.0] * 12]),  # temperatures
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
def test_measurements_are_left_alone(values):
    assert find_missing_codes(values) is None


def test_check_names_trait_row_and_key(tmp_path):
    """230 values of -9 would be most of the variance; with the key that the warning names they are missing."""
    records = pl.DataFrame({"animal": [f"a{i}" for i in range(260)], "bwt": [*WEIGHTS, *[-9.0] * 60]})
    analysis = as_mapping(records, {"bwt": {}}, random={"animal": {}}, variances={"animal": 1.0, "residual": 1.0})
    (warning,) = [w for w in mmgibbs.check(analysis)["warnings"] if "missing value" in w]
    assert warning.startswith(
        "phenotypes: traits.bwt: 60 of 260 values of column 'bwt' are -9 (the first in row 201), and the others lie "
    )
    assert warning.endswith("does -9 mean a missing value? Then write traits.bwt.missing: ['-9']")
    analysis["traits"]["bwt"] = {"missing": ["-9"]}
    found = mmgibbs.check(analysis)
    assert found["warnings"] == [] and found["data"]["observations"] == {"bwt": 200}


def test_codes_of_covariates_and_weights():
    frame = pl.DataFrame({"y": WEIGHTS, "age": WEIGHTS[::-1] * 10, "w": np.ones(200)})
    coded = frame.with_columns(
        age=pl.when(pl.arange(0, 200) < 3).then(-9.0).otherwise("age"),
        w=pl.when(pl.arange(0, 200) < 2).then(9999.0).otherwise(1 + pl.arange(0, 200) % 3),
    )
    fixed = {"dam age": {"column": "age", "kind": "covariate"}}
    analysis = as_mapping(coded, fixed=fixed, variances={"residual": 1.0})
    analysis["data"]["weights"] = "w"
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
    line = {"own": {"level": "animal", "legendre": {"column": "dim", "degree": 1}}}
    variances = {"animal": [[1.0, 0], [0, 1]], "residual": 1.0}
    analysis = as_mapping(frame, random={"animal": {"effects": line}}, variances=variances)
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
    ids = pl.Series("id", [f"a{i}" for i in range(40)])
    pl.DataFrame(snps, schema=[f"s{j}" for j in range(10)]).insert_column(0, ids).write_csv(tmp_path / "snps.csv")
    others = [i >= 40 for i in range(60)]
    frame = pl.DataFrame({"animal": [f"a{i}" for i in range(60)], "y": WEIGHTS[:60], "o": others}).with_columns(
        age=pl.when("o").then(pl.lit("?")).otherwise(pl.lit("3.5")),
        sex=pl.when("o").then(pl.lit("?")).otherwise("animal"),
    )
    analysis = as_mapping(frame, random={"sex": {}}, fixed={"age": {"kind": "covariate"}}, method="gibbs")
    analysis["data"]["genotypes"] = str(tmp_path / "snps.csv")
    analysis["model"]["markers"] = {"snps": {"level": "animal", "without_genotypes": "drop"}}
    assert not any("'age'" in w or "'sex'" in w for w in mmgibbs.check(analysis)["warnings"])


N = 60
RANDOM = np.random.default_rng(5)
Y = RANDOM.normal(size=N).round(3)
FRAME = pl.DataFrame(
    {
        "y": Y,
        "case": (Y > 0).astype(int) + 1,
        "kind": np.where(Y > 0, "ill", "well"),
        "born": RANDOM.integers(0, 4, N),
        "dead": RANDOM.integers(0, 3, N),
        "herd": [f"h{i % 4}" for i in range(N)],
        "size": [float(1 + i % 4) for i in range(N)],
        **{f"snp_{j}": RANDOM.integers(0, 3, N) for j in range(12)},
    }
)


def warned(frame, plugin="bayesian_lasso", response="y", **model):
    analysis = {
        "data": {"phenotypes": frame},
        "model": {"plugin": plugin, "response": response, "predictors": ["snp_*"]} | model,
        "sampler": {"chains": 1, "burn_in": 1, "samples": 2, "thin": 1},
    }
    return mmgibbs.check(analysis)["warnings"]


def changed(column, value, rows=(4, 9)):
    return FRAME.with_columns(pl.when(pl.int_range(N).is_in(rows)).then(pl.lit(value)).otherwise(column).alias(column))


@pytest.mark.parametrize("code", [-9.0, -99.0, -999.0, 99.0, 9999.0])
def test_codes_among_responses_are_asked_about(code):
    (warning,) = warned(changed("y", code))
    assert f"model.response: 2 of 60 values of column 'y' are {code:g} (the first in row 5), and the others" in warning
    assert f"does {code:g} mean a missing value? Then write data.missing: ['', 'NA', '{code:g}'], which" in warning


@pytest.mark.parametrize(
    "plugin, response", [("horseshoe_probit", "case"), ("multinomial_pg", "case"), ("multinomial_hmc", "case")]
)
def test_codes_among_classes_are_asked_about(plugin, response):
    """PLINK writes -9 beside cases and controls."""
    if plugin != "horseshoe_probit":  # which refuses a third class
        assert "values of column 'case' are -9 (the first in row 5)" in warned(changed("case", -9), plugin, response)[0]
    (warning,) = warned(changed("kind", "n.a."), "multinomial_pg", "kind")
    assert "model.response: column 'kind' has 1 level that may mean a missing value" in warning
    (warning,) = warned(changed("kind", "Ill"), "multinomial_pg", "kind")
    assert "levels of column 'kind' differ only in how they are written" in warning


def test_codes_among_counts_predictors_and_groups_are_asked_about():
    counts = dict(plugin="multinomial_hmc", response=["born", "dead"])
    assert "values of column 'born' are 999" in warned(changed("born", 999), **counts)[0]
    assert "model.predictors: 2 of 60 values of column 'snp_3' are -9" in warned(changed("snp_3", -9))[0]
    coded = FRAME.with_columns(pl.when(pl.int_range(N) == 3).then(-9).otherwise(pl.col("^snp_.*$")).name.keep())
    *first, last = warned(coded)
    assert all("are -9" in w or "is -9" in w for w in first) and "more, from column 'snp_" in last
    groups = dict(plugin="hierarchical_slice", response="case", groups="herd")
    (warning,) = warned(changed("herd", "?"), **groups)
    assert "model.groups: column 'herd' has 1 level that may mean a missing value" in warning
    assert warning.endswith("and correct these records or leave them out, as each needs a group")
    of_herd = FRAME.with_columns(size=pl.when(pl.col("herd") == "h2").then(-9.0).otherwise("size"))
    said = "model.group_predictors: 15 of 60 values of column 'size' are -9"
    assert said in warned(of_herd, **groups, group_predictors=["size"])[0]


def test_data_without_codes_are_not_asked_about():
    assert warned(FRAME) == warned(FRAME, "horseshoe_probit", "kind") == warned(FRAME, "multinomial_pg", "case") == []
    assert warned(FRAME, "multinomial_hmc", ["born", "dead"]) == []
    zeros = FRAME.with_columns(
        born=pl.when(pl.int_range(N) < 30).then(0).otherwise(20 + pl.col("born")), dead=pl.lit(3)
    )
    assert warned(zeros, "multinomial_hmc", ["born", "dead"]) == []  # rows without a trial of the class
    assert warned(FRAME, "hierarchical_slice", "case", groups="herd", group_predictors=["size"]) == []
    assert warned(FRAME.with_columns(y=pl.col("y") * 100)) == []
    assert warned(FRAME.with_columns(snp_0=pl.col("snp_0") * 40, snp_1=pl.col("snp_1") - 1)) == []
