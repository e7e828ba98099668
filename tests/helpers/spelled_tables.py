"""One small evaluation with known right breeding values, and its tables written in many ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from reference import dense

from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import MmgibbsError
from mmgibbs.pedigree.errors import PedigreeError

N_ANIMALS, N_RECORDS, N_SIRES, N_DAMS = 40, 60, 4, 8
RECORD_COLUMNS = ("animal", "herd", "sex", "age", "milk", "fat")
PEDIGREE_COLUMNS = ("id", "sire", "dam")
G, PE, R = [[90000.0, 60.0], [60.0, 0.3]], [[40000.0, 20.0], [20.0, 0.1]], [[160000.0, 90.0], [90.0, 0.6]]
Cells = Sequence[Sequence[str]]


def make_parents() -> list[tuple[int | None, int | None]]:
    """Sire and dam of each animal: four sires and eight dams without parents, then their progeny."""
    rng = np.random.default_rng(44)
    parents: list[tuple[int | None, int | None]] = [(None, None)] * (N_SIRES + N_DAMS)
    while len(parents) < N_ANIMALS:
        sire = None if rng.random() < 0.1 else int(rng.integers(N_SIRES))
        parents.append((sire, None if rng.random() < 0.1 else N_SIRES + int(rng.integers(N_DAMS))))
    return parents


@dataclass(frozen=True)
class Record:
    animal: int
    herd: str
    sex: str
    age: str
    milk: str
    fat: str | None


def make_records() -> list[Record]:
    """Two traits with decimals, one of them in thousands and one sometimes missing."""
    rng = np.random.default_rng(45)
    animals = [*range(N_SIRES, N_ANIMALS), *rng.integers(N_SIRES, N_ANIMALS, N_RECORDS - N_ANIMALS + N_SIRES).tolist()]
    return [
        Record(
            animal=animal,
            herd=("north", "south", "east")[int(rng.integers(3))],
            sex="FM"[animal % 2],
            age=str(rng.integers(560, 930)),
            milk=f"{rng.integers(40000, 98000) / 10 + 0.05:.2f}",
            fat=None if k % 11 == 5 else f"{rng.integers(3800, 5500) / 1000 + 0.0005:.4f}",
        )
        for k, animal in enumerate(animals)
    ]


PARENTS, RECORDS = make_parents(), make_records()


def plain_id(i: int) -> str:
    return f"K{i + 100}"


@dataclass(frozen=True)
class Spelling:
    """How the cells of both tables are written; each function takes what is meant and returns the text."""

    id_in_records: Callable[[int], str] = plain_id
    id_in_pedigree: Callable[[int], str] | None = None  # None: as in the records
    parent: Callable[[int], str] | None = None  # None: as the ids of the pedigree
    unknown: str = "0"
    missing: str = "NA"
    number: Callable[[str], str] = str
    whole: Callable[[str], str] = str
    herd: Callable[[str, int], str] = lambda herd, k: herd  # k: number of the record

    @property
    def ids(self) -> list[str]:
        return [(self.id_in_pedigree or self.id_in_records)(i) for i in range(N_ANIMALS)]

    def records(self) -> list[list[str]]:
        return [
            [
                self.id_in_records(r.animal),
                self.herd(r.herd, k),
                r.sex,
                self.whole(r.age),
                self.number(r.milk),
                self.missing if r.fat is None else self.number(r.fat),
            ]
            for k, r in enumerate(RECORDS)
        ]

    def pedigree(self) -> list[list[str]]:
        parent = self.parent or self.id_in_pedigree or self.id_in_records
        return [
            [self.ids[i], *(self.unknown if p is None else parent(p) for p in pair)] for i, pair in enumerate(PARENTS)
        ]

    def record_frame(self) -> pl.DataFrame:
        columns = pl.DataFrame(self.records(), schema=list(RECORD_COLUMNS), orient="row")
        return columns.with_columns(pl.col("age").cast(pl.Int64), pl.col("milk", "fat").cast(pl.Float64, strict=False))

    def pedigree_frame(self) -> pl.DataFrame:
        return pl.DataFrame(self.pedigree(), schema=list(PEDIGREE_COLUMNS), orient="row")


PLAIN = Spelling()
NUMBERED = Spelling(lambda i: str(i + 1))


def comma(number):
    return number.replace(".", ",")


def grouped(mark, point):
    """A function that writes a number with a mark between thousands."""

    def write(number):
        whole, dot, decimals = number.partition(".")
        return f"{int(whole):,}".replace(",", mark) + point * bool(dot) + decimals

    return write


def delimited(rows: Cells, header: Sequence[str] | None = None, separator: str = ",", end: str = "\n") -> str:
    lines = [separator.join(row) for row in ([] if header is None else [header]) + list(rows)]
    return end.join(lines) + end


@dataclass
class Case:
    """Tables as text, bytes or frames (None: the plain ones), and what is right.

    expected: 'same' breeding values and no warning, 'told' (refused, or a warning), 'refused'; more than one divided by
    '|'.
    """

    name: str
    expected: str = "same"
    records: object = None
    pedigree: object = None
    spelling: Spelling = PLAIN
    data: dict = field(default_factory=dict)
    endings: tuple[str, str] = ("csv", "csv")

    def config(self, folder: Path) -> dict:
        tables = {}
        plain = (
            delimited(self.spelling.records(), RECORD_COLUMNS),
            delimited(self.spelling.pedigree(), PEDIGREE_COLUMNS),
        )
        for key, table, text, ending in zip(
            ("phenotypes", "pedigree"), (self.records, self.pedigree), plain, self.endings, strict=True
        ):
            table = text if table is None else table
            if isinstance(table, (str, bytes)):
                path = folder / f"{key}.{ending}"
                path.write_bytes(table if isinstance(table, bytes) else table.encode())
                table = str(path)
            tables[key] = table
        return {
            "name": "spelled",
            "data": {**tables, **self.data},
            "traits": ["milk", "fat"],
            "model": {
                "fixed": {"herd": {}, "sex": {}, "age": {"kind": "covariate"}},
                "random": {"genetic": {"relationship": "pedigree", "level": "animal"}, "pe": {"level": "animal"}},
            },
            "variances": {"mode": "fixed", "genetic": G, "pe": PE, "residual": R},
            "sampler": {"method": "blup"},
        }


_SOLVED: dict[tuple, np.ndarray] = {}  # by what a design has: most spellings give the same one


def breeding_values(prepared) -> dict[str, np.ndarray]:
    """Id -> breeding value of each trait, by the dense equations."""
    design = prepared.design
    k = [t.name for t in design.terms].index("genetic")
    kin, effects = design.terms[k].relationship.relatives, [e for t in design.terms for e in t.effects]
    of_effects = [array for e in effects for array in (e.level, e.covariates)]
    arrays = [design.y, design.weight, kin.sire, kin.dam, kin.dinv, *of_effects]
    key = tuple(None if a is None else a.tobytes() for a in arrays)
    if key not in _SOLVED:
        _SOLVED[key] = _solve_dense(design)[k]
    return dict(zip(prepared.levels[k].ids.to_list(), _SOLVED[key], strict=True))


def _solve_dense(design) -> list[np.ndarray]:
    variances = {"genetic": np.array(G), "pe": np.array(PE)}
    equations = dense.build(design, [variances.get(t.name) for t in design.terms], np.array(R))
    return equations.theta(equations.solution)


def solve(case: Case, folder: Path, right: np.ndarray | None) -> tuple[str, str]:
    """('same', 'told', 'refused' or 'different', what was said); right: (N_ANIMALS, 2) breeding values."""
    try:
        prepared = prepare(load_config(case.config(folder)))
    except (MmgibbsError, PedigreeError) as error:
        return "refused", str(error)
    if prepared.warnings:
        return "told", "\n".join(prepared.warnings)
    values = breeding_values(prepared)
    if sorted(values) != sorted(case.spelling.ids):
        return "different", f"animals {sorted(values)}"
    found = np.array([values[i] for i in case.spelling.ids])
    if right is not None and not np.allclose(found, right, rtol=1e-6, atol=1e-6 * np.abs(right).max(0)):
        return "different", f"breeding values differ by up to {np.abs(found - right).max(0)}"
    return "same", ""
