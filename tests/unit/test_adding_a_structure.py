"""The page on adding a covariance structure is followed in a copy of the source, and the result is used."""

import re

import pytest
from helpers.followed_pages import change, copy_source, follow, read_page, run_script
from helpers.support import ROOT

from mmgibbs.models.structures import STRUCTURES

PAGE = read_page("adding-a-structure.md")
SCRIPT = """
    import numpy as np
    import polars as pl

    import mmgibbs
    from mmgibbs.config.schema import as_json
    from mmgibbs.models.structures import STRUCTURES
    from mmgibbs.report.make import make_report

    traits, lines = ["a", "b", "c"], 150
    structure = STRUCTURES["moving_average"](3, False, np.ones(3))
    G = structure.matrix(structure.start(np.eye(3) + 0.6 * (np.eye(3, k=1) + np.eye(3, k=-1))))
    rng = np.random.default_rng(1)
    values = rng.standard_normal((lines, 3)) @ np.linalg.cholesky(G).T
    records = pl.DataFrame(
        {"line": [f"l{i}" for i in range(lines) for _ in range(2)]}
        | {t: np.repeat(values[:, j], 2) + 0.5 * rng.standard_normal(2 * lines) for j, t in enumerate(traits)}
    )
    estimates = {}
    for method in ("reml", "gibbs"):
        for kind in ("moving_average", "full") if method == "reml" else ("moving_average",):
            analysis = {
                "data": {"phenotypes": records}, "traits": traits, "model": {"random": {"line": {}}},
                "variances": {"line": {"structure": kind}, "residual": {"structure": "diagonal"}},
                "sampler": {"method": method} | ({} if method == "reml" else {"samples": 200, "burn_in": 50}),
                "output": {"directory": f"{method}_{kind}"},
            }
            result = mmgibbs.run(analysis, progress=False)
            estimates[method] = estimates.get(method) or dict(result.summary.select("parameter", "mean").iter_rows())
    assert "moving_average" in as_json() and "neighbours have one correlation, others none" in as_json()
    for method, means in estimates.items():
        assert abs(means["line.rho"] - 0.6) < 0.15, (method, means)
        assert abs(means["line.cov[a,c]"]) < 1e-12, (method, means)
    page = make_report(["reml_moving_average"]).read_text(encoding="utf-8")
    assert "with one correlation of neighbours (moving average)" in page
    page = make_report(["reml_moving_average", "reml_full"]).read_text(encoding="utf-8")
    assert "line moving_average instead of full (2 parameters fewer)" in page
    means = {}
    for kind in ("reduced_rank", "also_singular"):
        analysis |= {"output": {"directory": kind}, "variances": {"line": {"structure": kind}}}
        means[kind] = mmgibbs.run(analysis, progress=False).summary["mean"]
    assert means["reduced_rank"].equals(means["also_singular"])
    print("used")
"""
SINGULAR = """
from mmgibbs.models.structures.reduced_rank import ReducedRank


class AlsoSingular(ReducedRank):
    kind = "also_singular"
"""


@pytest.mark.slow
def test_the_page_adds_a_structure_that_works(tmp_path):
    """So does a structure without an inverse: nothing but its own file asks for its kind."""
    copy_source(tmp_path)
    assert follow(PAGE, tmp_path) == PAGE.count("<!-- ") == 3
    structures = tmp_path / "mmgibbs" / "models" / "structures"
    (structures / "singular.py").write_text(SINGULAR, encoding="utf-8")
    registry = structures / "__init__.py"
    change(
        registry, "KINDS = (", "from mmgibbs.models.structures.singular import AlsoSingular\n\nKINDS = (AlsoSingular, "
    )
    done = run_script(SCRIPT, tmp_path)
    assert done.returncode == 0 and done.stdout.endswith("used\n"), done.stderr


def test_no_module_asks_of_which_kind_a_structure_is():
    """Outside the files of the kinds no class is named in `isinstance`, and no kind compared with a word."""
    kinds = ROOT / "mmgibbs" / "models" / "structures"
    classes = [name for p in kinds.glob("*.py") for name in re.findall(r"^class (\w+)", p.read_text("utf-8"), re.M)]
    words = "|".join(STRUCTURES)
    asked = re.compile(
        rf"isinstance\([^)]*\b(?:{'|'.join(classes)})\b"
        rf"|\b(?:kind|structure) (?:==|!=|in|not in) [^\n:]*[\"'](?:{words})[\"']"
    )
    assert asked.search("isinstance(x, ReducedRank)") and asked.search("if spec.structure.kind == 'diagonal':")
    files = [p for p in sorted((ROOT / "mmgibbs").rglob("*.py")) if p.parent != kinds and "exchange" not in p.parts]
    assert [p for p in files if asked.search(p.read_text(encoding="utf-8"))] == []
