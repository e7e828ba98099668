"""The page on adding a response family is followed in a copy of the source, and the result is used."""

import re

import pytest
from helpers.followed_pages import change, copy_source, follow, read_page, run_script
from helpers.support import ROOT

from mmgibbs.models import families
from mmgibbs.models.families import FAMILIES

PAGE = read_page("adding-a-response-family.md")
SCRIPT = """
    import numpy as np
    import polars as pl
    import pytest

    import mmgibbs
    from mmgibbs.config.schema import as_json
    from mmgibbs.data.prepare import prepare
    from mmgibbs.data.traits import load_analysis
    from mmgibbs.draft.formula.sections import TYPES
    from mmgibbs.models.gpu_rules import Asked, find_gpu_refusals
    from mmgibbs.report.make import make_report

    rng = np.random.default_rng(1)
    line, site = np.repeat(np.arange(60), 8), np.tile(np.arange(8), 60)
    log_rate = 0.8 * rng.standard_normal(60)[line] + 0.2 * site - 1 + 0.3 * rng.standard_normal(480)
    names = {"line": [f"l{i}" for i in line], "site": [f"s{i}" for i in site]}
    records = pl.DataFrame(names | {"days": rng.exponential(np.exp(-log_rate)), "cases": rng.poisson(np.exp(log_rate))})
    analysis = lambda type, column, **data: {
        "data": {"phenotypes": records} | data, "traits": {"t": {"type": type, "column": column}},
        "model": {"fixed": {"site": {}}, "random": {"line": {}}},
        "sampler": {"samples": 600, "burn_in": 100, "chains": 1, "engine": "serial"},
        "output": {"directory": type},
    }
    run = lambda *words: mmgibbs.run(analysis(*words), progress=False)
    summary = lambda result: dict(result.summary.select("parameter", "mean").iter_rows())

    assert '"duration"' in as_json() and "a count, or a time until something happens" in as_json()
    assert TYPES["exponential"] == "duration"
    result = run("duration", "days")
    assert abs(summary(result)["line.var[t]"] - 0.64) < 0.3, summary(result)
    assert result.info["data"]["observed_as"] == {"t": {"times": 480}}
    assert "log rate of t" in make_report(["duration"]).read_text(encoding="utf-8")
    for column, more, said in (
        ("cases", {}, "found 0 in column 'cases' .traits.t.; needed a time above 0"),
        ("days", {"weights": "cases"}, "weights cannot be combined with traits.t.type: duration"),
    ):
        with pytest.raises(mmgibbs.MmgibbsError, match=said):
            prepare(load_analysis(analysis("duration", column, **more)))
    assert "Mean counts" not in make_report(["duration"]).read_text(encoding="utf-8")
    # a kernel of its own, in a file of its own, which no GPU has
    assert summary(run("also_count", "cases")) == summary(run("count", "cases"))
    assert "Mean counts" in make_report(["also_count"]).read_text(encoding="utf-8")
    design = prepare(load_analysis(analysis("also_count", "cases"))).design
    said = [words for rule, words in find_gpu_refusals(Asked("gibbs", "structured", design))]
    assert said == ["traits.t.type: also_count"]
    print("used")
"""
FAMILY = """
from mmgibbs.models.families.count import Count


class AlsoCount(Count):
    kind, kernel, is_on_gpu = "also_count", "also_count:draw_also", False
"""
KERNEL = """
from mmgibbs.engines.liabilities import draw_log_rates
from mmgibbs.pedigree.kernels import kernel


@kernel
def draw_also(given, count, exposure, first, last, site):
    draw_log_rates(given, count, exposure, first, last, site)
"""


@pytest.mark.slow
def test_the_page_adds_a_family_that_works(tmp_path):
    """So does a family with a kernel of its own: nothing but its own files asks for its word."""
    copy_source(tmp_path)
    assert follow(PAGE, tmp_path) == PAGE.count("<!-- ") == 3
    kinds = tmp_path / "mmgibbs" / "models" / "families"
    (kinds / "also.py").write_text(FAMILY, encoding="utf-8")
    (tmp_path / "mmgibbs" / "engines" / "also_count.py").write_text(KERNEL, encoding="utf-8")
    registry = kinds / "__init__.py"
    change(registry, "KINDS: ", "from mmgibbs.models.families.also import AlsoCount\n\nKINDS: ")
    change(registry, "Count, Duration)", "Count, AlsoCount, Duration)")
    done = run_script(SCRIPT, tmp_path)
    assert done.returncode == 0 and done.stdout.endswith("used\n"), done.stderr


def test_no_module_asks_of_which_family_a_trait_is():
    """Outside the files of the families no class is named in `isinstance` or `case`, and no type compared with a word.

    What guesses the types of columns names those that it knows, and other programs have words of their own.
    """
    kinds = ROOT / "mmgibbs" / "models" / "families"
    classes = "|".join(
        sorted({c.__name__ for family in FAMILIES.values() for c in family.__mro__} & set(vars(families)))
    )
    words = "|".join(FAMILIES)
    asked = re.compile(
        rf"isinstance\([^)]*\b(?:{classes})\b|\bcase (?:{classes})\("
        rf"|\b(?:type|kind|types\[\w+\]|\.get\(\"type\"[^)]*\)) (?:==|!=|in|not in) [^\n:]*[\"'](?:{words})[\"']"
    )
    assert asked.search("isinstance(x, Count)") and asked.search("if trait.type == 'binary':")
    others = ("exchange", "draft")
    files = [
        p for p in sorted((ROOT / "mmgibbs").rglob("*.py")) if p.parent != kinds and not set(others) & set(p.parts)
    ]
    assert [p for p in files if asked.search(p.read_text(encoding="utf-8"))] == []
