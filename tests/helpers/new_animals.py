"""A small herd in which the youngest animals are genotyped after the evaluation: tables, and runs of them."""

import numpy as np
import polars as pl

import mmgibbs

N, YOUNG, SNPS = 120, 12, 90
CHROMOSOMES = 5


class Herd:
    """Animals a0 ... with genotypes by gene dropping; the last YOUNG have no record."""

    def __init__(self, folder, seed=4, traits=("gain",)):
        rng = np.random.default_rng(seed)
        self.folder, self.traits = folder, traits
        self.ids = [f"a{i}" for i in range(N)]
        self.sire, self.dam = np.full(N, -1), np.full(N, -1)
        haplotypes = np.zeros((N, 2, SNPS), int)
        for i in range(N):
            if i < 40:
                haplotypes[i] = rng.random((2, SNPS)) < 0.5
                continue
            last = min(i, N - YOUNG)  # no young animal is a parent
            self.sire[i], self.dam[i] = 2 * rng.integers(0, last // 2), 2 * rng.integers(0, last // 2) + 1
            for side, parent in enumerate((self.sire[i], self.dam[i])):
                haplotypes[i, side] = np.where(rng.random(SNPS) < 0.5, *haplotypes[parent])
        self.genotypes = haplotypes.sum(axis=1)
        self.old = np.arange(N - YOUNG)
        self.young = np.arange(N - YOUNG, N)
        effects = rng.normal(size=(SNPS, len(traits))) / 6
        values = self.genotypes @ effects
        animal = np.concatenate([self.old, rng.permutation(self.old)[:60]])
        y = values[animal] + rng.normal(size=(len(animal), len(traits)))
        self.animal = animal
        pl.DataFrame(
            {"animal": [self.ids[a] for a in animal], "herd": rng.integers(0, 3, len(animal)).astype(str)}
            | {trait: y[:, t] for t, trait in enumerate(traits)}
        ).write_csv(folder / "records.csv")
        name = lambda code: [None if p < 0 else self.ids[p] for p in code]
        self.pedigree = pl.DataFrame({"id": self.ids, "sire": name(self.sire), "dam": name(self.dam)})
        self.pedigree.write_csv(folder / "pedigree.csv")
        self.write_genotypes("every.csv", np.arange(N))
        self.write_genotypes("old.csv", self.old)
        self.write_genotypes("young.csv", self.young)
        pl.DataFrame(
            {
                "snp": [f"s{j}" for j in range(SNPS)],
                "chromosome": [str(1 + j * CHROMOSOMES // SNPS) for j in range(SNPS)],
                "position": [1000 * (j + 1) for j in range(SNPS)],
            }
        ).write_csv(folder / "map.csv")

    def write_genotypes(self, name, animals, snps=None, values=None):
        values = self.genotypes if values is None else values
        columns = {f"s{j}": values[animals, j] for j in (range(SNPS) if snps is None else snps)}
        pl.DataFrame({"animal": [self.ids[a] for a in animals]} | columns).write_csv(self.folder / name)
        return self.folder / name

    def analysis(self, relationship, genotypes="old.csv", **changes):
        k = len(self.traits)
        G, R = np.full((k, k), 0.5) + np.eye(k), np.full((k, k), 0.2) + np.eye(k)
        data = {"phenotypes": str(self.folder / "records.csv"), "pedigree": str(self.folder / "pedigree.csv")}
        data["genotypes"] = {
            "file": str(self.folder / genotypes), "map": str(self.folder / "map.csv"), "frequencies": "half",
            "quality": {"maf": 0, "call_rate": 0, "parent_progeny": "ignore"},
        }  # fmt: skip
        return {
            "data": data,
            "traits": {trait: {} for trait in self.traits},
            "model": {
                "fixed": {"herd": {}},
                "random": {"genetic": {"level": "animal", "relationship": relationship}, "pe": {"level": "animal"}},
            },
            "variances": {
                "genetic": {"start": G.tolist()}, "pe": {"start": (0.3 * np.eye(k)).tolist()},
                "residual": {"start": R.tolist()},
            },
            "sampler": {"method": "blup", "tolerance": 1e-12},
        } | changes  # fmt: skip

    def run(self, name, relationship, genotypes="old.csv", **changes):
        """A run in a folder of that name."""
        analysis = self.analysis(relationship, genotypes, **changes)
        return mmgibbs.run(analysis, directory=self.folder / name, progress=False)
