"""Relationships of genotyped animals: `kind: genomic`, `dominance` and `single_step`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag

from mmgibbs.config.fields import (
    WHOLE,
    AlsoTakes,
    Choice,
    Count,
    FilePath,
    Fraction,
    NotNegative,
    Positive,
    Section,
    Share,
    read_boolean,
)
from mmgibbs.config.genotypes import word_or_path
from mmgibbs.config.messages import Expected, Problems
from mmgibbs.config.relationship_base import Relationship
from mmgibbs.config.text import Plain, as_number

if TYPE_CHECKING:
    from mmgibbs.config.tables import Data


_BASE = Expected("genotyped, recorded, half, base or the path of a file such as frequencies.txt")
BaseFrequencies = Annotated[  # as data.genotypes.frequencies, or base: those of the pedigree's base animals
    Annotated[Choice[Literal["genotyped", "recorded", "half", "base"]], _BASE, Tag("word")]
    | Annotated[FilePath, Tag("path")],
    Discriminator(word_or_path),
]


def _to_capitals(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


Partner = Annotated[
    Literal["A22", "I"],
    BeforeValidator(_to_capitals),
    Expected("A22 (pedigree relationships of the genotyped) or I"),
]


def _read_tuning(value: object) -> object:
    """true: A22; false: none."""
    value = read_boolean(value)
    if isinstance(value, bool):
        return "A22" if value else "none"
    lower = value.lower() if isinstance(value, str) else value
    return "A22" if lower == "a22" else lower


Tuning = Annotated[
    Literal["A22", "unit", "mean", "fst", "none"],
    BeforeValidator(_read_tuning),
    Expected("A22, unit, mean, fst, none, true (A22) or false (none)"),
    AlsoTakes(({"type": "boolean"},)),
]


class GenotypeRelationship(Relationship):
    """What those from genotypes have in common: a dense matrix, mixed with another so that it has an inverse."""

    blend: Share = 0.05
    """Share of the matrix that genomic relationships are mixed with, so that they have an inverse."""

    storage: Choice[Literal["double", "single"]] = "double"
    """Precision in which the inverse is stored, which each sweep reads; it is computed in double precision."""

    of_genotypes = True


class Core(Section):
    """The animals from which the inverse of genomic relationships is made: so many at random, as many as it takes to
    explain a share of the relationships, or those of a file.
    """

    size: Count | None = None
    """This number of animals, chosen at random."""

    explained: Fraction | None = None
    """As many animals, at random, as there are eigenvalues that make this share of the relationships, blended and tuned
    as they are inverted, such as 0.98."""

    file: FilePath | None = None
    """File with the id of an animal on each line."""

    seed: Annotated[int, Field(ge=0), WHOLE] = 1
    """Seed of the random choice."""

    short_forms: ClassVar = ({"type": "integer", "minimum": 1},)

    @classmethod
    def long_form(cls, value: object) -> object:
        """A number is its size: from Python, or as text of a file."""
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if isinstance(value, Plain):
            is_number = as_number(value) is not None
        return {"size": value} if is_number else value

    def check(self, problems: Problems) -> None:
        given = [key for key in ("size", "explained", "file") if getattr(self, key) is not None]
        if len(given) != 1:
            place = (given[-1] if given else "size",)
            problems.add(place, f"found {' and '.join(given) or 'none of them'}, needed one of size, explained, file")


class Genomic(GenotypeRelationship):
    """Additive relationships of genotyped animals from their genotypes (GBLUP)."""

    core: Core | None = None
    """Compute the inverse from a core of animals (APY); a number is its size. Default: the whole inverse."""

    method: Choice[Literal["vanraden1", "vanraden2"]] = "vanraden1"
    """vanraden1: one variance of all SNPs together; vanraden2: each SNP on its own scale."""

    frequencies: BaseFrequencies | None = None
    """Allele frequencies: those of the genotyped or recorded animals or of the base population, by the pedigree
    (genotyped, recorded, base), 0.5 (half), or the path of a table. Default: as data.genotypes.frequencies says."""

    blend_with: Annotated[Partner, Field(alias="with")] = "I"
    """What they are mixed with: A22 (pedigree relationships of the genotyped) or I."""

    name = "genomic"

    @property
    def needs_pedigree(self) -> bool:
        return self.of_pedigree or (self.blend > 0 and self.blend_with == "A22") or self.frequencies == "base"

    def refusals(self, data: Data) -> list[tuple[str, str]]:
        refusals = super().refusals(data)
        if not refusals and self.needs_pedigree and data.pedigree is None:
            key, value = ("frequencies", "base") if self.frequencies == "base" else ("with", "A22")
            refusals.append((key, f"found {value}, which is computed from the pedigree: needed data.pedigree"))
        return refusals

    def with_paths(self, change: Callable[[Path], Path]) -> Self:
        paths: dict[str, Any] = {}
        if isinstance(self.frequencies, Path):
            paths["frequencies"] = change(self.frequencies)
        if self.core is not None and self.core.file is not None:
            paths["core"] = self.core.model_copy(update={"file": change(self.core.file)})
        return self.model_copy(update=paths) if paths else self


class Dominance(GenotypeRelationship):
    """Dominance relationships of genotyped animals from their genotypes."""

    name = "dominance"

    def refusals(self, data: Data) -> list[tuple[str, str]]:
        of_a_file = "or, for dominance of a pedigree, the path of a file with the inverse of its matrix"
        return [(key, f"{message}, {of_a_file}") for key, message in super().refusals(data)]


class SingleStep(Genomic):
    """Relationships of a pedigree in which some animals are genotyped: one model for all of them."""

    blend_with: Annotated[Partner, Field(alias="with")] = "A22"
    """What they are mixed with: A22 (pedigree relationships of the genotyped) or I."""

    tune: Tuning = "A22"
    """Scale of the genomic relationships, after blending: means of the diagonal and off it as A22 (true), as I (unit),
    mean of all as A22 (mean), the same by Fst (fst), or as they are (none, false)."""

    tau: Positive = 1.0
    """Weight of the inverse of genomic relationships."""

    omega: NotNegative = 1.0
    """Weight of the inverse of the pedigree relationships of the genotyped."""

    outside_pedigree: Choice[Literal["refuse", "drop"]] = "refuse"
    """Genotyped animals that are not in the pedigree: refuse the analysis, or drop them."""

    name = "single_step"
    of_pedigree = True

    def refusals(self, data: Data) -> list[tuple[str, str]]:
        refusals = super().refusals(data)
        if data.groups is not None and data.groups.effect != "metafounders":
            refusals.append(
                (
                    "",
                    "cannot be combined with data.groups, which bias single-step evaluations; needed no groups, "
                    "data.groups.effect: metafounders, or relationship: pedigree",
                )
            )
        elif data.groups is not None:
            if (self.frequencies or (data.genotypes and data.genotypes.frequencies)) != "half":
                refusals.append(
                    ("frequencies", "needed half with metafounders, whose Gamma refers to frequencies of 1/2")
                )
            if self.tune != "none":
                refusals.append(("tune", "needed none with metafounders: Gamma does what tuning does"))
        return refusals
