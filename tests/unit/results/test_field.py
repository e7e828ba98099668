"""Trends of plots, what is left of the records beside them, and their page, against the mixed model in dense form."""

import numpy as np
import polars as pl
import pytest

import mmgibbs
from mmgibbs.report import field as field_page
from mmgibbs.report import plots
from mmgibbs.report.field import MAX_TRIALS, field_section
from mmgibbs.report.finished import read_finished
from mmgibbs.report.saved_figures import save_figures

FIELD = {"kind": "ar1", "row": "row", "column": "column", "within": "trial", "rho": {"row": 0.7, "column": 0.4}}
VARIANCES = {"mode": "fixed", "field": 2.0, "gen": 1.5, "residual": 0.8}
KNOWN = FIELD | {"fixed": True}


def simulate(trials=("A", "B"), rows=5, columns=4, missing=3):
    rng, out = np.random.default_rng(8), []
    for trial in trials:
        out += [
            (trial, r + 1, c + 2, f"g{rng.integers(6)}", "ab"[rng.integers(2)], rng.normal(30, 4), rng.normal(50, 3))
            for r in range(rows)
            for c in range(columns)
        ]
    frame = pl.DataFrame(out, schema=["trial", "row", "column", "gen", "sex", "age", "y"], orient="row")
    lacks = pl.Series(rng.permutation(frame.height) < missing)
    return frame.with_columns(y=pl.when(lacks).then(None).otherwise(pl.col("y")))


def analysis(directory, records, fixed, method="blup", relationship=KNOWN, **sections):
    return {
        "data": {"phenotypes": records},
        "traits": ["y"],
        "model": {"fixed": fixed, "random": {"gen": {}, "field": {"relationship": relationship}}},
        "variances": VARIANCES,
        "sampler": {"method": method},
        "output": {"directory": str(directory)},
    } | sections


def dense_residuals(records, columns):
    """(trend, residual) of each record with y: y less fixed effects and lines."""
    frame = records.drop_nulls("y")
    trial, row, column, gen, y = (frame[c].to_numpy() for c in ("trial", "row", "column", "gen", "y"))
    X = np.column_stack([values for name in columns for values in columns_of(frame, name)])
    lag = lambda rho, x: rho ** np.abs(np.subtract.outer(x, x))
    K = 2.0 * lag(0.7, row) * lag(0.4, column) * (trial[:, None] == trial)
    of_lines = 1.5 * (gen[:, None] == gen)
    V = K + of_lines + 0.8 * np.eye(len(y))
    W = np.linalg.inv(V)
    b = np.linalg.pinv(X.T @ W @ X, rcond=1e-11) @ X.T @ W @ y
    e = W @ (y - X @ b)
    return frame.select("trial", "row", "column").with_columns(
        trend=pl.Series(K @ e), residual=pl.Series(y - X @ b - of_lines @ e)
    )


def columns_of(frame, name):
    if name == "1":
        return [np.ones(frame.height)]
    if name == "age":
        age = frame["age"].to_numpy() - 30
        return [age, age**2]
    if name == "age by sex":
        return [(frame["age"].to_numpy() - 30) * (frame["sex"] == s).to_numpy() for s in "ab"]
    return [(frame[name] == level).to_numpy().astype(float) for level in sorted(set(frame[name]))]


BY_SEX = {"column": "age", "kind": "covariate", "by": "sex"}
CURVE = {"kind": "covariate", "degree": 2}
MODELS = [
    ({"sex": {}, "trial": {}, "age": CURVE}, ("sex", "trial", "age")),
    ({}, ("1",)),
    ({"sex": {}, "slope": BY_SEX}, ("sex", "age by sex")),
    ({"trial": {}, "sex": {}, "slope": BY_SEX}, ("trial", "sex", "age by sex")),
]


@pytest.mark.parametrize(("fixed", "columns"), MODELS)
def test_trend_and_residual_are_those_of_the_mixed_model(fixed, columns, tmp_path):
    records = simulate()
    run = mmgibbs.run(analysis(tmp_path / "run", records, fixed), progress=False)
    field, known = run.field, dense_residuals(records, columns)
    assert field.height == 40 and field["records"].sum() == 37
    assert field.filter(records=0)["residual"].null_count() == 3 and field["sd"].null_count() == 0
    both = field.join(known, on=["trial", "row", "column"], suffix="_known", maintain_order="left_right")
    assert both.height == 37
    np.testing.assert_allclose(both["mean"], both["trend"], atol=1e-6)
    np.testing.assert_allclose(both["residual"], both["residual_known"], atol=1e-6)
    solutions = run.solutions.filter(term="field")
    np.testing.assert_allclose(field["mean"], solutions["mean"])
    np.testing.assert_allclose(field["sd"], solutions["sd"])


def test_a_trial_without_records_of_a_trait_has_no_rows_for_it(tmp_path):
    records = simulate().with_columns(z=pl.when(pl.col("trial") == "A").then(pl.col("y")))
    model = {"random": {"field": {"relationship": KNOWN}}}
    variances = {"mode": "fixed", "field": [[2.0, 0], [0, 1.0]], "residual": [[1.0, 0], [0, 1.0]]}
    source = analysis(tmp_path / "run", records, {}, traits=["y", "z"], model=model, variances=variances)
    field = mmgibbs.run(source, progress=False).field
    rows = field.group_by("trait", "trial").len().sort("trait", "trial").rows()
    assert rows == [("y", "A", 20), ("y", "B", 20), ("z", "A", 20)]


@pytest.fixture(scope="module")
def one_row(tmp_path_factory):
    relationship = {"kind": "ar1", "row": "row", "rho": 0.6, "fixed": True}
    records = simulate(("A",), rows=40, columns=1, missing=0)
    source = analysis(tmp_path_factory.mktemp("row") / "run", records, {}, relationship=relationship)
    return mmgibbs.run(source, progress=False)


def test_one_direction_without_trials(one_row):
    run = one_row
    assert run.field["trial"].unique().to_list() == [""] and run.field["column"].null_count() == 40
    item = field_section(read_finished(run.directory), plots.Figures())[0]
    assert item["maps"][0][0] == "Trend" and "Trend along rows" in item["maps"][0][2]
    assert [heading for heading, _, _ in item["variogram"]] == ["Sample variogram"]


def test_a_run_without_plots_has_no_such_files(tmp_path):
    held = {"mode": "fixed", "gen": 1, "residual": 1}
    source = analysis(tmp_path / "run", simulate(), {}, model={"random": {"gen": {}}}, variances=held)
    run = mmgibbs.run(source, progress=False)
    assert run.field is None and not {"field.parquet", "variogram.parquet"} & set(run.info["files"])


@pytest.fixture(scope="module")
def several_trials(tmp_path_factory):
    records = simulate([f"T{i:02}" for i in range(MAX_TRIALS + 2)])
    source = analysis(tmp_path_factory.mktemp("field") / "run", records, {"trial": {}})
    return mmgibbs.run(source, progress=False, report=True)


@pytest.fixture(scope="module")
def section(several_trials):
    return field_section(read_finished(several_trials.directory), plots.Figures())[0]


def test_the_page_has_maps_of_the_first_trials_and_one_variogram(several_trials, section):
    page = (several_trials.directory / "report.html").read_text(encoding="utf-8")
    assert '<a href="#field-trends">' in page
    assert f"The first {MAX_TRIALS} of {MAX_TRIALS + 2} trials are shown" in page
    assert page.count("Trend of field, y in T") == MAX_TRIALS
    assert "<var>C</var> has the covariances" in page and "user’s relationship" not in page
    item = section
    variogram = pl.read_parquet(several_trials.directory / "variogram.parquet")
    along = variogram.filter(column_displacement=0, row_displacement=1)
    pairs, semivariance = along["pairs"], along["semivariance"]
    assert item["table"].rows[0][2].value == pairs.sum()
    assert item["table"].rows[0][1].value == pytest.approx((pairs * semivariance).sum() / pairs.sum())


def test_figures_have_the_plots_by_row_and_column(several_trials, tmp_path):
    save_figures(several_trials.directory, tmp_path, "svg", only=["trend-*-t01", "sample-*"])
    table = pl.read_csv(tmp_path / "trend-of-field-y-in-t01.csv").filter(series="matrix").sort("y", "x")
    field = several_trials.field.filter(trial="T01").sort("row", "column")
    np.testing.assert_array_equal(table.select("y", "x").to_numpy(), field.select("row", "column").to_numpy())
    np.testing.assert_allclose(table["value"], field["mean"])
    lines = pl.read_csv(tmp_path / "sample-variogram-along-rows-and-columns-of-field-y.csv")
    assert lines["series"].unique(maintain_order=True).to_list() == ["along rows", "along columns"]


def test_maps_mark_the_plots_without_a_record(several_trials, section):
    empty = []
    for trial, _, caption in section["maps"]:
        n = several_trials.field.filter(trial=trial, records=0).height
        empty.append(n)
        assert ("A dot: a plot without a record" in caption) == (n > 0)
        assert n == 0 or f"({n} plot{'s' * (n > 1)})" in caption
    assert sum(empty) > 0 and 0 in empty


def test_displacements_with_just_enough_pairs_are_shown(several_trials, monkeypatch):
    variogram = pl.read_parquet(several_trials.directory / "variogram.parquet")
    pairs = int(variogram.filter(column_displacement=0, row_displacement=4)["pairs"].sum())
    shown = []
    for enough in (pairs, pairs + 1):
        monkeypatch.setattr(field_page, "MIN_PAIRS", enough)
        rows = field_section(read_finished(several_trials.directory), plots.Figures())[0]["table"].rows
        shown.append([row[0].value for row in rows if row[2].value == pairs])
    assert shown == [[4], []]


def test_records_of_one_plot_count_by_their_weights(tmp_path):
    records = simulate(missing=0).with_columns(w=1.0)
    first = records.head(1)
    twice = pl.concat([first.with_columns(y=47.0, w=3.0), first.with_columns(y=55.0, w=0.5), records.tail(-1)])
    once = pl.concat([first.with_columns(y=(3.0 * 47.0 + 0.5 * 55.0) / 3.5, w=3.5), records.tail(-1)])
    fields = []
    for name, frame in (("twice", twice), ("once", once)):
        source = analysis(tmp_path / name, frame, {}, data={"phenotypes": frame, "weights": "w"})
        fields.append(mmgibbs.run(source, progress=False).field)
    for column in ("mean", "residual"):
        np.testing.assert_allclose(fields[0][column], fields[1][column], atol=1e-8)


def test_the_band_of_a_line_of_plots_is_its_interval(one_row, tmp_path):
    run = one_row
    save_figures(run.directory, tmp_path, "svg", only=["trend-*"])
    band = pl.read_csv(tmp_path / "trend-of-field-y.csv").filter(series="band").sort("x")
    half = 1.96 * run.field["sd"].to_numpy()
    for name, end in (("low", run.field["mean"] - half), ("high", run.field["mean"] + half)):
        np.testing.assert_allclose(band[name], end, rtol=1e-5)
