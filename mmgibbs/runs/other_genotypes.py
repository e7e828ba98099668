"""A file of genotypes that a command names, in place of that of an analysis.

Whether a file has the same genotypes as a run, where both have an animal: mix-ups of samples and swapped alleles.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.config.fields import read_section
from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.alleles import Counterparts, counterparts
from mmgibbs.data.genotypes.file_format import GenotypeFile, open_genotypes
from mmgibbs.data.genotypes.prepare import PreparedGenotypes
from mmgibbs.errors import ConfigError, DataError, option_name
from mmgibbs.genotypes.store import dosages
from mmgibbs.options import GENOTYPE_OPTIONS
from mmgibbs.pedigree.tables import agreeing, counted

NamedGenotypes = str | os.PathLike | Mapping[str, Any]  # a file, or keys of `data.genotypes`


def genotypes_section(command: str, genotypes: NamedGenotypes) -> Genotypes:
    """Complete the keys of `data.genotypes`, paths as from where the command runs; command: begins the messages."""
    keys = genotypes if isinstance(genotypes, Mapping) else {"file": genotypes}
    plain = {key: os.fspath(value) if isinstance(value, os.PathLike) else value for key, value in keys.items()}
    if "file" not in plain:
        name = next(iter(plain), "genotypes")
        raise ConfigError(f"{command}: {option_name(name)} belongs to a file of genotypes that is named")
    return read_section(Genotypes, plain, f"{command}: ").completed().with_paths(Path.absolute)


def open_other_genotypes(section: Genotypes, traits: Collection[str]) -> GenotypeFile:
    """Messages name the arguments of this command, not keys of an analysis that it does not have."""
    try:
        return open_genotypes(section, traits)
    except DataError as error:
        said = _OF_THE_FILE.sub("", str(error))
        raise DataError(
            _KEY.sub(lambda found: option_name(found[1]) if found[1] in GENOTYPE_OPTIONS else found[1], said)
        ) from None


_OF_THE_FILE, _KEY = re.compile(r" \(data\.genotypes(\.file)?\)"), re.compile(r"\bdata\.genotypes\.(\w+)")
MAX_ANIMALS, MAX_SNPS = 200, 500  # that are compared
LEAST_AGREEMENT = 0.95  # of genotypes, below which it is said
SHOWN = 3


def describe_other_genotypes(genotypes: PreparedGenotypes | None, file: GenotypeFile, is_mapped: bool) -> list[str]:
    """Describe what another file has in common with that of the run; warnings begin with 'warning: '."""
    if genotypes is None:
        return []
    run_file = genotypes.file
    snps = genotypes.snps.with_columns(number=pl.Series(genotypes.checked.kept_snps))
    try:
        matched = counterparts(snps, run_file.n_snps, file, is_mapped)
    except DataError as error:
        return [f"warning: {line}" for line in str(error).splitlines()[:SHOWN]]
    notes = [f"genotypes are those of {file.name}; relationships of the run are from {run_file.name}"]
    turned = int(matched.turned.sum())
    if turned:
        notes.append(
            f"{counted(turned, 'SNP')} of {file.name} {agreeing(turned, 'counts')} the other allele than in the run: "
            "effects are those of the allele in the column counted"
        )
    absent = snps["snp"].filter(pl.Series(matched.row < 0))
    if len(absent):
        shown = ", ".join(absent.head(SHOWN))
        notes.append(
            f"{len(absent):,} of the {snps.height:,} SNPs of the run {agreeing(len(absent), 'is')} not in {file.name}, "
            f"such as {shown}: not tested"
        )
    return notes + warn_of_disagreement(genotypes, file, matched)


def warn_of_disagreement(genotypes: PreparedGenotypes, file: GenotypeFile, matched: Counterparts) -> list[str]:
    """A warning where animals that both have do not have the same genotypes."""
    kept = genotypes.animals.select(id="animal")
    shared = kept.join(
        pl.DataFrame({"id": file.ids}).with_row_index("place"), on="id", how="inner", maintain_order="left"
    )
    snps = np.flatnonzero(matched.row >= 0)
    if not shared.height or not snps.size:
        return []
    shared = shared[np.unique(np.linspace(0, shared.height - 1, MAX_ANIMALS).astype(np.int64))]
    snps = snps[np.unique(np.linspace(0, snps.size - 1, MAX_SNPS).astype(np.int64))]
    of_run = genotypes.packed(shared["id"], snps=genotypes.checked.kept_snps[snps])
    then = of_run.decode(np.arange(snps.size))
    places = shared["place"].to_numpy().astype(np.int64)
    now = np.concatenate([dosages(file.source.block(j, j + 1)[:, places]) for j in matched.row[snps].tolist()])
    now = np.where(matched.turned[snps, None], 2 - now, now)
    is_known = ~np.isnan(then) & ~np.isnan(now)
    is_same = np.abs(then - now) < 0.5
    if not is_known.any():
        return []
    share = float(is_same[is_known].mean())
    if share >= LEAST_AGREEMENT:
        return []
    of_animal = np.where(is_known, is_same, 0).sum(axis=0) / np.maximum(is_known.sum(axis=0), 1)
    worst = ", ".join(shared["id"].gather(np.argsort(of_animal, kind="stable")[:SHOWN]))
    swapped = float((np.abs(then - (2 - now)) < 0.5)[is_known].mean())
    why = (
        "the file seems to count the other allele; needed the alleles in both files, or genotypes that count the same"
        if swapped > share
        else f"lowest of {worst}; are samples mixed up?"
    )
    return [
        f"warning: {file.name}: {share:.0%} of the genotypes of {counted(shared.height, 'animal')} that the run has "
        f"too are the same: {why}"
    ]
