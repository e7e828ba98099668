"""SNP effects on the page of a run: with and without classes, windows and a map."""

import json
import re
import shutil
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from helpers.genomic_run import write_genomic_run
from helpers.html_page import Page, as_number

from mmgibbs.report import joint_markers, plots
from mmgibbs.report.genomic import concatenate_positions
from mmgibbs.report.genotyped import genotyped_section, shades_words
from mmgibbs.report.make import make_report
from mmgibbs.report.plots import highest_and_some
from mmgibbs.results.markers import TOTAL

pytestmark = pytest.mark.usefixtures("undrawn")


def text_of(run) -> str:
    return make_report([run]).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """A run with a map, classes of effects and windows, and its page."""
    run = write_genomic_run(tmp_path_factory.mktemp("genomic") / "run")
    return run, text_of(run)


def headings(text):
    return re.findall(r"<h4>(.*?)</h4>", text[text.index('id="snps"') :])


def captions(text):
    part = text[text.index('id="snps"') :]
    return [c for c in re.findall(r"<caption><span>(.*?)</span>", part) if "snps" in c or "Quality" in c]


def test_a_run_with_everything(everything):
    _, text = everything
    assert "together</h3>" not in text  # effects of each trait by itself
    assert headings(text)[:5] == [
        "Probability of an effect along the genome",
        "Genetic variance along the genome, in per cent",
        "Sizes of effects",
        "Genomic and polygenic values",
        "Genetic trend",
    ]
    assert "Trend of the polygenic part, direct, birth" in text and "Genetic trend, direct, weaning" in text
    assert "Mean sum of genomic and polygenic value runs from" in text and "Genetic trend, direct, birth" not in text
    assert captions(text) == [
        "snps, birth: the most probable effects",
        "snps, birth: windows",
        "snps, birth: chromosomes",
        "Quality control of chips.bed",
    ]
    assert "birth, genomic and polygenic: the 20 highest breeding values" in text
    assert "direct, birth: the 20 highest polygenic values" in text
    for complete in ("maternal, weaning", "direct, weaning"):  # SNPs have no effects on weaning, nor through the dam
        assert f"{complete}: the 20 highest breeding values" in text
    assert "which the SNPs do not explain: genetic direct, birth. To select" in text
    assert "all variances and all covariances with the rest together do. The bars run from" in text
    assert "windows covary. The bars run from" in text
    assert "Reliability of the sums is 1 \u2212 PEV / (a + g), where a is (1 + F) times the variance of genetic" in text
    assert ">SNPs left out: monomorphic<" in text and ">animals left out: x<" in text
    assert "<dt>snps.effect_var</dt>" in text
    assert "effects of SNPs, prior bayes_c" in text and "snps (SNP effects, animal)" in text
    fixed = text[text.index('id="fixed"') :]
    assert "gebv" not in fixed and "genetic+snps" not in fixed
    assert "X<b>" not in text and "X&lt;b&gt;" in text


def test_variances_of_chromosomes_say_on_how_many_draws_they_rest(everything, tmp_path):
    run, text = everything
    told = "draws of the effects (output.save_marker_draws), while snps.var in the tables of variances is from every"
    chromosomes = text[text.index("<caption><span>snps, birth: chromosomes") :]
    assert f"From the kept {told}" in chromosomes and ">95\u00a0% interval</th>" in chromosomes
    assert ">Interval</th>" not in text
    kept = shutil.copytree(run, tmp_path / "run")
    np.savez(kept / "marker_draws.npz", number=np.arange(60))
    chains = json.loads((run / "run.json").read_text())["analysis"]["sampler"]["chains"]
    assert chains > 1 and f"From {60 * chains} {told}" in text_of(kept)


def test_sums_have_the_tables_of_breeding_values(everything):
    page = Page(everything[0] / "report.html")
    assert {"Born", "Sire"} <= set(page.table("direct, weaning: the 20 highest breeding values")["head"])
    start = "birth, genomic and polygenic: the 20"
    of_sums = [page.table(f"{start} {end} breeding values") for end in ("highest", "lowest")]
    assert all({"Born", "Sire", "Rank", "95 % interval"} <= set(table["head"]) for table in of_sums)
    first = [as_number(table["rows"][0][2]) for table in of_sums]
    assert first[0] > 0 > first[1] and len(of_sums[1]["rows"]) == 20


def test_genomic_values_alone_say_how_their_reliability_is_computed(tmp_path):
    run = write_genomic_run(tmp_path / "run")
    solutions = pl.read_parquet(run / "solutions.parquet")
    solutions.filter(pl.col("effect") != TOTAL).write_parquet(run / "solutions.parquet")
    text = text_of(run)
    assert "Reliability is 1 \u2212 PEV / g, where g is the sum of squares" in text
    assert "Reliability of the sums" not in text


def test_without_classes_the_sizes_of_effects_are_shown(tmp_path):
    text = text_of(write_genomic_run(tmp_path / "run", classes=False, windows=False))
    assert headings(text)[0] == "Size of effects along the genome"
    assert captions(text)[0] == "snps, birth: the largest effects" and "PIP</th>" not in text
    assert "snps, birth: windows" not in text


def test_without_a_map_snps_stand_in_their_order(tmp_path, monkeypatch):
    monkeypatch.undo()  # axes have their labels only when they are drawn
    text = text_of(write_genomic_run(tmp_path / "run", mapped=False))
    assert headings(text)[1].startswith("Genetic variance") and "SNP number" in text and "window number" in text
    assert "Chromosome</th>" not in text and "chromosomes" not in "".join(captions(text))


@pytest.mark.parametrize("n", [10, 100, 5000])
def test_of_many_points_the_highest_are_kept(n):
    values = np.random.default_rng(1).random(n)
    chosen = highest_and_some(values, 100)
    assert len(chosen) == min(n, 100) and (np.diff(chosen) > 0).all()
    assert set(np.argsort(-values)[:50]) <= set(chosen)


def test_chromosomes_lie_one_after_another():
    frame = pl.DataFrame({"chromosome": ["10", "2", "2", "X"], "position": [5.0, 7.0, 3.0, 1.0]})
    found = concatenate_positions(frame)
    assert found.select("chromosome", "position", "at", "chromosome_number").rows() == [
        ("2", 3.0, 3.0, 0),
        ("2", 7.0, 7.0, 0),
        ("10", 5.0, 12.0, 1),
        ("X", 1.0, 13.0, 2),
    ]
    starts = frame.rename({"position": "start"})  # of windows
    assert concatenate_positions(starts, "start").select("at", "start").rows() == [(3, 3), (7, 7), (12, 5), (13, 1)]
    unknown = concatenate_positions(frame.with_columns(position=pl.Series([None, 7.0, 3.0, 1.0])))
    assert unknown["at"].to_list() == [1, 2, 3, 4]


def with_two_traits(folder, states=True):
    """Effects on birth and wean with one prior; the first kept SNP acts on both."""
    write_genomic_run(folder)
    record = json.loads((folder / "run.json").read_text())
    record["analysis"]["model"]["markers"]["snps"] |= {"traits": ["birth", "wean"], "across_traits": "joint"}
    (folder / "run.json").write_text(json.dumps(record))
    snps = pl.read_parquet(folder / "markers.parquet")
    columns = [(-2 * pl.col("effect_birth")).alias(f"effect{e}_wean") for e in ("", "_sd")]
    if states:
        both = np.where(np.arange(snps.height) == 10, 0.9, 0.01)
        chances = {"none": 0.9 * (1 - both), "birth": 0.06 * (1 - both), "wean": 0.04 * (1 - both), "birth+wean": both}
        columns += [pl.Series(f"state_{s}", p) for s, p in chances.items()]
        columns += [pl.Series(f"state_mcse_{s}", 0 * p) for s, p in chances.items()]
    snps.with_columns(columns).write_parquet(folder / "markers.parquet")
    summary = pl.read_parquet(folder / "summary.parquet")
    names = ["corr[birth,wean]", "effect_corr[birth,wean]"]
    names += [f"pi[{s}]" for s in ("none", "birth", "wean", "birth+wean")] if states else []
    more = [summary.head(1).with_columns(parameter=pl.lit(f"snps.{n}"), mean=pl.lit(0.123)) for n in names]
    pl.concat([summary, *more]).write_parquet(folder / "summary.parquet")
    return folder


def test_effects_on_several_traits_together(tmp_path):
    text = text_of(with_two_traits(tmp_path / "run"))
    part = text[text.index("snps: birth and wean together") :]
    assert "Effects on birth and wean" in part and "correlation −1.00, 0\u00a0% have the" in part
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", part[part.index("sets of traits that a SNP acts on") :], re.S)
    split = lambda row: re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.S)
    cells = [[re.sub(r"<[^>]*>", "", c).strip() for c in split(r)] for r in rows]
    of_both = next(row for row in cells if row[0] == "birth and wean")
    assert of_both[1] == "12.30" and of_both[-2:] == ["5.0", "1"]  # .9 + 409 x .01
    assert ">Interval, 0 to 100<" in part and ">Interval, \u22121 to 1<" in part
    best = next(row for row in cells if row[:2] == ["1", "rs10"])
    assert best[2:5] == ["0.900", "birth and wean", "0.900"]
    correlations = part[part.index("correlations between traits") :]
    explained = correlations.index(">The thin line is 0. A bar with an arrow goes on beyond this scale.<")
    assert explained < correlations.index("sets of traits that")
    assert "breeding values of the genotyped" in correlations and "0.123" in correlations


def test_one_state_for_all_traits_has_correlations_alone(tmp_path):
    text = text_of(with_two_traits(tmp_path / "run", states=False))
    assert "snps: correlations between traits" in text and "sets of traits that a SNP acts on" not in text


def test_sets_of_traits_are_those_of_their_term():
    """Where the name of one term begins that of another."""
    of = lambda start: [f"state_{start}_{name}" for name in ("none", "milk", "fat", "milk+fat")]
    markers = pl.DataFrame({name: [0.1] for name in [*of("snps"), *of("snps_rest"), "state_mcse_snps_milk"]})
    traits, terms = ["milk", "fat"], ["snps", "snps_rest"]
    for term in terms:
        assert list(joint_markers._states(markers, term, traits, terms).values()) == of(term)


def test_words_of_figures_of_relationships():
    K = np.array([[1.0, 0.25], [0.25, 1.0]])
    assert shades_words(K, 0.1, 0.5) == ", from 0.100 to 0.500 and above"
    assert shades_words(K, 0.3, 0.5) == ", from 0.300 and below to 0.500 and above"
    assert shades_words(K, 0, 1.0) == ", from 0 to 1.00" and shades_words(K, 0, 0) == ""
    kind = {"words": "single-step", "genotyped": 3, "snps": 9}
    kind |= {"diagonal": dict.fromkeys(("mean", "least", "largest"), 1.0)}
    kind |= {"blend": 0.05, "with": "A22", "condition": 2.0, "inverse_error": 1e-14, "degrees_of_freedom": 3}
    components = pl.DataFrame({"pc_1": [-1.0, 0.0, 1.0], "pc_2": [0.5, -1.0, 0.5]})
    components = components.with_columns(share_1=pl.lit(0.0546), share_2=pl.lit(0.0443))
    run = SimpleNamespace(relationships={"genetic": kind}, genotyped=components, relationship_sample=None)
    ((_, _, caption),) = genotyped_section(run, plots.Figures())["figures"]
    assert caption.startswith(
        "Second principal component (up; 4.4 % of the variance of genotypes) against the first (5.5 %"
    )
