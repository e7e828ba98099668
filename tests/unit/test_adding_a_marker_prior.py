"""The page on adding a prior of SNP effects is followed in a copy of the source, and the result is used."""

import re

import pytest
from helpers.followed_pages import copy_source, follow, read_page, run_script
from helpers.support import ROOT

from mmgibbs.models.marker_priors import MARKER_PRIORS

PAGE = read_page("adding-a-marker-prior.md")
SCRIPT = """
    import numpy as np
    import polars as pl

    import mmgibbs
    from mmgibbs.config.schema import as_json

    n, p = 80, 10
    rng = np.random.default_rng(1)
    dosage = rng.integers(0, 3, (n, p))
    ids = [f"a{i}" for i in range(n)]
    genotypes = pl.DataFrame({"animal": ids} | {f"m{j}": dosage[:, j] for j in range(p)})
    genotypes.write_csv("g.csv")
    records = pl.DataFrame({"animal": ids, "y": 3.0 * dosage[:, 0] + rng.standard_normal(n)})
    analysis = {
        "data": {"phenotypes": records, "genotypes": "g.csv"}, "traits": ["y"],
        "model": {"markers": {"snps": {"prior": "student"}}},
        "sampler": {"samples": 100, "burn_in": 20, "chains": 1}, "output": {"directory": "run"},
    }
    result = mmgibbs.run(analysis, progress=False, report=False)
    effects = pl.read_parquet("run/markers.parquet")["effect_y"]
    assert abs(effects[0] - 3) < 0.5 and effects[1:].abs().max() < 0.5, effects
    assert result.info["markers"][0]["prior"] == "student" and "lasso, student, horseshoe" in as_json()
    print("used")
"""


@pytest.mark.slow
def test_the_page_adds_a_prior_that_works(tmp_path):
    copy_source(tmp_path)
    assert follow(PAGE, tmp_path) == PAGE.count("<!-- ") == 2
    done = run_script(SCRIPT, tmp_path)
    assert done.returncode == 0 and done.stdout.endswith("used\n"), done.stderr


def test_no_module_asks_which_prior_snp_effects_have():
    """Priors are named in the registry: others ask what it says of them."""
    names = "|".join(MARKER_PRIORS)
    compared = re.compile(rf'([=!]=|in) \(?"({names})"')
    wrong = [p for p in sorted((ROOT / "mmgibbs").rglob("*.py")) if compared.search(p.read_text(encoding="utf-8"))]
    assert wrong == []
