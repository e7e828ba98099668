"""`relationship:` of a random term: how its levels are related, one class for each kind with the keys that it takes.

    relationship: pedigree                       a kind without keys by its name
    relationship: inverse.txt                    a file, {kind: file, file: inverse.txt}
    relationship: {kind: pedigree, ...}          a kind with keys of its own

A new kind is a class here and a line in KINDS; data/relationships.py makes the matrix, model/relationships holds it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from mmgibbs.config.fields import Problems, Schema, Section, a_column, a_path, accepts, any_of, checked, expected
from mmgibbs.config.text import show
from mmgibbs.errors import nearest

if TYPE_CHECKING:
    from mmgibbs.config.tables import Data


class Relationship(Section):
    """A kind of relationship, and what the rest of an analysis must know of it."""

    name: ClassVar[str]
    related: ClassVar[bool] = True  # levels are not independent
    of_pedigree: ClassVar[bool] = False  # levels are the animals of data.pedigree

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
            return [("", f"found {self.name}, but there is none: needed data.pedigree")]
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


KINDS: dict[str, type[Relationship]] = {kind.name: kind for kind in (Identity, Pedigree, File)}


@accepts(any_of({"enum": ["identity", "pedigree"]}, {"type": "string"}, *KINDS.values()))
def a_relationship(value: object) -> Relationship:
    """A word, a mapping, or the path of a file: a lone word that is no kind is more likely a slip than a file."""
    if isinstance(value, dict):
        return _from_mapping(value)
    needed = "identity, pedigree or the path of a file such as inverse.txt"
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
