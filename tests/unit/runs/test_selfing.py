"""`relationship: {kind: pedigree, selfing: COLUMN}` end to end: the run with every generation of selfing as a plant."""

import json

import numpy as np
import polars as pl
import pytest
from reference import models, tabular

from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.report.finished import read_finished
from mmgibbs.runs.record import block_kind
from mmgibbs.runs.run import run

N = 30
RNG = np.random.default_rng(41)
SIRE, DAM, GENERATIONS = models.selfed_pedigree(RNG, N, 6)
LINE = np.concatenate([np.arange(N), RNG.integers(0, N, 30)])
YIELD = np.round(RNG.normal(5, 1, LINE.size), 3)


def table(sire, dam, generations, names):
    parent = lambda codes: ["" if p < 0 else names[p] for p in codes]
    return pl.DataFrame({"line": names, "father": parent(sire), "mother": parent(dam), "selfings": generations})


def analysis(directory, pedigree, **data) -> dict:
    return {
        "name": "lines",
        "data": {
            "phenotypes": pl.DataFrame({"line": [f"L{i}" for i in LINE], "block": LINE % 3, "yield": YIELD}),
            "pedigree": pedigree,
            "pedigree_columns": {"id": "line", "sire": "father", "dam": "mother"},
        }
        | data,
        "traits": ["yield"],
        "model": {
            "fixed": {"block": {}},
            "random": {"line": {"relationship": {"kind": "pedigree", "selfing": "selfings"}}},
        },
        "variances": {"mode": "fixed", "line": 0.6, "residual": 0.8},
        "sampler": {"method": "blup", "tolerance": 1e-14},
        "output": {"directory": str(directory)},
    }


LINES = table(SIRE, DAM, GENERATIONS, [f"L{i}" for i in range(N)])


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    directory = tmp_path_factory.mktemp("selfing") / "run"
    result = run(analysis(directory, LINES), progress=False)
    return directory, result.solutions.filter(term="line")


def test_inbreeding_and_reliability_are_those_of_the_lines(solved):
    A = tabular.selfed_relationship(SIRE, DAM, GENERATIONS)
    rows = solved[1]
    assert rows["level"].to_list() == LINES["line"].to_list()
    np.testing.assert_allclose(rows["inbreeding"], np.diag(A) - 1, atol=1e-12)
    np.testing.assert_allclose(rows["reliability"], 1 - rows["pev"] / (0.6 * np.diag(A)), atol=1e-10)


def test_check_and_report_name_it(solved):
    prepared = prepare(load_config(analysis(solved[0], LINES)))
    assert block_kind(prepared.design.terms[-1]) == "random, pedigree with selfing, 1 x 1"
    record = json.loads((solved[0] / "run.json").read_text())
    assert record["block_kinds"]["line"] == "random, pedigree with selfing, 1 x 1"
    written = record["analysis"]["model"]["random"]["line"]["relationship"]
    assert written == {"kind": "pedigree", "selfing": "selfings"}
    kind = read_finished(solved[0]).relationships["line"]
    assert kind["sentence"] == "related by the pedigree, each line with its generations of selfing"
    assert (kind["symbol"], kind["related"], kind["of_pedigree"]) == ("A", True, True)


def test_spread_and_draws_of_lines():
    kind = prepare(load_config(analysis("unused", LINES))).design.terms[-1].relationship
    A, levels = tabular.selfed_relationship(SIRE, DAM, GENERATIONS), np.arange(10, N)
    order = [int(name[1:]) for name in prepare(load_config(analysis("unused", LINES))).levels[-1].ids]
    A = A[np.ix_(order, order)]
    V = A[np.ix_(levels, levels)]
    assert kind.spread(levels) == pytest.approx(np.trace(V) / levels.size - V.mean(), rel=1e-12)
    half = kind.draw(np.eye(N))
    assert half @ half.T == pytest.approx(A, abs=1e-12)


def test_inbreeding_cannot_be_ignored():
    with pytest.raises(ConfigError) as refused:
        load_config(analysis("unused", LINES, inbreeding="ignore"))
    assert str(refused.value) == (
        "analysis: model.random.line.relationship.selfing: cannot be combined with data.inbreeding: ignore, as selfing "
        "is inbreeding"
    )


def test_a_bad_value_is_named():
    value = "F4"
    spoilt = LINES.with_columns(pl.col("selfings").cast(pl.String)).with_columns(
        pl.when(pl.col("line") == "L7").then(pl.lit(value)).otherwise("selfings").alias("selfings")
    )
    with pytest.raises(DataError) as refused:
        prepare(load_config(analysis("unused", spoilt)))
    assert str(refused.value).startswith(f"pedigree row 8: column 'selfings' has '{value}' for 'L7'; needed the number")


def test_a_column_that_is_not_there():
    with pytest.raises(DataError, match="there is no column 'selfings'; nearest: 'selfing'"):
        prepare(load_config(analysis("unused", LINES.rename({"selfings": "selfing"}))))
