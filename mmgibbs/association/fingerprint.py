"""Facts on which the results of a scan depend, and by which scans are told apart."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mmgibbs
from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.file_format import GenotypeFile
from mmgibbs.machine.files import sha256_of_file


def fingerprint_scan(run: Path, file: GenotypeFile, section: Genotypes, options: Mapping[str, Any]) -> dict[str, Any]:
    """List what the results of a scan depend on, by which scans are told apart.

    These are the run, the genotypes, their animals and SNPs, the options and the version of the program. run: its
    folder.
    """
    names = hashlib.sha256("\n".join(file.ids.to_list()).encode())
    for column in file.snps.iter_columns():
        names.update("\n".join(column.cast(str).fill_null("").to_list()).encode())
    return {
        "version": mmgibbs.__version__,
        "run": sha256_of_file(run / "run.json"),
        "variances": sha256_of_file(run / "summary.parquet"),
        "genotypes": sha256_of_file(section.file),
        "animals and SNPs": names.hexdigest(),
        **options,
    }
