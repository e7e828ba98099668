"""The genotypes of an analysis: section `data.genotypes`, with `quality`, what is left out before they are used.

genotypes: geno.bed                                          .bim and .fam beside it
genotypes: {file: geno.txt, map: map.txt}                    BLUPF90: id and a string of 0, 1, 2, 5
genotypes: geno.hmp.txt                                      HapMap: letters, a row for each SNP
genotypes: {file: dosages.parquet, quality: {maf: 0.05}}     a column of animals, a column for each SNP
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag

from mmgibbs.config.fields import NUMBER, Cell, Choice, Column, FilePath, Section, Separator, Share, Some
from mmgibbs.config.messages import Expected
from mmgibbs.genotypes.formats import FORMATS, Format

if TYPE_CHECKING:
    FormatName = str
else:  # made of FORMATS, so that a new format is one line there
    FormatName = Choice[Literal[("auto", *FORMATS)]]
_IN_FILES = [format for format in FORMATS.values() if format.map]
_NAMES = " and ".join(format.endings[0] for format in _IN_FILES)
_ANIMALS = " or ".join(format.animals for format in _IN_FILES)


def word_or_path(value: object) -> str:
    """'path' of what may be the path of a table, else 'word'."""
    return "path" if isinstance(value, Path) or (isinstance(value, str) and ("." in value or "/" in value)) else "word"


FREQUENCIES = ("genotyped", "recorded", "half")
_WORDS = Expected(f"{', '.join(FREQUENCIES)} or the path of a file such as frequencies.txt")
Frequencies = Annotated[
    Annotated[Choice[Literal["genotyped", "recorded", "half"]], _WORDS, Tag("word")] | Annotated[FilePath, Tag("path")],
    Discriminator(word_or_path),
]


class Quality(Section):
    """What is left out. Shares are of the genotyped animals, or of the SNPs."""

    call_rate: Share = 0.9
    """Smallest share of known genotypes of a SNP that is kept."""

    animal_call_rate: Share = 0.9
    """Smallest share of known genotypes of an animal that is kept."""

    maf: Annotated[float, Field(ge=0, le=0.5), NUMBER] = 0.01
    """Smallest frequency of the rarer allele of a SNP that is kept."""

    monomorphic: Choice[Literal["drop", "keep"]] = "drop"
    """SNPs with the same genotype in all animals: drop them or keep them."""

    duplicates: Choice[Literal["drop", "keep"]] = "keep"
    """SNPs with the same genotypes as an earlier one: keep them or drop them."""

    duplicate_animals: Choice[Literal["drop", "keep"]] = "keep"
    """Animals with the same genotypes as an earlier one: keep them or drop them."""

    sex_chromosomes: Choice[Literal["drop", "keep"]] = "keep"
    """SNPs of sex chromosomes and mitochondria: keep them or drop them. Parents and progeny are never compared by
    them."""

    parent_progeny: Choice[Literal["report", "drop", "ignore"]] = "report"
    """Parents and progeny whose genotypes exclude each other: report them, drop them, or do not check (ignore)."""

    conflicts: Share = 0.01
    """Largest share of opposing homozygotes that a parent and its progeny may have."""


class Genotypes(Section):
    """The file of genotypes, and what belongs to it. Paths are relative to the analysis file."""

    file: FilePath
    """The file of genotypes."""

    format: FormatName = "auto"
    """Format of the file; auto: known by its name or its first line."""

    map: Annotated[
        FilePath | None,
        Field(
            description="File of the SNPs with chromosome and position. "
            f"Default for {_NAMES}: the file of the same name."
        ),
    ] = None

    animals: Annotated[
        FilePath | None,
        Field(description=f"File of the animals. Default for {_NAMES}: the {_ANIMALS} of the same name."),
    ] = None

    id: Column | None = None
    """Column of a table that has the ids of the animals. Default: the first, or IID where families (FID) or numbers of
    rows stand before it."""

    separator: Separator | None = None
    """Character between the columns of a table. Default: guessed."""

    missing: Annotated[Some[Cell], Expected("a list of values as they are in the table")] = ("", "NA")
    """Cells that mean an unknown genotype, beside codes such as '.' and NaN; numbers are compared as numbers."""

    dosages: Choice[Literal["byte", "single"]] = "byte"
    """How real-valued dosages are stored: byte, in steps of 1/254, or single precision."""

    frequencies: Frequencies = "genotyped"
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
        """Replace every path by change(path)."""
        given = {key: getattr(self, key) for key in self.paths}
        return self.model_copy(update={key: change(v) for key, v in given.items() if isinstance(v, Path)})

    def completed(self) -> Self:
        """Fill in the files beside it, where the format has some and the analysis does not name them."""
        format = FORMATS.get(self.chosen_format or "", Format())
        beside = {"map": format.map, "animals": format.animals}
        completed = {
            key: self.file.with_suffix(ending)
            for key, ending in beside.items()
            if ending and getattr(self, key) is None
        }
        return self.model_copy(update=completed)

    @property
    def chosen_format(self) -> str | None:
        """The format that the analysis or the name of the file says; None where its lines must tell."""
        if self.format != "auto":
            return self.format
        name = self.file.name.lower()
        return next((format for format, of in FORMATS.items() if name.endswith(of.endings)), None)
