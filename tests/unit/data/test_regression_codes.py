"""Codes for missing values in the table of a plugin: the questions that a mixed model asks of the same columns."""

import json

import numpy as np
import polars as pl
import pytest

import mmgibbs

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
    assert (
        "model.group_predictors: 15 of 60 values of column 'size' are -9"
        in warned(of_herd, **groups, group_predictors=["size"])[0]
    )


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


def test_the_question_is_in_the_run_and_the_answer_silences_it(tmp_path):
    changed("y", -999.0).write_csv(tmp_path / "d.csv")
    text = (
        "data: {phenotypes: d.csv%s}\nmodel: {plugin: bayesian_lasso, response: y, predictors: 'snp_*'}\n"
        "sampler: {chains: 1, burn_in: 2, samples: 8, thin: 1}\n"
    )
    for given, n in (("", 1), (", missing: ['', 'NA', '-999']", 0)):
        (tmp_path / "a.yaml").write_text(text % given)
        result = mmgibbs.run(tmp_path / "a.yaml", directory=tmp_path / f"run{n}", progress=False)
        record = json.loads((result.directory / "run.json").read_text())
        assert sum("mean a missing value" in w for w in record["warnings"]) == n
        assert record["data"]["records"]["used"] == (N if n else N - 2)
