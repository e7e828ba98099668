"""The page on adding an engine is followed in a copy of the source, and the result is used."""

import pytest
from helpers.followed_pages import copy_source, follow, read_page, run_script

PAGE = read_page("adding-an-engine.md")
SCRIPT = """
    import numpy as np
    import polars as pl
    import pytest

    import mmgibbs
    from mmgibbs.config.schema import as_json
    from mmgibbs.report.make import make_report

    rng = np.random.default_rng(1)
    line, site = np.repeat(np.arange(40), 5), np.tile(np.arange(5), 40)
    y = rng.standard_normal(40)[line] + site + rng.standard_normal(200)
    records = pl.DataFrame({"line": [f"l{i}" for i in line], "site": [f"s{i}" for i in site], "y": y})
    analysis = lambda **sampler: {
        "data": {"phenotypes": records}, "traits": ["y"],
        "model": {"fixed": {"site": {}}, "random": {"line": {}}},
        "sampler": {"engine": "reversed", "samples": 400, "burn_in": 50, "chains": 1} | sampler,
        "output": {"directory": sampler.get("engine", "reversed")},
    }
    means = [
        mmgibbs.run(analysis(**more), progress=False, report=False).summary["mean"].to_numpy()
        for more in ({}, {"engine": "serial"})
    ]
    np.testing.assert_allclose(*means, rtol=0.15)
    assert "draws the last effects first" in make_report(["reversed"]).read_text(encoding="utf-8")
    assert '"reversed"' in as_json()
    chosen = mmgibbs.run(analysis(engine="auto"), progress=False, report=False).info
    assert chosen["engine"] == "reversed" and "ms per sweep of reversed" in chosen["engine_chosen_because"]
    assert set(chosen["engine_estimates"]["milliseconds_per_sweep"]) == {"serial", "structured", "reversed"}
    for more, said in (({"device": "gpu"}, "engine: reversed: it has no kernels"), ({"method": "blup"}, "pcg or auto")):
        with pytest.raises(mmgibbs.ConfigError, match=said):
            mmgibbs.run(analysis(**more), progress=False)
    print("used")
"""


@pytest.mark.slow
def test_the_page_adds_an_engine_that_works(tmp_path):
    copy_source(tmp_path)
    assert follow(PAGE, tmp_path) == PAGE.count("<!-- ") == 2
    done = run_script(SCRIPT, tmp_path)
    assert done.returncode == 0 and done.stdout.endswith("used\n"), done.stderr
