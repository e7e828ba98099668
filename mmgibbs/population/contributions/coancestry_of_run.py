"""Coancestry of the candidates of a run: by its pedigree, or from a file of genotypes."""

from __future__ import annotations

import numpy as np

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.errors import ConfigError, DataError, option
from mmgibbs.genotypes.store import store_genotypes
from mmgibbs.pedigree.errors import PedigreeError, TableError
from mmgibbs.pedigree.inbreeding import inbreeding
from mmgibbs.pedigree.read import read_pedigree
from mmgibbs.pedigree.relationship import relatives
from mmgibbs.pedigree.selfing import selfed_relatives
from mmgibbs.population.contributions.candidates import Candidates, locate_candidates
from mmgibbs.population.contributions.coancestry import Coancestry, PedigreeCoancestry, make_genomic_coancestry
from mmgibbs.population.contributions.values import ASKED
from mmgibbs.report.finished import Finished
from mmgibbs.runs.other_genotypes import open_other_genotypes

MAX_GENOMIC_CANDIDATES = 20_000  # 3.2 GB


def make_coancestry(finished: Finished, candidates: Candidates, genotypes: Genotypes | None) -> tuple[Coancestry, str]:
    """K among the candidates, and what it is from in words."""
    if genotypes is not None:
        return _make_genomic_coancestry(candidates, genotypes)
    if finished.animals is None:
        raise ConfigError(
            f"{ASKED}'{finished.directory}' is a run without a pedigree; needed genotypes of the candidates "
            f"({option('genotypes', 'FILE')})"
        )
    generations = _generations_of_selfing(finished)
    try:
        read = read_pedigree(
            finished.animals.select("id", "sire", "dam"),
            columns={"id": "id", "sire": "sire", "dam": "dam"},
            unknown=(),
            hermaphrodites=True,
        )
    except (PedigreeError, TableError) as error:
        raise DataError(str(error)) from None
    codes = locate_candidates(candidates, read.ids, "the pedigree of the run")
    if generations is not None:
        kin = selfed_relatives(read.sire, read.dam, generations[read.file_order.argsort()])
        return PedigreeCoancestry(kin, codes), "pedigree with selfing"
    kin = relatives(read.sire, read.dam, inbreeding(read.sire, read.dam))
    return PedigreeCoancestry(kin, codes), "pedigree"


def _generations_of_selfing(finished: Finished) -> np.ndarray | None:
    """(n,) of the animals of the run; None where its relationships have none."""
    assert finished.animals is not None, "a run with a pedigree"
    for term, random in finished.record["analysis"]["model"].get("random", {}).items():
        relationship = random.get("relationship")
        if isinstance(relationship, dict) and relationship.get("selfing"):
            if "selfings" not in finished.animals.columns:
                raise ConfigError(
                    f"{ASKED}model.random.{term}.relationship has selfing, and animals.parquet of "
                    f"'{finished.directory}' no generations; needed a run of this version"
                )
            return finished.animals["selfings"].to_numpy()
    return None


def _make_genomic_coancestry(candidates: Candidates, genotypes: Genotypes) -> tuple[Coancestry, str]:
    n = len(candidates.ids)
    if n > MAX_GENOMIC_CANDIDATES:
        raise ConfigError(
            f"{ASKED}genomic coancestry of {n:,} candidates takes {8 * n * n / 1e9:,.0f} GB; needed at most "
            f"{MAX_GENOMIC_CANDIDATES:,} candidates, or coancestry by the pedigree"
        )
    file = open_other_genotypes(genotypes, ())
    animals = locate_candidates(candidates, file.ids, f"genotyped animals of {file.name}")
    store = store_genotypes(file.source, animals, np.arange(file.n_snps))
    return make_genomic_coancestry(store), f"genotypes of {file.name}"
