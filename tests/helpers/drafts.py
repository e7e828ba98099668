"""Small tables for `mmgibbs init`, and what it has written."""

from __future__ import annotations

from helpers.support import ROOT

import mmgibbs
from mmgibbs.data.environments import load_analysis

SAMPLES = ROOT / "data_samples"
ROWS = [f"a{i},{'m' if i % 2 else 'f'},{i % 3},{20 + (i * 7) % 11 + i / 10}" for i in range(40)]


def of_sample(name, records="phenotypes.csv", pedigree="pedigree.csv", genotypes=None):
    files = [SAMPLES / name / f for f in (records, pedigree, genotypes) if f is not None]
    return files + [None] * (2 - len(files))


def accepted(made):
    """The analysis that was written, which `check` accepts."""
    assert made.refused is None
    assert mmgibbs.check(made.path)["equations"] > 0
    return load_analysis(made.path)


def write(tmp_path, records, pedigree=None):
    (tmp_path / "r.csv").write_text(records)
    if pedigree is not None:
        (tmp_path / "p.csv").write_text(pedigree)
    return tmp_path / "r.csv", None if pedigree is None else tmp_path / "p.csv"
