"""The order of levels that are traits (`by`), the structures that need it, and the distances of levels."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers.analyses import as_mapping
from scipy.optimize import minimize

import mmgibbs
from mmgibbs.config.orders import level_numbers
from mmgibbs.data.prepare import prepare
from mmgibbs.data.traits import load_analysis
from mmgibbs.errors import MmgibbsError

MONTHS = ["jan", "feb", "mar", "apr"]
AR1 = {"kind": "ar1", "variances": "equal"}


def records(levels, cows=5, seed=1, rho=0.8, positions=None, repeated=2):
    """Records of cows at each level, whose effects have correlations rho^distance."""
    rng = np.random.default_rng(seed)
    at = np.arange(len(levels)) if positions is None else np.array(positions)
    L = np.linalg.cholesky(4 * rho ** np.abs(np.subtract.outer(at, at)))
    rows = [
        {"cow": f"c{c}", "month": level, "milk": 20 + u + rng.standard_normal()}
        for c in range(cows)
        for level, u in zip(levels, L @ rng.standard_normal(len(levels)), strict=True)
        for _ in range(repeated)
    ]
    return pl.DataFrame(rows).sample(fraction=1, shuffle=True, seed=seed)


def source(table, structure="ar1", order=None, **sections):
    made = {"traits": {"milk": {"by": "month"}}, "random": {"cow": {}}, "method": "reml"} | sections
    made = as_mapping(table, variances={"cow": {"structure": structure}}, **made)
    return made if order is None else made | {"data": made["data"] | {"order": {"month": order}}}


def levels_of(table, *args, **keys):
    return [trait.where["month"] for trait in load_analysis(source(table, *args, **keys)).traits]


@pytest.mark.parametrize("structure", ["ar1", "antedependence", AR1])
@pytest.mark.parametrize(
    ("levels", "likely"),
    [
        (MONTHS, MONTHS),
        (["October", "Dec.", "SEPT"], ["SEPT", "October", "Dec."]),
        (["Fri", "Monday", "wed"], ["Monday", "wed", "Fri"]),
        (["1.12.2020", "3.2.2020", "10.1.2021"], ["3.2.2020", "1.12.2020", "10.1.2021"]),
        (["week 2", "day 10", "week 3"], ["day 10", "week 2", "week 3"]),
        (["F1", "F2", "F1b"], ["F1", "F1b", "F2"]),
    ],
)
def test_words_are_asked_about(structure, levels, likely):
    with pytest.raises(MmgibbsError) as error:
        load_analysis(source(records(levels), structure))
    kind = structure if isinstance(structure, str) else structure["kind"]
    assert (
        f"variances.cow.structure.kind: {kind} needs the order of the levels of column 'month', which are words; "
        f"needed data.order: {{'month': [{', '.join(map(repr, likely))}]}}, from first to last"
    ) in str(error.value)
    assert levels_of(records(levels), "diagonal") == likely  # needs no order
    assert levels_of(records(levels), structure, levels[::-1]) == levels[::-1]


@pytest.mark.parametrize(
    ("levels", "ordered"),
    [
        (["10", "9", "2"], ["2", "9", "10"]),
        (["0.5", "-2", "10"], ["-2", "0.5", "10"]),
        (["week 10", "Week 9", "week 2"], ["week 2", "Week 9", "week 10"]),
        (["2021-01-31", "2020-12-01", "2021-01-04"], ["2020-12-01", "2021-01-04", "2021-01-31"]),
    ],
)
def test_numbers_and_dates_have_an_order(levels, ordered):
    assert levels_of(records(levels)) == ordered


def as_arrow(table):
    pa = pytest.importorskip("pyarrow")
    codes = [MONTHS.index(month) for month in table["month"]]
    months = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(MONTHS), ordered=True)
    return pa.table(
        {"cow": pa.array(table["cow"].to_list()), "month": months, "milk": pa.array(table["milk"].to_list())}
    )


def as_pandas(table):
    months = pd.Categorical(table["month"].to_list(), categories=MONTHS, ordered=True)
    return pd.DataFrame({"cow": table["cow"].to_list(), "month": months, "milk": table["milk"].to_list()})


def as_enum(table):
    return table.with_columns(pl.col("month").cast(pl.Enum(["dec", *MONTHS])))


@pytest.mark.parametrize("convert", [as_arrow, as_pandas, as_enum])
def test_ordered_types_keep_their_order(convert, tmp_path):
    assert levels_of(convert(records(MONTHS))) == MONTHS
    if convert is as_enum:
        as_enum(records(MONTHS)).write_parquet(tmp_path / "records.parquet")
        as_enum(records(MONTHS)).write_ipc(tmp_path / "records.arrow")
        assert all(levels_of(str(tmp_path / f"records.{kind}")) == MONTHS for kind in ("parquet", "arrow"))


def test_dates_of_a_table_have_their_order():
    first = [f"2020-0{i}-01" for i in (1, 2, 3, 4)]
    dates = records(MONTHS).with_columns(pl.col("month").replace_strict(MONTHS, first).str.to_date())
    assert levels_of(dates) == first


@pytest.mark.parametrize("kind", ["parquet", "feather", "stream"])
def test_ordered_dictionaries_of_files_keep_their_order(kind, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.feather
    import pyarrow.parquet

    table, path = as_arrow(records(MONTHS)), tmp_path / f"records.{kind}"
    if kind == "parquet":
        pyarrow.parquet.write_table(table, path)
    elif kind == "feather":
        pyarrow.feather.write_feather(table, path, compression="uncompressed")
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table)
    assert levels_of(str(path)) == MONTHS
    words = table.column("month").combine_chunks().cast(pa.string()).dictionary_encode()
    unordered = table.set_column(1, "month", words)
    with pytest.raises(MmgibbsError, match="needs the order of the levels"):
        levels_of(unordered)


def test_an_order_has_every_level_and_distances_need_numbers():
    with pytest.raises(MmgibbsError) as error:
        load_analysis(source(records(MONTHS), order=["jan", "feb", "march", "apr"]))
    message = "data.order.month: expected every level of column 'month' (traits.milk.by), got none of 'mar', which"
    assert message in str(error.value) and "'march'" in str(error.value)
    numbers = AR1 | {"distances": "numbers"}
    with pytest.raises(MmgibbsError, match=r"structure\.distances: found numbers, needed components that are levels"):
        load_analysis(source(records(MONTHS), numbers, MONTHS))
    with pytest.raises(MmgibbsError, match=r"distances: expected equal for kind: antedependence, got numbers"):
        load_analysis(source(records(["1", "2", "4"]), {"kind": "antedependence", "distances": "numbers"}))


def test_two_levels_have_one_order_but_for_equal_innovations():
    two = records(["b", "a"])
    for structure in ("ar1", AR1, "antedependence"):
        assert levels_of(two, structure) == ["a", "b"]
    with pytest.raises(MmgibbsError, match="antedependence needs the order"):
        load_analysis(source(two, {"kind": "antedependence", "variances": "equal"}))


def test_traits_that_the_file_lists_are_in_its_order():
    listed = {f"milk {month}": {"column": "milk", "where": {"month": month}} for month in MONTHS}
    loaded = load_analysis(source(records(MONTHS), traits=listed))
    assert [trait.where["month"] for trait in loaded.traits] == MONTHS
    by_key = load_analysis(source(records(MONTHS), order=MONTHS))
    data = by_key.resolved()["data"] | {"phenotypes": records(MONTHS)}
    assert load_analysis(by_key.resolved() | {"data": data}).traits == by_key.traits


def test_an_order_is_that_of_numbers(tmp_path):
    """The same model with months by their number: alphabetical order has another likelihood."""
    words = records(MONTHS, cows=15)
    numbers = words.with_columns(pl.col("month").replace_strict(MONTHS, ["1", "2", "3", "4"]))

    def log_likelihood(table, order, folder):
        return mmgibbs.run(source(table, AR1, order), directory=tmp_path / folder, progress=False).info[
            "log_likelihood"
        ]

    by_key = log_likelihood(words, MONTHS, "key")
    assert by_key == pytest.approx(log_likelihood(numbers, None, "numbers"), abs=1e-9)
    assert by_key != pytest.approx(log_likelihood(words, sorted(MONTHS), "sorted"), abs=0.01)


def test_traits_of_an_effect_are_in_the_order_that_it_lists(tmp_path):
    """The same model with the traits of the analysis in that order; a chain in another order has another likelihood."""
    rng = np.random.default_rng(8)
    u = rng.standard_normal((12, 3)) @ np.array([[1, 0.8, 0.1], [0, 0.6, 0.7], [0, 0, 0.7]])
    y = np.concatenate([u + 0.5 * rng.standard_normal(u.shape) for _ in range(3)])
    table = pl.DataFrame({"cow": [f"c{i}" for i in range(12)] * 3}).with_columns(
        pl.Series(name, y[:, i]) for i, name in enumerate("abc")
    )

    def log_likelihood(traits, of_effect):
        cow = {"traits": of_effect} if of_effect else {}
        analysis = source(table, "antedependence", traits=traits, model={"random": {"cow": cow}})
        folder = tmp_path / "-".join([*traits, *of_effect])
        return mmgibbs.run(analysis, directory=folder, progress=False).info["log_likelihood"]

    listed = log_likelihood(["a", "b", "c"], ["c", "a", "b"])
    assert listed == pytest.approx(log_likelihood(["c", "a", "b"], []), abs=1e-6)
    assert listed != pytest.approx(log_likelihood(["a", "b", "c"], []), abs=1e-3)


def test_distances_of_numbers_are_those_of_dense_reml(tmp_path):
    """Levels 1, 2, 4 and 9 in steps and by their numbers: maxima of a dense restricted likelihood by scipy."""
    levels, at = ["1", "2", "4", "9"], np.array([1.0, 2, 4, 9])
    table = records(levels, cows=12, seed=4, rho=0.85, positions=at)
    month, cow, y = (table[name].to_numpy() for name in ("month", "cow", "milk"))
    X = (month[:, None] == np.array(levels)).astype(float)
    place, same = np.array([levels.index(m) for m in month]), cow[:, None] == cow

    def minus_log_likelihood(x, positions):
        distance = np.abs(np.subtract.outer(positions[place], positions[place]))
        V = np.exp(x[0]) * np.tanh(x[1]) ** distance * same + np.diag(np.exp(x[2:])[place])
        P = np.linalg.inv(V)
        XPX = X.T @ P @ X
        e = y - X @ np.linalg.solve(XPX, X.T @ P @ y)
        return (np.linalg.slogdet(V)[1] + np.linalg.slogdet(XPX)[1] + e @ P @ e) / 2

    for distances, positions in (("numbers", at), ("equal", np.arange(4.0))):
        analysis = source(table, AR1 | {"distances": distances})
        result = mmgibbs.run(analysis, directory=tmp_path / distances, progress=False)
        values = dict(result.summary.select("parameter", "mean").iter_rows())
        best = minimize(minus_log_likelihood, [1.0, 1.0, 0, 0, 0, 0], args=(positions,), options={"gtol": 1e-6})
        assert values["cow.rho"] == pytest.approx(np.tanh(best.x[1]), abs=2e-4)
        assert values["cow.var[milk|1]"] == pytest.approx(np.exp(best.x[0]), rel=1e-3)
        said = [w for w in result.info["warnings"] if "structure" in w]
        assert bool(said) == (distances == "equal")
    assert said == [
        "variances.cow.structure: ar1 counts the levels of 'month' as equally far from each other, each one step from "
        "the next: '1', '2', '4', '9'; for correlations over the distance of their numbers, write distances: numbers"
    ]


@pytest.mark.parametrize("levels", [["1", "2", "3"], ["4", "8", "12"], ["week 3", "week 4", "week 5"], ["2", "9"]])
def test_equal_numbers_are_not_warned_of(levels):
    assert not [w for w in prepare(load_analysis(source(records(levels)))).warnings if "structure" in w]


def test_levels_of_several_traits_in_one_line_are_warned_of():
    table = records(["1", "2", "3"]).with_columns(fat=pl.col("milk") / 5)
    both = source(table, traits={"milk": {"by": "month"}, "fat": {"by": "month"}})
    (warning,) = [w for w in prepare(load_analysis(both)).warnings if "in one line" in w]
    assert "ar1 has the levels of several traits in one line, as 'milk|1' and 'fat|1'" in warning


@pytest.mark.parametrize(
    ("levels", "numbers"),
    [
        (["1", "2.5", "-3"], (1.0, 2.5, -3.0)),
        (["week 2", "Week 10"], (2.0, 10.0)),
        (["1", "1.0"], None),
        (["week 2", "day 10"], None),
        (["2019/20", "2020/21"], None),
        (["jan", "feb"], None),
    ],
)
def test_numbers_of_levels(levels, numbers):
    assert level_numbers(levels) == numbers
