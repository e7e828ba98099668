"""Traits by environment: a trait for each level of a column, and records that have a trait by `where`."""

import numpy as np
import polars as pl
import pytest

import mmgibbs
from mmgibbs.data.traits import load_analysis
from mmgibbs.errors import MmgibbsError

SITES, LINES = ("S2", "S10", "S1"), 12


def trial(rng=1):
    """Two replicates of each line at each site; two traits, and the same as a table of a column for each site."""
    rng = np.random.default_rng(rng)
    line = rng.standard_normal((LINES, 2))
    rows = [
        {"site": site, "line": f"L{i}", "rep": f"R{r}", "age": float(rng.integers(20, 40)), "plot": f"{site}:{i}:{r}"}
        | {name: float(line[i, t] + rng.standard_normal()) for t, name in enumerate(("yield", "height"))}
        for site in SITES
        for i in range(LINES)
        for r in range(2)
    ]
    return pl.DataFrame(rows)


def analysis(records, folder="run", **sections):
    return {
        "data": {"phenotypes": records},
        "traits": {"yield": {"by": "site"}},
        "model": {"fixed": {"rep": {}}, "random": {"line": {}}},
        "variances": {"line": {"structure": "diagonal"}},
        "sampler": {"samples": 30, "burn_in": 10, "seed": 3, "chains": 1},
        "output": {"directory": str(folder)},
    } | sections


def expect(message, records=None, **sections):
    with pytest.raises(MmgibbsError) as error:
        mmgibbs.check(analysis(trial() if records is None else records, **sections))
    assert message in str(error.value)


def test_levels_are_in_natural_order_and_need_no_table_when_completed():
    loaded = load_analysis(analysis(trial()))
    names = ["yield|S1", "yield|S2", "yield|S10"]
    assert [t.name for t in loaded.traits] == names
    assert loaded.model.fixed["rep"].traits == loaded.model.random["line"].effects[""].traits == tuple(names)
    assert [(t.column, t.where) for t in loaded.traits] == [("yield", {"site": s}) for s in ("S1", "S2", "S10")]
    completed = load_analysis(analysis(trial())).resolved()
    again = mmgibbs.load_config(completed | {"data": {"phenotypes": "none.csv"}})
    assert again.traits == load_analysis(analysis(trial())).traits


def test_the_chain_is_that_of_a_column_for_each_site(tmp_path):
    records = trial()
    by_site = [pl.when(site=s).then("yield").alias(f"yield|{s}") for s in ("S1", "S2", "S10")]
    wide = records.select("line", "rep", *by_site)
    of_columns = analysis(wide, tmp_path / "wide", traits=[c.meta.output_name() for c in by_site])
    results = [mmgibbs.run(source, progress=False) for source in (analysis(records, tmp_path / "long"), of_columns)]
    assert results[0].draws.equals(results[1].draws) and results[0].solutions.equals(results[1].solutions)


def test_an_effect_at_one_site_and_an_override():
    model = {"fixed": {"rep": {}, "age": {"kind": "covariate", "traits": ["yield|S10"]}}, "random": {"line": {}}}
    counts = mmgibbs.check(analysis(trial(), model=model), ["model.fixed.rep.traits=[yield|S1, yield|S2]"])
    kinds = {t["term"]: t["kind"] for t in counts["terms"]}
    assert kinds["age"] == "fixed, identity, 1 x 1" and kinds["rep"] == "fixed, identity, 2 x 2"


def test_two_traits_have_residual_covariances_within_sites(tmp_path):
    of_both = analysis(trial(), tmp_path / "run", traits={"yield": {"by": "site"}, "height": {"by": "site"}})
    result = mmgibbs.run(of_both | {"sampler": {"method": "reml"}}, progress=False)
    names = set(result.summary["parameter"])
    assert "residual.cov[yield|S1,height|S1]" in names and "residual.cov[yield|S1,height|S2]" not in names


def test_records_and_sites_without_a_value_are_noted():
    records = trial().with_columns(pl.when(pl.int_range(pl.len()) > 1).then("site").alias("site"))
    notes = mmgibbs.check(analysis(records))["notes"]
    assert any(
        "2 records have a value in column 'yield' and none in column 'site', and belong to no" in n for n in notes
    )
    assert not any("belong" in n for n in mmgibbs.check(analysis(trial()))["notes"])
    records = trial().with_columns(pl.when(pl.col("site") != "S2").then("yield").alias("yield"))
    assert [t.name for t in load_analysis(analysis(records)).traits] == ["yield|S1", "yield|S10"]
    said = "'S2' in column 'site' has no value in column 'yield', and no trait"
    assert any(said in note for note in mmgibbs.check(analysis(records))["notes"])
    assert not any("and no trait" in note for note in mmgibbs.check(analysis(trial()))["notes"])


def test_where_chooses_records():
    """Records that the trait does not have make no environments."""
    traits = lambda where: {"yield": {"by": "site", "where": where}}
    names = lambda where: [t.name for t in load_analysis(analysis(trial(), traits=traits(where))).traits]
    assert names({"site": "S1"}) == ["yield|S1"]
    assert names({"rep": "R1"}) == ["yield|S1", "yield|S2", "yield|S10"]
    part = trial().filter(~((pl.col("site") == "S2") & (pl.col("rep") == "R1")))
    chosen = {"yield": {"by": "site", "where": {"rep": "R1"}}}
    assert [t.name for t in load_analysis(analysis(part, traits=chosen)).traits] == ["yield|S1", "yield|S10"]
    expect("and rep: R9 (where), got none", traits={"yield": {"by": "site", "where": {"rep": "R9"}}})
    expect("traits.yield.where.site: found a list", traits={"yield": {"by": "site", "where": {"site": ["S1", "S2"]}}})
    counts = mmgibbs.check(analysis(trial(), traits={"yield": {"where": {"site": "S1", "rep": "R1"}}}, variances={}))
    assert counts["data"]["observations"] == {"yield": LINES}


def test_a_site_in_another_spelling_is_refused():
    odd = trial().with_columns(site=pl.when(pl.int_range(pl.len()) == 5).then(pl.lit("s2 ")).otherwise("site"))
    expect("expected each environment in one spelling, got 's2' (1 record) beside 'S2'", odd)
    lower = pl.when(pl.col("rep") == "R1").then(pl.col("site").str.to_lowercase()).otherwise("site")
    halves = trial().with_columns(site=lower)
    assert len(load_analysis(analysis(halves)).traits) == 6


def test_mistakes_are_named():
    expect("traits.yield.by: found a list", traits={"yield": {"by": ["site", "rep"]}})
    expect("there is no column 'sit' (traits.yield.by); nearest: 'site'", traits={"yield": {"by": "sit"}})
    expect("expected levels without any of", traits={"yield": {"by": "plot"}})
    unknown = {"fixed": {"rep": {"traits": ["yield|S3"]}}, "random": {"line": {}}}
    expect("'yield|S3' is not a trait: yield has no level 'S3' (traits.yield.by), but S1, S2", model=unknown)
    lower = {"fixed": {"rep": {"traits": ["yield|s2"]}}, "random": {"line": {}}}
    expect("'yield|s2' is not a trait; did you mean 'yield|S2'?", model=lower)
    wrong = {"fixed": {"rep": {"traits": ["yeild|S2"]}}, "random": {"line": {}}}
    expect("'yeild|S2' is not a trait; did you mean 'yield|S2'?", model=wrong)
    many = trial().with_columns(plot=pl.int_range(pl.len())).select(pl.all().repeat_by(4).explode())
    many = many.with_columns(plot=pl.int_range(pl.len()))
    expect("at most 250 environments, got 'plot' with 288 levels", many, traits={"yield": {"by": "plot"}})
    expect("no column 'none' (traits.yield)", traits={"yield": {"by": "site", "column": "none"}})
    empty = trial().with_columns(pl.lit(None, pl.Float64).alias("yield"))
    expect("traits.yield.by: expected records with a value of yield and of column 'site', got none", empty)
    expect("trait 'a' has its column 'yield' already", traits={"a": {"column": "yield"}, "yield": {"by": "site"}})
    with pytest.raises(MmgibbsError, match=r"traits.yield.by: expected the table of records"):
        mmgibbs.load_config(analysis(trial()))


def test_levels_in_common_are_counted():
    counts = mmgibbs.check(analysis(trial()))
    (common,) = counts["common_levels"]
    assert common == {"term": "line", "traits": ["yield|S1", "yield|S2", "yield|S10"], "levels": [[LINES] * 3] * 3}
    assert mmgibbs.check(analysis(trial(), traits=["yield", "height"]))["common_levels"] == []


@pytest.mark.parametrize("structure", ["factor_analytic", "compound_symmetry"])
def test_a_site_without_lines_in_common_is_named(structure):
    apart = trial().with_columns(line=pl.when(site=pl.lit("S10")).then(pl.col("line") + "b").otherwise("line"))
    variances = {"line": {"structure": structure}}
    said = "got yield|S10 without a level in common with the others"
    assert any(said in w for w in mmgibbs.check(analysis(apart, variances=variances))["warnings"])
    assert not any(said in w for w in mmgibbs.check(analysis(trial(), variances=variances))["warnings"])
    # relatives connect the sites
    pedigree = pl.DataFrame({"id": [f"L{i}" for i in range(LINES)] + [f"L{i}b" for i in range(LINES)]})
    pedigree = pedigree.with_columns(
        sire=pl.lit("0"),
        dam=pl.when(pl.col("id").str.ends_with("b")).then(pl.col("id").str.strip_chars("b")).otherwise(pl.lit("0")),
    )
    related = analysis(apart, variances=variances, model={"random": {"line": {"relationship": "pedigree"}}})
    related["data"]["pedigree"] = pedigree
    assert not any(said in w for w in mmgibbs.check(related)["warnings"])
