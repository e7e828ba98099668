"""Makes the small data sets of data_samples/ that `mmgibbs simulate` does not: sheep/, lines/, selfed/ and markers/. Run it from
the repository root:

python data_samples/make_samples.py

Everything is simulated; the true parameters are written beside the data in PROVENANCE.txt.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # the repository's own packages, installed or not

from mmgibbs.pedigree.simulate import Population, simulate_pedigree  # noqa: E402

SEED = 7


def legendre(age):
    """(n, 2) the first two normalised Legendre polynomials of age on [1, 6]: sqrt(1/2), sqrt(3/2) x."""
    x = 2 * (age - 1) / 5 - 1
    return np.stack([np.full(age.shape, np.sqrt(0.5)), np.sqrt(1.5) * x], axis=1)


def matrix(values) -> str:
    return "[" + ", ".join("[" + ", ".join(f"{v:g}" for v in row) + "]" for row in values) + "]"


def sheep(directory: Path, seed: int = SEED, n_animals: int = 2000) -> None:
    """Ewes of four flocks, shorn every year: repeated records, a trait that changes with age, measurements of unequal
    precision.
    """
    # kg^2, micron^2, kg^2 on the Legendre scale: fleece weight, fibre diameter, body weight (level, slope)
    genetic = np.diag([0.20, 1.2, 24.0, 4.0])
    genetic[2, 3] = genetic[3, 2] = 4.0
    permanent = np.diag([0.12, 0.5, 16.0, 4.0])
    permanent[2, 3] = permanent[3, 2] = 2.0
    residual = np.array([0.30, 4.0, 9.0])  # fibre diameter: of one staple
    origins, origin_effect = np.array(["hill", "lowland"]), np.array([-0.4, 0.4])  # kg fleece weight

    rng = np.random.default_rng([seed, 1])
    population = Population(
        years=12, first_year=2008, generation_interval=3.5, herd_size=30.0, calving_rate=1.2,
        ai_share=0.15, cows_per_bull=20.0, natural_service_age=3.5, last_age=8,
    )  # fmt: skip
    flock_book = simulate_pedigree(n_animals, seed, population, genetic)
    n = flock_book.n_animals
    sire, dam, flock, birth = flock_book.sire.copy(), flock_book.dam, flock_book.herd, flock_book.birth
    lambs = dam >= 0
    sire[lambs & (rng.random(n) < 0.05)] = -1
    # Founders, and rams that were not recorded, are of their flock's origin.
    origin = (np.arange(flock.max() + 1) % 2)[flock]
    share = np.zeros(n)  # expected share of 'lowland' genes
    for i in range(n):
        parents = [share[p] if p >= 0 else float(origin[i]) for p in (sire[i], dam[i])]
        share[i] = sum(parents) / 2
    u = flock_book.breeding_values
    fleece = u[:, 0] + (1 - share) * origin_effect[0] + share * origin_effect[1]
    environment = rng.standard_normal((n, 4)) @ np.linalg.cholesky(permanent).T

    ewes = np.flatnonzero((flock_book.sex == 0) & lambs)
    years_in_flock = 1 + rng.binomial(5, 0.55, ewes.size)  # shorn at ages 1 .. that
    animal = np.repeat(ewes, years_in_flock)
    age = np.concatenate([np.arange(1, k + 1) for k in years_in_flock])
    year = birth[animal] + age
    kept = (year <= birth.max()) & (rng.random(animal.size) < 0.95)
    animal, age, year = animal[kept], age[kept], year[kept]
    groups, group = np.unique(np.stack([flock[animal], year]), axis=1, return_inverse=True)
    r = animal.size
    group_effect = rng.standard_normal((groups.shape[1], 3)) * [0.35, 0.7, 2.5]
    day = 150 + rng.integers(0, 8, groups.shape[1])[group] + rng.integers(0, 15, r)  # shorn over two weeks
    slope = np.array([0.010, 0.016, 0.012, 0.020])  # kg fleece per day of growth, by flock
    staples = rng.integers(1, 6, r)
    phi = legendre(age)
    fleece_weight = (
        4.2 + group_effect[group, 0] + 0.55 * (age - 1) - 0.09 * (age - 1) ** 2 + slope[flock[animal] % 4] * (day - 160)
        + fleece[animal] + environment[animal, 0] + np.sqrt(residual[0]) * rng.standard_normal(r)
    )  # fmt: skip
    fibre = (
        20.5 + group_effect[group, 1] + 0.25 * (age - 1)
        + u[animal, 1] + environment[animal, 1] + np.sqrt(residual[1] / staples) * rng.standard_normal(r)
    )  # fmt: skip
    body = (
        52.0 + group_effect[group, 2] + 6.0 * (age - 1) - 0.8 * (age - 1) ** 2
        + (phi * (u[animal, 2:] + environment[animal, 2:])).sum(axis=1) + np.sqrt(residual[2]) * rng.standard_normal(r)
    )  # fmt: skip

    ids = np.array(
        [f"{y}-{i - first + 1:03d}" for i, (y, first) in enumerate(zip(birth, np.searchsorted(birth, birth)))]
    )
    names = [*ids, None]  # code -1 is the last
    unknown = (sire < 0) | (dam < 0)
    pedigree = {
        "animal": ids,
        "sire": [names[s] for s in sire],
        "dam": [names[d] for d in dam],
        "birth_year": birth,
        "origin": [origins[o] if u else None for o, u in zip(origin, unknown)],
    }
    records = {
        "animal": ids[animal],
        "flock": [f"F{f + 1}" for f in flock[animal]],
        "flock_year": [f"F{f + 1}-{y}" for f, y in zip(flock[animal], year)],
        "age": age,
        "shearing_day": day,
        "fleece_weight": np.round(fleece_weight, 2),
        "staples": staples,
        "fibre_diameter": np.round(fibre, 2),
        "body_weight": np.round(body, 1),
    }
    directory.mkdir(exist_ok=True)
    pl.DataFrame(pedigree).write_csv(directory / "pedigree.csv")
    pl.DataFrame(records).write_csv(directory / "shearings.csv")
    (directory / "PROVENANCE.txt").write_text(
        f"""Simulated sheep; no animal in it ever lived.
Made by: python data_samples/make_samples.py (seed {seed}, NumPy {np.__version__})
{n} animals in {flock.max() + 1} flocks, {r} shearings of {np.unique(animal).size} ewes.

pedigree.csv    animal, sire, dam (empty: unknown), birth_year, origin (of the unknown parents, where one is unknown)
shearings.csv   one row per ewe and year: flock, flock_year, age (years), shearing_day (day of the year), fleece_weight (kg),
                staples (measured), fibre_diameter (micron, mean of the staples), body_weight (kg)

True parameters
fleece weight:   genetic {genetic[0, 0]:g}, permanent environment {permanent[0, 0]:g}, residual {residual[0]:g} kg^2; +0.55 a - 0.09 a^2 with a = age - 1;
                 per shearing day {", ".join(f"{s:g}" for s in slope[: flock.max() + 1])} kg in flocks F1 to F{flock.max() + 1}; origin hill {origin_effect[0]:g}, lowland +{origin_effect[1]:g} kg
fibre diameter:  genetic {genetic[1, 1]:g}, permanent environment {permanent[1, 1]:g}, residual {residual[1]:g} micron^2 per staple; +0.25 per year of age
body weight:     genetic {matrix(genetic[2:, 2:])}, permanent environment {matrix(permanent[2:, 2:])} on normalised Legendre polynomials of age on [1, 6],
                 residual {residual[2]:g} kg^2; +6 a - 0.8 a^2
""",
        encoding="utf-8",
    )


def lines(directory: Path, seed: int = SEED, n_lines: int = 60) -> None:
    """Inbred lines in a field trial, related as their markers say: a relationship matrix of the user's own."""
    variance, residual = 0.50, 0.40  # (t/ha)^2
    rng = np.random.default_rng([seed, 2])
    families = 6
    frequency = np.clip(rng.beta(1, 1, 300)[None, :] + 0.25 * rng.standard_normal((families, 300)), 0.02, 0.98)
    family = np.arange(n_lines) % families
    markers = 2.0 * (rng.random((n_lines, 300)) < frequency[family])
    centred = markers - markers.mean(axis=0)
    kinship = centred @ centred.T
    kinship = kinship / np.diag(kinship).mean() + 0.05 * np.eye(n_lines)
    merit = np.sqrt(variance) * np.linalg.cholesky(kinship) @ rng.standard_normal(n_lines)
    names = np.array([f"L{i + 1:02d}" for i in range(n_lines)])
    inverse = np.linalg.inv(kinship)
    row, column = np.tril_indices(n_lines)
    directory.mkdir(exist_ok=True)
    with open(directory / "kinship_inverse.txt", "w", encoding="utf-8") as file:
        file.writelines(f"{names[i]} {names[j]} {inverse[i, j]:.8g}\n" for i, j in zip(row, column))
    block = np.repeat(np.arange(4), n_lines)
    line = np.tile(np.arange(n_lines), 4)
    grown = rng.random(block.size) < 0.92
    block, line = block[grown], line[grown]
    block_effect = np.array([0.0, 0.4, -0.3, 0.2])
    yields = 6.5 + block_effect[block] + merit[line] + np.sqrt(residual) * rng.standard_normal(block.size)
    pl.DataFrame({"line": names[line], "block": block + 1, "yield": np.round(yields, 2)}).write_csv(
        directory / "trial.csv"
    )
    (directory / "PROVENANCE.txt").write_text(
        f"""A simulated field trial; none of it was grown.
Made by: python data_samples/make_samples.py (seed {seed}, NumPy {np.__version__})
{n_lines} inbred lines of {families} families, {block.size} plots in 4 blocks.

trial.csv             line, block, yield (t/ha)
kinship_inverse.txt   inverse of the relationship matrix of the lines, lower triangle: line line value
                      (K = ZZ' over its mean diagonal + 0.05 I, Z the centred genotypes at 300 simulated markers)

True parameters: line variance {variance:g} (times K), residual {residual:g} (t/ha)^2, mean 6.5, blocks {", ".join(f"{b:g}" for b in block_effect)}
""",
        encoding="utf-8",
    )


def selfed(directory: Path, seed: int = SEED, crosses: int = 60, loci: int = 400) -> None:
    """A breeding programme of a selfing crop: lines by single-seed descent from crosses of lines, some F1 hybrids.

    Genes are dropped: every generation of selfing is a plant, of which the pedigree file shows the last alone.
    """
    variance, residual = 0.30, 0.45  # (t/ha)^2, of the base population and of a plot
    rng = np.random.default_rng([seed, 4])
    gamete = lambda plant: np.where(rng.random(loci) < 0.5, plant[0], plant[1])
    names, parents, generations, plants = [], [], [], []

    def add(name: str, plant, mother: int, father: int, g: int) -> None:
        for _ in range(g):
            plant = np.stack([gamete(plant), gamete(plant)])
        names.append(name)
        parents.append((mother, father))
        generations.append(g)
        plants.append(plant)

    for i in range(16):  # landraces, each a line of many generations; two of them kept as they were collected
        add(f"LR{i + 1:02d}", rng.integers(0, 2, (2, loci)), -1, -1, 0 if i > 13 else int(rng.integers(5, 9)))
    for cycle in range(3):
        first = max(0, len(names) - 90)
        for c in range(crosses // 3):
            mother, father = rng.choice(np.arange(first, len(names)), 2, replace=False)
            cross = np.stack([gamete(plants[mother]), gamete(plants[father])])
            for line in range(5):
                add(f"C{cycle + 1}-{c + 1:02d}-{line + 1}", cross, mother, father, int(rng.integers(3, 7)))
                cross = np.stack([gamete(plants[mother]), gamete(plants[father])])
            if c % 4 == 0:
                add(f"C{cycle + 1}-{c + 1:02d}-F1", cross, mother, father, 0)
    copies = np.array(plants).sum(axis=1) - 1.0
    merit = copies @ rng.standard_normal(loci) * np.sqrt(variance / (loci / 2))
    n = len(names)
    plot = np.tile(np.arange(n), 3)
    block = np.repeat(np.arange(3), n)
    grown = (rng.random(plot.size) < 0.9) & (plot >= 16)
    plot, block = plot[grown], block[grown]
    block_effect = np.array([0.0, 0.5, -0.4])
    yields = 5.8 + block_effect[block] + merit[plot] + np.sqrt(residual) * rng.standard_normal(plot.size)
    directory.mkdir(exist_ok=True)
    label = lambda code: "" if code < 0 else names[code]
    pl.DataFrame(
        {
            "line": names,
            "mother": [label(m) for m, _ in parents],
            "father": [label(f) for _, f in parents],
            "selfings": generations,
        }
    ).write_csv(directory / "pedigree.csv")
    named = np.array(names)
    pl.DataFrame({"line": named[plot], "block": block + 1, "yield": np.round(yields, 2)}).write_csv(
        directory / "trial.csv"
    )
    (directory / "PROVENANCE.txt").write_text(
        f"""A simulated breeding programme; none of it was grown.
Made by: python data_samples/make_samples.py (seed {seed}, NumPy {np.__version__})
16 landraces, {n - 16} lines and F1 hybrids of {crosses} crosses in three cycles, {plot.size} plots in 3 blocks; {loci} unlinked loci, genes dropped
through every generation.

pedigree.csv   line, mother, father, selfings (generations of selfing after the cross, by single-seed descent)
trial.csv      line, block, yield (t/ha)

True parameters: line variance {variance:g} (of the base population, not inbred), residual {residual:g} (t/ha)^2, mean 5.8,
blocks {", ".join(f"{b:g}" for b in block_effect)}
""",
        encoding="utf-8",
    )


def markers(directory: Path, seed: int = SEED, n: int = 600, p: int = 60) -> None:
    """Calves with genotypes at single-nucleotide markers: a weight, a disease, an ease of birth, an illness that
    differs between herds.
    """
    rng = np.random.default_rng([seed, 3])
    genotypes = rng.binomial(2, rng.uniform(0.1, 0.9, p), (n, p))
    effect = np.zeros(p)
    effect[[4, 17, 30, 41]] = 6.0, -4.0, 5.0, 3.0
    weight = 240 + genotypes @ effect + 12 * rng.standard_normal(n)
    liability = np.zeros(p)
    liability[[8, 22, 47]] = 0.8, -0.9, 0.7
    centred = genotypes - genotypes.mean(axis=0)
    disease = rng.random(n) < 1 / (1 + np.exp(1.0 - 1.7 * centred @ liability))  # close to a probit with these effects
    size, age = rng.standard_normal(n), rng.integers(2, 10, n)
    against_easy = np.stack([-0.5 + 0.9 * size - 0.2 * (age - 5), -2.0 + 1.6 * size - 0.5 * (age - 5)], axis=1)
    odds = np.exp(np.column_stack([against_easy, np.zeros(n)]))  # assisted, difficult, easy
    place = (odds / odds.sum(axis=1, keepdims=True)).cumsum(axis=1)
    ease = np.array(["assisted", "difficult", "easy"])[(rng.random(n)[:, None] > place).sum(axis=1)]
    herd = rng.choice(30, n, p=rng.dirichlet(np.full(30, 4.0)))
    by_herd = (
        np.array([-0.8, 0.5]) + rng.standard_normal((30, 2)) @ np.linalg.cholesky(np.array([[0.6, 0.1], [0.1, 0.2]])).T
    )
    days = np.round(rng.uniform(-2, 2, n), 2)  # of colostrum less than usual
    ill = rng.random(n) < 1 / (1 + np.exp(-(by_herd[herd, 0] + by_herd[herd, 1] * days)))
    yes = np.array(["no", "yes"])
    columns = {
        "calf": [f"C{i + 1:03d}" for i in range(n)],
        "herd": [f"H{h + 1:02d}" for h in herd],
        "weight": np.round(weight, 1),
        "disease": yes[disease.astype(int)],
        "birth": ease,
        "calf_size": np.round(size, 2),
        "dam_age": age,
        "ill": yes[ill.astype(int)],
        "colostrum": days,
    }
    columns |= {f"snp_{j + 1:02d}": genotypes[:, j] for j in range(p)}
    directory.mkdir(exist_ok=True)
    pl.DataFrame(columns).write_csv(directory / "calves.csv")
    named = lambda b: ", ".join(f"snp_{j + 1:02d} {v:g}" for j, v in enumerate(b) if v)
    (directory / "PROVENANCE.txt").write_text(
        f"""Simulated calves; none of them ever lived.
Made by: python data_samples/make_samples.py (seed {seed}, NumPy {np.__version__})
{n} calves of 30 herds, genotypes at {p} independent markers (0, 1, 2 copies).

calves.csv   calf, herd, weight (kg), disease, birth (easy, assisted, difficult), calf_size (SD), dam_age (years), ill, colostrum (litres
             less than usual), snp_01 ... snp_{p:02d}

True parameters
weight (kg a copy): {named(effect)}; residual variance 144
disease (probit a copy, about): {named(liability)}
birth, log odds against easy: assisted -0.5 + 0.9 calf_size - 0.2 (dam_age - 5); difficult -2 + 1.6 calf_size - 0.5 (dam_age - 5)
ill, log odds by herd: intercept N(-0.8, 0.6), slope on colostrum N(0.5, 0.2), covariance 0.1
""",
        encoding="utf-8",
    )


def pigs(directory: Path, seed: int = SEED, litters: int = 260, litter_size: int = 6) -> None:
    """Growing pigs in two housings, which differ in how much their records scatter."""
    housings = ("indoor", "outdoor")
    genetic = np.array([[1600.0, 14.0], [14.0, 1.2]])  # daily gain (g/day)^2, backfat mm^2
    residual = np.array([[[2500.0, 12.0], [12.0, 1.5]], [[6400.0, 50.0], [50.0, 3.0]]])
    rng = np.random.default_rng([seed, 4])
    boars, sows = 40, 200
    founders, n = boars + sows, litters * litter_size
    sire, dam = rng.integers(0, boars, litters), boars + rng.integers(0, sows, litters)
    litter = np.repeat(np.arange(litters), litter_size)
    root = np.linalg.cholesky(genetic)
    of_founders = rng.standard_normal((founders, 2)) @ root.T
    mendelian = rng.standard_normal((n, 2)) @ root.T * np.sqrt(0.5)
    u = (of_founders[sire] + of_founders[dam])[litter] / 2 + mendelian
    batch, housing = np.sort(rng.integers(0, 8, litters))[litter], (rng.random(litters) < 0.45).astype(int)[litter]
    male = rng.integers(0, 2, n)
    batch_effect = rng.standard_normal((8, 2)) * [35.0, 0.6]
    mean = (
        np.array([880.0, 12.0]) + batch_effect[batch] + housing[:, None] * [-40.0, -1.0] + male[:, None] * [60.0, -1.5]
    )
    e = np.einsum("rtu,ru->rt", np.linalg.cholesky(residual)[housing], rng.standard_normal((n, 2)))
    gain, backfat = (mean + u + e).T
    scanned = rng.random(n) < 0.7
    ids = [*(f"B{i + 1:02d}" for i in range(boars)), *(f"S{i + 1:03d}" for i in range(sows))]
    pig = [f"P{i + 1:04d}" for i in range(n)]
    directory.mkdir(exist_ok=True)
    pl.DataFrame(
        {
            "animal": [*ids, *pig],
            "sire": [None] * founders + [ids[s] for s in sire[litter]],
            "dam": [None] * founders + [ids[d] for d in dam[litter]],
        }
    ).write_csv(directory / "pedigree.csv")
    pl.DataFrame(
        {
            "animal": pig,
            "batch": batch + 1,
            "housing": [housings[h] for h in housing],
            "sex": ["male" if m else "female" for m in male],
            "daily_gain": np.round(gain).astype(int),
            "backfat": [round(float(b), 1) if s else None for b, s in zip(backfat, scanned)],
        }
    ).write_csv(directory / "growth.csv")
    (directory / "PROVENANCE.txt").write_text(
        f"""Simulated pigs; none of them ever grew.
Made by: python data_samples/make_samples.py (seed {seed}, NumPy {np.__version__})
{n} pigs of {litters} litters by {boars} boars and {sows} sows, all of the boars and sows unrelated.

pedigree.csv   animal, sire, dam (empty: unknown)
growth.csv     animal, batch, housing, sex, daily_gain (g/day), backfat (mm; empty: not scanned)

True parameters (order: daily gain, backfat)
genetic {matrix(genetic)}
residual indoor {matrix(residual[0])}, outdoor {matrix(residual[1])}
housing outdoor -40 g/day, -1 mm; males +60 g/day, -1.5 mm
""",
        encoding="utf-8",
    )


def single_step(directory: Path, genomic: Path = HERE / "genomic", last_years: int = 2) -> None:
    """Of the animals of genomic/, genotypes of the bulls with progeny and of the youngest: a herd book of which a part is
    genotyped.
    """
    pedigree = pl.read_csv(genomic / "pedigree.csv")
    young = pl.col("birth_year") > pedigree["birth_year"].max() - last_years
    chosen = pedigree.filter(pl.col("animal").is_in(pedigree["sire"].drop_nulls().unique().implode()) | young)["animal"]
    people = (genomic / "genotypes.fam").read_text().splitlines()
    snps = (genomic / "genotypes.bim").read_text()
    at = {line.split()[1]: i for i, line in enumerate(people)}
    places = [at[animal] for animal in chosen]
    content = np.fromfile(genomic / "genotypes.bed", np.uint8)
    rows = content[3:].reshape(snps.count("\n"), -1)
    codes = ((rows[:, :, None] >> np.array([0, 2, 4, 6], np.uint8)) & 3).reshape(len(rows), -1)[:, places]
    codes = np.pad(codes, ((0, 0), (0, -len(places) % 4))).reshape(len(rows), -1, 4)
    packed = (codes << np.array([0, 2, 4, 6], np.uint8)).sum(axis=2, dtype=np.uint8)
    directory.mkdir(exist_ok=True)
    (directory / "genotypes.bed").write_bytes(content[:3].tobytes() + packed.tobytes())
    (directory / "genotypes.bim").write_text(snps)
    (directory / "genotypes.fam").write_text("".join(people[i] + "\n" for i in places))
    note = (genomic / "PROVENANCE.txt").read_text()
    seed = note.split("--seed ")[1].split()[0]
    (directory / "PROVENANCE.txt").write_text(
        f"""Simulated beef cattle; no animal in it ever lived.
Made by: python data_samples/make_samples.py, from ../genomic (seed {seed})

genotypes.bed  {len(rows):,} SNPs of {len(places)} animals of ../genomic, with .bim and .fam: the bulls with progeny, and those born in
               the last {last_years} years. Pedigree and records are those of ../genomic.

True parameters: as in ../genomic/PROVENANCE.txt
"""
    )


if __name__ == "__main__":
    pigs(HERE / "pigs")
    sheep(HERE / "sheep")
    lines(HERE / "lines")
    selfed(HERE / "selfed")
    markers(HERE / "markers")
    single_step(HERE / "single_step")
