"""Adjusted means where classes are nested, crossed in part, or empty, against dense algebra.

The expected mean of a level is the sum over cells of weight times the prediction in the cell; each test lists its cells
by loops over the table, and `dense` makes the predictions by the generalised inverse of the mixed-model equations.
"""

import itertools

import numpy as np
import polars as pl
import pytest
import scipy.linalg

import mmgibbs
from mmgibbs.errors import MmgibbsError

RESIDUAL = 0.5


def dense(frame, fixed, cells, random=None, variance=None, trait="y", residual=RESIDUAL):
    """(means, standard errors): cells: level -> [(weight, {column: value})]; random: column of u, added to its level.

    fixed: columns of each effect; a column of numbers alone is a covariate, at the mean of the records.
    """
    frame = frame.drop_nulls(trait)
    rows = frame.to_dicts()
    blocks, take = [np.ones((len(rows), 1))], [lambda cell: np.ones(1)]
    for columns in fixed:
        if frame[columns[0]].dtype.is_float():
            mean = frame[columns[0]].mean()
            blocks.append(frame[columns[0]].to_numpy()[:, None])
            take.append(lambda cell, mean=mean: np.array([mean]))
            continue
        key = lambda row, columns=columns: tuple(row[c] for c in columns)
        levels = sorted({key(row) for row in rows})
        blocks.append(np.array([[float(key(row) == level) for level in levels] for row in rows]))
        take.append(lambda cell, key=key, levels=levels: np.array([float(key(cell) == level) for level in levels]))
    X, ids = np.hstack(blocks), list(cells)
    Z = np.zeros((len(rows), len(ids)))
    if random is not None:
        Z = np.array([[float(row[random] == level) for level in ids] for row in rows])
    K = [sum(w * np.concatenate([t(cell) for t in take]) for w, cell in cells[level]) for level in ids]
    K = np.hstack([np.array(K), np.eye(len(ids)) if random else np.zeros((len(ids), len(ids)))])
    W = np.hstack([X, Z])
    C = W.T @ W / residual
    C[X.shape[1] :, X.shape[1] :] += np.eye(len(ids)) / (variance or 1.0)
    inverse = scipy.linalg.pinvh(C, rtol=1e-11)
    means = K @ inverse @ W.T @ frame[trait].to_numpy() / residual
    return dict(zip(ids, means, strict=True)), dict(zip(ids, np.sqrt(np.diag(K @ inverse @ K.T)), strict=True))


def analyse(frame, fixed, means, directory, random=(), method="blup", traits=("y",), report=False, **sections):
    variances = {"mode": "fixed", "residual": RESIDUAL} | dict.fromkeys(random, 2.0)
    return mmgibbs.run(
        {
            "data": {"phenotypes": frame},
            "traits": list(traits),
            "model": {"fixed": fixed, "random": {name: {} for name in random}},
            "variances": variances,
            "sampler": {"method": method},
            "output": {"means": means, "directory": str(directory)},
        }
        | sections,
        progress=False,
        report=report,
    )


def agree(result, effect, expected, trait="y", tolerance=1e-6):
    means, errors = expected
    rows = {row["level"]: row for row in result.means.filter(effect=effect, trait=trait).to_dicts()}
    assert set(means) == {level for level, row in rows.items() if row["mean"] is not None}
    for level, row in rows.items():
        if row["mean"] is not None:
            assert row["mean"] == pytest.approx(means[level], abs=tolerance), level
            assert row["se"] == pytest.approx(errors[level], abs=tolerance), level
            assert row["reason"] is None


def plots(seed=1):
    """Sites with two, three and one replicates, and five lines that are not in all of them."""
    rng = np.random.default_rng(seed)
    rows = []
    for site, replicates in (("North", 2), ("South", 3), ("West", 1)):
        for rep, line in itertools.product(range(replicates), range(5)):
            if rng.random() < 0.85:
                rows.append({"site": site, "rep": f"r{rep + 1}", "line": f"l{line + 1}"})
    frame = pl.DataFrame(rows).with_columns(pl.concat_str("site", "rep", separator="").alias("block"))
    return frame.with_columns(
        y=pl.Series(rng.normal(10.0, 2.0, frame.height)), age=pl.Series(rng.normal(4.0, 1.0, frame.height))
    )


def averaged_within(frame, columns, **given):
    """[(weight, cell)] equal over the classes of the first column, equal within each of these, and so on."""
    for name, value in given.items():
        frame = frame.filter(pl.col(name) == value) if name in columns else frame
    cells = [(1.0, given)]
    for n, column in enumerate(columns):
        further = []
        for weight, cell in cells:
            chosen = frame.filter(pl.lit(True), *[pl.col(c) == cell[c] for c in columns[:n]])
            values = chosen[column].unique().to_list()
            further += [(weight / len(values), cell | {column: value}) for value in values]
        cells = further
    return cells


def test_replicates_are_averaged_within_their_site(tmp_path):
    """As emmeans does where it finds that replicates are nested, by the model."""
    frame = plots()
    fixed = dict.fromkeys(("site", "site:rep", "line")) | {"age": {"kind": "covariate"}}
    result = analyse(frame, fixed, ["line", "site:rep", "site"], tmp_path / "run")
    effects = [("site",), ("site", "rep"), ("line",), ("age",)]
    lines = frame["line"].unique().sort().to_list()
    of_lines = {line: averaged_within(frame, ["site", "rep"], line=line) for line in lines}
    agree(result, "line", dense(frame, effects, of_lines))
    over_lines = lambda cells: [(w / len(lines), cell | {"line": line}) for w, cell in cells for line in lines]
    sites = frame["site"].unique().to_list()
    of_sites = {site: over_lines(averaged_within(frame, ["site", "rep"], site=site)) for site in sites}
    agree(result, "site", dense(frame, effects, of_sites))
    pairs = frame.select("site", "rep").unique().rows()
    of_pairs = {f"{site}:{rep}": over_lines([(1.0, {"site": site, "rep": rep})]) for site, rep in pairs}
    agree(result, "site:rep", dense(frame, effects, of_pairs))


def chain():
    """Animals in pens in herds in regions, with different numbers of each; sires across all."""
    rng = np.random.default_rng(3)
    rows, herd, pen = [], 0, 0
    for region, herds in (("hill", 2), ("plain", 3)):
        for _ in range(herds):
            herd += 1
            for _ in range(rng.integers(1, 4)):
                pen += 1
                for sire in rng.permutation(4)[: rng.integers(2, 4)]:
                    rows.append({"region": region, "herd": herd * 10, "pen": f"p{pen}", "sire": f"s{sire}"})
    frame = pl.DataFrame(rows)
    return frame.with_columns(y=pl.Series(rng.normal(60.0, 3.0, frame.height)))


def test_a_chain_of_three_nested_classes(tmp_path):
    frame = chain()
    columns = ["region", "herd", "pen"]
    result = analyse(frame, dict.fromkeys([*columns, "sire"]), ["sire", "region", "herd", "pen"], tmp_path / "run")
    effects = [(column,) for column in [*columns, "sire"]]
    sires = frame["sire"].unique().sort().to_list()
    cells = {sire: averaged_within(frame, columns, sire=sire) for sire in sires}
    agree(result, "sire", dense(frame, effects, cells))
    for column in columns:
        cells = {}
        for value in frame[column].unique().to_list():
            nested = averaged_within(frame.filter(pl.col(column) == value), columns)
            cells[str(value)] = [(w / len(sires), cell | {"sire": sire}) for w, cell in nested for sire in sires]
        agree(result, column, dense(frame, effects, cells))


@pytest.mark.parametrize("method", ["blup", "reml", "gibbs"])
def test_random_levels_have_the_mean_of_their_class(method, tmp_path):
    frame = chain()
    sampler = {"method": method} | (
        {"samples": 4000, "burn_in": 100, "chains": 1, "seed": 2} if method == "gibbs" else {}
    )
    sections = {"sampler": sampler} | ({"variances": {}} if method == "reml" else {})
    fixed = {"region": None, "sire": None}
    result = analyse(frame, fixed, ["pen"], tmp_path / "run", ["pen"], method, **sections)
    estimated = {row["parameter"]: row["mean"] for row in result.summary.to_dicts()} if method == "reml" else {}
    variance, residual = estimated.get("pen.var[y]", 2.0), estimated.get("residual.var[y]", RESIDUAL)
    cells = {}
    for pen, region in frame.select("pen", "region").unique().rows():
        cells[pen] = [(0.25, {"region": region, "sire": f"s{n}"}) for n in range(4)]
    expected = dense(frame, [("region",), ("sire",)], cells, "pen", variance, residual=residual)
    agree(result, "pen", expected, tolerance=0.15 * min(expected[1].values()) if method == "gibbs" else 1e-6)
    assert any("one class of region alone" in warning for warning in result.info["warnings"])


def test_animals_without_records_have_no_class(tmp_path):
    frame = chain().with_row_index("animal").with_columns(pl.format("a{}", "animal").alias("animal"))
    repeated = pl.concat([frame, frame.with_columns(y=pl.col("y") + 1.0)])
    pedigree = pl.DataFrame({"animal": [*frame["animal"], "old"], "sire": ["old"] * frame.height + ["0"], "dam": "0"})
    sections = {
        "data": {"phenotypes": repeated, "pedigree": pedigree},
        "model": {"fixed": {"region": None}, "random": {"animal": {"relationship": "pedigree"}}},
        "variances": {"mode": "fixed", "animal": 2.0, "residual": RESIDUAL},
    }
    result = analyse(repeated, {"region": None}, ["animal"], tmp_path / "run", **sections)
    (row,) = result.means.filter(pl.col("mean").is_null()).to_dicts()
    assert (row["level"], row["records"], row["se"]) == ("old", 0, None)
    assert row["reason"] == "no records, which would tell its region"
    with pytest.raises(MmgibbsError, match="'old' has no mean: no records, which would tell its region"):
        result.contrast("animal", {"old": 1.0, "a1": -1.0})


@pytest.mark.parametrize("mains", [(), ("site", "line")])
def test_an_interaction_has_means_where_it_has_records(mains, tmp_path):
    frame = plots()
    fixed = dict.fromkeys([*mains, "site:line"]) | {"age": {"kind": "covariate"}}
    result = analyse(frame, fixed, ["site:line"], tmp_path / "run")
    effects = [*[(name,) for name in mains], ("site", "line"), ("age",)]
    cells = {f"{s}:{n}": [(1.0, {"site": s, "line": n})] for s, n in frame.select("site", "line").unique().rows()}
    agree(result, "site:line", dense(frame, effects, cells))


def test_one_mean_that_is_not_estimable_is_empty(tmp_path):
    frame = plots().filter(~((pl.col("site") == "South") & (pl.col("line") == "l2")))
    fixed = dict.fromkeys(["site", "line", "site:line"])
    result = analyse(frame, fixed, ["line"], tmp_path / "run", report=True)
    sites = frame["site"].unique().to_list()
    counts = dict(frame.group_by("line").agg(pl.col("site").n_unique()).rows())
    complete = [line for line, n in counts.items() if n == len(sites)]
    cells = {line: [(1 / 3, {"site": site, "line": line}) for site in sites] for line in complete}
    agree(result, "line", dense(frame, [("site",), ("line",), ("site", "line")], cells))
    rows = {row["level"]: row for row in result.means.to_dicts()}
    assert list(rows) == [f"l{n}" for n in range(1, 6)], "in their order, empty or not"
    assert "no records of site:line with site 'South'" in rows["l2"]["reason"]
    (facts,) = result.info["means"]
    assert facts["levels"] == len(complete) and facts["empty"] == 5 - len(complete)
    assert any("'l2': no records of site:line with site 'South'" in text for text in result.info["warnings"])
    with pytest.raises(MmgibbsError, match="'l2' has no mean"):
        result.contrast("line", {"l2": 1.0})
    with np.load(tmp_path / "run" / "means_covariance.npz") as file:
        assert file["line.y:levels"].tolist() == sorted(complete)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "line with site &#39;South&#39;" in page


def test_lines_that_no_record_joins_have_no_means(tmp_path):
    """Two sets of lines at two pairs of sites: their difference is that of the sites."""
    rows = [{"site": s, "line": n} for sites, lines in (("AB", "xy"), ("CD", "zw")) for s in sites for n in lines]
    frame = pl.DataFrame(rows).with_columns(y=pl.Series(np.random.default_rng(1).normal(size=8)))
    result = analyse(frame, dict.fromkeys(["site", "line"]), ["line"], tmp_path / "run")
    assert result.means["mean"].null_count() == 4
    assert set(result.means["reason"]) == {"the records do not separate line and site"}


def test_combinations_that_lack_records_keep_equal_weights_of_both_columns(tmp_path):
    """Two sites by three years without (b, 3): each site has weight 1/2 and each year 1/3 (solved by hand)."""
    rng = np.random.default_rng(2)
    cells = [(s, y) for s in "ab" for y in "123" if (s, y) != ("b", "3")]
    frame = pl.DataFrame([{"site": s, "year": y, "line": n} for s, y in cells for n in "pqr"])
    frame = frame.with_columns(y=pl.Series(rng.normal(size=frame.height)))
    fixed = dict.fromkeys(["site", "year", "site:year", "line"])
    result = analyse(frame, fixed, ["line"], tmp_path / "run")
    weights = {("a", "1"): 1 / 12, ("a", "2"): 1 / 12, ("a", "3"): 1 / 3, ("b", "1"): 1 / 4, ("b", "2"): 1 / 4}
    effects = [("site",), ("year",), ("site", "year"), ("line",)]
    expected = {n: [(w, {"site": s, "year": y, "line": n}) for (s, y), w in weights.items()] for n in "pqr"}
    agree(result, "line", dense(frame, effects, expected))
    sparse = frame.filter(~((pl.col("site") == "b") & (pl.col("year") == "2")))  # year 1 alone: no equal weights
    alike = analyse(sparse, fixed, ["line"], tmp_path / "alike")
    expected = {
        n: [(1 / 4, {"site": s, "year": y, "line": n}) for s, y in sparse.select("site", "year").unique().rows()]
        for n in "pqr"
    }
    agree(alike, "line", dense(sparse, effects, expected))
    assert any("site and year and site:year are averaged over" in text for text in alike.info["warnings"])


def test_traits_recorded_in_different_classes(tmp_path):
    frame = plots(4)
    rng = np.random.default_rng(9)
    frame = frame.with_columns(z=pl.Series(rng.normal(5.0, 1.0, frame.height)))
    frame = frame.with_columns(z=pl.when(pl.col("site") == "West").then(None).otherwise("z"))
    fixed = dict.fromkeys(["site", "site:rep", "line"])
    held = {"mode": "fixed", "residual": [[RESIDUAL, 0.0], [0.0, RESIDUAL]]}
    result = analyse(frame, fixed, ["line"], tmp_path / "run", traits=("y", "z"), variances=held)
    effects = [("site",), ("site", "rep"), ("line",)]
    for trait in ("y", "z"):
        known = frame.drop_nulls(trait)
        lines = known["line"].unique().sort().to_list()
        cells = {line: averaged_within(known, ["site", "rep"], line=line) for line in lines}
        agree(result, "line", dense(known, effects, cells, trait=trait), trait)


def test_means_that_are_empty_are_left_out_of_a_second_analysis(tmp_path):
    frame = plots().filter(~((pl.col("site") == "South") & (pl.col("line") == "l2")))
    analyse(frame, dict.fromkeys(["site", "line", "site:line"]), ["line"], tmp_path / "run")
    second = mmgibbs.run(
        {
            "data": {"phenotypes": str(tmp_path / "run" / "means.csv")},
            "traits": ["mean"],
            "model": {},
            "variances": {"residual": {"known": str(tmp_path / "run" / "means_covariance.npz")}},
            "sampler": {"method": "blup"},
            "output": {"directory": str(tmp_path / "second")},
        },
        progress=False,
    )
    with np.load(tmp_path / "run" / "means_covariance.npz") as file:
        weights = np.linalg.inv(file["line.y"]).sum(axis=0)
    means = pl.read_csv(tmp_path / "run" / "means.csv")["mean"].drop_nulls().to_numpy()
    assert second.solutions["mean"][0] == pytest.approx(weights @ means / weights.sum(), abs=1e-6)
