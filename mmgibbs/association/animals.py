"""Which file of genotypes is tested, and who of the animals of the records is in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.file_format import GenotypeFile
from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.errors import ConfigError, DataError, option, option_name
from mmgibbs.pedigree.spelling import find_respelled
from mmgibbs.pedigree.tables import counted, quoted
from mmgibbs.runs.model_of_run import RunModel
from mmgibbs.runs.other_genotypes import NamedGenotypes, genotypes_section, open_other_genotypes


def open_tested_genotypes(model: RunModel, genotypes: NamedGenotypes | None) -> tuple[GenotypeFile, Genotypes]:
    """The file that is named, else that of the run, and its section."""
    if genotypes is None:
        if model.analysis.data.genotypes is None:
            raise ConfigError(
                f"gwas: '{model.directory}' is a run without genotypes; needed a file of them as second argument"
            )
        section: Genotypes = model.analysis.data.genotypes
    else:
        section = genotypes_section("gwas", genotypes)
    traits = {trait.column or trait.name for trait in model.analysis.traits}
    return open_other_genotypes(section, traits), section


@dataclass(frozen=True)
class Animals:
    """The animals that have both records and genotypes."""

    places: np.ndarray  # (m,) int64 in the file of genotypes
    record_animal: np.ndarray  # (n,) int64 the animal of each record, -1: none of them
    level: str  # column of the records
    notes: tuple[str, ...]


def match_animals(model: RunModel, file: GenotypeFile, level: str | None) -> Animals:
    """Match animals that have genotypes and a level, by the ids of one column of the records."""
    candidates = model.levels()
    if level is not None and level not in candidates:
        known = ", ".join(candidates) or "none"
        raise ConfigError(
            f"gwas: {option('level', level)}: expected the level of a random effect of the run ({known}), got another "
            "column"
        )
    column = level or model.animal_level(file.ids)
    ids, code = candidates[column]
    place = pl.DataFrame({"id": ids}).join(
        pl.DataFrame({"id": file.ids}).with_row_index("place"), on="id", how="left", maintain_order="left"
    )["place"]
    level_place = place.cast(pl.Int64).fill_null(-1).to_numpy()
    recorded = np.unique(code[code >= 0])
    both = recorded[level_place[recorded] >= 0]
    if not both.size:
        raise DataError(
            f"{file.id_file}: none of the {file.n_animals:,} genotyped animals has a record; are ids written in the "
            f"same way? Genotypes have {quoted(file.ids[0])}, column {column} {quoted(ids[int(recorded[0])])}. "
            f"{option_name('level')} names another column"
        )
    number = np.full(len(ids), -1, np.int64)
    number[both] = np.arange(both.size)
    record_animal = np.where(code >= 0, number[np.maximum(code, 0)], -1)
    return Animals(level_place[both], record_animal, column, _match_notes(file, ids, recorded, level_place, column))


def _match_notes(
    file: GenotypeFile, ids: pl.Series, recorded: np.ndarray, place: np.ndarray, column: str
) -> tuple[str, ...]:
    ungenotyped = ids.gather(recorded[place[recorded] < 0])
    notes = []
    if len(ungenotyped):
        shown = ", ".join(ungenotyped.head(SHOWN).to_list())
        notes.append(
            f"{counted(len(ungenotyped), 'level', 'has')} records and no genotypes ({column}: {shown}): they stay in "
            "the model, and count as average in every SNP"
        )
        alike = find_respelled(ungenotyped, file.ids)
        if alike.height:
            shown = ", ".join(f"{quoted(text)} = {quoted(id)}" for text, id, _ in alike.head(SHOWN).iter_rows())
            found = counted(alike.height, "recorded id")
            notes.append(f"warning: {found} may be genotyped in another spelling: {shown}")
    return tuple(notes)
