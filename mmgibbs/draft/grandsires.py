"""A pedigree of sires and maternal grandsires, as sire evaluations have it: what it is, and what to do with it.

Half of an animal's genes are its dam's, and half of these her sire's. A dam of the animal's own, known by her sire
alone, says the same: the relationships among the animals are those of sires and maternal grandsires (Henderson 1975,
J. Dairy Sci. 58:1917).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mmgibbs.draft.animals import recognised
from pedigree.columns import GRANDSIRES
from pedigree.errors import TableError
from pedigree.tables import open_table


def grandsire_column(path: Path, of_file: Mapping[str, Any]) -> str | None:
    """The column of maternal grandsires of a pedigree that has sires and no dams; of_file: separator and encoding."""
    try:
        names = open_table(path, **of_file).names
    except TableError:
        return None  # whoever reads the pedigree says what is wrong
    if any(recognised(name, "dam") for name in names) or not any(recognised(name, "sire") for name in names):
        return None
    return next((name for name in names if re.sub(r"[\W_]+", "", name.lower()) in GRANDSIRES), None)


def advise(path: Path, column: str) -> list[str]:
    """Lines for a reader: what the file is, and the pedigree to write from it."""
    return [
        f"{path.name}: {column} is the maternal grandsire: a pedigree of sires and maternal grandsires, without dams.",
        "It is not used, as relationships are those of sires and dams. Write a pedigree that says the same: give each",
        f"animal X with a {column} a dam of its own under a new id, such as dam_of_X, and add a row for this dam, with",
        "the grandsire as her sire and no dam: X,SIRE,dam_of_X and dam_of_X,GRANDSIRE,. Then use that file.",
    ]
