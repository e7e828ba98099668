"""Which cells of the columns of an interaction are missing: what `Phenotypes.interactions` needs."""

from __future__ import annotations

from mmgibbs.config import Analysis
from mmgibbs.config.interactions import list_interactions
from mmgibbs.data.animal_ids import guess_parent_role


def interactions_of_columns(analysis: Analysis) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return name -> its columns, each with the cells that mean a missing value; of parents the codes for unknown."""
    unknown = tuple(analysis.data.unknown_parent)
    return {
        name: {
            column: (*cells, *(unknown if guess_parent_role(column) is not None else ()))
            for column, cells in columns.items()
        }
        for name, columns in list_interactions(analysis).items()
    }
