"""The page for users of R: its snippets in R, on a finished run, against what Python reads."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from helpers.support import ROOT

from mmgibbs.runs.run import run

RSCRIPT = shutil.which("Rscript")
SNIPPETS = re.findall(
    r"^<!-- r -->\n```r\n(.*?)^```$",
    (ROOT / "docs" / "how-to" / "from-r.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)
SHORT = ["sampler.samples=60", "sampler.burn_in=10", "sampler.thin=2", "sampler.chains=3", "sampler.threads=1"]


def test_there_are_snippets():
    assert len(SNIPPETS) == 3


def test_snippets_read_what_python_reads(tmp_path):
    if RSCRIPT is None:
        pytest.skip("needs R (Debian: apt-get install r-base-core r-cran-ncdf4), which is not here")
    if subprocess.run([RSCRIPT, "-e", "library(ncdf4)"], capture_output=True, check=False).returncode:
        pytest.skip("needs the R package ncdf4 (Debian: apt-get install r-cran-ncdf4), which is not here")
    result = run(ROOT / "configs" / "first.yaml", SHORT, directory=tmp_path / "runs" / "first", progress=False)
    script = (
        "\n".join(SNIPPETS) + '\ncat("mean", format(mean(h2), digits = 15), "\\n")\ncat("best", best$level[1], "\\n")\n'
    )
    (tmp_path / "all.R").write_text(script, encoding="utf-8")
    done = subprocess.run([RSCRIPT, "all.R"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    posterior = result.draws["posterior"]
    h2 = next(v for v in posterior.data_vars.values() if v.attrs.get("long_name") == "h2[yearling_weight]")
    assert "[1] 30  3" in done.stdout and h2.dims == ("chain", "draw") and h2.shape == (3, 30)
    assert float(re.search(r"^mean (\S+)", done.stdout, re.MULTILINE)[1]) == pytest.approx(
        float(np.mean(h2)), rel=1e-12
    )
    best = result.solutions.filter(term="animal").sort("mean", descending=True)["level"][0]
    assert re.search(r"^best (\S+)", done.stdout, re.MULTILINE)[1] == best
    assert (tmp_path / "mine" / "records.csv").read_text(encoding="utf-8").splitlines()[3] == '"e","m",NA'
