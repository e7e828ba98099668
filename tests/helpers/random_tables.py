"""Tables at random for `mmgibbs init`, as breeders and growers keep them: a seed gives the same files each time."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from helpers.genotype_files import vcf_row, vcf_text
from helpers.genotypes import write_plink

IDS = (
    "{}", "{:05d}", "K{}", "DE/{}/2019", "Tier {}", "A.{}", "Kü{}é", "2020-01-{:03d}", "{}E5", "O'{}", "null{}",
    "x:{}", "#{}", "{}.5", "yes{}", "牛{}",
)  # fmt: skip
NAMES = (
    "{}", "{} (kg)", "{}/day", "my {}", "{}: total", "{}.1", "1{}", "{}_2019", "{} [%]", "é{}", "{}#", "{} & co", "*{}",
    "- {}",
)  # fmt: skip
WORDS = ("yes", "no", "null", "on", "1e5", "~", "true", "y", "n", "off", "NaN", "none", "0x1F", "1_000", "2019-01-01")
MISSING = ("", "NA", ".", "-99", "-9", "nan", "N/A", "-")
DATES = ("{y}-{m:02d}-{d:02d}", "{d:02d}.{m:02d}.{y}", "{m}/{d}/{y}", "{y}{m:02d}{d:02d}", "{d:02d}-Mar-{y}")
ANIMAL = ("animal", "id", "Animal ID", "ear tag", "calf", "Tier")


@dataclass
class RandomTables:
    """Files for `init`; kind: what they are, for messages."""

    records: Path
    pedigree: Path | None = None
    genotypes: Path | None = None
    kind: list[str] = field(default_factory=list)


class Herd:
    """Animals whose parents are older, an additive trait `u`, and births."""

    def __init__(self, rng: np.random.Generator, n: int) -> None:
        self.n, n_base = n, max(4, n // 5)
        self.male = rng.random(n) < 0.4
        self.male[:2] = True, False
        self.sire, self.dam = np.full(n, -1), np.full(n, -1)
        self.u = rng.standard_normal(n)
        males, females = np.flatnonzero(self.male), np.flatnonzero(~self.male)
        for i in range(n_base, n):
            some_sires, some_dams = males[males < i][-8:], females[females < i][-n // 3 :]
            self.sire[i] = rng.choice(some_sires) if rng.random() < 0.93 else -1
            self.dam[i] = rng.choice(some_dams) if rng.random() < 0.9 else -1
            parents = [self.u[p] if p >= 0 else 0.0 for p in (self.sire[i], self.dam[i])]
            self.u[i] = np.mean(parents) + rng.normal(0, 0.7)
        self.year = 2008 + (np.arange(n) * 10) // n


def write_random_tables(seed: int, folder: Path) -> RandomTables:
    """Write the tables of a seed into the folder: every fourth is a trial of lines, the others animals."""
    rng = np.random.default_rng([20, seed])
    return _write_trial(rng, folder) if seed % 4 == 3 else _write_animals(rng, folder)


def _pick(rng: np.random.Generator, values):
    return values[int(rng.integers(len(values)))]


def _write_animals(rng: np.random.Generator, folder: Path) -> RandomTables:
    n = int(_pick(rng, (12, 40, 90, 160, 300)))
    herd, write = Herd(rng, n), _pick(rng, IDS)
    ids = [write.format(i + 1) for i in range(n)]
    kind = [f"{n} animals", f"ids {write}"]
    unknown = _pick(rng, ("0", "", "NA", ".", "-9", "unknown"))
    name = lambda i: ids[i] if i >= 0 else unknown
    recorded = np.arange(n) if rng.random() < 0.5 else np.flatnonzero(np.arange(n) >= n // 4)
    if rng.random() < 0.2:
        recorded = recorded[~herd.male[recorded]]
    with_pedigree = rng.random() < 0.7
    rows = np.repeat(recorded, rng.integers(1, 4, len(recorded))) if rng.random() < 0.25 else recorded
    columns = {_pick(rng, ANIMAL): [ids[i] for i in rows]}
    if rng.random() < 0.3:
        columns |= {"sire": [name(herd.sire[i]) for i in rows], "dam": [name(herd.dam[i]) for i in rows]}
    columns |= _factors(rng, herd, rows) | _traits(rng, herd.u[rows], kind)
    columns |= _odd_columns(rng, len(rows))
    records = _write_records(rng, folder, columns, kind)
    tables = RandomTables(records, kind=kind)
    if with_pedigree:
        tables.pedigree = _write_pedigree(rng, folder, herd, ids, unknown, kind)
    if rng.random() < 0.4:
        tables.genotypes = _write_genotypes(rng, folder, herd, ids, rows, kind)
    return tables


def _factors(rng, herd: Herd, rows) -> dict:
    n = len(rows)
    factors = {
        "herd": [f"h{k}" for k in rng.integers(1, 6, n)],
        _pick(rng, ("sex", "Gender")): np.where(
            herd.male[rows], *_pick(rng, (("M", "F"), ("1", "2"), ("male", "female")))
        ),
        "year": herd.year[rows],
        "herd year": [f"{h}/{y}" for h, y in zip(rng.integers(1, 4, n), herd.year[rows], strict=True)],
        "age": np.round(rng.normal(200, 15, n), int(rng.integers(0, 3))),
        "pen": rng.integers(1, max(3, n // 6), n),
        _pick(rng, WORDS): _pick(rng, (rng.choice(["a", "b", "c"], n), rng.choice(list(WORDS), n))),
        "litter": [f"L{k}" for k in rng.integers(1, max(3, n // 4), n)],
        "parity": rng.integers(1, 5, n),
    }
    return {key: values for key, values in factors.items() if rng.random() < 0.4}


def _traits(rng, u: np.ndarray, kind: list[str]) -> dict:
    n = len(u)
    y = u + rng.standard_normal(n)
    what = str(_pick(rng, ("normal", "normal", "several", "binary", "yes", "ordinal", "words", "count", "censored")))
    kind.append(what)
    label = _pick(rng, NAMES) if rng.random() < 0.5 else "{}"
    weight = {label.format("weight"): np.round(40 + 4 * y, 2)}
    some = {
        "normal": weight,
        "several": weight | {"height": np.round(100 + 9 * y + rng.standard_normal(n), 1), "fat": np.round(y, 3)},
        "binary": {label.format("disease"): (y > 0.7).astype(int)},
        "yes": {label.format("pregnant"): np.where(y > 0.2, *_pick(rng, (("yes", "no"), ("dead", "alive"))))},
        "ordinal": {label.format("score"): np.digitize(y, [-1, 0, 1, 2]) + 1},
        "words": {label.format("ease"): np.array(["easy", "helped", "hard"])[np.digitize(y, [0.5, 1.5])]},
        "count": {label.format("n_eggs"): rng.poisson(np.exp(np.clip(1 + 0.4 * y, -3, 3)))},
        "censored": {
            label.format("survival days"): np.round(np.exp(6 + 0.4 * y)),
            "status": np.where(rng.random(n) < 0.3, "alive", "dead"),
        },
    }
    return some[what]


def _odd_columns(rng, n: int) -> dict:
    dates = _pick(rng, DATES)
    day = lambda k: datetime.date(2015, 1, 1) + datetime.timedelta(int(k))
    odd = {
        "breed": ["HF"] * n,
        "remarks": [""] * n,
        "comment": ["lame" if k % 17 == 0 else "" for k in range(n)],
        "birth date": [dates.format(y=t.year, m=t.month, d=t.day) for t in map(day, rng.integers(0, 2000, n))],
        "no": list(range(1, n + 1)),
        "farmer": rng.choice(["Jones", "Smith"], n),
        "constant": [3.5] * n,
        "almost constant": [1] * (n - 1) + [2],
        "lat": np.round(rng.normal(50, 1, n), 4),
    }
    return {key: values for key, values in odd.items() if rng.random() < 0.25}


def _write_records(rng, folder: Path, columns: dict, kind: list[str]) -> Path:
    separator = str(_pick(rng, (",", ",", ";", "\t")))
    missing = str(_pick(rng, MISSING))
    gaps = float(_pick(rng, (0, 0, 0.05, 0.2)))
    names = list(columns)
    cells = {key: [str(v) for v in values] for key, values in columns.items()}
    for key in names[1:]:
        if rng.random() < 0.6:
            lacks = rng.random(len(cells[key])) < gaps
            cells[key] = [missing if lack else cell for lack, cell in zip(lacks, cells[key], strict=True)]
    rows = [list(row) for row in zip(*cells.values(), strict=True)]
    if rng.random() < 0.15:
        rows += rows[:2]
        kind.append("rows twice")
    if rng.random() < 0.3:
        rows = [rows[k] for k in rng.permutation(len(rows))]
    if rng.random() < 0.15:
        order = rng.permutation(len(names))
        names, rows = [names[j] for j in order], [[row[j] for j in order] for row in rows]
    kind.append(f"missing {missing!r} in {gaps:.0%}; columns {names}")
    quote = lambda cell: f'"{cell}"' if separator in cell else cell
    text = "".join(separator.join(map(quote, row)) + "\n" for row in [names, *rows])
    path = folder / f"records.{'tsv' if separator == chr(9) else 'csv'}"
    path.write_text(text, encoding="utf-8")
    return path


def _write_pedigree(rng, folder: Path, herd: Herd, ids: list[str], unknown: str, kind: list[str]) -> Path:
    groups = rng.random() < 0.2
    write = lambda i, of: ids[of[i]] if of[i] >= 0 else unknown
    if groups:
        kind.append("groups of unknown parents")
        write = lambda i, of: ids[of[i]] if of[i] >= 0 else f"UPG_{1 + int(herd.year[i] > 2011)}"
    birth = str(_pick(rng, ("none", "year", "date", "gaps")))
    births = {
        "none": None,
        "year": [str(y) for y in herd.year],
        "date": [f"{datetime.date(2008, 1, 1) + datetime.timedelta(3650 * i // herd.n)}" for i in range(herd.n)],
        "gaps": [str(y) if i % 3 else "" for i, y in enumerate(herd.year)],
    }[birth]
    names = ["id", "sire", "dam", *([] if births is None else ["birth_year" if birth != "date" else "birth date"])]
    drop = set() if groups or rng.random() < 0.8 else set(range(3))  # parents without rows, animals that are absent
    rows = [
        [ids[i], write(i, herd.sire), write(i, herd.dam), *([] if births is None else [births[i]])]
        for i in range(herd.n)
        if i not in drop
    ]
    kind.append(f"pedigree, births {birth}, unknown {unknown!r}{', without 3 animals' if drop else ''}")
    path = folder / "pedigree.csv"
    path.write_text("".join(",".join(row) + "\n" for row in [names, *rows]), encoding="utf-8")
    return path


def _write_genotypes(rng, folder: Path, herd: Herd, ids: list[str], rows, kind: list[str]) -> Path:
    which = str(_pick(rng, ("all", "60", "sires", "recorded", "ten")))
    every = {
        "all": np.arange(herd.n),
        "60": rng.permutation(herd.n)[:60],
        "sires": np.unique(herd.sire[herd.sire >= 0]),
        "recorded": np.unique(rows),
        "ten": rng.permutation(np.unique(rows))[:10],
    }[which]
    return _write_snps(rng, folder, [ids[i] for i in every], kind, which)


def _write_snps(rng, folder: Path, ids: list[str], kind: list[str], which: str) -> Path:
    p = int(_pick(rng, (8, 40, 200)))
    shares = rng.uniform(0.05, 0.95, p)
    codes = rng.binomial(2, shares[:, None], (p, len(ids))).astype(np.uint8)
    codes[rng.random(codes.shape) < 0.02] = 3
    codes[0] = 0
    form = str(_pick(rng, ("csv", "blupf90", "plink", "vcf", "numbers.txt")))
    if any(" " in i for i in ids) and form in ("blupf90", "plink", "numbers.txt"):
        form = "csv"
    kind.append(f"{form} genotypes of {which}, {p} SNPs")
    snps = [f"m{j}" for j in range(p)]
    path = folder / {"plink": "snps.bed", "vcf": "snps.vcf", "csv": "snps.csv"}.get(form, "snps.txt")
    if form == "plink":
        write_plink(path, codes, ids, snps, [1 + j // 20 for j in range(p)], [100 * (j + 1) for j in range(p)])
    elif form == "vcf":
        text = np.array(["0/0", "0/1", "1/1", "./."])[codes]
        path.write_text(vcf_text([vcf_row(1 + j // 20, 100 * (j + 1), s, text[j]) for j, s in enumerate(snps)], ids))
    elif form == "blupf90":
        digits = np.array(list("0125"))[codes]
        path.write_text("".join(f"{i:<14} {''.join(digits[:, k])}\n" for k, i in enumerate(ids)))
    else:
        mark, digits = ("," if form == "csv" else " "), np.array(["0", "1", "2", "NA"])[codes]
        rows = [["animal", *snps], *([i, *digits[:, k]] for k, i in enumerate(ids))]
        path.write_text("".join(mark.join(row) + "\n" for row in rows))
    return path


def _write_trial(rng: np.random.Generator, folder: Path) -> RandomTables:
    n_lines, n_sites = int(_pick(rng, (5, 12, 25, 60))), int(_pick(rng, (1, 1, 2, 4, 8)))
    n_replicates, n_blocks = int(_pick(rng, (1, 2, 3))), int(_pick(rng, (0, 3)))
    write = _pick(rng, IDS)
    ids = [write.format(k + 1) for k in range(n_lines)]
    kind = [f"trial of {n_lines} lines ({write}), {n_sites} sites, {n_replicates} replicates, {n_blocks} blocks"]
    value, plots = rng.standard_normal(n_lines), []
    lost = (int(rng.integers(n_sites)), n_replicates - 1) if n_replicates > 1 and rng.random() < 0.4 else None
    for site in range(n_sites):
        for replicate in range(n_replicates):
            order = rng.permutation(n_lines)
            if (site, replicate) == lost:
                continue
            if rng.random() < 0.3:
                order = order[rng.random(n_lines) < 0.8]
            for place, line in enumerate(order):
                plots.append((site, replicate, place % max(n_blocks, 1), place % 5, place // 5 + 20 * replicate, line))
    site, replicate, block, row, column, line = np.array(plots).T
    y = value[line] + 0.5 * rng.standard_normal(n_sites)[site] + rng.standard_normal(len(line))
    columns: dict = {_pick(rng, ("line", "genotype", "variety", "gen", "entry")): [ids[k] for k in line]}
    if n_sites > 1 or rng.random() < 0.2:
        sites = _pick(rng, (["s{}", "site/{}", "no {}", "{}", "x: {}"]))
        columns[_pick(rng, ("site", "location", "env"))] = [sites.format(k + 1) for k in site]
    if n_replicates > 1 or rng.random() < 0.2:
        columns[_pick(rng, ("rep", "replicate"))] = replicate + 1
    if n_blocks:
        columns["block"] = block + 1
    if rng.random() < 0.4:
        columns |= {"row": row + 1, "col": column + 1}
    if rng.random() < 0.2:
        columns["plot"] = np.arange(len(line)) + 100
    columns |= _traits(rng, y, kind) | _odd_columns(rng, len(line))
    if lost is not None:
        kind.append(f"site {lost[0] + 1} without replicate {lost[1] + 1}")
    tables = RandomTables(_write_records(rng, folder, columns, kind), kind=kind)
    if rng.random() < 0.3:
        some = ids if rng.random() < 0.5 else ids[: max(3, n_lines // 2)]
        tables.genotypes = _write_snps(rng, folder, some, kind, f"{len(some)} lines")
    return tables
