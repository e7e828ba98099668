"""The analysis as the rest of the program sees it: frozen, complete, every default at its field.

Each class is a section of the analysis file. What a section alone can get wrong is found by its class; what sections
say of each other (names of traits, sizes of matrices) by `complete`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator

from mmgibbs.config.decisions import Decisions
from mmgibbs.config.effects import Model
from mmgibbs.config.fields import ByName, Section, Text
from mmgibbs.config.messages import Expected, unexpected
from mmgibbs.config.sampling import Output, Sampler
from mmgibbs.config.tables import Data
from mmgibbs.config.traits import Traits
from mmgibbs.config.variances import Variances


def _check_folder_name(text: str) -> str:
    if text in (".", "..") or len(text) > 200 or any(c in "/\\" or not c.isprintable() for c in text):
        raise unexpected(text, "a name that a folder can have")
    return text


class Analysis(Section):
    """A complete, checked analysis."""

    filled_in: ClassVar = ("path",)
    name: Annotated[Text, AfterValidator(_check_folder_name), Expected("a name")] = ""
    """Name of the analysis, used for the run folder and the report. Default: the name of the file."""

    data: Data
    """The tables: records, pedigree and genotypes."""

    traits: Traits = ()
    """The traits: a list of columns, or a mapping from the name of each trait to its keys."""

    model: Model = Model()
    """The effects on the traits."""

    variances: Variances = Variances()
    """Start, prior and structure of the covariance matrix of each random effect and of the residuals."""

    sampler: Sampler = Sampler()
    """How the posterior is computed."""

    output: Output = Output()
    """The run folder, and what is kept in it."""

    functions: Annotated[ByName[str], Expected("functions of parameters: {NAME: TEXT}")] = {}
    """Functions of parameters that the summary has too, by name: arithmetic of numbers and names of parameters with
    + - * / ** and sqrt, log, exp, abs. Standard errors of REML are by the delta method."""

    decisions: Decisions | None = None
    """Whom to select: probabilities to be among the best, ranks and the response. Default: not computed."""

    path: Path | None = None  # of the analysis file

    @classmethod
    def unknown_key(cls, key: str) -> str:
        """Explain an unknown key; keys that are one level too high are found too."""
        sections: dict[str, type[Section]] = {
            "data": Data,
            "model": Model,
            "sampler": Sampler,
            "output": Output,
            "variances": Variances,
            "decisions": Decisions,
        }
        home = next((f"{name}.{key}" for name, section in sections.items() if key in section.model_fields), None)
        return f"unknown key; did you mean '{home}'?" if home else super().unknown_key(key)

    def resolved(self) -> dict:
        """The analysis file with every default written out, as plain values; load_config accepts it again."""
        file = self.as_file() | {"traits": {trait.name: trait.as_file() for trait in self.traits}}
        unused = [] if self.model.plugin is None else ["traits", "variances"]
        unused += ["decisions"] if self.decisions is None else []
        unused += [] if self.functions else ["functions"]
        return {key: value for key, value in file.items() if key not in unused}
