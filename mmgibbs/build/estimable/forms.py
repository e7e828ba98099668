"""Quadratic forms of error contrasts in what each (co)variance adds to the covariance matrix of the records.

    var(y) = sum over elements psi_i V_i,      V_ab = W_a K W_b' + W_b K W_a'  (a != b),  W_a K W_a'  (a = b)

    F_i = G' V_i G,      G the contrasts (n, m) of two traits

An element of components of traits t and u says something of contrasts of t with contrasts of u alone, so that forms of
each pair of traits stand apart. Forms are in units in which V_i adds about 1 to the variance of a record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mmgibbs.build.estimable.contrasts import Contrasts, build_incidence
from mmgibbs.build.estimable.matrices import Block
from mmgibbs.models.design import Design
from mmgibbs.models.markers import Markers
from mmgibbs.models.relationships.base import solve_inverse
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.terms import Term

COLUMNS = 16  # contrasts that a relationship matrix is multiplied by at once
SNPS = 1024  # decoded at once


class Element(NamedTuple):
    """Element of the matrix of one block, row >= column: positions among its components."""

    block: int
    row: int
    column: int


class Form(NamedTuple):
    element: Element
    matrix: np.ndarray  # (m, m) F_i


class Forms(NamedTuple):
    """Forms of all elements of the blocks."""

    of_traits: dict[tuple[int, int], list[Form]]  # by pair of traits, the first not after the second
    units: list[np.ndarray]  # (k,) per block: what a variance of 1 of each component adds to that of a record


def compute_forms(design: Design, blocks: Sequence[Block], contrasts: Sequence[Contrasts]) -> Forms:
    """Compute the forms of every element of the blocks."""
    with_z = [np.column_stack([c.z, c.g]) for c in contrasts]
    lengths = [float(np.sum(c.g**2)) / c.g.shape[1] or 1.0 for c in contrasts]
    squares = [float(c.z @ c.z) or 1.0 for c in contrasts]
    out: dict[tuple[int, int], list[Form]] = {}
    units = []
    for number, block in enumerate(blocks):
        products = _multiply_contrasts(design, block, contrasts, with_z)
        unit = np.array([products[a, a][0, 0] / squares[t] for a, t in enumerate(block.traits)])
        unit[unit <= 0] = 1.0
        units.append(unit)
        for row in range(block.size):
            for column in range(row + 1):
                t, u = block.traits[column], block.traits[row]
                F = products[column, row] if t <= u else products[column, row].T
                F = F[1:, 1:] / np.sqrt(unit[row] * unit[column] * lengths[t] * lengths[u])
                F = F + F.T if t == u and row != column else F
                out.setdefault((min(t, u), max(t, u)), []).append(Form(Element(number, row, column), F))
    return Forms(out, units)


def _multiply_contrasts(
    design: Design, block: Block, contrasts: Sequence[Contrasts], with_z: Sequence[np.ndarray]
) -> dict[tuple[int, int], np.ndarray]:
    """(a, b), a <= b -> G_a' W_a K W_b' G_b of two components."""
    pairs = [(a, b) for b in range(block.size) for a in range(b + 1)]
    if block.residual_class is not None:
        return {(a, b): _multiply_residuals(design, block, a, b, contrasts, with_z) for a, b in pairs}
    if block.term is not None:
        components = list(zip(block.components, block.traits, strict=True))
        return _multiply_term(design.terms[block.term], components, contrasts, with_z)
    sums = [_sum_over_animals(m, contrasts[m.trait], with_z[m.trait]) for m in block.markers]
    out = {(a, b): sums[a].T @ sums[b] for a, b in pairs}
    residual_variance = block.markers[0].left
    if residual_variance is not None:  # a random term has a share of the same variances
        term = next(t for t in design.terms if t.name == residual_variance.term)
        of_trait = [int(np.flatnonzero(term.component_trait == t)[0]) for t in block.traits]
        more = _multiply_term(term, list(zip(of_trait, block.traits, strict=True)), contrasts, with_z)
        out = {pair: out[pair] + residual_variance.factor * more[pair] for pair in out}
    return out


def _multiply_residuals(
    design: Design, block: Block, a: int, b: int, contrasts: Sequence[Contrasts], with_z: Sequence[np.ndarray]
) -> np.ndarray:
    t, u = block.traits[a], block.traits[b]
    _, of_t, of_u = np.intersect1d(contrasts[t].rows, contrasts[u].rows, assume_unique=True, return_indices=True)
    rows = contrasts[t].rows[of_t]
    inside = design.class_of_pattern[design.pattern[rows]] == block.residual_class
    weighted = with_z[t][of_t[inside]] / design.weight[rows[inside], None]
    return weighted.T @ with_z[u][of_u[inside]]


def _multiply_term(
    term: Term, components: Sequence[tuple[int, int]], contrasts: Sequence[Contrasts], with_z: Sequence[np.ndarray]
) -> dict[tuple[int, int], np.ndarray]:
    """components: each with its trait."""
    at_levels = [build_incidence(term, c, contrasts[t].rows).T @ with_z[t] for c, t in components]
    n = term.n_without_fixed_groups
    met = np.any([np.any(s[:n] != 0, axis=1) for s in at_levels], axis=0)
    kept = np.flatnonzero(met)
    at_levels = [s[kept] for s in at_levels]
    out = {}
    for b, s in enumerate(at_levels):
        related = _multiply_relationship(term, kept, s)
        for a in range(b + 1):
            out[a, b] = at_levels[a].T @ related
    return out


def _multiply_relationship(term: Term, levels: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(m, c) the rows of K x of these levels, x (m, c) at them."""
    K, out = term.relationship, np.empty(x.shape)
    if type(K) is Identity:
        return x
    held = None if term.active is None else np.flatnonzero(term.active[: term.n_without_fixed_groups].any(axis=1))
    for first in range(0, x.shape[1], COLUMNS):
        columns = slice(first, first + COLUMNS)
        full = np.zeros((term.n_levels, x[:, columns].shape[1]))
        full[levels] = x[:, columns]
        if held is not None and held.size < term.n_without_fixed_groups:
            product = np.zeros(full.shape)
            product[held] = solve_inverse(K, held, full[held])
        else:
            product = K.times(full)
        out[:, columns] = product[levels]
    return out


def _sum_over_animals(markers: Markers, contrasts: Contrasts, with_z: np.ndarray) -> np.ndarray:
    """(p, m) X' of the animals of the records times their contrasts."""
    store, animal = markers.genotypes, markers.animal[contrasts.rows]
    of_animal = np.zeros((store.n_animals, with_z.shape[1]))
    np.add.at(of_animal, animal[animal >= 0], with_z[animal >= 0])
    values = store.values(markers.centre, markers.scale, markers.mean)
    parts = []
    for first in range(0, store.n_snps, SNPS):
        rows = np.arange(first, min(first + SNPS, store.n_snps))
        decoded = store.decode(rows, values)[:, : store.n_animals]
        parts.append(decoded.astype(np.float64) @ of_animal)
    return np.concatenate(parts)
