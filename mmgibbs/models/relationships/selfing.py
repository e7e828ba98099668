"""A pedigree with generations of selfing after each cross (see pedigree/selfing.py), with or without groups.

A^-1 has the structure of a pedigree's; the variances of Mendelian sampling and the inbreeding are those of the lines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmgibbs.models.relationships.groups import GroupedPedigree


@dataclass(frozen=True)
class SelfedPedigree(GroupedPedigree):
    """K = A of plants, of which each represents its own generations of selfing."""

    generations: np.ndarray  # (n,) int64, g of each plant

    words = "pedigree with selfing"
    sentence = "related by the pedigree, each line with its generations of selfing"

    @property
    def groups_fixed(self) -> bool:
        return self.n_groups > 0 and super().groups_fixed
