"""SNP effects on the page of a run: with and without classes, windows and a map."""

import re

import numpy as np
import polars as pl
import pytest
from helpers.finished_run import write_run
from helpers.genomic_run import write_genomic_run

from mmgibbs.report.genomic import on_a_line
from mmgibbs.report.make import make_report
from mmgibbs.report.plots import highest_and_some


def page(tmp_path, **options) -> str:
    return make_report([write_genomic_run(tmp_path / "run", **options)]).read_text(encoding="utf-8")


def headings(text):
    return re.findall(r"<h4>(.*?)</h4>", text[text.index('id="snps"') :])


def captions(text):
    part = text[text.index('id="snps"') :]
    return [c for c in re.findall(r"<caption><span>(.*?)</span>", part) if "snps" in c or "Quality" in c]


def test_a_run_with_everything(tmp_path):
    text = page(tmp_path)
    assert headings(text)[:4] == [
        "Probability of an effect along the genome",
        "Genetic variance along the genome, in per cent",
        "Sizes of effects",
        "Genomic and polygenic values",
    ]
    assert captions(text) == [
        "snps, birth: the most probable effects",
        "snps, birth: windows",
        "snps, birth: chromosomes",
        "Quality control of chips.bed",
    ]
    assert "birth, genomic and polygenic: the 20 highest breeding values" in text
    assert "left out: monomorphic" in text and "<dt>snps.effect_var</dt>" in text
    assert "effects of SNPs, prior bayes_c" in text and "snps (SNP effects, animal)" in text
    fixed = text[text.index('id="fixed"') :]
    assert "gebv" not in fixed and "genetic+snps" not in fixed
    assert "X<b>" not in text and "X&lt;b&gt;" in text


def test_without_classes_the_sizes_of_effects_are_shown(tmp_path):
    text = page(tmp_path, classes=False, windows=False)
    assert headings(text)[0] == "Size of effects along the genome"
    assert captions(text)[0] == "snps, birth: the largest effects" and "PIP</th>" not in text
    assert "snps, birth: windows" not in text


def test_without_a_map_snps_stand_in_their_order(tmp_path):
    text = page(tmp_path, mapped=False)
    assert headings(text)[1].startswith("Genetic variance") and "SNP number" in text and "window number" in text
    assert "Chromosome</th>" not in text and "chromosomes" not in "".join(captions(text))


def test_a_run_without_snp_effects_has_no_section(tmp_path):
    text = make_report([write_run(tmp_path / "run")]).read_text(encoding="utf-8")
    assert 'id="snps"' not in text and "#snps" not in text


@pytest.mark.parametrize("n", [10, 100, 5000])
def test_of_many_points_the_highest_are_kept(n):
    values = np.random.default_rng(1).random(n)
    chosen = highest_and_some(values, 100)
    assert len(chosen) == min(n, 100) and (np.diff(chosen) > 0).all()
    assert set(np.argsort(-values)[:50]) <= set(chosen)


def test_chromosomes_lie_one_after_another():
    frame = pl.DataFrame({"chromosome": ["10", "2", "2", "X"], "position": [5.0, 7.0, 3.0, 1.0]})
    found = on_a_line(frame)
    assert found.select("chromosome", "position", "at", "chromosome_number").rows() == [
        ("2", 3.0, 3.0, 0),
        ("2", 7.0, 7.0, 0),
        ("10", 5.0, 12.0, 1),
        ("X", 1.0, 13.0, 2),
    ]
    starts = frame.rename({"position": "start"})  # of windows
    assert on_a_line(starts, "start").select("at", "start").rows() == [(3, 3), (7, 7), (12, 5), (13, 1)]
    unknown = on_a_line(frame.with_columns(position=pl.Series([None, 7.0, 3.0, 1.0])))
    assert unknown["at"].to_list() == [1, 2, 3, 4]
