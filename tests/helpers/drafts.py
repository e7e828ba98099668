"""Small tables for `mmgibbs init`, and what it has written."""

from __future__ import annotations

import polars as pl
from helpers.support import ROOT

import mmgibbs
from mmgibbs.data.traits import load_analysis
from mmgibbs.draft.make import init

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


def write(tmp_path, records, pedigree=None, genotypes=None):
    """r.csv, p.csv and snps.csv, each of text, lines or a frame."""
    paths = []
    for name, table in (("r.csv", records), ("p.csv", pedigree), ("snps.csv", genotypes)):
        paths.append(None if table is None else tmp_path / name)
        if isinstance(table, pl.DataFrame):
            table.write_csv(tmp_path / name)
        elif table is not None:
            (tmp_path / name).write_text(table if isinstance(table, str) else "".join(f"{line}\n" for line in table))
    return paths[:2] if genotypes is None else paths


def made_of(tmp_path, records, pedigree=None, genotypes=None, **options):
    """What init makes of these tables, in a.yaml."""
    tables = write(tmp_path, records, pedigree, genotypes)
    return init(*tables, output=tmp_path / "a.yaml", overwrite=True, **options)
