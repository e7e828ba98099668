"""`relationship:` of a random term: how its levels are related, one class for each kind with the keys that it takes.

    relationship: pedigree                       a kind without keys by its name
    relationship: inverse.txt                    a file, {kind: file, file: inverse.txt}
    relationship: {kind: pedigree, ...}          a kind with keys of its own

A new kind is a class, here or in a module that this one imports, and a line in KINDS; data/relationships.py makes the
matrix, models/relationships holds it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self, Union

from pydantic import BeforeValidator, Discriminator, Tag

from mmgibbs.config.fields import AlsoTakes, Column, FilePath, read_path
from mmgibbs.config.genomic_relationships import Dominance, Genomic, SingleStep
from mmgibbs.config.messages import Problems, unexpected
from mmgibbs.config.relationship_base import Relationship
from mmgibbs.config.smooth_relationships import Autoregression, RandomWalk, Spline
from mmgibbs.config.text import show
from mmgibbs.errors import nearest

if TYPE_CHECKING:
    from mmgibbs.config.tables import Data


class Identity(Relationship):
    """Independent levels."""

    name = "identity"
    related = False


class Pedigree(Relationship):
    """Additive relationships of the pedigree file."""

    selfing: Column | None = None
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
        refusals = super().refusals(data)
        if self.selfing is not None and data.groups is not None and data.groups.effect == "metafounders":
            refusals.append(("selfing", "cannot be combined with metafounders"))
        if self.selfing is not None and data.inbreeding == "ignore":
            refusals.append(("selfing", "cannot be combined with data.inbreeding: ignore, as selfing is inbreeding"))
        return refusals


class File(Relationship):
    """A user's sparse inverse, rows `id1 id2 value`."""

    file: FilePath
    """File of the inverse of the relationship matrix: rows of two ids and a value."""

    name = "file"

    def with_paths(self, change: Callable[[Path], Path]) -> Self:
        return self.model_copy(update={"file": change(self.file)})

    def as_file(self) -> str:
        return str(self.file)


_SMOOTH, _OF_GENOTYPES = (Autoregression, RandomWalk, Spline), (Genomic, Dominance, SingleStep)
KINDS: dict[str, type[Relationship]] = {
    kind.name: kind for kind in (Identity, Pedigree, *_SMOOTH, File, *_OF_GENOTYPES)
}


# Kinds that need no key.
WORDS = [
    name
    for name, kind in KINDS.items()
    if not kind.needs_keys and not any(f.is_required() for f in kind.model_fields.values())
]


def read_relationship(value: object) -> object:
    """A mapping with its kind, also of a word, or of the path of a file: a lone word that is no kind is more likely a
    slip than a file.
    """
    if isinstance(value, dict):
        _check_kind(value.get("kind"))
        return value
    if value in WORDS or (isinstance(value, str) and value in KINDS and KINDS[value].needs_keys):
        return {"kind": str(value)}
    if not isinstance(value, str) or not any(mark in value for mark in "./\\"):
        raise unexpected(value, f"{', '.join(WORDS)} or the path of a file such as inverse.txt")
    return {"kind": "file", "file": read_path(value)}


def _check_kind(kind: object) -> None:
    problems = Problems()
    if kind is None:
        problems.add(("kind",), f"missing, needed one of {', '.join(KINDS)}")
    elif not isinstance(kind, str) or kind not in KINDS:
        problems.add(("kind",), f"found {show(kind)}; {nearest(str(kind), KINDS, 'the kinds are')}")
    problems.refuse()


if TYPE_CHECKING:
    AnyRelationship = Relationship
else:  # made of KINDS, so that a new kind is one line there
    AnyRelationship = Annotated[
        Union[tuple(Annotated[kind, Tag(name)] for name, kind in KINDS.items())],  # noqa: UP007 - of a tuple
        Discriminator(lambda value: value["kind"] if isinstance(value, dict) else value.name),
        BeforeValidator(read_relationship),
        AlsoTakes(({"enum": WORDS}, {"type": "string"})),
    ]
