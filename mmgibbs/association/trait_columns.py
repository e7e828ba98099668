"""Names of the columns of `markers.parquet` that a trait has."""

from __future__ import annotations

from typing import NamedTuple


class TraitColumns(NamedTuple):
    """Columns of one trait."""

    effect: str
    error: str
    log_p: str
    q: str


def trait_columns(trait: str) -> TraitColumns:
    """effect_TRAIT, se_TRAIT, log10_p_TRAIT (-log10 p), q_TRAIT."""
    return TraitColumns(f"effect_{trait}", f"se_{trait}", f"log10_p_{trait}", f"q_{trait}")
