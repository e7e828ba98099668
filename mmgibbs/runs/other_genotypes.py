"""A file of genotypes that a command names, in place of that of an analysis."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.config.messages import listed_problems
from mmgibbs.data.genotypes.file import GenotypeFile, open_genotypes
from mmgibbs.errors import ConfigError, DataError, option_name


def genotypes_section(command: str, options: dict[str, Any]) -> Genotypes:
    """Keys as in `data.genotypes`, paths as from where the command runs; command: begins the messages."""
    plain = {key: os.fspath(value) if isinstance(value, os.PathLike) else value for key, value in options.items()}
    try:
        return Genotypes.model_validate(plain).completed().with_paths(Path.absolute)
    except ValidationError as error:
        lines = [f"{command}: {'.'.join(place)}: {message}" for place, message in listed_problems(error)]
        raise ConfigError("\n".join(lines)) from None


def open_other_genotypes(section: Genotypes, traits: Collection[str]) -> GenotypeFile:
    """Messages name the arguments of this command, not keys of an analysis that it does not have."""
    try:
        return open_genotypes(section, traits)
    except DataError as error:
        said = _OF_THE_FILE.sub("", str(error))
        raise DataError(
            _KEY.sub(lambda found: option_name(found[1]) if found[1] in OPTIONS else found[1], said)
        ) from None


_OF_THE_FILE, _KEY = re.compile(r" \(data\.genotypes(\.file)?\)"), re.compile(r"\bdata\.genotypes\.(\w+)")
OPTIONS = ("format", "map", "animals", "id")  # keys of data.genotypes that the command has as options
