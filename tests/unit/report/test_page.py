"""The page of one finished run: complete in itself, right against its files, warnings first, plots in words."""

import re
import time

import numpy as np
import polars as pl
import pytest
import xarray
from helpers.finished_run import HERDS, analysis, record, write_run
from helpers.html_page import Page, as_number

from mmgibbs.report import make, method_words, plots, render
from mmgibbs.report.breeding import _figures
from mmgibbs.report.findings import warnings
from mmgibbs.report.finished import Finished, _draws
from mmgibbs.report.html_tables import bars, lines_words, number
from mmgibbs.report.page import _regression, make_parameter_tables, write_report

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("report") / "calves")


@pytest.fixture(scope="module")
def page(run):
    return Page(write_report(run))


def test_it_is_complete_in_itself(page):
    assert page.text.startswith("<!doctype html>") and "default-src 'none'" in page.text
    assert "://" not in page.text and "@import" not in page.text and not re.search(r"url\((?!#)", page.text)
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert {link[1:] for link in page.links if len(link) > 1 and link[0] == "#"} <= set(page.ids)
    svg = "".join(re.findall(r"<svg.*?</svg>", page.text, re.DOTALL))
    assert "var(--series-1)" in svg and "var(--ink)" in svg
    assert not re.search(r"#[0-9a-f]{6}\b", svg)
    assert "&lt;west &amp;" in page.text and "<west" not in page.text


def test_every_plot_says_in_words_and_numbers_what_it_shows(page):
    assert len(page.plots) == 4 * 4 + 3 * 3
    for plot in page.plots:
        assert plot["role"] == "img" and set(plot["aria-labelledby"].split()) <= set(page.ids)
        assert len(plot["title"]) > 10 and len(plot["desc"]) > 40 and re.search(r"\d", plot["desc"]), plot
    told = {p["title"]: p["desc"] for p in page.plots}
    assert told["Trace of h2[birth]"].startswith("3 chains of 400 kept draws")
    assert "the chains agree" in told["Trace of h2[birth]"]
    assert re.search(r"Mean 0\.300, .* 95 % interval 0\.2\d+ to 0\.3", told["Posterior density of h2[birth]"])
    assert "falls below 0.1 at lag 1" in told["Autocorrelation of h2[birth]"]
    values, trend = told["Distribution of the breeding values, direct, birth"], told["Genetic trend, direct, birth"]
    assert values.startswith("Breeding values of 160 animals: from ") and "in 2000 to 3.0 in 2007" in trend
    assert "The regression of the yearly means on the year is 0.43 a year (95 % interval 0." in trend


def test_top_animals_are_those_of_the_solutions(page, run):
    for effect, trait in (("direct", "birth"), ("maternal", "weaning")):
        solutions = pl.read_parquet(run / "solutions.parquet").filter(term="genetic", effect=effect, trait=trait)
        for word, descending in (("highest", True), ("lowest", False)):
            best = solutions.sort("mean", descending=descending).head(20)
            start = f"{effect}, {trait}: the 20 {word}"
            assert page.column(start, "Animal") == best["level"].to_list()
            high = best["mean"] + 1.96 * best["sd"]
            for head, expected in (
                ("Breeding value", best["mean"]),
                ("High", high),
                ("Reliability", best["reliability"]),
            ):
                found = [as_number(v) for v in page.column(start, head)]
                assert found == pytest.approx(expected.to_list(), abs=0.0051 if head == "Reliability" else 0.051)
    animals = pl.read_parquet(run / "animals.parquet")
    shown = page.table("direct, birth: the 20 highest")
    for row in shown["rows"]:
        animal = animals.row(by_predicate=pl.col("id") == row[1], named=True)
        assert row[shown["head"].index("Born")] == f"{animal['birth']:.0f}"
        assert row[shown["head"].index("Sire")] == (animal["sire"] or "")
    assert "Dam" not in shown["head"]  # nobody's is known


def test_short_names_are_not_broken_at_their_hyphens():
    assert render.is_unbroken("H1-2000") and render.is_unbroken("2011-05-0042")
    assert not any(render.is_unbroken(cell) for cell in ("herd 1-2", "without-dam-age", "bull", None, 3.0))


def test_parameters_are_those_of_the_summary(page, run):
    summary = {row["parameter"]: row for row in pl.read_parquet(run / "summary.parquet").iter_rows(named=True)}
    seen = {}
    for t in page.tables:
        if t["head"][0] == "Parameter":
            seen |= {row[0]: dict(zip(t["head"], row, strict=True)) for row in t["rows"]}
    assert set(seen) == set(summary)
    assert as_number(seen["h2[birth]"]["Mean"]) == pytest.approx(summary["h2[birth]"]["mean"], abs=5.1e-4)
    of = "genetic.var[direct:weaning]"
    assert as_number(seen[of]["High"]) == pytest.approx(summary[of]["hpd_high"], abs=0.051)
    assert "R-hat" not in seen["litter.var[birth]"]  # held at its value
    told = {t.caption: t.note for t in make_parameter_tables(pl.read_parquet(run / "summary.parquet"))}
    assert told["Heritabilities and shares of the phenotypic variance"] == told["Correlations"] == "The thin line is 0."
    assert not any("line" in note for caption, note in told.items() if caption.startswith("Variances"))
    assert lines_words([None]) == []
    assert lines_words(bars([1.0], [0.5], [2.0], (0.5, 1.5))) == ["A bar with an arrow goes on beyond this scale."]


def test_fixed_effects_have_intervals_and_held_levels_say_so(page):
    herd = page.table("herd")
    assert [row[0] for row in herd["rows"]] == [*sorted(HERDS), *sorted(HERDS)]
    assert [row[2].strip() for row in herd["rows"]][2::3] == ["set to 0", "set to 0"]
    low, high = (herd["head"].index(h) for h in ("Low", "High"))
    assert as_number(herd["rows"][0][high]) - as_number(herd["rows"][0][low]) == pytest.approx(2 * 1.96 * 1.5, abs=0.2)
    assert "or it has no records, and nothing is known of it" in page.text


def test_a_run_without_warnings_says_so(page):
    assert page.headings.index("No warnings") == page.headings.index("Warnings") + 1
    assert "Levels set to 0:" in page.headings and "1 level set to 0 (no records): south" in page.text
    assert "2 records: no observed trait" in page.text and "2 notes on the data, the model and the draws" in page.text
    assert 'id="snps"' not in page.text and "#snps" not in page.text and "Correlations: " not in page.text


def test_results_come_first_with_what_forbids_their_use(tmp_path):
    improper = "variances.litter: the posterior may be improper: 2 levels"
    run = write_run(tmp_path / "run", mixed=False, trend=False, warnings=[improper])
    page = Page(write_report(run))
    assert page.headings[:2] == ["Results", "Chains have not mixed"]
    assert page.headings.index("Few effective draws") == page.headings.index("Warnings") + 1
    assert "1 of 4 parameters; the worst is genetic.var[<wbr>direct:<wbr>weaning]" in page.text
    assert "the posterior may be improper: 2 levels" in page.text and "No warnings" not in page.headings
    places = [page.text.index(f'id="{name}"') for name in ("results", "warnings", "run", "variances")]
    assert places == sorted(places)
    told = {p["title"]: p["desc"] for p in page.plots}
    assert "the chains have not mixed" in told["Trace of genetic.var[direct:weaning]"]
    assert "chain 3 departs most" in told["Ranks by chain of genetic.var[direct:weaning]"]
    assert "middle eight tenths of the animals" in told["Genetic trend, direct, birth"]  # without draws of the trend
    (shown,) = [row for row in page.table("Variances and covariances: genetic")["rows"] if row[0].startswith("genetic")]
    assert sum("attention" in cell for cell in shown) >= 2


def test_the_model_is_told_in_words_and_symbols(page):
    text = re.sub(r"<[^>]+>", "", page.text)
    assert "weaning = herd + genetic.direct (animal) + genetic.maternal (dam) + residual" in text
    assert "y = Xb + Zgenetic ugenetic + Zlitter ulitter + e" in text and "ugenetic ~ N(0, A \u2297 Ggenetic)" in text
    for line in ("N(0, <var>A</var> \u2297 <var>G</var>", "N(0, <var>I</var> \u2297 <var>R</var>)"):
        assert f'<span class="whole">{line}</span>' in page.text  # no line of a narrow screen ends inside
    terms = {row[0]: row for row in page.table("Terms of the model")["rows"]}
    assert terms["litter"][-1] == "fixed at its given value"
    assert terms["residual"][-1].endswith("inverse-Wishart prior with 5 degrees of freedom")
    assert "one after another (chosen by auto; run.json says why)" in text and "accounted for" in text


def test_an_intercept_is_that_of_the_traits_that_have_one(tmp_path):
    changed = analysis()
    changed["model"]["fixed"]["herd"]["traits"] = ["birth"]
    levels = {"herd": 3, "intercept": 1, "genetic": 160, "litter": 40}
    run = write_run(tmp_path / "run", analysis=changed, levels=levels)
    solutions = pl.read_parquet(run / "solutions.parquet")
    own = solutions.filter(term="herd", trait="weaning").head(1)
    own = own.with_columns(pl.lit("intercept").alias("term"), pl.lit("1").alias("level"))
    others = solutions.filter((pl.col("term") != "herd") | (pl.col("trait") == "birth"))
    pl.concat([own, others]).write_parquet(run / "solutions.parquet")
    page = Page(write_report(run))
    text = re.sub(r"<[^>]+>", "", page.text)
    assert "weaning = intercept + genetic.direct (animal)" in text and "birth = herd + genetic.direct" in text
    assert page.table("Terms of the model")["rows"][0][:3] == ["intercept", "fixed", "weaning"]


def test_reliabilities_are_defined_where_they_are_shown(tmp_path, page):
    assert "Reliability is 1 \u2212 PEV / ((1 + F) variance)" in page.text
    run = write_run(tmp_path / "run", trend=False)
    (run / "draws.nc").unlink()
    solutions = pl.read_parquet(run / "solutions.parquet")
    of_related = pl.when(pl.col("term") != "genetic").then("reliability").alias("reliability")
    solutions.with_columns(of_related).write_parquet(run / "solutions.parquet")
    assert "Reliability is" not in write_report(run).read_text(encoding="utf-8")


def test_sweeps_are_those_that_were_made_and_targets_are_told(tmp_path):
    stop = [
        {"target": "rhat", "needed": 1.01, "found": 1.004, "at": "h2[birth]", "met": True},
        {"target": "ess", "needed": 400, "found": None, "at": "", "met": False},
    ]
    run = write_run(tmp_path / "run", trend=False, stop=stop, sweeps_per_chain=1100)
    (run / "draws.nc").unlink()
    text = write_report(run).read_text(encoding="utf-8")
    assert "3, each 100 sweeps of burn-in and 1,000 sweeps, one in 10 kept" in text
    assert "rhat 1.01 met with 1.00 and ess 400 missed with unknown" in text


def test_no_minus_before_zero():
    """Reliabilities by BLUP are rounded: -0.001 is shown as 0.00."""
    frame = pl.DataFrame({"mean": [0.0, 1.0, 2.0], "reliability": [-0.001, 0.3, 0.5]})
    told = {heading: words for heading, _, words in _figures(frame, "weight", plots.Figures(), None)}
    assert told["Reliability"] == "Reliability of 3 animals: median 0.30, from 0.00 to 0.50."


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        (999_999_999.0, 0, "999,999,999"),
        (1e9, 1, "1.0e+09"),
        (-1.25e9, 2, "\u22121.25e+09"),
        (-1234.5, 1, "\u22121,234.5"),
        (None, 1, ""),
        (float("nan"), 1, ""),
    ],
)
def test_numbers_from_a_billion_on_are_in_powers_of_ten(value, places, text):
    assert number(value, places) == text


def test_a_run_that_was_solved_has_no_chains(tmp_path):
    run = write_run(tmp_path / "run", method="blup")
    of_draws = ("mcse", "ess_bulk", "ess_tail", "rhat", "hpd_low", "hpd_high")
    summary = pl.read_parquet(run / "summary.parquet").with_columns(pl.lit(None, pl.Float64).alias(c) for c in of_draws)
    summary.with_columns(sd=pl.lit(0.0)).write_parquet(run / "summary.parquet")
    (run / "draws.nc").unlink()
    (run / "animals.parquet").unlink()
    page = Page(write_report(run))
    assert "These values were given, or computed from given ones." in page.text and "chains" not in page.ids
    assert ">Value<" in page.text and ">Mean<" not in page.text
    assert "2 notes on the data, the model and the results" in page.text
    assert "Breeding values" in page.headings
    assert not any(p["title"].startswith(("Trace", "Genetic trend")) for p in page.plots)


@pytest.mark.parametrize(("method", "head"), [("reml", "SE"), ("gibbs", "SD")])
def test_errors_of_solutions_are_headed_as_what_they_are(tmp_path, method, head):
    reached = {"log_likelihood": -9.0, "aic": 20.0, "bic": 21.0, "iterations": 5} if method == "reml" else {}
    page = Page(write_report(write_run(tmp_path / "run", method=method, **reached)))
    other = {"SE": "SD", "SD": "SE"}[head]
    assert page.table("Spread of the solutions")["head"][2] == f"SD of the {'means' if head == 'SD' else 'solutions'}"
    for start in ("herd", "direct, birth: the 20 highest"):
        assert head in page.table(start)["head"] and other not in page.table(start)["head"]
    assert f"plus 1.96 {head}" in page.text and f"1.96 {other}" not in page.text
    assert ("(solution \u00b1 1.96 standard errors)" in page.text) == (head == "SE")
    assert "a row without an interval has a value that was given" in page.text


def test_solutions_without_errors_have_no_column_for_them(tmp_path):
    """Equations that are too many for the PEV."""
    run = write_run(tmp_path / "run", method="blup")
    solutions = pl.read_parquet(run / "solutions.parquet")
    unknown = solutions.with_columns(pl.lit(None, pl.Float64).alias(n) for n in ("sd", "reliability"))
    unknown.write_parquet(run / "solutions.parquet")
    page = Page(write_report(run))
    assert page.table("direct, birth: the 20 highest")["head"][:3] == ["Rank", "Animal", "Breeding value"]
    assert "SE" not in page.table("direct, birth: the 20 highest")["head"]
    assert "without standard errors of prediction: a note above says why" in page.text


def test_values_of_a_random_regression_are_coefficients(tmp_path):
    changed = analysis()
    changed["model"]["random"]["genetic"]["effects"]["maternal"]["legendre"] = {"column": "age", "degree": 0}
    run = write_run(tmp_path / "run", analysis=changed)
    solutions = pl.read_parquet(run / "solutions.parquet")
    solutions.with_columns(pl.col("effect").replace("maternal", "maternal.0")).write_parquet(run / "solutions.parquet")
    page = Page(write_report(run))
    assert page.table("maternal.0, weaning: the 20 highest coefficients")["head"][2] == "Coefficient"
    assert page.table("direct, weaning: the 20 highest breeding values")["head"][2] == "Breeding value"
    assert "coefficients, not breeding values: maternal.0, weaning." in page.text and "Breeding values" in page.headings
    assert "on the scale of the trait, coefficients of curves per unit of what they multiply;" in page.text
    told = {p["title"]: p["desc"] for p in page.plots}
    assert told["Distribution of the coefficients, maternal.0, weaning"].startswith("Coefficients of 160 animals: ")


def test_a_regression_has_coefficients_and_no_terms(tmp_path):
    described = {"model": "Probit regression of ill.", "equations": ["P(ill <b> = yes) = Φ(a + zb)"]}
    described |= {"priors": ["b_{j} ~ N(0, 1)"], "where": ["z_{1} is a predictor,", "b its coefficient."]}
    model = {"plugin": "horseshoe_probit", "response": ["ill"]}
    own = {"name": "probit", "model": model, "sampler": analysis()["sampler"]}
    options = {"regularised": False, "scale": None}
    facts = {"plugin": "horseshoe_probit", "options": options, "described": described}
    run = write_run(tmp_path / "run", analysis=own, **facts)
    for name in ("solutions.parquet", "animals.parquet"):
        (run / name).unlink()
    summary = pl.read_parquet(run / "summary.parquet")
    names = [f"snp_{i}" for i in range(summary.height)]
    named = summary.with_columns(parameter=pl.Series([f"beta[{name}]" for name in names]))
    named.write_parquet(run / "summary.parquet")
    beta = np.random.default_rng(8).normal(size=(3, 50, len(names)))
    posterior = xarray.Dataset({"beta": (("chain", "draw", "predictor"), beta)}, {"predictor": names})
    xarray.DataTree.from_dict({"/posterior": posterior}).to_netcdf(run / "draws.nc", engine="h5netcdf")
    page = Page(write_report(run))
    low, *_, high = (f"{m:.1f}".replace("-", "\u2212") for m in sorted(beta[..., 0].mean(axis=1)))
    told = next(p["desc"] for p in page.plots if p["title"] == "Trace of beta[snp_0]")
    assert told.startswith(f"3 chains of 50 kept draws; their means run from {low} to {high}, ")
    assert [t["caption"] for t in page.tables] == ["Coefficients"] and "Results" in page.headings
    assert "horseshoe_probit of ill (regularised False)" in page.text
    for line in (
        "<p>Probit regression of ill.</p>",
        '<p class="equation">P(ill &lt;b&gt; = yes) = Φ(a + zb)</p>',
        '<p class="equation">b<sub>j</sub> ~ N(0, 1)</p>',
        "z<sub>1</sub> is a predictor, b its coefficient.</p>",
    ):
        assert line in page.text
    assert page.tables[0]["head"][5].startswith("Interval")
    rows = [dict(zip(page.tables[0]["head"], row, strict=True)) for row in page.tables[0]["rows"]]
    rows = [row for row in rows if row["Low"]]
    ends = [f(rows, key=lambda row: as_number(row[end]))[end] for f, end in ((min, "Low"), (max, "High"))]
    assert f"The bars run from {ends[0].strip()} to {ends[1].strip()}." in page.text  # all on one scale


def test_options_without_effect_are_not_shown():
    shown = lambda **options: _regression({"plugin": "p", "options": options}, {"model": {"response": "y"}})
    assert shown(slab_scale=None, slab_df=4.0, global_scale=1.0) == "p of y (global_scale 1.0)"
    assert shown(slab_scale=2.0, slab_df=4.0) == "p of y (slab_scale 2.0, slab_df 4.0)"
    assert shown(penalty=2.0, penalty_shape=1.0, penalty_rate=1.78) == "p of y (penalty 2.0)"
    assert shown(penalty=None, penalty_shape=1.0, penalty_rate=1.78) == "p of y (penalty_shape 1.0, penalty_rate 1.78)"
    assert shown(method="polya_gamma", width=2.5, most_steps=8) == "p of y (method polya_gamma)"
    assert shown(method="slice", width=2.5, most_steps=8) == "p of y (method slice, width 2.5, most_steps 8)"
    assert shown(intercept=False, intercept_scale=10.0) == "p of y (intercept False)"
    record = {"plugin": "p", "options": {"method": "slice"}, "options_chosen_because": {"method": "auto: of counts"}}
    assert _regression(record, {"model": {"response": "y"}}) == "p of y (method slice chosen by auto)"


def test_draws_are_those_of_parameters(tmp_path, run):
    random, herds, effects = np.random.default_rng(2), ["H1", "H2"], ["colostrum", "intercept"]
    arrays = {
        "beta": (("group", "predictor"), random.normal(size=(2, 20, 2, 1))),
        "intercept": (("group",), random.normal(size=(2, 20, 2))),
        "covariance": (("row", "column"), random.normal(size=(2, 20, 2, 2))),
        "tau": ((), random.normal(size=(2, 20))),
    }
    labels = {"group": herds, "predictor": effects[:1], "row": effects, "column": effects}
    found = {name: (("chain", "draw", *dims), values) for name, (dims, values) in arrays.items()}
    posterior = xarray.Dataset(found, labels)
    xarray.DataTree.from_dict({"/posterior": posterior}).to_netcdf(tmp_path / "draws.nc", engine="h5netcdf")
    draws, trends = _draws(tmp_path / "draws.nc")
    of_row = [f"covariance[{a},{b}]" for a in effects for b in effects]
    expected = {"beta[H1,colostrum]", "beta[H2,colostrum]", "intercept[H1]", "intercept[H2]", "tau", *of_row}
    assert set(draws) == expected and trends == {}
    assert np.array_equal(draws["covariance[colostrum,intercept]"], arrays["covariance"][1][:, :, 0, 1])
    draws, trends = _draws(run / "draws.nc")
    assert set(trends) == {"genetic"} and not any(name.startswith("trend") for name in draws)


def test_what_belongs_together_stays_on_one_line(tmp_path, page):
    """The space of '12.5 s', a diagnosis; names part where names do, and sentences of the terms have room."""
    assert "sampling 12.5\u00a0s" in page.text
    assert "summary .quiet, h4 .quiet { display: inline-block; white-space: nowrap; }" in page.text
    for of_sentences in ("What it is", "Variance"):  # or a phone shows a prior word by word below each other
        assert f'<th scope="col" class="wide">{of_sentences}</th>' in page.text
    of = {"phenotypic_variance": ["a.var[direct:<b>]", "residual.var[b]"], "direct_variance": "a.var[direct:<b>]"}
    text = write_report(write_run(tmp_path / "run", variances_counted={"b": of})).read_text(encoding="utf-8")
    assert "a.var[<wbr>direct:&lt;b&gt;] + residual.var[<wbr>b]; heritability is the share of a.var[<wbr>direct" in text
    assert "95\u00a0% interval" in text and not re.search(r"[0-9] %", text)


def test_what_is_marked_comes_before_what_is_not(tmp_path):
    """Few effective draws weigh as much as chains apart."""
    run = write_run(tmp_path / "run")
    summary = pl.read_parquet(run / "summary.parquet")
    few = pl.col("parameter") == "h2[weaning]"
    summary.with_columns(
        rhat=pl.when(few).then(1.001).otherwise(1.04), ess_tail=pl.when(few).then(90.0).otherwise("ess_tail")
    ).write_parquet(run / "summary.parquet")
    page = Page(write_report(run))
    assert next(p["title"] for p in page.plots if p["title"].startswith("Trace")) == "Trace of h2[weaning]"
    assert "R-hat 1.001, ESS tail 90" in page.text and "each relative to its limit (1.05 and 100)." in page.text


def test_heritabilities_are_shown_after_those_that_mix_worst(tmp_path, monkeypatch):
    monkeypatch.setattr("mmgibbs.report.page.PARAMETERS", 1)
    run = write_run(tmp_path / "run", mixed=False, trend=False)  # a variance mixes worst
    page = Page(write_report(run))
    shown = [p["title"].removeprefix("Trace of ") for p in page.plots if p["title"].startswith("Trace")]
    assert shown[0] == "genetic.var[direct:weaning]" and sorted(shown[1:]) == ["h2[birth]", "h2[weaning]"]
    assert "these are the 1 that mix worst, the worst first, and after them 2 heritabilities" in page.text


def test_negative_reliabilities_are_explained_once(tmp_path, page):
    folder = write_run(tmp_path / "run")
    solutions = pl.read_parquet(folder / "solutions.parquet")
    r = pl.col("reliability")
    negative = pl.when(r < 0.6).then(-0.02).when(r < 0.7).then(-0.001).otherwise(r).alias("reliability")
    solutions.with_columns(negative).write_parquet(folder / "solutions.parquet")
    values = solutions.filter(term="genetic")["reliability"]
    n = (values < 0.7).sum()
    positive, page = page, Page(make.make_report([folder]))
    told = (
        f"{n:,} of {values.count():,} reliabilities of breeding values are below 0: the posterior SD of such a value "
        "is above the SD of the effect."
    )
    assert n > (values < 0.6).sum() > 0
    assert n > 75 and told in page.text and "which more samples reduce; else the variance is uncertain." in page.text
    given = pl.DataFrame({"parameter": ["var"], "mean": [1.0], "sd": [0.0]})
    of_kind = lambda kind: {"analysis": record()["analysis"] | {"data": {"groups": {"effect": kind}}}}
    solved, grouped, metafounders, random = (
        warnings(Finished(folder, record(**more), given, pl.read_parquet(folder / "solutions.parquet")))[0]
        for more in (
            {"method": "blup"},
            {"data": {"groups": 2}},
            {"data": {"groups": 2}, **of_kind("metafounders")},
            {"data": {"groups": 2}, **of_kind("random")},
        )
    )
    assert "the standard error of such a value" in solved.fact and solved.advice.endswith("(sampler.pev_samples).")
    assert grouped.advice.startswith("Values include those of the unknown-parent groups, whose uncertainty is in the p")
    assert grouped.advice.endswith("be Monte Carlo error, which more samples reduce; else the variance is uncertain.")
    assert "fixed groups have no variance to compare it with" in grouped.advice
    for finding in (metafounders, random):  # the variance of the values has theirs
        assert "groups" not in finding.advice
    assert page.text.count("reliabilities of breeding values") == page.headings.count("Negative reliabilities") == 1
    assert page.text.count("Reliabilities below 0 are explained under Warnings.") >= 3  # tables, and captions
    assert "below 0 are explained" not in positive.text
    told = "A reliability is below 0 where the posterior SD of a value is above the SD that the model gives it."
    assert method_words.negative_reliability_words([0.4, None, -0.1], solved=False, warned=False) == told
    of_blup = method_words.negative_reliability_words([-0.1], solved=True, warned=False)
    assert of_blup == told.replace("posterior SD", "standard error")
    assert method_words.negative_reliability_words([0.0, -0.004, None], solved=False, warned=False) == ""


def test_the_footer_lists_what_the_folder_holds(tmp_path):
    """The log and the state of the chains too, and nothing that is not there (any more)."""
    folder = write_run(tmp_path / "run", trend=False, files=["draws.nc", "run.json", "summary.csv"])
    (folder / "draws.nc").unlink()
    assert "The run folder contains run.json. Made by" in write_report(folder).read_text(encoding="utf-8")
    (folder / "run.log").write_text("made\n", encoding="utf-8")
    (folder / "checkpoint").mkdir()
    told = "The run folder contains run.json, run.log, checkpoint/. Made by"
    assert told in write_report(folder).read_text(encoding="utf-8")


def test_long_chains_are_drawn_by_their_extremes():
    draws = np.sin(np.arange(10_000.0))
    draws[7_777] = 9.0
    at, shown = plots.thinned(draws)
    assert len(shown) <= plots.TRACE_POINTS and (np.diff(at) > 0).all()
    assert shown.max() == 9.0 and at[shown.argmax()] == 7_778


@pytest.mark.slow
def test_many_animals_take_seconds_and_megabytes(tmp_path):
    run = write_run(tmp_path / "run", animals=30_000)
    started = time.perf_counter()
    path = write_report(run)
    assert time.perf_counter() - started < 10 and path.stat().st_size < 10_000_000
    page = Page(path)
    assert len(page.column("direct, birth: the 20 highest", "Animal")) == 20
    assert "20 of 30,000; solutions.parquet has all of them." in page.text


def luminance(colour):
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return np.dot((0.2126, 0.7152, 0.0722), linear)


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_text_and_lines_stand_out_in_every_theme(page):
    """WCAG 2 AA: text at least 4.5 to 1 against what lies behind it, lines of plots 3 to 1, on paper too."""
    blocks = re.findall(r":root \{(.*?)\n *\}", page.text, re.DOTALL)
    themes = [dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", block)) for block in blocks]
    assert len(themes) == 3  # light, dark, paper
    on = dict.fromkeys(("--paper", "--raised"), ("--ink", "--faint", "--link", "--alert", "--good"))
    on |= {f"--{what}-paper": (f"--{what}", "--ink") for what in ("alert", "good")} | {"--band": ("--ink",)}
    for theme in themes:
        for paper, texts in on.items():
            assert min(contrast(theme[text], theme[paper]) for text in texts) >= 4.5, paper
        assert min(contrast(theme[f"--series-{i}"], theme["--paper"]) for i in range(1, 7)) >= 3
