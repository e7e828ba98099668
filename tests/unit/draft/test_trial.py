"""A table of plots is drafted as a trial: traits by site, replicates, blocks and the trend of the field."""

import numpy as np
import polars as pl
import pytest
from helpers.drafts import accepted
from helpers.selection import first
from helpers.support import shared_data

import mmgibbs
from mmgibbs.draft.make import init
from mmgibbs.models.structures.shrunken_factors import max_active_factors

FIELD = {"field"}


def fields(sites):
    """The trend of each field, where sites are traits."""
    return {f"field_{number}" for number in range(1, sites + 1)}


# file -> site of the trait, fixed and random effects
TRIALS = {
    "burgueno.rowcol": (None, {"rep"}, {"gen"} | FIELD),
    "cullis.earlygen": (None, set(), {"gen"} | FIELD),
    "damesa.maize": ("site", {"rep"}, {"gen", "block"} | fields(4)),
    "durban.rowcol": (None, {"rep"}, {"gen"} | FIELD),
    "gilmour.slatehall": (None, {"rep"}, {"gen"} | FIELD),
    "john.alpha": (None, {"rep"}, {"gen", "rep:block"}),
    "stroup.nin": (None, {"rep"}, {"gen"} | FIELD),
    "vsn.lupin3": ("site", set(), {"gen"} | fields(3)),
    "besag.met": ("county", {"rep"}, {"gen", "rep:block"} | fields(6)),
}


@pytest.mark.parametrize("name", first(3, TRIALS))
def test_published_trials(name, tmp_path):
    site, fixed, random = TRIALS[name]
    made = init(shared_data(f"data/agridat/{name}.txt"), output=tmp_path / "analysis.yaml")
    analysis = accepted(made)
    assert analysis.sampler.method == "reml"
    assert any(line.startswith("the table looks like a trial") for line in made.said)
    assert (set(analysis.model.fixed), set(analysis.model.random)) == (fixed, random)
    names = [trait.name for trait in analysis.traits]
    assert all(trait.startswith("yield|") for trait in names) if site else names == ["yield"]


def plots(sites=3, lines=12, replicates=2, seed=1):
    """Plots of lines in rows of four, a replicate after another."""
    rng = np.random.default_rng(seed)
    rows = []
    for site in range(sites):
        for number in range(lines * replicates):
            place = {"row": number // 4 + 1, "col": number % 4 + 1}
            rows.append({"site": f"S{site}", **place, "rep": number // lines + 1, "line": f"L{number % lines:02d}"})
    frame = pl.DataFrame(rows)
    effect = rng.normal(size=(lines, sites))
    y = [effect[int(line[1:]), int(site[1:])] for line, site in frame.select("line", "site").iter_rows()]
    return frame.with_columns(pl.Series("yield", np.round(np.array(y) + rng.normal(size=len(frame)) + 10, 3)))


def drafted(frame, folder):
    frame.write_csv(folder / "plots.csv")
    return init(folder / "plots.csv", output=folder / "a.yaml")


def test_several_sites_are_traits_with_one_factor_and_trends_and_run(tmp_path):
    made = drafted(plots(), tmp_path)
    assert set(accepted(made).model.random) == {"line"} | fields(3)
    result = mmgibbs.run(made.path, directory=tmp_path / "run", progress=False)
    expected = {"line.specific[yield|S0]", "residual.var[yield|S2]", "field_1.rho[row]", "field_3.rho[column]"}
    assert result.info["converged"] and expected <= set(result.summary["parameter"])
    assert len(result.means) == 36


def test_trends_of_more_than_six_fields_are_offered(tmp_path):
    """They are comments, which are accepted."""
    made = drafted(plots(sites=7), tmp_path)
    text = made.path.read_text(encoding="utf-8")
    assert set(accepted(made).model.random) == {"line"} and "the first 6 sites" in text
    lines = [line for line in text.splitlines() if "# field_" in line]
    assert len(lines) == 6
    for line in lines:
        text = text.replace(line, line.replace("# ", "", 1))
    made.path.write_text(text, encoding="utf-8")
    assert fields(6) <= set(accepted(made).model.random)


def test_lines_with_one_plot_at_each_site_have_one_trait(tmp_path):
    """Their values at a site and the residual could not be told apart."""
    analysis = accepted(drafted(plots(replicates=1, lines=16).drop("rep"), tmp_path))
    assert [trait.name for trait in analysis.traits] == ["yield"] and set(analysis.model.fixed) == {"site"}
    assert set(analysis.model.random) == {"line"}


def test_replicates_of_unreplicated_sites_are_those_of_the_site(tmp_path):
    frame = plots().filter(pl.int_range(pl.len()) % 2 == pl.col("rep") % 2).drop("row", "col")
    analysis = accepted(drafted(frame, tmp_path))
    assert set(analysis.model.fixed) == {"site", "site:rep"}


@pytest.mark.parametrize("spoil", ["same", "twice", "text"])
def test_places_that_are_no_grid_have_no_field(spoil, tmp_path):
    """One row alone, a plot that comes twice, rows with letters."""
    changes = {
        "same": pl.lit(1).alias("row"),
        "twice": pl.when(pl.int_range(pl.len()) == 1).then(1).otherwise("col").alias("col"),
        "text": pl.format("R{}", "row").alias("row"),
    }
    analysis = accepted(drafted(plots(sites=1, lines=20).with_columns(changes[spoil]), tmp_path))
    assert "line" in analysis.model.random and "field" not in analysis.model.random


@pytest.mark.parametrize("sites", [2, 3, 4])
def test_the_matrix_of_the_lines_is_determined(sites, tmp_path):
    """It has no more parameters than elements."""
    structure = accepted(drafted(plots(sites=sites), tmp_path)).variances.terms["line"].structure
    assert structure.kind == ("full" if sites == 2 else "factor_analytic")
    assert (structure.factors or 1) <= max(max_active_factors(sites), 1)


def test_a_trait_that_is_asked_for_is_no_part_of_the_trial(tmp_path):
    plots().write_csv(tmp_path / "plots.csv")
    made = init(tmp_path / "plots.csv", traits=["row"], output=tmp_path / "a.yaml")
    assert "row" in {trait.name.partition("|")[0] for trait in made and accepted(made).traits}


def test_records_of_animals_in_pens_are_no_trial(tmp_path):
    frame = plots(sites=1).rename({"line": "sire", "rep": "batch", "row": "pen"}).drop("col", "site")
    made = drafted(frame, tmp_path)
    assert not any("trial" in line for line in made.said) and accepted(made).sampler.method == "gibbs"


@pytest.mark.parametrize("column", ["block", "rep", "line"])
def test_plots_without_a_value_of_the_design(column, tmp_path):
    """Some plots have no block, no replicate or no line."""
    frame = plots(sites=1, lines=16).with_columns(block=pl.col("row") % 2)
    gaps = pl.when(pl.int_range(pl.len()) % 7 == 3).then(None).otherwise(column).alias(column)
    made = drafted(frame.with_columns(gaps), tmp_path)
    assert any(line.startswith("the table looks like a trial of 16 lines") for line in made.said)
    assert made.refused is None
    text = made.path.read_text(encoding="utf-8")
    assert '"rep:block"' in text and ("without_value: drop" in text) == (column == "rep")


def test_replicates_that_some_sites_lack_are_random(tmp_path):
    """Means of the lines over fixed replicates of all sites are not determined: such a draft could not run."""
    whole = plots(lines=30)
    part = whole.filter(~((pl.col("site") == "S2") & (pl.col("rep") == 2)))
    part.write_csv(tmp_path / "records.csv")
    made = init(tmp_path / "records.csv", output=tmp_path / "analysis.yaml")
    analysis = accepted(made)
    assert set(analysis.model.fixed) == {"site"} and {"site:rep", "line"} <= set(analysis.model.random)
    assert "random: some sites have fewer than others" in made.path.read_text()
