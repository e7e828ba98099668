"""Pairs of parent and progeny, by the pedigree, that both have genotypes."""

from __future__ import annotations

import numpy as np

from pedigree.read import Pedigree


def find_genotyped_parents(pedigree: Pedigree, code: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places of parents and of progeny (pairs,) int64 among the genotyped animals, and whether a parent is a dam.

    code: (n,) int64 of the genotyped animals in the pedigree, -1 of those that do not count.
    """
    place = np.full(pedigree.n_animals + pedigree.n_groups + 1, -1)  # the last: unknown parents, code -1
    animals = np.flatnonzero(code >= 0)
    place[code[animals]] = animals
    progeny = np.tile(animals, 2)
    parent = np.concatenate([place[pedigree.sire[code[animals]]], place[pedigree.dam[code[animals]]]])
    is_dam = np.repeat([False, True], animals.size)
    has_both = parent >= 0
    return parent[has_both], progeny[has_both], is_dam[has_both]
