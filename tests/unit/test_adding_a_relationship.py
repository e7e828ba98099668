"""The page on adding a kind of relationship is followed in a copy of the source, and the result is used."""

import re
import shutil
import subprocess
import sys
import textwrap

import pytest
from helpers.support import ROOT

PAGE = (ROOT / "docs" / "how-to" / "adding-a-relationship.md").read_text(encoding="utf-8")
BLOCK = re.compile(
    r"^<!-- (new|insert|replace): ([\w/.]+)(?:(?: before)?: (.*?))? -->\n```python\n(.*?)^```$", re.M | re.S
)
IMPORTS = {  # which the page tells in words
    "mmgibbs/config/relationships.py": (
        "from mmgibbs.config.fields import ",
        "from pydantic import Field\nfrom mmgibbs.config.fields import NUMBER, ",
    ),
    "mmgibbs/data/relationships.py": (
        "from mmgibbs.config.relationships import ",
        "from mmgibbs.models.relationships import autoregressive\n"
        "from mmgibbs.config.relationships import Autoregressive, ",
    ),
}
ANALYSIS = """
    name: years
    data: {{phenotypes: {data}/shearings.csv, pedigree: {data}/pedigree.csv}}
    traits: [fleece_weight]
    model:
      random:
        animal: {{relationship: pedigree}}
        permanent_environment: {{level: animal}}
        flock_year: {{relationship: {{kind: autoregressive, rho: 0.7}}}}
"""
SCRIPT = """
    import sys

    import numpy as np
    import mmgibbs
    from mmgibbs.models.relationships.autoregressive import Autoregressive
    from scipy.sparse import csr_array

    for q in (1, 2, 5):
        K = Autoregressive.from_size(q, 0.7)
        indptr, indices, values = K.inverse_csr()
        inverse = csr_array((values, indices, indptr), shape=(q, q)).toarray()
        expected = 0.7 ** abs(np.subtract.outer(np.arange(q), np.arange(q)))
        assert np.allclose(np.linalg.inv(inverse), expected)
        root = K.draw(np.eye(q))
        assert np.allclose(root @ root.T, expected)
    (term,) = [t for t in mmgibbs.check("analysis.yaml")["terms"] if "flock_year" in str(t)]
    assert "autoregressive" in str(term), term
    try:
        mmgibbs.load_config("analysis.yaml", ["model.random.flock_year.relationship.rho=1.5"])
    except mmgibbs.ConfigError as error:
        assert "rho" in str(error)
        print("refused")
"""


@pytest.fixture
def source(tmp_path):
    for package in ("mmgibbs", "pedigree"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__", "*.nb*"))
    return tmp_path


def change(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path.name, old)
    path.write_text(text.replace(old, new), encoding="utf-8")


def follow(page, source):
    blocks = BLOCK.findall(page)
    for kind, name, anchor, code in blocks:
        if kind == "new":
            (source / name).write_text(code, encoding="utf-8")
        else:
            change(source / name, anchor, code + anchor if kind == "insert" else code.removesuffix("\n"))
    for name, (old, new) in IMPORTS.items():
        change(source / name, old, new)
    return len(blocks)


@pytest.mark.slow
def test_the_page_adds_a_kind_that_works(source):
    assert follow(PAGE, source) == PAGE.count("<!-- ") == 6
    data = ROOT / "data_samples" / "sheep"
    (source / "analysis.yaml").write_text(textwrap.dedent(ANALYSIS.format(data=data)), encoding="utf-8")
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout == "refused\n", done.stderr
