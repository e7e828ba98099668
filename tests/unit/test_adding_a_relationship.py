"""The page on adding a kind of relationship is followed in a copy of the source, and the result is used."""

import textwrap

import pytest
from helpers.followed_pages import change, copy_source, follow, read_page, run_script
from helpers.support import ROOT

PAGE = read_page("adding-a-relationship.md")
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


@pytest.mark.slow
def test_the_page_adds_a_kind_that_works(tmp_path):
    copy_source(tmp_path)
    assert follow(PAGE, tmp_path) == PAGE.count("<!-- ") == 5
    for name, (old, new) in IMPORTS.items():
        change(tmp_path / name, old, new)
    data = ROOT / "data_samples" / "sheep"
    (tmp_path / "analysis.yaml").write_text(textwrap.dedent(ANALYSIS.format(data=data)), encoding="utf-8")
    done = run_script(SCRIPT, tmp_path)
    assert done.returncode == 0 and done.stdout == "refused\n", done.stderr
