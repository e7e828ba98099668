"""The genotypes of an analysis: section `data.genotypes`, with `quality`, what is left out before they are used.

genotypes: geno.bed                                          .bim and .fam beside it
genotypes: {file: geno.txt, map: map.txt}                    BLUPF90: id and a string of 0, 1, 2, 5
genotypes: geno.hmp.txt                                      HapMap: letters, a row for each SNP
genotypes: {file: dosages.parquet, quality: {maf: 0.05}}     a column of animals, a column for each SNP
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, ClassVar, Self

from mmgibbs.config.fields import (
    Section,
    a_cell,
    a_column,
    a_path,
    a_separator,
    accepting,
    accepts,
    checked,
    expected,
    list_of,
    number,
    one_of,
)

FORMATS = {  # how files of each are called; the first ending of those that belong together is that of `file`
    "plink": (".bed",),
    "pgen": (".pgen",),
    "vcf": (".vcf", ".vcf.gz", ".bcf"),
    "hapmap": (".hmp.txt", ".hmp.txt.gz", ".hmp"),
    "blupf90": (),  # any name: known by its lines
    "table": (".csv", ".tsv", ".parquet", ".arrow", ".feather"),
}
BESIDE = {"plink": (".bim", ".fam"), "pgen": (".pvar", ".psam")}  # map and animals, in files of the same name
FREQUENCIES = ("genotyped", "recorded", "half")


def a_share(most: float) -> Callable[[object], float]:
    """A number from 0 to `most`."""
    needed = f"a number from 0 to {most:g}"
    finite = number(needed)

    def check(value: object) -> float:
        share = finite(value)
        if not 0 <= share <= most:
            raise expected(value, needed)
        return share

    return accepting(check, {"type": "number", "minimum": 0, "maximum": most})


@accepts({"type": "string"})
def a_frequency_choice(value: object) -> str | Path:
    """genotyped | recorded | half, or the path of a table with a column of SNPs and one of frequencies."""
    needed = f"{', '.join(FREQUENCIES)} or the path of a file such as frequencies.txt"
    if isinstance(value, Path):
        return value
    if not isinstance(value, str):
        raise expected(value, needed)
    if value.lower() in FREQUENCIES:
        return value.lower()
    if "." not in value and "/" not in value:
        raise expected(value, needed)
    return a_path(value)


class Quality(Section):
    """What is left out. Shares are of the genotyped animals, or of the SNPs."""

    call_rate: Annotated[float, checked(a_share(1))] = 0.9
    """Smallest share of known genotypes of a SNP that is kept."""

    animal_call_rate: Annotated[float, checked(a_share(1))] = 0.9
    """Smallest share of known genotypes of an animal that is kept."""

    maf: Annotated[float, checked(a_share(0.5))] = 0.01
    """Smallest frequency of the rarer allele of a SNP that is kept."""

    monomorphic: Annotated[str, checked(one_of("drop", "keep"))] = "drop"
    """SNPs with the same genotype in all animals: drop them or keep them."""

    duplicates: Annotated[str, checked(one_of("keep", "drop"))] = "keep"
    """SNPs with the same genotypes as an earlier one: keep them or drop them."""

    duplicate_animals: Annotated[str, checked(one_of("keep", "drop"))] = "keep"
    """Animals with the same genotypes as an earlier one: keep them or drop them."""

    parent_progeny: Annotated[str, checked(one_of("report", "drop", "ignore"))] = "report"
    """Parents and progeny whose genotypes exclude each other: report them, drop them, or do not check (ignore)."""

    conflicts: Annotated[float, checked(a_share(1))] = 0.01
    """Largest share of opposing homozygotes that a parent and its progeny may have."""


class Genotypes(Section):
    """The file of genotypes, and what belongs to it. Paths are relative to the analysis file."""

    file: Annotated[Path, checked(a_path)]
    """The file of genotypes."""

    format: Annotated[str, checked(one_of("auto", *FORMATS))] = "auto"
    """Format of the file; auto: known by its name or its first line."""

    map: Annotated[Path | None, checked(a_path)] = None
    """File of the SNPs with chromosome and position. Default for .bed and .pgen: the file of the same name."""

    animals: Annotated[Path | None, checked(a_path)] = None
    """File of the animals. Default for .bed and .pgen: the .fam or .psam of the same name."""

    id: Annotated[str | None, checked(a_column)] = None
    """Column of a table that has the ids of the animals. Default: the first, or IID where families (FID) or numbers of
    rows stand before it."""

    separator: Annotated[str | None, checked(a_separator)] = None
    """Character between the columns of a table. Default: guessed."""

    missing: Annotated[tuple[str, ...], checked(list_of(a_cell, "a list of values as they are in the table"))] = (
        "",
        "NA",
    )
    """Cells that mean an unknown genotype, beside codes such as '.' and NaN; numbers are compared as numbers."""

    dosages: Annotated[str, checked(one_of("byte", "single"))] = "byte"
    """How real-valued dosages are stored: byte, in steps of 1/254, or single precision."""

    frequencies: Annotated[str | Path, checked(a_frequency_choice)] = "genotyped"
    """Allele frequencies for centring: those of the genotyped or of the recorded animals (genotyped, recorded), 0.5
    (half), or the path of a table."""

    quality: Quality = Quality()
    """Which SNPs and animals are left out before the analysis."""

    short_forms: ClassVar = ({"type": "string"},)
    paths: ClassVar = ("file", "map", "animals", "frequencies")  # keys that may hold one

    @classmethod
    def long_form(cls, value: object) -> object:
        return {"file": value} if isinstance(value, str) else value

    def with_paths(self, change: Callable[[Path], Path]) -> Self:
        """Itself with change(path) for every path."""
        given = {key: getattr(self, key) for key in self.paths}
        return self.model_copy(update={key: change(v) for key, v in given.items() if isinstance(v, Path)})

    def completed(self) -> Self:
        """With the files beside it, where the format has some and the analysis does not name them."""
        beside = BESIDE.get(self.chosen_format or "", (None, None))
        found = {
            key: self.file.with_suffix(ending)
            for key, ending in zip(("map", "animals"), beside, strict=True)
            if ending is not None and getattr(self, key) is None
        }
        return self.model_copy(update=found)

    @property
    def chosen_format(self) -> str | None:
        """The format that the analysis or the name of the file says; None where its lines must tell."""
        if self.format != "auto":
            return self.format
        name = self.file.name.lower()
        return next((format for format, endings in FORMATS.items() if name.endswith(tuple(endings))), None)
