"""Formats of files of genotypes: a line here, and a reader of the same name in `data/genotypes`.

The reader has two functions: `matches` asks the first bytes of a file, and `read` opens it.
"""

from __future__ import annotations

from typing import NamedTuple


class Format(NamedTuple):
    """Endings of the names of files of a format."""

    endings: tuple[str, ...] = ()  # of their names; none: known by their first bytes alone
    map: str = ""  # ending of the file of the same name that has the SNPs
    animals: str = ""  # and of the one that has the animals
    label: str = ""  # in messages, where the first bytes leave no doubt


# In the order in which the first bytes are asked: `table` takes what no other does, so it is the last.
FORMATS = {
    "plink": Format((".bed",), ".bim", ".fam", "PLINK"),
    "pgen": Format((".pgen",), ".pvar", ".psam", "PLINK 2"),
    "vcf": Format((".vcf", ".vcf.gz", ".bcf"), label="VCF"),
    "hapmap": Format((".hmp.txt", ".hmp.txt.gz", ".hmp"), label="HapMap"),
    "blupf90": Format(),
    "table": Format((".csv", ".tsv", ".parquet", ".arrow", ".feather")),
}
