"""Folds of trials: new lines, lines at a site where they were not, new sites."""

import numpy as np
import polars as pl
import pytest

import mmgibbs
from mmgibbs.errors import MmgibbsError

SITES, LINES = 3, 60
COVARIANCE = 0.6 + 0.4 * np.eye(SITES)


def trial():
    """Two records of each line at each site, whose genetic values are correlated between sites."""
    rng = np.random.default_rng(8)
    value = rng.multivariate_normal(np.zeros(SITES), COVARIANCE, LINES)
    cells = [(i, s) for i in range(LINES) for s in range(SITES) for _ in range(2)]
    y = [value[i, s] + rng.standard_normal() for i, s in cells]
    return pl.DataFrame({"line": [f"L{i}" for i, _ in cells], "site": [f"S{s}" for _, s in cells], "y": y})


def by_site():
    return {
        "data": {"phenotypes": trial()},
        "traits": {"y": {"by": "site"}},
        "model": {"random": {"line": {}}},
        "variances": {"line": COVARIANCE.tolist(), "residual": np.eye(SITES).tolist()},
    }


def validate(tmp_path, analysis=None, **options):
    return mmgibbs.validate(
        by_site() if analysis is None else analysis,
        plan=mmgibbs.ValidationPlan("kfold", **options), output=tmp_path / "validation", progress=False,
    )  # fmt: skip


def test_cells_are_left_out_as_a_whole(tmp_path):
    validation = validate(tmp_path, by="cell", folds=4)
    ability = validation.table.filter(statistic="predictive_ability")
    assert ability["trait"].to_list() == ["y|S0", "y|S1", "y|S2"] and (ability["estimate"] > 0.15).all()
    dispersion = validation.table.filter(statistic="dispersion")
    assert dispersion["expected"].to_list() == [1.0] * SITES  # a record of another site is not a missing one
    folds = validation.predictions
    records = trial().with_row_index("row", offset=1).with_columns(pl.col("row").cast(folds.schema["row"]))
    joined = folds.select("row", "fold").unique().join(records, on="row")
    assert (joined.group_by("line", "site").agg(n=pl.col("fold").n_unique())["n"] == 1).all()
    assert (joined.group_by("line").agg(n=pl.col("fold").n_unique())["n"] > 1).any()


def test_new_lines_are_left_out_everywhere(tmp_path):
    """Independent lines: the others say nothing of them."""
    validation = validate(tmp_path, by="random", folds=3)
    assert validation.table.filter(statistic="predictive_ability")["estimate"].null_count() == SITES


def test_a_new_site_needs_one_trait(tmp_path):
    with pytest.raises(MmgibbsError, match='with a random effect such as "line:site"'):
        validate(tmp_path, by="column", column="site")
    over_sites = by_site() | {
        "traits": ["y"],
        "model": {"fixed": {"site": {}}, "random": {"line": {}, "line:site": {}}},
        "variances": {"line": 0.6, "line:site": 0.4, "residual": 1.0},
    }
    validation = validate(tmp_path, over_sites, by="column", column="site")
    assert validation.table.filter(statistic="predictive_ability")["estimate"][0] > 0.2


def test_cells_need_environments(tmp_path):
    over_sites = by_site() | {"traits": ["y"], "variances": {"line": 0.6, "residual": 1.0}}
    with pytest.raises(MmgibbsError, match="expected column=NAME with by='cell', the column of the environments"):
        validate(tmp_path, over_sites, by="cell")
    assert validate(tmp_path, over_sites, by="cell", column="site").table.height


def test_folds_in_two_spellings_are_noted(tmp_path):
    other = pl.when(pl.int_range(pl.len()) < 60).then(pl.col("site").str.to_lowercase()).otherwise("site")
    records = trial().with_columns(site=other)
    one_trait = by_site() | {"traits": ["y"], "variances": {"line": 1.0, "residual": 1.0}}
    one_trait["data"] = {"phenotypes": records}
    notes = validate(tmp_path, one_trait, by="column", column="site").info["notes"]
    assert any("column: levels of column 'site' differ only in how they are written" in note for note in notes)
