"""Every column of every table that is read, in every type of Polars and Arrow: read, or refused by file and column."""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from mmgibbs.config import load_config
from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.chosen import _select_groups
from mmgibbs.data.genotypes.file_format import open_genotypes
from mmgibbs.data.genotypes.map_file import read_frequencies, read_map
from mmgibbs.data.prepare import prepare
from mmgibbs.data.regression import read_regression
from mmgibbs.data.relationship_files import read_gamma, read_relationship
from mmgibbs.errors import MmgibbsError
from mmgibbs.pedigree.errors import PedigreeError, TableError
from mmgibbs.pedigree.read import ParentGroups, read_pedigree
from mmgibbs.population.contributions.candidates import Matings, read_candidates, read_mated
from mmgibbs.report.comparison.sides import _read_solutions_table

N = 4
REFUSED = {
    "list": pl.Series([[1], [2], [3], [4]]),
    "array": pl.Series([[1.0], [2.0], [3.0], [4.0]], dtype=pl.Array(pl.Float64, 1)),
    "struct": pl.Series([{"a": i} for i in range(N)]),
    "duration": pl.Series([dt.timedelta(days=i) for i in range(N)]),
    "binary": pl.Series([b"\xff", b"b", b"c", b"d"]),
}
CELLS = {
    "null": pl.Series([None] * N, dtype=pl.Null),
    "boolean": pl.Series([True, False, True, False]),
    "date": pl.Series([dt.date(2000, 1, i + 1) for i in range(N)]),
    "datetime": pl.Series([dt.datetime(2000, 1, i + 1) for i in range(N)]),
    "time": pl.Series([dt.time(i) for i in range(N)]),
    "categorical": pl.Series(list("abcd"), dtype=pl.Categorical),
    "enum": pl.Series(list("abcd"), dtype=pl.Enum(list("abcd"))),
    "decimal": pl.Series([Decimal("0.25")] * N),
    "int8": pl.Series([0, 1, 2, 1], dtype=pl.Int8),
    "uint64": pl.Series([0, 1, 2, 2**63], dtype=pl.UInt64),
    "int128": pl.Series([0, 1, 2, 2], dtype=pl.Int128),
    "float32": pl.Series([0.0, 1.0, 0.5, float("nan")], dtype=pl.Float32),
    "float64": pl.Series([0.0, 1.0, 0.5, float("inf")]),
    "string": pl.Series(list("abcd")),
}
IDS = list("abcd")


def read_records(path: Path) -> object:
    source = {
        "data": {"phenotypes": str(path), "weights": "w"},
        "traits": ["y"],
        "model": {"fixed": {"f": {"kind": "class"}, "x": {"kind": "covariate"}}, "random": {"h": {"level": "h"}}},
        "variances": {"mode": "fixed", "h": 1, "residual": 1},
        "sampler": {"method": "blup"},
    }
    return prepare(load_config(source))


def read_predictors(path: Path) -> object:
    model = {"plugin": "lasso", "response": ["y"], "predictors": ["x"]}
    return read_regression(load_config({"data": {"phenotypes": str(path)}, "model": model}))


def read_matings(path: Path) -> object:
    candidates = pl.DataFrame({"id": IDS, "sex": ["M", "F", "M", "F"]})
    return read_mated(path, read_candidates(candidates, Matings(4)))


SNPS = pl.DataFrame({"snp": ["s0", "s1"], "chromosome": ["1", "1"]})
READERS = {
    "map": ({"snp": list("abcd"), "chromosome": ["1"] * N, "position": [1, 2, 3, 4]}, read_map),
    "frequencies": (
        {"snp": ["s0", "s1", "s2", "s3"], "frequency": [0.1, 0.2, 0.3, 0.4]},
        lambda path: read_frequencies(path, SNPS["snp"]),
    ),
    "genotypes": (
        {"id": IDS, "s0": [0, 1, 2, 1], "s1": [0.5, 1, 1, 1]},
        lambda path: open_genotypes(Genotypes(file=path), ()),
    ),
    "chosen": (
        {"snp": ["s0", "s1", "s0", "s1"], "group": ["u", "v", "u", "v"]},
        lambda path: _select_groups(path, ["u"], SNPS, "model.markers"),
    ),
    "pedigree": (
        {"id": IDS, "sire": [None, None, "a", "a"], "dam": [None, None, "b", "b"], "birth": [2000] * N, "g": ["u"] * N},
        lambda path: read_pedigree(path, groups=ParentGroups("g"), more=["birth"]),
    ),
    "records": ({"y": [1.0, 2, 3, 5], "f": list("uvuv"), "x": [0.1, 0.2, 0.5, 0.1], "h": list("pqrr"),
                 "w": [1.0, 1, 2, 1]}, read_records),
    "gamma": ({"first": list("ggkk"), "second": list("gkgk"), "value": [1.0, 0.5, 0.5, 1]},
              lambda path: read_gamma(path, ("g", "k"))),
    "inverse": ({"id1": list("abcd"), "id2": list("abcd"), "value": [1.0, 1, 1, 1]},
                lambda path: read_relationship(path, "h")),
    "candidates": ({"id": IDS, "sex": list("MFMF"), "min": [0] * N, "max": [2] * N},
                   lambda path: read_candidates(path, Matings(2))),
    "mated": ({"sire": list("aacc"), "dam": list("bdbd"), "matings": [1] * N}, read_matings),
    "regression": ({"y": [1.0, 2, 3, 5], "x": [0.1, 0.2, 0.5, 0.1]}, read_predictors),
    "solutions": ({"id": IDS, "ebv": [0.1, 0.2, 0.5, 0.1]}, _read_solutions_table),
}  # fmt: skip
COLUMNS = [(reader, column) for reader, (columns, _) in READERS.items() for column in columns]


def read_changed(folder, reader, column, values):
    columns, read = READERS[reader]
    frame = pl.DataFrame({name: pl.Series(name, cells) for name, cells in columns.items()})
    frame.with_columns(values.alias(column)).write_parquet(folder / f"{reader}.parquet")
    return read(folder / f"{reader}.parquet")


@pytest.mark.parametrize(("reader", "column"), COLUMNS)
def test_every_type(tmp_path, reader, column):
    """A table that is good without the change, so that it is refused for the type."""
    good = READERS[reader][0][column]
    assert read_changed(tmp_path, reader, column, pl.Series(good)) is not None
    for name, values in list(CELLS.items())[COLUMNS.index((reader, column)) % 2 :: 2]:
        try:
            read_changed(tmp_path, reader, column, values)
        except (MmgibbsError, PedigreeError, TableError) as error:
            assert str(error), name
    for name, values in REFUSED.items():
        with pytest.raises((MmgibbsError, PedigreeError, TableError)) as refused:
            read_changed(tmp_path, reader, column, values)
        assert f"{reader}.parquet" in str(refused.value), name
        assert str(values.dtype) in str(refused.value) and "needed numbers or text" in str(refused.value), name


@pytest.mark.parametrize("reader", sorted(READERS.keys() - {"pedigree", "records", "regression"}))
def test_tables_whose_encoding_no_key_states_are_utf8(tmp_path, reader):
    """Not taken for Windows-1252 in silence; the three others have a key, and a note."""
    columns, read = READERS[reader]
    path = tmp_path / f"{reader}.csv"
    path.write_bytes((",".join(columns) + "\n" + ",".join(["\xe4"] * len(columns)) + "\n").encode("windows-1252"))
    with pytest.raises((MmgibbsError, PedigreeError, TableError)) as refused:
        read(path)
    assert f"{reader}.csv row 2: found byte 0xe4" in str(refused.value)
    assert "save the file as UTF-8" in str(refused.value) and "state" not in str(refused.value)
