"""A small herd, as clean tables and as three farms export them, with everything that spreadsheets and hands spoil."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

N = 300
BAD_ID = 276000912345678 + 41  # written by a spreadsheet as 2,76001E+14
IDS = [str(276000912345678 + i) for i in range(N)]


@dataclass(frozen=True)
class Style:
    """How a country's office writes tables."""

    language: str
    separator: str
    decimal: str
    encoding: str
    pedigree_names: tuple[str, ...]
    record_names: tuple[str, ...]
    date: str  # strftime
    unknown: str
    missing: tuple[str, ...]
    typing_errors: tuple[str, ...]  # as 21O,5
    place: str  # a word beyond ASCII
    line_end: str = "\r\n"


STYLES = {
    "German": Style(
        "German", ";", ",", "windows-1252", ("Tier", "Vater", "Mutter", "Geburtsdatum", "Größe"),
        ("Tier", "Geschlecht", "Herde", "Geburtsdatum", "weaning_weight", "Bemerkung"), "%d.%m.%Y", "99999999",
        ("#NV", "k.A.", "-"), ("21O,5", "198,5 kg"), "Höfe",
    ),
    "French": Style(
        "French", ";", ",", "windows-1252", ("animal", "père", "mère", "naissance", "élevage"),
        ("animal", "sexe", "troupeau", "naissance", "weaning_weight", "remarque"), "%d/%m/%Y", "999999",
        ("#N/A", "n/a", "."), ("2l0,5", "198,5kg"), "Élevage",
    ),
    "English": Style(
        "English", ",", ".", "utf-8-sig", ("id", "sire", "dam", "birth_date", "note"),
        ("id", "sex", "herd", "birth_date", "weaning_weight", "note"), "%Y-%m-%d", "99999999",
        ("#N/A", ".", "-", "n/a"), ("21O.5", "198.5 kg"), "Café", "\n",
    ),
}  # fmt: skip


@dataclass
class Export:
    """Lines of both tables, the first the names; and what must be changed: (table, line, wrong cell, right cell)."""

    style: Style
    pedigree: list[list[str]] = field(default_factory=list)
    records: list[list[str]] = field(default_factory=list)
    faults: list[tuple[str, int, str, str]] = field(default_factory=list)
    deleted: list[tuple[str, int]] = field(default_factory=list)  # lines that must go

    def write(self, folder: Path) -> tuple[Path, Path]:
        paths = []
        for name, rows in (("records.csv", self.records), ("pedigree.csv", self.pedigree)):
            text = "".join(self.style.separator.join(row) + self.style.line_end for row in rows)
            (folder / name).write_bytes(text.encode(self.style.encoding))
            paths.append(folder / name)
        return paths[0], paths[1]

    def correct(self) -> Export:
        """The tables after everything was changed that has to be."""
        tables = {"records": [list(r) for r in self.records], "pedigree": [list(r) for r in self.pedigree]}
        for table, line, wrong, right in self.faults:
            row = tables[table][line - 1]
            row[row.index(wrong)] = right
        gone = set(self.deleted)
        for table, rows in tables.items():
            tables[table] = [row for line, row in enumerate(rows, 1) if (table, line) not in gone]
        return Export(self.style, tables["pedigree"], tables["records"])


def herd() -> tuple[list[list[str]], list[list[str]]]:
    """Rows of the clean pedigree (id, sire, dam, birth) and of the records (id, sex, herd, birth, weight as 210.5)."""
    rng = np.random.default_rng(5)
    pedigree, records = [], []
    breeding_values = np.zeros(N)
    for i in range(N):
        day = np.datetime64("2010-01-01") + 9 * i + int(rng.integers(9))
        sire = dam = None
        if i >= 60:
            low = max(0, i - 160)
            parents = rng.choice(np.arange(low, i - 40), 2, replace=False)
            sire, dam = (int(p) // 2 * 2 for p in parents[:1]), (int(p) // 2 * 2 + 1 for p in parents[1:])
            sire, dam = next(sire), next(dam)
            if i % 11 == 0:
                dam = None
        known = [breeding_values[p] for p in (sire, dam) if p is not None]
        breeding_values[i] = sum(known) / 2 + 12 * rng.normal()
        names = [IDS[i], *("" if p is None else IDS[p] for p in (sire, dam)), str(day)]
        pedigree.append(names)
        if i >= 20:
            herd_of, sex = int(rng.integers(4)), "mf"[i % 2]
            weight = 215 + 8 * herd_of + 12 * (sex == "m") + breeding_values[i] + 15 * rng.normal()
            records.append([IDS[i], sex, f"H{herd_of}", str(day), f"{weight:.1f}"])
    return pedigree, records


def write_clean(folder: Path) -> tuple[Path, Path]:
    """The clean tables, with the weights that the exports have as missing left out."""
    pedigree, records = herd()
    records = [r for i, r in enumerate(records) if not _is_missing(i)]
    text = "\n".join(",".join(r) for r in [["id", "sex", "herd", "birth_date", "weaning_weight"], *records])
    (folder / "clean_records.csv").write_text(text + "\n")
    text = "\n".join(",".join(r) for r in [["id", "sire", "dam", "birth_date"], *pedigree])
    (folder / "clean_pedigree.csv").write_text(text + "\n")
    return folder / "clean_records.csv", folder / "clean_pedigree.csv"


def _is_missing(i: int) -> bool:
    """Records whose weight is a code for missing, or 0."""
    return i % 7 == 3 or i % 13 == 5


def export(language: str) -> Export:
    """What a farm of this language exports."""
    style = STYLES[language]
    pedigree, records = herd()
    out = Export(style)
    n_columns = len(style.pedigree_names)
    out.pedigree.append([*style.pedigree_names, "", ""])
    for i, (animal, sire, dam, birth) in enumerate(pedigree):
        row = [animal, sire or style.unknown, dam or style.unknown, _date(birth, style), "", "", ""]
        out.pedigree.append(row)
        if i % 60 == 7:
            out.pedigree.append(list(row))  # a copy
        if i % 75 == 20:
            out.pedigree.append([""] * (n_columns + 2))
        if i in (100, 150):  # rows that contradict the one above
            out.pedigree.append([animal, IDS[4 * i // 100], row[2], row[3], "", "", ""])
            out.deleted.append(("pedigree", len(out.pedigree)))
    out.records.append([*style.record_names, ""])
    spoiled = f"2{style.decimal}76001E+14"
    for i, (animal, sex, herd_of, birth, weight) in enumerate(records):
        cell = weight.replace(".", style.decimal)
        if i % 7 == 3:
            cell = style.missing[i % len(style.missing)]
        elif i % 13 == 5:
            cell = "0"
        row = [animal, sex, herd_of, _date(birth, style), cell, style.place if i == 200 else "", ""]
        out.records.append(row)
        line = len(out.records)
        if i in (30, 47):
            row[4] = style.typing_errors[i == 47]
            out.faults.append(("records", line, row[4], weight.replace(".", style.decimal)))
        if i == 60:
            row[4] = weight.replace(".", "")
            out.faults.append(("records", line, row[4], weight.replace(".", style.decimal)))
        if i in (21, 90):
            row[0] = spoiled
            out.faults.append(("records", line, spoiled, animal))
        if i % 50 == 9:
            out.records.append([""] * len(row))
    return out


def _date(birth: str, style: Style) -> str:
    return np.datetime64(birth).astype(object).strftime(style.date)
