"""Traits of a run that are one trait in several environments (`traits: {yield: {by: site}}`)."""

from __future__ import annotations

from collections.abc import Sequence

from mmgibbs.config.environments import BETWEEN_TRAIT_AND_LEVEL
from mmgibbs.config.traits import Trait


def find_families(traits: Sequence[Trait]) -> dict[str, list[int]]:
    """Name of the trait -> numbers of its environments, at least two."""
    families: dict[str, list[int]] = {}
    for number, trait in enumerate(traits):
        name, mark, level = trait.name.partition(BETWEEN_TRAIT_AND_LEVEL)
        if mark and level in trait.where.values():
            families.setdefault(name, []).append(number)
    return {name: members for name, members in families.items() if len(members) > 1}
