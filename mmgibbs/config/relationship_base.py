"""What every kind of `relationship:` has: its name, what it needs of other sections, its columns and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from mmgibbs.config.fields import Schema, Section

if TYPE_CHECKING:
    from mmgibbs.config.tables import Data


class Relationship(Section):
    """A kind of relationship, and what the rest of an analysis must know of it."""

    name: ClassVar[str]
    related: ClassVar[bool] = True  # levels are not independent
    of_pedigree: ClassVar[bool] = False  # levels are the animals of data.pedigree
    of_genotypes: ClassVar[bool] = False  # made of data.genotypes
    needs_keys: ClassVar[bool] = False  # its name alone says too little

    @property
    def needs_pedigree(self) -> bool:
        """data.pedigree is read for it."""
        return self.of_pedigree

    @classmethod
    def long_form(cls, value: object) -> object:
        """`kind` has chosen this class already."""
        return {key: v for key, v in value.items() if key != "kind"} if isinstance(value, dict) else value

    @classmethod
    def edit_schema(cls, schema: Schema, resolve: Callable[[Schema], Schema]) -> None:
        schema["properties"]["kind"] = {"const": cls.name}

    @property
    def pedigree_columns(self) -> dict[str, str]:
        """Key -> column of the pedigree file that it takes beside id, sire and dam."""
        return {}

    @property
    def one_sex(self) -> bool:
        """True if no animal may be both sire and dam."""
        return True

    def refusals(self, data: Data) -> list[tuple[str, str]]:
        """(key, message) of what the section `data` says that it cannot go with; key '': the kind as a whole."""
        if self.of_pedigree and data.pedigree is None:
            return [("", f"found {self.name}, but the analysis has no pedigree: needed data.pedigree")]
        if self.of_genotypes and data.genotypes is None:
            return [("", f"found {self.name}, but the analysis has no genotypes: needed data.genotypes")]
        return []

    def with_paths(self, change: Callable[[Path], Path]) -> Self:
        """Replace every path by change(path)."""
        return self

    @property
    def level_columns(self) -> tuple[str, ...]:
        """Columns of the records that make its levels; (): the effects say theirs."""
        return ()

    @property
    def number_columns(self) -> tuple[str, ...]:
        """Columns of numbers in the records that it needs beside them."""
        return ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters that it is estimated with, such as correlations."""
        return ()

    @property
    def stated_steps(self) -> dict[str, float]:
        """Parameter -> the distance that it is a correlation over, of those that have one."""
        return {}

    def with_steps(self, lengths: Mapping[str, float]) -> Self:
        """Set these distances; lengths: column -> the distance of neighbours."""
        return self

    @property
    def lacks_parameters(self) -> bool:
        """True if it has parameters, and the file gives no values of them."""
        return False

    @property
    def has_free_parameters(self) -> bool:
        return False

    def with_fixed_parameters(self) -> Self:
        """Hold the parameters at the values of the file."""
        return self

    def as_file(self) -> str | dict:
        """The name alone where no key is set."""
        if all(getattr(self, key) == field.default for key, field in type(self).model_fields.items()):
            return self.name
        return {"kind": self.name} | super().as_file()
