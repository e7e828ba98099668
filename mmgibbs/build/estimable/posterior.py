"""Whether a posterior of the variances exists where their priors do not: conditions that are necessary.

A block of k components has the prior |G|^-(nu + k + 1)/2, the flat one nu = -(k + 1). Let the variances of u of its
components grow as t without end, at the same correlations. Their levels become fixed effects: the likelihood falls as
t^-R/2, R the number of independent error contrasts that they change, the rank of M Z. The matrices have a volume that
grows as t^(u(u + 1) + u(k - u))/2, and |G| grows as t^u. So growth of components of several blocks together leaves a
finite integral only where

    R  >  sum over blocks of -u nu                     one variance with a flat prior: R > 2;  all v of a trait: R > 2 v

Near 0 the likelihood tends to a constant: with a scale S = 0, nu < 1 - k is needed (nu = 0 is the prior 1 / variance).
For one random effect after another this is Theorem 1 of Hobert & Casella (1996, JASA 91:1461); for priors that are
powers of variances see Sun, Tsutakawa & He (2001, Statistica Sinica 11:77) and Gelman (2006, Bayesian Analysis 1:515).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from mmgibbs.build.estimable.contrasts import Contrasts
from mmgibbs.build.estimable.forms import Form, Forms
from mmgibbs.build.estimable.matrices import Block
from mmgibbs.models.design import Design

MAX_BLOCKS_IN_ALL_SETS = 6  # beyond, sets of two and of all
RANK = 1e-10  # eigenvalue in units of the variance itself, and of the largest


class Growth(NamedTuple):
    """Components that may grow without end, and what would hold them."""

    blocks: tuple[int, ...]
    positions: tuple[tuple[int, ...], ...]  # of each block
    contrasts: int  # R
    needed: int  # R has to be above it
    direction: bool = False  # a combination of the coefficients of a random regression


def find_improper_blocks(blocks: Sequence[Block]) -> list[int]:
    """Find the blocks whose prior does not bound large variances."""
    out = []
    for number, block in enumerate(blocks):
        if block.model is None or block.unit or block.model.fixed or block.model.prior.is_proper:
            continue
        if _nu(block) <= block.size - 1:
            out.append(number)
    return out


def count_contrasts_needed(blocks: Sequence[Block]) -> int:
    """Count the contrasts of one trait that are needed to see that every condition holds."""
    improper = [blocks[i] for i in find_improper_blocks(blocks)]
    return 2 + int(sum(max(0.0, -block.size * _nu(block)) for block in improper))


def find_unlimited_growth(
    design: Design, blocks: Sequence[Block], forms: Forms, contrasts: Sequence[Contrasts]
) -> list[Growth]:
    """Sets of components whose growth the records do not hold, none of which has another of them in it."""
    diagonal = {
        (f.element.block, f.element.row): f.matrix
        for of_traits in forms.of_traits.values()
        for f in of_traits
        if f.element.row == f.element.column
    }
    out: list[Growth] = []
    for chosen in _list_sets(blocks, find_improper_blocks(blocks)):
        if any(_contains(chosen, growth) for growth in out):
            continue
        R = _count_contrasts(blocks, diagonal, chosen)
        needed = sum(-len(p) * _nu(blocks[b]) for b, p in chosen.items())
        if needed >= R:
            out.append(Growth(tuple(chosen), tuple(chosen.values()), int(R), int(np.floor(needed))))
    reported = {b for growth in out for b in growth.blocks}
    return out + [
        growth
        for b in find_improper_blocks(blocks)
        if b not in reported
        for growth in _find_growth_of_combinations(design, blocks, b, forms, contrasts)
    ]


def _contains(chosen: dict[int, tuple[int, ...]], growth: Growth) -> bool:
    return all({*p} <= {*chosen.get(b, ())} for b, p in zip(growth.blocks, growth.positions, strict=True))


def find_improper_at_zero(blocks: Sequence[Block]) -> list[int]:
    """Blocks of random terms whose prior has no end at 0."""
    out = []
    for i in find_improper_blocks(blocks):
        block = blocks[i]
        assert block.model is not None
        nu, S = block.model.inverse_wishart(block.components)
        rank = int(np.linalg.matrix_rank(S))
        if block.is_random_term and ((rank == 0 and nu >= 1 - block.size) or (0 < rank < block.size and nu >= 0)):
            out.append(i)
    return out


def _nu(block: Block) -> float:
    assert block.model is not None
    return block.model.inverse_wishart(block.components)[0]


def _list_sets(blocks: Sequence[Block], improper: Sequence[int]) -> Iterator[dict[int, tuple[int, ...]]]:
    """List sets of components: each; those of one trait, and all, of each set of blocks; small sets first."""
    for b in improper:
        for p in range(blocks[b].size):
            yield {b: (p,)}
    sizes = list(range(1, len(improper) + 1))
    if len(improper) > MAX_BLOCKS_IN_ALL_SETS:
        sizes = [1, 2, len(improper)]
    traits = sorted({t for b in improper for t in blocks[b].traits})
    for size in sizes:
        for chosen in combinations(improper, size):
            for trait in traits:
                of_trait = {b: tuple(p for p, t in enumerate(blocks[b].traits) if t == trait) for b in chosen}
                if all(of_trait.values()):
                    yield of_trait
            yield {b: tuple(range(blocks[b].size)) for b in chosen}


def _count_contrasts(
    blocks: Sequence[Block], diagonal: dict[tuple[int, int], np.ndarray], chosen: dict[int, tuple[int, ...]]
) -> float:
    """R, infinite where a trait has more contrasts than were looked at."""
    total = 0.0
    for trait in {blocks[b].traits[p] for b, positions in chosen.items() for p in positions}:
        forms = [diagonal[b, p] for b, positions in chosen.items() for p in positions if blocks[b].traits[p] == trait]
        F = np.sum(forms, axis=0)
        rank = _compute_rank(F)
        total += np.inf if rank == len(F) else rank
    return total


def _compute_rank(F: np.ndarray) -> int:
    values = np.linalg.eigvalsh((F + F.T) / 2)
    return int(np.count_nonzero(values > RANK * max(1.0, values[-1])))


def _find_growth_of_combinations(
    design: Design, blocks: Sequence[Block], number: int, forms: Forms, contrasts: Sequence[Contrasts]
) -> Iterator[Growth]:
    """The combination of the coefficients of a random regression that the fewest records see: 0 at the most frequent
    values of its covariates, as the slope where nearly all records are of one age."""
    block = blocks[number]
    if block.term is None:
        return
    term = design.terms[block.term]
    for e, effect in enumerate(term.effects):
        if effect.covariates is None or effect.n_regressors < 2:
            continue
        for trait in effect.traits:
            rows = contrasts[trait].rows
            at = [
                p
                for p, c in enumerate(block.components)
                if term.component_effect[c] == e and term.component_trait[c] == trait
            ]
            if len(at) < effect.n_regressors:
                continue
            v = _find_unseen_combination(effect.covariates[rows[effect.level[rows] >= 0]])
            weights = v * np.sqrt(forms.units[number][at])
            R = _compute_rank(_combine_forms(forms.of_traits[trait, trait], number, at, weights))
            needed = -_nu(block)
            if needed >= R:
                yield Growth((number,), (tuple(at),), R, int(np.floor(needed)), True)


def _find_unseen_combination(covariates: np.ndarray) -> np.ndarray:
    """(m,) v of length 1 with z'v = 0 for the most frequent rows z of the covariates (n, m)."""
    m = covariates.shape[1]
    size = max(float(np.abs(covariates).max(initial=0.0)), np.finfo(float).tiny)
    distinct, count = np.unique(np.round(covariates / size, 9), axis=0, return_counts=True)
    kept = np.zeros((0, m))
    for row in distinct[np.argsort(-count, kind="stable")]:
        more = np.vstack([kept, row])
        if np.linalg.matrix_rank(more) == len(more):
            kept = more
        if len(kept) == m - 1:
            break
    return np.linalg.svd(kept, full_matrices=True)[2][-1] if len(kept) else np.eye(m)[-1]


def _combine_forms(forms: Sequence[Form], block: int, at: Sequence[int], v: np.ndarray) -> np.ndarray:
    """The form of the combination v of components of one block."""
    weight = dict(zip(at, v, strict=True))
    out = 0.0
    for form in forms:
        b, row, column = form.element
        if b == block and row in weight and column in weight:
            out = out + weight[row] * weight[column] * form.matrix
    return np.asarray(out)
