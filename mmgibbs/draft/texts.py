"""The text of a drafted analysis: from a guess, or from a formula."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from mmgibbs.config.schema import MODELINE
from mmgibbs.draft.formula.model import translate_formula
from mmgibbs.draft.formula.text import write_analysis
from mmgibbs.draft.guess import Guess
from mmgibbs.draft.method import GIBBS, Method, method_lines
from mmgibbs.draft.unknown_parents import UnknownParents
from mmgibbs.draft.write import (
    analysis_text,
    can_use_reml,
    describe_slips,
    explain_guess,
    file_name,
    relative_path,
)


class DraftText(Protocol):
    """Writes an analysis file with any method of estimation."""

    @property
    def first_method(self) -> Method:
        """The method that is tried first."""

    @property
    def simpler(self) -> DraftText | None:
        """The text to write where this one is refused."""

    def write(self, method: Method) -> str:
        """Return the text of the file."""

    def explain(self) -> list[str]:
        """Say what was decided, a line each."""

    def explain_unused(self) -> list[str]:
        """Say what is wrong in columns that the file does not use, a line each."""


@dataclass(frozen=True)
class TextOfGuess:
    """The text of what was guessed from the tables, to be written to `path`."""

    guess: Guess
    path: Path

    @property
    def first_method(self) -> Method:
        """REML of trials, otherwise Gibbs sampling."""
        return Method("reml") if self.guess.trial is not None and can_use_reml(self.guess) else GIBBS

    @property
    def simpler(self) -> TextOfGuess | None:
        """The relationships of the pedigree alone."""
        return replace(self, guess=replace(self.guess, is_single_step=False)) if self.guess.is_single_step else None

    def write(self, method: Method) -> str:
        """Return the text of the file."""
        return analysis_text(self.guess, self.path, method)

    def explain(self) -> list[str]:
        """Say what was guessed."""
        return explain_guess(self.guess)

    def explain_unused(self) -> list[str]:
        """Say which columns beside the first traits have typing errors."""
        used = self.guess.traits[: self.guess.n_traits]
        return describe_slips(self.guess, [c for c in self.guess.columns if c not in used])


@dataclass(frozen=True)
class TextOfFormula:
    """A formula with its tables, to be written to `path`."""

    formula: str
    family: str | Mapping[str, str]
    phenotypes: Path
    pedigree: Path | None
    genotypes: Path | None
    path: Path
    weights: str | None = None
    unknown_parents: UnknownParents = UnknownParents()

    @property
    def first_method(self) -> Method:
        """Gibbs sampling."""
        return GIBBS

    @property
    def simpler(self) -> None:
        """None: the formula says what is written."""
        return None

    @cached_property
    def _translated(self) -> tuple[dict[str, Any], list[str]]:
        name = file_name(self.path)
        tables = (self.phenotypes, self.pedigree, self.genotypes)
        return translate_formula(self.formula, *tables, family=self.family, weights=self.weights, name=name)

    def write(self, method: Method) -> str:
        """Return the text of the file; paths are relative to its folder."""
        analysis, _ = self._translated
        folder = self.path.parent
        data = {key: relative_path(v, folder) if isinstance(v, Path) else v for key, v in analysis["data"].items()}
        data |= self.unknown_parents.as_data()
        traits = analysis["traits"]
        is_normal = isinstance(traits, list) or not any("type" in keys for keys in traits.values())
        head = [
            "Written by mmgibbs init from the formula",
            f"  {' '.join(self.formula.split())}",
            *self.explain(),
            f"Next: mmgibbs run {shlex.quote(self.path.name)}",
        ]
        lines = [
            write_analysis(analysis | {"data": data}, head).rstrip("\n"),
            *method_lines(method, offers_reml=is_normal and self.genotypes is None),
            f"output: {{directory: runs/{analysis['name']}}}  # relative to where the command runs",
        ]
        return MODELINE + "\n".join(lines) + "\n"

    def explain(self) -> list[str]:
        """Say what was decided where the formula does not say."""
        _, notes = self._translated
        return [f"note: {note}" for note in notes]

    def explain_unused(self) -> list[str]:
        """Say nothing: a formula names the columns that are read."""
        return []
