"""The script of docs/how-to/every-night.md: spoiled nights are stopped, and what is published is never replaced."""

import re
import runpy
import shutil

import polars as pl
import pytest
from helpers.support import ROOT

PAGE = (ROOT / "docs" / "how-to" / "every-night.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n```\w*\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
WEIGHT = "yearling_weight"


@pytest.fixture(scope="module")
def tables():
    folder = ROOT / "data_samples" / "beef"
    return tuple(pl.read_csv(folder / f"{name}.csv", infer_schema=False) for name in ("phenotypes", "pedigree"))


@pytest.fixture(scope="module")
def published(tables, tmp_path_factory):
    """A folder with the files of the page and one evaluation."""
    folder = tmp_path_factory.mktemp("nights")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    write(folder, *tables)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert runpy.run_path("nightly.py")["evaluate"]("2026-03-01") == 0
    return folder


def write(folder, records, pedigree):
    (folder / "tonight").mkdir(exist_ok=True)
    records.write_csv(folder / "tonight" / "phenotypes.csv")
    pedigree.write_csv(folder / "tonight" / "pedigree.csv")


@pytest.fixture
def evaluate(published, tmp_path, monkeypatch):
    """evaluate() of the page in a copy of the folder, which is the current one."""
    shutil.copytree(published, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return runpy.run_path("nightly.py")["evaluate"]


def constant(records, pedigree):
    return records.with_columns(pl.when(pl.col(WEIGHT).is_not_null()).then(pl.lit("400.0")).alias(WEIGHT)), pedigree


def sorted_column(records, pedigree):
    return records.with_columns(pl.col(WEIGHT).sort(descending=True)), pedigree


def cut_records(records, pedigree):
    return records.head(records.height - records.height // 10), pedigree


def pounds(records, pedigree):
    year = pl.col("animal").str.starts_with("2010")
    weight = (pl.col(WEIGHT).cast(pl.Float64) * 2.2046).round(1).cast(pl.String)
    return records.with_columns(pl.when(year).then(weight).otherwise(WEIGHT).alias(WEIGHT)), pedigree


def cut_pedigree(records, pedigree):
    kept = pedigree.head(pedigree.height // 2)
    return records.filter(pl.col("animal").is_in(kept["animal"].implode())), kept


def shifted_ids(records, pedigree):
    ids = records["animal"]
    return records.with_columns(pl.concat([ids.tail(7), ids.head(len(ids) - 7)]).alias("animal")), pedigree


def other_ids(records, pedigree):
    named = lambda column: pl.concat_str(pl.lit("x"), column).alias(column)
    return records.with_columns(named("animal")), pedigree.with_columns(map(named, ("animal", "sire", "dam")))


def no_column(records, pedigree):
    return records.drop("sex"), pedigree


def contradicting_parents(records, pedigree):
    """Refused by the reader of the pedigree, whose errors are of another class."""
    first = pedigree["animal"][0]
    own_sire = pl.when(pl.col("animal") == first).then(pl.lit(first)).otherwise("sire")
    return records, pedigree.with_columns(sire=own_sire)


SPOILED = {
    constant: 3, sorted_column: 3, cut_records: 3, pounds: 3, cut_pedigree: 3, shifted_ids: 3, other_ids: (2, 3),
    no_column: 2, contradicting_parents: 2,
}  # fmt: skip


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda spoil: spoil.__name__)
def test_a_spoiled_night_is_not_published(spoil, evaluate, tables, tmp_path, capsys):
    published = {p: p.read_bytes() for p in (tmp_path / "evaluations" / "2026-03-01").rglob("*") if p.is_file()}
    write(tmp_path, *spoil(*tables))
    expected = SPOILED[spoil]
    code = evaluate("2026-03-01" if spoil is sorted_column else "2026-03-02")  # the second evaluation of a day, too
    assert code in (expected if isinstance(expected, tuple) else (expected,)) and capsys.readouterr().err
    assert (tmp_path / "evaluations" / "latest.txt").read_text() == "2026-03-01"
    assert {path: path.read_bytes() for path in published} == published


def test_good_nights_are_published_and_old_ones_go(evaluate, tmp_path):
    """Spoiled ones in between do not push out the one that is published."""
    names = ["2026-03-01-2", *(f"2026-03-{day:02}" for day in range(2, 10))]
    for name in names:
        assert evaluate(name.removesuffix("-2")) == 0
        assert (tmp_path / "evaluations" / "latest.txt").read_text() == name
    kept = sorted(path.name for path in (tmp_path / "evaluations").iterdir() if path.is_dir())
    assert kept == names[-7:]
