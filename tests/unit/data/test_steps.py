"""Steps of rows, columns and times: one for all classes, from all distances, stated in run.json and in messages."""

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize

import mmgibbs
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import DataError, MmgibbsError

FIELD = {"kind": "ar1", "row": "row", "column": "column", "within": "trial"}
TIMES = {"kind": "ar1", "time": "hour", "within": "cow"}


def source(records, relationship, by=None, order=None, random=False, **residual):
    """REML of y, with correlated residuals or, random, with a random effect beside independent ones."""
    of_residual = {} if random else {"relationship": relationship} | residual
    return {
        "data": {"phenotypes": records} | ({} if order is None else {"order": order}),
        "traits": ["y"],
        "model": {
            "fixed": {} if by is None else {by: {}},
            "random": {"e": {"relationship": relationship}} if random else {},
        },
        "variances": {"residual": of_residual | ({} if by is None else {"by": by})},
        "sampler": {"method": "reml"},
        "output": {"directory": "run"},
    }


def prepared(*args, **keys):
    return prepare(load_config(source(*args, **keys)))


def dense_reml(y, X, correlate, start):
    """(variance, parameters) where the dense restricted likelihood of y = Xb + e, var e = v C(parameters), is highest.

    log p = -(log|C| + log|X'C^-1 X| + (n - p) log(y'Py)) / 2, v = y'Py / (n - p); scipy's Nelder-Mead.
    """
    n, p = X.shape

    def parts(parameters):
        L = np.linalg.cholesky(correlate(parameters))
        Z, u = np.linalg.solve(L, X), np.linalg.solve(L, y)
        b = np.linalg.lstsq(Z, u, rcond=None)[0]
        rest = np.sum((u - Z @ b) ** 2)
        return 2 * np.log(np.diag(L)).sum() + np.linalg.slogdet(Z.T @ Z)[1] + (n - p) * np.log(rest), rest / (n - p)

    inside = lambda x: np.all(np.abs(x) < 0.995)
    criterion, options = lambda x: parts(x)[0] if inside(x) else 1e10, {"xatol": 1e-8, "fatol": 1e-10}
    best = minimize(criterion, start, method="Nelder-Mead", options=options)
    return parts(best.x)[1], best.x


def series(times, rho, rng, cows=12):
    """Records of cows at these times, of correlation rho^distance."""
    L = np.linalg.cholesky(rho ** np.abs(np.subtract.outer(times, times)))
    rows = [
        (f"c{c}", t, v) for c in range(cows) for t, v in zip(times, L @ rng.standard_normal(len(times)), strict=True)
    ]
    return pl.DataFrame(rows, schema=["cow", "hour", "y"], orient="row")


def of_times(records, parameters):
    hour, cow = records["hour"].to_numpy().astype(float), records["cow"].to_numpy()
    return parameters[0] ** np.abs(np.subtract.outer(hour, hour)) * (cow[:, None] == cow)


def parameters_of(records, relationship, tmp_path, **keys):
    result = mmgibbs.run(source(records, relationship, **keys), directory=tmp_path / "run", progress=False)
    return dict(result.summary.select("parameter", "mean").iter_rows()), result.info


def test_two_near_times_bound_no_other_correlation(tmp_path):
    """The step is .01, which one pair sets; the variance and the correlation over an hour are those of dense REML."""
    rng = np.random.default_rng(3)
    times = np.arange(8.0)
    records = series(times, 0.8, rng)
    near = records.filter(cow="c1", hour=3.0).with_columns(pl.col("hour") + 0.01, pl.col("y") + 0.05)
    records = pl.concat([records, near])
    values, record = parameters_of(records, TIMES, tmp_path)
    variance, (rho,) = dense_reml(
        records["y"].to_numpy(), np.ones((records.height, 1)), lambda x: of_times(records, x), [0.7]
    )
    assert record["data"]["steps"] == {"residual": {"hour": 0.01}}
    assert values["residual.var[y]"] == pytest.approx(variance, rel=1e-4)
    assert values["residual.rho[time]"] ** 100 == pytest.approx(rho, abs=1e-4)
    (warning,) = record["warnings"]
    assert "a single pair of times sets the step of hour, 0.01: 3 and 3.01 in 'c1'; the median distance is 1" in warning
    stated, record = parameters_of(records, TIMES | {"step": 1}, tmp_path / "stated")
    assert stated["residual.rho[time]"] == pytest.approx(rho, abs=1e-4) and record["warnings"] == []


@pytest.mark.parametrize("second, is_asked", [(0.01, True), (0.5, True), (0.6, False), (0.97, False)])
def test_a_single_pair_of_times_is_questioned_where_it_is_far_nearer_than_others(second, is_asked):
    """At most half the median distance, 1: of irregular times one pair nearly always has the smallest distance."""
    records = series(np.arange(6.0), 0.7, np.random.default_rng(5))
    first = records.head(1).with_columns(hour=pl.lit(second), y=pl.lit(0.1))
    said = prepared(pl.concat([records, first]).filter((pl.col("cow") != "c0") | (pl.col("hour") != 1)), TIMES).warnings
    assert any("a single pair of times sets the step of hour" in words for words in said) == is_asked


def test_a_slip_of_times_misleads_no_start_of_a_random_effect(tmp_path):
    """Over a step of .01 the default start .5 is a correlation of 0 over an hour, from which nothing rises."""
    rng = np.random.default_rng(4)
    records = series(np.arange(8.0), 0.8, rng, cows=14)
    records = records.with_columns(pl.col("y") + 0.5 * rng.standard_normal(records.height))
    near = records.filter(cow="c1", hour=3.0).with_columns(pl.col("hour") + 0.01, pl.col("y") + 0.3)
    records = pl.concat([records, near])
    values, _ = parameters_of(records, TIMES, tmp_path, random=True)
    mixed = lambda x: x[1] * of_times(records, x[:1]) + (1 - x[1]) * np.eye(records.height)
    variance, (rho, share) = dense_reml(records["y"].to_numpy(), np.ones((records.height, 1)), mixed, [0.7, 0.6])
    assert values["e.rho[time]"] ** 100 == pytest.approx(rho, abs=1e-3)
    assert values["e.var[y]"] == pytest.approx(share * variance, rel=1e-2)
    # what was estimated, which may be above .995, can be held
    known = TIMES | {"rho": values["e.rho[time]"], "step": 0.01, "fixed": True}
    analysis = source(records, known, random=True) | {"variances": {"e": 1.0, "residual": 1.0}}
    assert values["e.rho[time]"] > 0.995
    (held,) = prepare(load_config(analysis)).design.terms[-1].relationship.rho
    assert held == values["e.rho[time]"]


def test_a_step_that_is_too_long_is_named(tmp_path):
    """Over 24 hours .6^24 is 5e-6, and rho has a lower bound of .005."""
    records = series(np.arange(8.0), 0.6, np.random.default_rng(4))
    values, record = parameters_of(records, TIMES | {"step": 24}, tmp_path)
    assert values["residual.rho[time]"] == pytest.approx(0.005, rel=1e-6)
    (warning,) = record["warnings"]
    assert "residual.rho[time]: the correlation over a step is at its lower bound, 0.005" in warning
    assert "Needed a shorter step" in warning


def test_a_known_negative_correlation_over_fractions_of_a_step_is_refused():
    records = series(np.array([0.0, 1, 2.5, 4]), 0.7, np.random.default_rng(2))
    with pytest.raises(DataError, match=r"no whole number of steps apart.* of -0\.3 .*needed one of 0 or more"):
        prepared(records, TIMES | {"rho": -0.3, "fixed": True}, random=True)


def test_the_step_is_one_for_all_classes(tmp_path):
    """Class A is read every hour, B every two: both correlations are over one hour, those of dense REML of each."""
    rng = np.random.default_rng(5)
    read = {"A": np.arange(10.0), "B": np.arange(0.0, 20.0, 2.0)}
    parts = [series(times, 0.8, rng, cows=6).with_columns(site=pl.lit(site)) for site, times in read.items()]
    values, record = parameters_of(pl.concat(parts), TIMES, tmp_path, by="site")
    for site, records in zip(read, parts, strict=True):
        X = np.ones((records.height, 1))
        _, (rho,) = dense_reml(records["y"].to_numpy(), X, lambda x, of=records: of_times(of, x), [0.7])
        assert values[f"residual.rho[time|{site}]"] == pytest.approx(rho, abs=1e-4)
    assert record["data"]["steps"] == {"residual": {"hour": 1.0}}
    assert any("rho is the correlation over a step of 1 of hour" in note for note in record["notes"])


def test_a_class_with_a_step_of_its_own_keeps_it():
    records = pl.concat(
        [
            pl.DataFrame({"cow": "a", "hour": [0.0, 1, 2, 3], "y": [1.0, 2, 4, 3], "site": "A"}),
            pl.DataFrame({"cow": "b", "hour": [0.0, 2, 4, 6], "y": [1.0, 3, 4, 3], "site": "B"}),
        ]
    )
    of_b = {"classes": {"B": {"relationship": TIMES | {"step": 2}}}}
    found = prepared(records, TIMES, by="site", **of_b)
    assert [group.relationship.structure.step for group in found.design.correlated] == [1.0, 2.0]
    assert found.counts["steps"] == {"residual": {"hour|A": 1.0, "hour|B": 2.0}}


def field(rows, columns, seed=7):
    rng = np.random.default_rng(seed)
    R, C = (
        rho ** np.abs(np.subtract.outer(x, x))
        for rho, x in ((0.7, np.arange(len(rows))), (0.5, np.arange(len(columns))))
    )
    y = np.linalg.cholesky(R) @ rng.standard_normal((len(rows), len(columns))) @ np.linalg.cholesky(C).T
    row, column = (x.ravel() for x in np.meshgrid(rows, columns, indexing="ij"))
    return pl.DataFrame({"trial": "T", "row": row, "column": column, "y": y.ravel()})


@pytest.mark.parametrize("random", [False, True])
def test_rows_in_steps_of_ten_are_neighbours(random):
    of = lambda records: prepared(records, FIELD, random=random)
    wide, plain = of(field(range(10, 90, 10), range(1, 6))), of(field(range(1, 9), range(1, 6)))
    relationship = lambda found: (
        found.design.terms[-1].relationship if random else found.design.correlated[0].relationship
    )
    assert relationship(wide).structure.lattices == relationship(plain).structure.lattices == ((8, 5),)
    np.testing.assert_array_equal(relationship(wide).values, relationship(plain).values)
    assert wide.counts["steps"] == {"e" if random else "residual": {"row": 10.0, "column": 1.0}}
    assert any("rows are numbered in steps of 10" in note for note in wide.design.notes)
    if random:
        assert wide.levels[-1].plots["row"].unique().sort().to_list() == list(range(10, 90, 10))


def test_correlations_of_rows_in_steps_are_those_of_neighbours(tmp_path):
    """Rows 10, 20, 30, 50, ..., columns in steps of 1: dense REML, with rows 30 and 50 two steps apart."""
    records = field(range(10, 90, 10), range(1, 7)).filter(pl.col("row") != 40)
    values, _ = parameters_of(records, FIELD, tmp_path)
    row, column = records["row"].to_numpy() / 10, records["column"].to_numpy()
    correlate = lambda x: (
        x[0] ** np.abs(np.subtract.outer(row, row)) * x[1] ** np.abs(np.subtract.outer(column, column))
    )
    variance, rho = dense_reml(records["y"].to_numpy(), np.ones((len(row), 1)), correlate, [0.6, 0.4])
    found = [values[f"residual.{name}"] for name in ("var[y]", "rho[row]", "rho[column]")]
    np.testing.assert_allclose(found, [variance, *rho], rtol=1e-3)


def test_steps_of_rows_may_be_stated_and_must_divide_all_distances():
    records = field(range(10, 60, 10), range(1, 4))
    found = prepared(records, FIELD | {"step": {"row": 5}})
    assert found.design.correlated[0].relationship.structure.lattices == ((9, 3),)
    with pytest.raises(DataError, match=r"found 10 and 20 in 'T', which are no whole number of steps of 4 apart"):
        prepared(records, FIELD | {"step": {"row": 4}})
    with pytest.raises(MmgibbsError, match=r"step\.time: found without time: COLUMN, needed row and column"):
        prepared(records, FIELD | {"step": {"time": 4}})


def test_a_row_and_a_trial_that_are_numbered_in_another_way_are_warned_of():
    odd = pl.concat([field(range(10, 60, 10), range(1, 4)), field([65], range(1, 4))])
    (warning,) = prepared(odd, FIELD).warnings
    assert "a single pair of rows sets the step of row, 5: 50 and 65 in 'T'" in warning
    two = [field(range(1, 7), range(1, 4)), field(range(10, 70, 10), range(1, 4)).with_columns(trial=pl.lit("U"))]
    (warning,) = prepared(pl.concat(two), FIELD).warnings
    assert "the rows of 'U' (by 10) are numbered in longer steps than 1" in warning


def test_times_and_distances_are_compared_in_steps():
    records = pl.DataFrame({"cow": ["a"] * 4, "hour": [0.0, 1, 2, 3], "y": [1.0, 2, 4, 3]})
    with pytest.raises(DataError, match=r"found times 0 and 1 in column 'hour'.*less than a billionth of a step"):
        prepared(records, TIMES | {"step": 1e10})
    near = records.with_columns(pl.col("hour").replace(1.0, 1e-12))
    assert prepared(near, TIMES).counts["steps"] == {"residual": {"hour": 1e-12}}
    records = pl.DataFrame({"cow": ["a"] * 5 + ["b"] * 5, "hour": [0.1, 0.2, 0.3, 0.4, 0.5] * 2, "y": np.arange(10.0)})
    found = prepared(records, TIMES)
    assert found.counts["steps"] == {"residual": {"hour": 0.1}} and found.warnings == ()


WEEK = ["sun", "mon", "wed"]


@pytest.mark.parametrize("kind", ["key", "type"])
@pytest.mark.parametrize(
    "relationship", [TIMES | {"time": "day"}, {"kind": "random_walk", "of": "day", "order": 1, "within": "cow"}]
)
def test_words_in_an_order_are_one_step_each(kind, relationship):
    records = pl.DataFrame(
        {"cow": ["a"] * 3 + ["b"] * 2, "day": ["wed", "sun", "mon", "sun", "wed"], "y": [1.0, 2, 4, 3, 5]}
    )
    order = {"day": WEEK} if kind == "key" else None
    records = records if kind == "key" else records.with_columns(pl.col("day").cast(pl.Enum(WEEK)))
    found = prepared(records, relationship, order=order, random=True)
    numbers = prepared(records.with_columns(pl.col("day").replace_strict(WEEK, [1, 2, 3])), relationship, random=True)
    word = dict(zip("123", WEEK, strict=True))
    assert found.levels[-1].ids.to_list() == [i[:-1] + word[i[-1]] for i in numbers.levels[-1].ids]
    of_terms = [x.design.terms[-1] for x in (found, numbers)]
    np.testing.assert_array_equal(*(term.effects[0].level for term in of_terms))
    np.testing.assert_array_equal(*(term.relationship.values for term in of_terms))


def test_words_without_an_order_and_levels_that_it_lacks_are_refused():
    records = pl.DataFrame({"cow": ["a"] * 3, "day": ["wed", "sun", "mon"], "y": [1.0, 2, 4]})
    asked = (
        r"found 3 words in column 'day' \(variances\.residual\.relationship\.time\); needed numbers, or data\.order: "
    )
    with pytest.raises(DataError, match=asked + r"\{'day': \['mon', 'wed', 'sun'\]\}, from first to last"):
        prepared(records, TIMES | {"time": "day"})
    weeks = records.with_columns(day=pl.Series(["week 10", "week 2", "week 1"]))
    with pytest.raises(DataError, match=r"as 1 for 'week 1', or data\.order: \{'day': \['week 1', 'week 2', 'week"):
        prepared(weeks, TIMES | {"time": "day"})
    with pytest.raises(DataError, match=r"row 1: found 'wed' in column 'day'.*needed a level that data\.order\.day"):
        prepared(records, TIMES | {"time": "day"}, order={"day": ["sun", "mon"]})
    with pytest.raises(DataError, match=r"there is no column 'month' \(data\.order\.month\)"):
        prepared(records, TIMES | {"time": "day"}, order={"day": WEEK, "month": ["jan", "feb"]})


@pytest.mark.parametrize(
    ("column", "random"),
    [("cow", False), ("hour", True), ("trial", False), ("row", True), ("column", False), ("site", False)],
)
def test_an_empty_cell_is_refused_by_row(column, random):
    hour = pl.col("row") * 10 + pl.col("column")
    field_of = field(range(1, 5), range(1, 4)).with_columns(cow="trial", site=pl.col("row") % 2, hour=hour)
    records = field_of.with_columns(pl.when(pl.int_range(pl.len()) != 6).then(column).alias(column))
    relationship = TIMES if column in ("cow", "hour") else FIELD
    with pytest.raises(DataError, match=rf"row 7: found no (known level|value) in column '{column}'"):
        prepared(records, relationship, random=random, by=None if column != "site" else "site")


@pytest.mark.parametrize(
    ("kind", "column"), [("random_walk", "hour"), ("spline", "hour"), ("random_walk", "cow"), ("spline", "cow")]
)
def test_an_empty_cell_of_a_curve_is_refused_by_row(kind, column):
    records = series(np.arange(5.0), 0.5, np.random.default_rng(1), cows=3)
    records = records.with_columns(pl.when(pl.int_range(pl.len()) != 6).then(column).alias(column))
    with pytest.raises(DataError, match=rf"row 7: found no known level in column '{column}'"):
        prepared(records, {"kind": kind, "of": "hour", "within": "cow"}, random=True)


def test_a_number_that_means_a_missing_value_is_no_time():
    """Numbers are missing by their value, ids by their text: '0.0' of a csv file where 0 means a missing value."""
    records = pl.DataFrame({"cow": ["a"] * 4, "hour": ["0.0", "1", "2", "4"], "y": [1.0, 2, 4, 3]})
    analysis = source(records, TIMES, random=True)
    analysis["data"]["missing"] = ["", "0"]
    with pytest.raises(DataError, match=r"row 1: found no value in column 'hour'"):
        prepare(load_config(analysis))


def test_a_validation_keeps_the_step_of_all_records(tmp_path):
    """Without the record at 3.5 the smallest distance would be 1, and rho, which is over 0.5, would be over 1."""
    from mmgibbs.runs.starts import read_starts
    from mmgibbs.validation.evaluation import drop_unused, read_recorded

    records = series(np.array([0.0, 1, 3, 3.5, 5, 6]), 0.7, np.random.default_rng(2))
    analysis = source(records, TIMES, random=True) | {"output": {"directory": str(tmp_path / "run")}}
    mmgibbs.run(analysis, progress=False)
    overrides = read_starts(tmp_path / "run", load_config(analysis))
    assert 'model.random.e.relationship.step={"time": 0.5}' in overrides
    known = {"kind": "ar1", "time": "hour", "within": "cow", "rho": 0.8}
    stated = source(records, known, random=True)
    stated["variances"] = {"e": 1.0, "residual": 1.0}
    stated["sampler"] = {"method": "blup"}
    loaded = load_config(stated)
    whole = prepare(loaded)
    recorded = drop_unused(read_recorded(loaded), whole)
    part = prepare(recorded.without((records["hour"] == 3.5).to_numpy()))
    assert [x.design.terms[-1].relationship.structure.step for x in (whole, part)] == [0.5, 0.5]
