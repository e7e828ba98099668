"""`relationship:` of a random term: how its levels are related, one class for each kind with the keys that it takes.

    relationship: pedigree                       a kind without keys by its name
    relationship: inverse.txt                    a file, {kind: file, file: inverse.txt}
    relationship: {kind: pedigree, ...}          a kind with keys of its own

A new kind is a class here and a line in KINDS; data/relationships.py makes the matrix, model/relationships holds it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from mmgibbs.config.fields import (
    Problems,
    Schema,
    Section,
    a_boolean,
    a_column,
    a_path,
    accepted_by,
    accepting,
    accepts,
    any_of,
    checked,
    expected,
    number,
    one_of,
    whole_number,
)
from mmgibbs.config.genotypes import FREQUENCIES, a_frequency_choice, a_share
from mmgibbs.config.text import Plain, as_number, show
from mmgibbs.errors import nearest

if TYPE_CHECKING:
    from mmgibbs.config.tables import Data


class Relationship(Section):
    """A kind of relationship, and what the rest of an analysis must know of it."""

    name: ClassVar[str]
    related: ClassVar[bool] = True  # levels are not independent
    of_pedigree: ClassVar[bool] = False  # levels are the animals of data.pedigree
    of_genotypes: ClassVar[bool] = False  # made of data.genotypes

    @property
    def needs_pedigree(self) -> bool:
        """data.pedigree is read for it."""
        return self.of_pedigree

    @classmethod
    def more_keys(cls) -> dict[str, Schema]:
        return {"kind": {"const": cls.name}}

    @property
    def pedigree_columns(self) -> dict[str, str]:
        """Key -> column of the pedigree file that it takes beside id, sire and dam."""
        return {}

    @property
    def one_sex(self) -> bool:
        """No animal may be both sire and dam."""
        return True

    def refusals(self, data: Data) -> list[tuple[str, str]]:
        """(key, message) of what the section `data` says that it cannot go with; key '': the kind as a whole."""
        if self.of_pedigree and data.pedigree is None:
            return [("", f"found {self.name}, but the analysis has no pedigree: needed data.pedigree")]
        if self.of_genotypes and data.genotypes is None:
            return [("", f"found {self.name}, but the analysis has no genotypes: needed data.genotypes")]
        return []

    def with_paths(self, change: Callable[[Path], Path]) -> Self:
        """Itself with change(path) for every path."""
        return self

    def as_file(self) -> str | dict:
        """The name alone where no key is set."""
        if all(getattr(self, key) == field.default for key, field in type(self).model_fields.items()):
            return self.name
        return {"kind": self.name} | super().as_file()


class Identity(Relationship):
    """Independent levels."""

    name = "identity"
    related = False


class Pedigree(Relationship):
    """Additive relationships of the pedigree file."""

    selfing: Annotated[str | None, checked(a_column)] = None
    """Column of the pedigree: generations of selfing after the cross."""

    name = "pedigree"
    of_pedigree = True

    @property
    def pedigree_columns(self) -> dict[str, str]:
        return {} if self.selfing is None else {"selfing": self.selfing}

    @property
    def one_sex(self) -> bool:
        return self.selfing is None

    def refusals(self, data: Data) -> list[tuple[str, str]]:
        found = super().refusals(data)
        if self.selfing is not None and data.groups is not None and data.groups.effect == "metafounders":
            found.append(("selfing", "cannot be combined with metafounders"))
        if self.selfing is not None and data.inbreeding == "ignore":
            found.append(("selfing", "cannot be combined with data.inbreeding: ignore, as selfing is inbreeding"))
        return found


class File(Relationship):
    """A user's sparse inverse, rows `id1 id2 value`."""

    file: Annotated[Path, checked(a_path)]
    """File of the inverse of the relationship matrix: rows of two ids and a value."""

    name = "file"

    def with_paths(self, change: Callable[[Path], Path]) -> Self:
        return self.model_copy(update={"file": change(self.file)})

    def as_file(self) -> str:
        return str(self.file)


@accepts({"type": "string"})
def base_frequencies(value: object) -> str | Path:
    """As data.genotypes.frequencies, or base: those of the pedigree's base animals."""
    if isinstance(value, str) and value.lower() == "base":
        return "base"
    try:
        return a_frequency_choice(value)
    except PydanticCustomError:
        needed = f"{', '.join(FREQUENCIES)}, base or the path of a file such as frequencies.txt"
        raise expected(value, needed) from None


@accepts({"enum": ["A22", "I"]})
def a_partner(value: object) -> str:
    """A22 | I."""
    text = str(value).upper() if isinstance(value, str) else ""
    if text not in ("A22", "I"):
        raise expected(value, "A22 (pedigree relationships of the genotyped) or I")
    return text


WAYS_OF_TUNING = {way.lower(): way for way in ("A22", "unit", "mean", "fst", "none")}


@accepts(any_of({"enum": list(WAYS_OF_TUNING.values())}, accepted_by(a_boolean)))
def a_way_of_tuning(value: object) -> str:
    """true: A22; false: none."""
    try:
        return "A22" if a_boolean(value) else "none"
    except PydanticCustomError:
        text = str(value).lower() if isinstance(value, str) else ""
        if text not in WAYS_OF_TUNING:
            raise expected(value, ", ".join(WAYS_OF_TUNING.values()) + ", true (A22) or false (none)") from None
        return WAYS_OF_TUNING[text]


_factor = number("a number above 0", above=0)
_some = accepting(number("a number of 0 or more", above=-1e-300), {"type": "number", "minimum": 0})


class OfGenotypes(Relationship):
    """What those from genotypes have in common: a dense matrix, mixed with another so that it has an inverse."""

    blend: Annotated[float, checked(a_share(1))] = 0.05
    """Share of the matrix that genomic relationships are mixed with, so that they have an inverse."""

    storage: Annotated[str, checked(one_of("double", "single"))] = "double"
    """Precision in which the inverse is stored, which each sweep reads; it is computed in double precision."""

    of_genotypes = True


_most = number("a number between 0 and 1", above=0, below=1)


class Core(Section):
    """The animals from which the inverse of genomic relationships is made: so many at random, as many as it takes to
    explain a share of the relationships, or those of a file.
    """

    size: Annotated[int | None, checked(whole_number(1))] = None
    """This number of animals, chosen at random."""

    explained: Annotated[float | None, checked(_most)] = None
    """As many animals, at random, as there are eigenvalues that make this share of the relationships, blended and tuned
    as they are inverted, such as 0.98."""

    file: Annotated[Path | None, checked(a_path)] = None
    """File with the id of an animal on each line."""

    seed: Annotated[int, checked(whole_number(0))] = 1
    """Seed of the random choice."""

    short_forms: ClassVar = ({"type": "integer", "minimum": 1},)

    @classmethod
    def long_form(cls, value: object) -> object:
        """A number is its size: from Python, or as text of a file."""
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if isinstance(value, Plain):
            is_number = as_number(value) is not None
        return {"size": value} if is_number else value

    @model_validator(mode="after")
    def _agree(self) -> Self:
        problems, given = Problems(), [k for k in ("size", "explained", "file") if getattr(self, k) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            problems.add((given[-1] if given else "size",), f"found {found}, needed one of size, explained, file")
        problems.refuse()
        return self


class Genomic(OfGenotypes):
    """Additive relationships of genotyped animals from their genotypes (GBLUP)."""

    core: Core | None = None
    """Compute the inverse from a core of animals (APY); a number is its size. Default: the whole inverse."""

    method: Annotated[str, checked(one_of("vanraden1", "vanraden2"))] = "vanraden1"
    """vanraden1: one variance of all SNPs together; vanraden2: each SNP on its own scale."""

    frequencies: Annotated[str | Path | None, checked(base_frequencies)] = None
    """Allele frequencies: those of the genotyped or recorded animals or of the base population, by the pedigree
    (genotyped, recorded, base), 0.5 (half), or the path of a table. Default: as data.genotypes.frequencies says."""

    blend_with: Annotated[str, checked(a_partner), Field(alias="with")] = "I"
    """What they are mixed with: A22 (pedigree relationships of the genotyped) or I."""

    name = "genomic"

    @property
    def needs_pedigree(self) -> bool:
        return self.of_pedigree or (self.blend > 0 and self.blend_with == "A22") or self.frequencies == "base"

    def refusals(self, data: Data) -> list[tuple[str, str]]:
        found = super().refusals(data)
        if not found and self.needs_pedigree and data.pedigree is None:
            key, value = ("frequencies", "base") if self.frequencies == "base" else ("with", "A22")
            found.append((key, f"found {value}, which is computed from the pedigree: needed data.pedigree"))
        return found

    def with_paths(self, change: Callable[[Path], Path]) -> Self:
        found: dict[str, Any] = {}
        if isinstance(self.frequencies, Path):
            found["frequencies"] = change(self.frequencies)
        if self.core is not None and self.core.file is not None:
            found["core"] = self.core.model_copy(update={"file": change(self.core.file)})
        return self.model_copy(update=found) if found else self


class Dominance(OfGenotypes):
    """Dominance relationships of genotyped animals from their genotypes."""

    name = "dominance"

    def refusals(self, data: Data) -> list[tuple[str, str]]:
        of_a_file = "or, for dominance of a pedigree, the path of a file with the inverse of its matrix"
        return [(key, f"{message}, {of_a_file}") for key, message in super().refusals(data)]


class SingleStep(Genomic):
    """Relationships of a pedigree in which some animals are genotyped: one model for all of them."""

    blend_with: Annotated[str, checked(a_partner), Field(alias="with")] = "A22"
    """What they are mixed with: A22 (pedigree relationships of the genotyped) or I."""

    tune: Annotated[str, checked(a_way_of_tuning)] = "A22"
    """Scale of the genomic relationships, after blending: means of the diagonal and off it as A22 (true), as I (unit),
    mean of all as A22 (mean), the same by Fst (fst), or as they are (none, false)."""

    tau: Annotated[float, checked(_factor)] = 1.0
    """Weight of the inverse of genomic relationships."""

    omega: Annotated[float, checked(_some)] = 1.0
    """Weight of the inverse of the pedigree relationships of the genotyped."""

    outside_pedigree: Annotated[str, checked(one_of("refuse", "drop"))] = "refuse"
    """Genotyped animals that are not in the pedigree: refuse the analysis, or drop them."""

    name = "single_step"
    of_pedigree = True

    def refusals(self, data: Data) -> list[tuple[str, str]]:
        found = super().refusals(data)
        if data.groups is not None and data.groups.effect != "metafounders":
            found.append(
                (
                    "",
                    "cannot be combined with data.groups, which bias single-step evaluations; needed no groups, "
                    "data.groups.effect: metafounders, or relationship: pedigree",
                )
            )
        elif data.groups is not None:
            if (self.frequencies or (data.genotypes and data.genotypes.frequencies)) != "half":
                found.append(("frequencies", "needed half with metafounders, whose Gamma refers to frequencies of 1/2"))
            if self.tune != "none":
                found.append(("tune", "needed none with metafounders: Gamma does what tuning does"))
        return found


KINDS: dict[str, type[Relationship]] = {
    kind.name: kind for kind in (Identity, Pedigree, File, Genomic, Dominance, SingleStep)
}


def _words() -> list[str]:
    """Kinds that need no key."""
    return [name for name, kind in KINDS.items() if not any(f.is_required() for f in kind.model_fields.values())]


@accepts(any_of({"enum": _words()}, {"type": "string"}, *KINDS.values()))
def a_relationship(value: object) -> Relationship:
    """A word, a mapping, or the path of a file: a lone word that is no kind is more likely a slip than a file."""
    if isinstance(value, dict):
        return _from_mapping(value)
    needed = f"{', '.join(_words())} or the path of a file such as inverse.txt"
    if not isinstance(value, str):
        raise expected(value, needed)
    kind = KINDS.get(value)
    if kind is not None and not any(field.is_required() for field in kind.model_fields.values()):
        return kind()
    if "." not in value and "/" not in value and "\\" not in value:
        raise expected(value, needed)
    a_path(value)  # what is wrong with it is said of the whole
    return File.model_validate({"file": value})


def _from_mapping(value: dict) -> Relationship:
    problems, kind = Problems(), value.get("kind")
    if kind is None:
        problems.add(("kind",), f"missing, needed one of {', '.join(KINDS)}")
    elif not isinstance(kind, str) or kind not in KINDS:
        problems.add(("kind",), f"found {show(kind)}; {nearest(str(kind), KINDS, 'the kinds are')}")
    problems.refuse()
    return KINDS[str(kind)].model_validate({key: v for key, v in value.items() if key != "kind"})
