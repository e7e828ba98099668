"""Analyses of the data sets that all share (../shared/data): what REML and the marginal engine are measured on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from helpers.support import ROOT, shared_data
from scipy.sparse import coo_array, csc_array, eye_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import spsolve

Parts = tuple[dict, list[str] | dict, dict]  # data, traits, model


def gryphon(_folder: Path) -> Parts:
    """Birth weight, sex fixed: the ecologist's guide."""
    return _gryphon_data(), ["bwt"], {"fixed": {"sex": {}}, "random": {"genetic": _animal()}}


def gryphon_two_traits(_folder: Path) -> Parts:
    """Birth weight and tarsus, with mothers and birth years."""
    random = {"genetic": _animal(), "byear": {}, "mother": {}}
    return _gryphon_data(), ["bwt", "tarsus"], {"fixed": {"sex": {}}, "random": random}


def _gryphon_data() -> dict:
    return {
        "phenotypes": str(shared_data("data/gryphon/gryphon.csv")),
        "pedigree": str(shared_data("data/gryphon/gryphonped.csv")),
        "pedigree_columns": {"id": "id", "sire": "father", "dam": "mother"},
    }


def _animal(relationship: str = "pedigree") -> dict:
    return {"level": "animal", "relationship": relationship}


def milk(folder: Path) -> Parts:
    """Milk yield in standard deviations: animals, their permanent environment, and herds (Vazquez et al. 2010)."""
    records = pl.read_csv(shared_data("data/milk/milk.csv"))
    records = records.with_columns(sd_milk=pl.col("milk") / pl.col("milk").std(), log_dim=pl.col("dim").log())
    records.write_csv(folder / "milk.csv")
    data = {"phenotypes": str(folder / "milk.csv"), "pedigree": str(shared_data("data/milk/pedCowsR.csv"))}
    fixed = {"lact": {}, "log_dim": {"kind": "covariate"}}
    random = {"genetic": {"level": "id", "relationship": "pedigree"}, "cow": {"level": "id"}, "herd": {}}
    return data, ["sd_milk"], {"fixed": fixed, "random": random}


def warcolak(folder: Path) -> Parts:
    """Additive and dominance variance of trait 1 (simulated, with the true values known)."""
    table = pl.read_csv(shared_data("data/warcolak/warcolak.csv"), null_values=["NA", ""])
    table = table.rename({"ID": "animal", "Dam": "dam", "Sire": "sire"})
    table.write_csv(folder / "records.csv")
    table.select("animal", "sire", "dam").write_csv(folder / "pedigree.csv")
    write_dominance_inverse(table, folder / "dominance.txt")
    data = {"phenotypes": str(folder / "records.csv"), "pedigree": str(folder / "pedigree.csv")}
    random = {"genetic": _animal(), "dominance": _animal(str(folder / "dominance.txt"))}
    return data, ["trait1"], {"fixed": {"sex": {}}, "random": random}


def simdata(_folder: Path) -> Parts:
    """Trait 1 with farms, sexes, years and weights."""
    data = {
        "phenotypes": str(shared_data("data/simdata/simdata.txt")),
        "header": ["animal", "sire", "dam", "weight", "mu", "farm", "sex", "year", "y1", "y2", "y3", "y4"],
        "pedigree": str(shared_data("data/simdata/simped.txt")),
        "pedigree_columns": {"id": 1, "sire": 2, "dam": 3},
        "weights": "weight",
        "inbreeding": "ignore",
    }
    traits = {"y1": {"missing": [0]}}
    return data, traits, {"fixed": {"farm": {}, "sex": {}, "year": {}}, "random": {"genetic": _animal()}}


CASES: dict[str, Callable[[Path], Parts]] = {
    "gryphon": gryphon,
    "gryphon, two traits": gryphon_two_traits,
    "milk": milk,
    "warcolak": warcolak,
    "simdata": simdata,
}


def write_dominance_inverse(table: pl.DataFrame, path: Path) -> None:
    """D^-1 without inbreeding, as rows `id id value`: D_ij = (A_sires A_dams + A_sire,dam A_dam,sire) / 4.

    Animals that share no ancestors through both parents do not meet in D; each group of those that do is inverted.
    """
    ids = {name: i for i, name in enumerate(table["animal"])}
    sire, dam = ([ids.get(p, -1) for p in table[c]] for c in ("sire", "dam"))
    n = len(ids)
    A = numerator_relationship(np.array(sire), np.array(dam))
    D = np.eye(n)
    known = np.flatnonzero((np.array(sire) >= 0) & (np.array(dam) >= 0))
    s, d = np.array(sire)[known], np.array(dam)[known]
    D[np.ix_(known, known)] = 0.25 * (A[np.ix_(s, s)] * A[np.ix_(d, d)] + A[np.ix_(s, d)] * A[np.ix_(d, s)])
    np.fill_diagonal(D, 1.0)
    names = table["animal"].to_list()
    _, label = connected_components(csc_array(D > 0), directed=False)
    with open(path, "w", encoding="utf-8") as file:
        for group in np.unique(label):
            members = np.flatnonzero(label == group)
            inverse = np.linalg.inv(D[np.ix_(members, members)])
            for i, j in zip(*np.nonzero(np.tril(np.abs(inverse) > 1e-12)), strict=True):
                file.write(f"{names[members[i]]} {names[members[j]]} {float(inverse[i, j])!r}\n")


def numerator_relationship(sire: np.ndarray, dam: np.ndarray) -> np.ndarray:
    """A (n, n), dense, of animals without inbred parents: T D T', T = (I - P)^-1."""
    n = sire.size
    rows = np.concatenate([np.flatnonzero(p >= 0) for p in (sire, dam)])
    parents = np.concatenate([p[p >= 0] for p in (sire, dam)])
    P = coo_array((np.full(rows.size, 0.5), (rows, parents)), shape=(n, n))
    T = spsolve(csc_array(eye_array(n) - P), csc_array(eye_array(n))).toarray()
    mendelian = 1.0 - 0.25 * ((sire >= 0).astype(float) + (dam >= 0))
    return (T * mendelian) @ T.T


def analysis(name: str, folder: Path, **sampler: object) -> dict:
    """What load_config takes."""
    if name == "beef":
        raise ValueError(f"{ROOT / 'configs/beef.yaml'} is a file of its own")
    data, traits, model = CASES[name](folder)
    return {
        "name": name.replace(", ", "-").replace(" ", "-"),
        "data": data,
        "traits": traits,
        "model": model,
        "sampler": sampler,
        "output": {"directory": str(folder / "run")},
    }
