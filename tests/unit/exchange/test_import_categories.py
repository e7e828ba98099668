"""OPTION cat: binary and ordinal traits from parameter files of renumf90, on the scale of an analysis."""

import numpy as np
import polars as pl
import pytest
import yaml
from helpers.renumf90_cases import ANIMAL, Case, by_hand, head, records, write_files

from mmgibbs.config import load_config
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.exchange.blupf90_write import export_blupf90
from mmgibbs.exchange.import_blupf90 import import_blupf90
from mmgibbs.runs.run import run

SHORT = ["sampler.chains=1", "sampler.burn_in=5", "sampler.samples=20", "sampler.thin=1", "sampler.seed=3"]
SCORE, ZERO_ONE, ONE_TWO = 12, 13, 14  # positions of the new columns


def scores() -> pl.DataFrame:
    """score: 1 to 3, one in ten missing (0); ill: 0 or 1; alive: 1 or 2, one in ten missing (0)."""
    y = records()["y1"].to_numpy()
    rank = np.argsort(np.argsort(y)) / len(y)
    missing = np.arange(len(y)) % 10 == 7
    score = np.where(missing, 0, 1 + (rank > 0.5) + (rank > 0.8))
    alive = np.where(missing, 0, 1 + (rank > 0.4))
    return pl.DataFrame({"score": score, "ill": (rank > 0.7).astype(int), "alive": alive})


def write(folder, parameters, table=None):
    path = write_files(folder, Case(parameters, {}))
    lines = (folder / "data.txt").read_text().splitlines()
    rows = (scores() if table is None else table).iter_rows()
    (folder / "data.txt").write_text("".join(f"{a} {' '.join(map(str, b))}\n" for a, b in zip(lines, rows)))
    return path


def model(traits, residual, genetic, options, herd="2", animal="1"):
    return (
        head(traits, "", "", residual)
        + f"EFFECT\n{herd} cross alpha\n"
        + ANIMAL.replace("1 cross", f"{animal} cross")
        + f"(CO)VARIANCES\n{genetic}\n"
        + options
    )


ORDINAL = model(f"{SCORE}", "4.0", "2.0", "OPTION cat 3\n")
MIXED = model(f"5 {SCORE}", "2.0 0.6\n0.6 4.0", "1.0 0.4\n0.4 0.8", "OPTION cat 0 3\n", "2 2", "1 1")


WEIGHTED = ORDINAL.replace("WEIGHT(S)\n\n", "WEIGHT(S)\n8\n")
NO_ONES = model(f"{ZERO_ONE}", "1.0", "0.5", "OPTION cat 2\nOPTION missing 0\n")


def used(result):
    return result.info["data"]["records"]["used"]


def imported(path):
    target, said = import_blupf90(path, overwrite=True)
    return target, yaml.safe_load(target.read_text()), said


def test_an_ordinal_trait(tmp_path):
    """Its zeros are missing, its variances divided by its residual variance."""
    _, analysis, said = imported(write(tmp_path, ORDINAL))
    trait = analysis["traits"]["trait1"]
    assert trait == {"column": "col12", "type": "ordinal", "categories": ["1", "2", "3"], "missing": ["0"]}
    assert analysis["variances"] == {"genetic": 0.5, "residual": 1.0}
    assert analysis["sampler"] == {"method": "gibbs"}
    text = "\n".join(said)
    assert "line 27: OPTION cat: trait1 is ordinal, 1 to 3, 0 is missing (9 records)" in text
    assert "divide variances of GIBBSF90+ or THRGIBBS1F90 by their residual variance R" in text
    assert "line 9: RESIDUAL_VARIANCE: 4 of trait1 becomes 1" in text
    assert "sampler.method is gibbs for OPTION cat" in text


def test_it_is_the_analysis_that_a_person_would_write(tmp_path):
    """Draw for draw."""
    target, analysis, _ = imported(write(tmp_path, MIXED))
    np.testing.assert_allclose(analysis["variances"]["residual"], [[2.0, 0.3], [0.3, 1.0]])
    np.testing.assert_allclose(analysis["variances"]["genetic"], [[1.0, 0.2], [0.2, 0.2]])
    assert analysis["variances"]["residual"][1][1] == 1.0
    score = {"type": "ordinal", "categories": [1, 2, 3], "missing": [0]}
    random = {"genetic": {"level": "animal", "relationship": "pedigree"}}
    sections = {
        "traits": {"y1": {"missing": ["0"]}, "score": score},
        "model": {"intercept": False, "fixed": {"effect1": {"column": "herd"}}, "random": random},
        "variances": analysis["variances"],
    }
    hand = by_hand(Case("", sections))
    hand["data"]["phenotypes"] = hand["data"]["phenotypes"].with_columns(scores())
    hand["sampler"] = {"method": "gibbs"}
    one = run(target, SHORT, directory=tmp_path / "one", progress=False)
    two = run(hand, SHORT, directory=tmp_path / "two", progress=False)
    np.testing.assert_array_equal(one.solutions["mean"], two.solutions["mean"])
    np.testing.assert_array_equal(one.summary["mean"], two.summary["mean"])
    assert "threshold[trait2:2|3]" in one.summary["parameter"]


def test_a_residual_variance_of_any_digits_becomes_1_exactly(tmp_path):
    for variance in ("2.1", "0.7", "3.333333"):
        path, analysis, _ = imported(write(tmp_path, ORDINAL.replace("4.0", variance)))
        assert analysis["variances"]["residual"] == 1.0
        load_config(path)


def test_zeros_of_two_categories(tmp_path):
    target, analysis, said = imported(write(tmp_path, model(f"{ZERO_ONE}", "1.0", "0.5", "OPTION cat 2\n")))
    assert analysis["traits"]["trait1"] == {"column": "col13", "type": "binary", "positive": "1", "missing": []}
    assert "WARNING: column 13 of data.txt (trait1) has only 0 and 1: 0 is the first category here" in said[0]
    assert used(run(target, SHORT, directory=tmp_path / "run", progress=False)) == 90
    target, analysis, said = imported(write(tmp_path, model(f"{ONE_TWO}", "1.0", "0.5", "OPTION cat 2\n")))
    assert analysis["traits"]["trait1"] == {"column": "col14", "type": "binary", "positive": "2", "missing": ["0"]}
    assert any("0 is missing (9 records)" in line for line in said) and not any("WARNING" in line for line in said)
    assert used(run(target, SHORT, directory=tmp_path / "other", progress=False)) == 81


def test_another_missing_value_leaves_0_a_category(tmp_path):
    options = "OPTION cat 2\nOPTION missing -9\n"
    table = scores().with_columns(pl.Series("ill", np.where(np.arange(90) % 9 == 0, -9, scores()["ill"])))
    with pytest.raises(DataError, match="found '0' in column 13, needed 1 or 2, or -9 .missing.: OPTION cat has 2"):
        imported(write(tmp_path, model(f"{ZERO_ONE}", "1.0", "0.5", options), table))


def test_held_variances_and_thresholds_of_theirs(tmp_path):
    more = "OPTION fixed_var all\nOPTION thresholds 0 1\nOPTION residual 1\n"
    path, analysis, said = imported(write(tmp_path, ORDINAL + more))
    assert analysis["variances"]["mode"] == "fixed"
    text = "\n".join(said)
    assert "OPTION thresholds 0 1: not carried over; the first threshold is 0 and the others are sampled" in text
    assert "OPTION residual 1: not carried over; the residual variance of a trait in categories is 1" in text
    assert "OPTION fixed_var all: with OPTION cat every variance is fixed at its start" in text
    table = run(path, SHORT, directory=tmp_path / "run", progress=False).summary
    assert table.filter(parameter="h2[trait1]")["sd"].item() == 0.0


def test_residual_classes_beside_categories(tmp_path):
    path, analysis, said = imported(write(tmp_path, MIXED + "OPTION hetres_int 7 3\n"))
    assert analysis["variances"]["residual"]["by"] == "col7"
    assert any("residual (co)variances by class of col7" in line for line in said)
    names = run(path, SHORT, directory=tmp_path / "run", progress=False).summary["parameter"]
    assert {"residual.var[trait1|2020]", "residual.var[trait2|2021]"} <= set(names)


def test_a_run_with_categories_can_be_exported(tmp_path):
    target, _, _ = imported(write(tmp_path, MIXED))
    result = run(target, SHORT, directory=tmp_path / "run", progress=False)
    folder = export_blupf90(result.directory, tmp_path / "export")
    lines = (folder / "postgibbs_samples").read_text().splitlines()
    assert len(lines) == 20 and lines[0].split()[2] == "6"
    assert [float(line.split()[-1]) for line in lines] == [1.0] * 20


@pytest.mark.parametrize(
    ("parameters", "table", "error", "message"),
    [
        (ORDINAL.replace("cat 3", "cat 3 0"), None, ConfigError, "line 27: OPTION cat 3 0: needed 1 number, one for"),
        (ORDINAL.replace("cat 3", "cat three"), None, ConfigError, "line 27: OPTION cat three: needed 1 number"),
        (ORDINAL.replace("cat 3", "cat 1"), None, ConfigError, "line 27: OPTION cat 1: needed 1 number.*(two or more)"),
        (ORDINAL.replace("cat 3", "cat 2"), None, DataError, r"data.txt row \d+: found '3' in column 12, needed 1 or"),
        (ORDINAL.replace("cat 3", "cat 4"), None, ConfigError, "line 27: OPTION cat: found no record of category 4 in"),
        (ORDINAL, scores().with_columns(pl.col("score") - 1), DataError, "row 8: found '-1' in column 12, needed 1"),
        (ORDINAL, scores().with_columns(pl.col("score").replace(3, 2)), ConfigError, "found no record of category 3"),
        (NO_ONES, None, ConfigError, "found no record of category 2 in column 13 .*where 0 is missing"),
        (WEIGHTED, None, ConfigError, r"WEIGHT\(S\): cannot be combined with OPTION cat \(line 27\)"),
    ],
)
def test_what_is_no_trait_in_categories(tmp_path, parameters, table, error, message):
    path = write(tmp_path, parameters, table)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(error, match=message):
        import_blupf90(path)
    assert sorted(tmp_path.iterdir()) == before
