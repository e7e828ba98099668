"""Interactions: classes joined, numbers multiplied, slopes within classes; the same as with columns made by hand."""

import numpy as np
import polars as pl
import pytest
from helpers.analyses import as_mapping

import mmgibbs
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ConfigError, DataError

N = 90
_rng = np.random.default_rng(48)
RECORDS = pl.DataFrame(
    {
        "line": [f"L{i % 7}" for i in range(N)],
        "site": [("north", "south", "east")[i // 30] for i in range(N)],
        "sex": _rng.choice(["F", "M"], N),
        "age": _rng.normal(5, 1, N),
        "dose": _rng.normal(2, 1, N),
        "y": _rng.normal(size=N),
    }
)


def analysis(fixed, random=None, records=RECORDS):
    """An analysis at known variances."""
    variances = {"residual": 1.0} | dict.fromkeys(random or {}, 0.5)
    return as_mapping(records, fixed=fixed, random=random, variances=variances)


def fitted(fixed):
    """(n,) X b of the solutions: incidence of the design, on the user's scale by least squares on the rows."""
    design = prepare(load_config(analysis(fixed))).design
    columns = []
    for term in design.terms:
        for effect in term.effects:
            X = np.ones((len(design.y), 1)) if effect.covariates is None else effect.covariates
            Z = np.zeros((len(design.y), term.n_levels * X.shape[1]))
            for r, level in enumerate(effect.level):
                if level >= 0:
                    Z[r, level * X.shape[1] : (level + 1) * X.shape[1]] = X[r]
            columns.append(Z)
    X = np.hstack(columns)
    return X @ np.linalg.lstsq(X, design.y[:, 0], rcond=None)[0] + RECORDS["y"].mean()


def projection(*columns):
    """(n,) least squares of y on columns made by hand."""
    X = np.column_stack(columns)
    return X @ np.linalg.lstsq(X, RECORDS["y"].to_numpy(), rcond=None)[0]


def indicators(column):
    return (column.to_numpy()[:, None] == column.unique(maintain_order=True).to_numpy()).astype(float)


AGE, DOSE = RECORDS["age"].to_numpy(), RECORDS["dose"].to_numpy()
SEX, SITE = indicators(RECORDS["sex"]), indicators(RECORDS["site"])
ONE = np.ones(N)
CELLS = (SEX[:, :, None] * SITE[:, None, :]).reshape(N, -1)
COVARIATES = {"age": {"kind": "covariate"}, "dose": {"kind": "covariate"}}


@pytest.mark.parametrize(
    ("fixed", "columns"),
    [
        ({"sex:site": {}}, (CELLS,)),
        ({"sex": {}, "site": {}, "sex:site": {}}, (CELLS,)),
        ({"sex": {}, "age": COVARIATES["age"], "sex:age": {}}, (SEX, SEX * AGE[:, None])),
        ({"sex": {}, "sex:age": {"covariates": ["age"]}}, (SEX, SEX * AGE[:, None])),
        (
            {"sex": {}, "sex:age": {"covariates": "age", "degree": 2}},
            (SEX, SEX * AGE[:, None], SEX * AGE[:, None] ** 2),
        ),
        (COVARIATES | {"age:dose": {}}, (ONE, AGE, DOSE, AGE * DOSE)),
        ({"sex:site": {}, "sex:site:age": {"covariates": ["age"]}}, (CELLS, CELLS * AGE[:, None])),
        (COVARIATES | {"sex": {}, "sex:age:dose": {}}, (SEX, AGE, DOSE, SEX * (AGE * DOSE)[:, None])),
        ({"cells": {"interaction": ["sex", "site"]}}, (CELLS,)),
    ],
)
def test_an_interaction_spans_the_columns_made_by_hand(fixed, columns):
    """Oracle: least squares on indicators and products of the columns themselves."""
    np.testing.assert_allclose(fitted(fixed), projection(*columns), atol=1e-8)


def test_without_kinds_every_column_of_an_interaction_is_a_class():
    records = RECORDS.with_columns(age=pl.col("age").round(0))
    (term,) = prepare(load_config(analysis({"sex:age": {}}, records=records))).design.terms
    assert term.n_levels == records.select("sex", "age").n_unique()


def test_solutions_of_a_random_interaction_are_those_of_a_joined_column(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    joined = RECORDS.with_columns(cell=pl.concat_str("line", "site", separator=":"))
    runs = []
    for name, records in (("line:site", RECORDS), ("cell", joined)):
        written = analysis({}, {name: {}}, records) | {"output": {"directory": str(tmp_path / name.replace(":", "_"))}}
        run = mmgibbs.run(written)
        runs.append(run.solutions.filter(term=name).select("level", "mean"))
    assert runs[0].height == RECORDS.select("line", "site").n_unique()
    assert runs[0].equals(runs[1])


def test_missing_cells_of_a_column_are_missing_in_its_interactions():
    records = RECORDS.with_columns(sex=pl.when(pl.col("line") == "L1").then(pl.lit("?")).otherwise("sex"))
    fixed = {"sex": {"missing": "?", "without_value": "drop"}, "sex:site": {"without_value": "drop"}}
    prepared = prepare(load_config(analysis(fixed, records=records)))
    assert prepared.design.n_records == records.filter(pl.col("sex") != "?").height
    assert "?" not in "".join(label for levels in prepared.levels for label in levels.ids)


def test_a_record_without_one_of_the_columns_is_named():
    records = RECORDS.with_columns(site=pl.when(pl.int_range(pl.len()) == 4).then(None).otherwise("site"))
    with pytest.raises(DataError, match=r"row 5: found no value in column 'site'"):
        prepare(load_config(analysis({"sex:site": {}}, records=records)))
    with pytest.raises(DataError, match=r"row 5: found no known level in column 'site'"):
        prepare(load_config(analysis({}, {"line:site": {}}, records)))
    prepared = prepare(load_config(analysis({}, {"line:site": {"unknown_level": "omit"}}, records)))
    assert np.count_nonzero(prepared.design.terms[-1].effects[0].level < 0) == 1


def test_a_code_for_an_unknown_parent_is_none_of_another_column():
    records = RECORDS.with_columns(sire=pl.Series(["0", "s1", "s2"] * 30), herd=pl.Series(["0", "h1"] * 45))
    random = {"sire:herd": {"unknown_level": "omit"}}
    prepared = prepare(load_config(analysis({}, random, records)))
    assert sorted(prepared.levels[-1].ids) == ["s1:0", "s1:h1", "s2:0", "s2:h1"]


def test_cells_that_would_give_one_name_to_two_combinations_are_refused():
    records = RECORDS.with_columns(sex=pl.Series(["a", "a:b"] * 45), site=pl.Series(["b:c", "c"] * 45))
    with pytest.raises(DataError, match=r"two combinations that would both be called 'a:b:c'"):
        prepare(load_config(analysis({"sex:site": {}}, records=records)))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"fixed": {"sex:site": {"degree": 2}}}, r"sex:site\.degree: found an interaction of classes; needed one"),
        ({"fixed": {"x": {"interaction": ["sex"]}}}, r"x\.interaction: found the one column 'sex', needed two"),
        ({"fixed": {"sex:age": {"covariates": ["dose"]}}}, r"found 'dose', needed columns of the interaction"),
        ({"fixed": {"sex:age": {"by": "sex"}}}, r"sex:age\.by: found 'sex', which cannot be combined"),
        ({"fixed": {"sex:age": {"kind": "covariate"}}}, r"sex:age\.covariates: missing, needed the columns"),
        ({"fixed": {"sex:age": {"kind": "class", "covariates": ["age"]}}}, r"sex:age\.covariates: cannot be combined"),
        ({"fixed": {"age": {"covariates": ["age"]}}}, r"age\.covariates: found without interaction"),
        ({"fixed": {"sex:": {}}}, r"found the name 'sex:', needed names of columns on both sides"),
        (
            {"fixed": {"age": {}, "line": {"column": "age", "kind": "covariate"}, "sex:age": {}}},
            r"sex:age\.covariates: missing.*'age' is a class and a covariate elsewhere",
        ),
        ({"fixed": COVARIATES | {"age:dose": {"degree": 2}}}, r"age:dose\.degree: found the covariates age, dose;"),
        ({"random": {"line:site": {"relationship": "pedigree"}}}, r"found pedigree, which relates animals"),
        ({"random": {"line:site": {"level": "line"}}}, r"line:site\.level: found 'line', which cannot be combined"),
    ],
)
def test_what_does_not_fit_is_named(model, message):
    with pytest.raises(ConfigError, match=message):
        load_config(analysis(model.get("fixed", {}), model.get("random", {})))


@pytest.mark.parametrize(
    ("fixed", "records", "message"),
    [
        ({"sex:sight": {}}, RECORDS, r"there is no column 'sight' \(model\.fixed\.sex:sight\).*'site'"),
        ({"sex:y": {}}, RECORDS, r"column 'y' as a class effect \(model\.fixed\.sex:y\).*cannot explain itself"),
        ({"sex:site": {}}, RECORDS.with_columns(pl.lit("a").alias("sex:site")), r"a column 'sex:site', which is also"),
    ],
)
def test_columns_that_do_not_fit_are_named(fixed, records, message):
    with pytest.raises(DataError, match=message):
        prepare(load_config(analysis(fixed, records=records)))
