"""The page on adding a prior of a variance is followed in a copy of the source, and the result is used."""

import re

import numpy as np
import pytest
from helpers.followed_pages import copy_source, follow, read_page, run_script
from helpers.monte_carlo import batches, compare
from helpers.support import ROOT
from scipy import stats

from mmgibbs.models.priors import KINDS

PAGE = read_page("adding-a-prior-of-a-variance.md")
P, Q = 1.5, 2.0
SCRIPT = """
    import numpy as np
    import polars as pl

    import mmgibbs
    from mmgibbs.config.schema import as_json
    from mmgibbs.report.make import make_report

    PRIOR = {"beta_prime": {"p": 1.5, "q": 2}}
    y = np.loadtxt("records.txt")
    records = pl.DataFrame({"line": [f"l{i}" for i in range(len(y)) for _ in y[0]], "y": y.ravel()})
    for engine in ("structured", "marginal"):
        analysis = {
            "data": {"phenotypes": records}, "traits": ["y"], "model": {"random": {"line": {}}},
            "variances": {"residual": {"start": 1, "fixed": True}, "line": {"prior": PRIOR}},
            "sampler": {"engine": engine, "samples": 12_000, "burn_in": 500, "chains": 1, "seed": 5},
            "output": {"directory": engine},
        }
        result = mmgibbs.run(analysis, progress=False, report=False)
        (draws,) = [v for name, v in result.draws["posterior"].items() if name.startswith("line")]
        np.savetxt(f"{engine}.txt", draws.values.ravel())
    assert "beta-prime prior of variances with p 1.5 and q 2" in make_report(["marginal"]).read_text(encoding="utf-8")
    assert "{half_t: {df, scale}} or {beta_prime: {p, q}}" in as_json()
    for change, message in {
        "variances.line.prior.beta_prime.p=0": "variances.line.prior.beta_prime.p: found 0, needed a number between 0",
        "variances.line.prior.beta_prime.r=1": "variances.line.prior.beta_prime.r: unknown key; ",
    }.items():
        try:
            mmgibbs.load_config(analysis, [change])
        except mmgibbs.ConfigError as error:
            assert message in str(error), error
    print("used")
"""


def posterior_means(y, p):
    """Means of log s and of s / (1 + s), by quadrature over log s: level means are N(mu, s + 1/n), mu flat."""
    q, n = y.shape
    of_means, scale = np.var(y.mean(axis=1)) * q, y.var(ddof=1)
    log_s = np.linspace(-25, 15, 40_001)
    s = np.exp(log_s)
    log_density = -0.5 * (q - 1) * np.log(s + 1 / n) - 0.5 * of_means / (s + 1 / n)
    log_density += stats.betaprime.logpdf(s / scale, p, Q) + log_s
    weights = np.exp(log_density - log_density.max())
    assert max(weights[0], weights[-1]) < 1e-12
    return [np.average(of_s, weights=weights) for of_s in (log_s, s / (1 + s))]


@pytest.mark.slow
def test_the_page_adds_a_prior_that_works(tmp_path):
    """Its draws have the exact posterior, and not that of another prior."""
    copy_source(tmp_path)
    assert follow(PAGE, tmp_path) == PAGE.count("<!-- ") == 3
    rng = np.random.default_rng(1)
    y = 0.6 * rng.standard_normal((15, 1)) + rng.standard_normal((15, 4))
    np.savetxt(tmp_path / "records.txt", y)
    done = run_script(SCRIPT, tmp_path)
    assert done.returncode == 0 and done.stdout.endswith("used\n"), done.stderr
    for engine in ("structured", "marginal"):
        s = np.loadtxt(tmp_path / f"{engine}.txt")
        means = batches(np.column_stack([np.log(s), s / (1 + s)]))
        comparison = compare(means, posterior_means(y, P))
        assert comparison.agrees, (engine, comparison)
        assert not compare(means, posterior_means(y, P + 1)).agrees, engine


def test_no_module_asks_which_prior_a_variance_has():
    """Outside the files of the priors no class is named in `isinstance`, and no key of a section looked for."""
    folder = ROOT / "mmgibbs" / "models" / "priors"
    classes = "|".join(kind.__name__ for kind in KINDS)
    keys = "|".join(kind.key for kind in KINDS if kind.key != "df")
    asked = re.compile(
        rf"isinstance\([^)]*\b(?:{classes}|Flat)\b|case (?:{classes})\(|[\"'](?:{keys})[\"'] (?:not )?in \w*prior"
    )
    assert asked.search("isinstance(prior, HalfT)") and asked.search('if "half_t" in prior:')
    files = [p for p in sorted((ROOT / "mmgibbs").rglob("*.py")) if p.parent != folder]
    assert [p for p in files if asked.search(p.read_text(encoding="utf-8"))] == []
