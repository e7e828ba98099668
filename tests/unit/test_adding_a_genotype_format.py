"""The page on adding a format of genotypes is followed in a copy of the source, and the result is used."""

import re

import pytest
from helpers.followed_pages import copy_source, follow, read_page, run_script
from helpers.support import ROOT

from mmgibbs.genotypes.formats import FORMATS

PAGE = read_page("adding-a-genotype-format.md")
SCRIPT = """
    from pathlib import Path

    import numpy as np
    import pytest

    import mmgibbs
    from mmgibbs.config.genotypes import Genotypes
    from mmgibbs.config.schema import as_json
    from mmgibbs.data.genotypes.file_format import format_of_content, open_genotypes
    from mmgibbs.draft.make import init

    rng = np.random.default_rng(1)
    codes = rng.choice([0, 1, 2, 9], (30, 8), p=[0.3, 0.3, 0.3, 0.1])
    Path("g.geno").write_text("".join("".join(map(str, row)) + "\\n" for row in codes))
    Path("g.snp").write_text("".join(f"m{j} 1 0.0 {100 + j} A C\\n" for j in range(30)))
    Path("g.ind").write_text("".join(f"a{i} F herd\\n" for i in range(8)))
    Path("r.csv").write_text("animal,y\\n" + "".join(f"a{i},{i}.5\\n" for i in range(8)))

    assert format_of_content(Path("g.geno")) == "eigenstrat" and '"eigenstrat"' in as_json()
    file = open_genotypes(Genotypes(file=Path("g.geno")).completed())
    assert file.ids.to_list() == [f"a{i}" for i in range(8)] and file.snps["position"][3] == 103
    assert np.array_equal(file.source.block(0, 30), np.minimum(codes, 3))
    with pytest.raises(mmgibbs.DataError, match="g.geno: is a EIGENSTRAT file of genotypes, needed the table of rec"):
        init("g.geno", output="a.yaml")
    analysis = {
        "data": {
            "phenotypes": "r.csv",
            "genotypes": {"file": "g.geno", "quality": {"call_rate": 0, "animal_call_rate": 0}},
        },
        "traits": ["y"], "model": {"random": {"animal": {"relationship": "genomic"}}},
        "variances": {"animal": {"start": 1, "fixed": True}, "residual": {"start": 1, "fixed": True}},
        "sampler": {"method": "blup"},
        "output": {"directory": "run"},
    }
    result = mmgibbs.run(analysis, progress=False, report=False)
    assert result.info["data"]["genotypes"]["read"] == {"SNPs": 30, "animals": 8}
    print("used")
"""


@pytest.mark.slow
def test_the_page_adds_a_format_that_works(tmp_path):
    copy_source(tmp_path)
    assert follow(PAGE, tmp_path) == PAGE.count("<!-- ") == 2
    done = run_script(SCRIPT, tmp_path)
    assert done.returncode == 0 and done.stdout.endswith("used\n"), done.stderr


def test_no_module_asks_which_format_a_file_has():
    """Formats are named in their readers and in the registry: others ask the registry."""
    names = "|".join(name for name, format in FORMATS.items() if format.label)  # the others have other meanings, too
    compared = re.compile(rf'[=!]= "({names})"|"({names})" [=!]=')
    wrong = [p for p in sorted((ROOT / "mmgibbs").rglob("*.py")) if compared.search(p.read_text(encoding="utf-8"))]
    assert wrong == []
