"""The part of a genomic or single-step term that SNPs make: effects of SNPs, and relationships of new animals.

    K = a 11' + b [(1 - w) X'X + w B]              u ~ N(0, K (x) G),  u = X'alpha + r + 1 t

X (SNPs, animals) has the scaled genotypes of the run (genotypes/relationship.py), w is the blend with B = A22 or I, a
and b are those of tuning (0 and 1 without it). SNP effects alpha have the prior variance s = b (1 - w) in units of G,
and given the breeding values of the m genotyped animals, or of the core by which K was inverted,

    E(alpha | u) = s X K^-1 u

A new animal y with scaled genotypes x, and relationships A_oy by the pedigree, has

    k = s X'x + b w A_oy + a 1         q = K^-1 k         E(u_y | u) = q'u         Var(u_y | u) = K_yy - k'q

(b w A_oy is 0 where B = I). With tau and omega of single-step other than 1, both are those of the weighted inverse,

    c = tau / (K_yy - k'K^-1 k),  d = (1 - omega) / (A_yy - A_oy' A22^-1 A_oy)
    q = (c K^-1 k + d A22^-1 A_oy) / (c + d)                   Var(u_y | u) = 1 / (c + d)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.linalg import cho_factor, cho_solve

from mmgibbs.config import Analysis
from mmgibbs.config.genomic_relationships import Genomic, SingleStep
from mmgibbs.config.relationships import Pedigree
from mmgibbs.data.genomic_relationships import Asked, choose_core, match_pedigree, pedigree_codes, scaled
from mmgibbs.data.prepared import Prepared
from mmgibbs.data.relationships import additive
from mmgibbs.genotypes.relationship import Additive
from mmgibbs.models.relationships import single_step as of_single_step
from mmgibbs.models.relationships.base import DenseBlock, Relationship
from mmgibbs.models.relationships.core import CoreBlock
from mmgibbs.models.relationships.metafounders import metafounders
from mmgibbs.models.relationships.pedigree import Pedigree as AMatrix

SNPS = 1024  # decoded at once
Solve = Callable[[np.ndarray], np.ndarray]


class Blending(NamedTuple):
    """K = shift 11' + snps X'X + pedigree A22 + identity I."""

    shift: float
    snps: float
    pedigree: float
    identity: float


class NewAnimals(NamedTuple):
    """n animals that are not among the genotyped of a term."""

    weight: np.ndarray  # (genotyped, n) q
    conditional: np.ndarray  # (n,) Var(u_y | u) in units of G
    prior: np.ndarray  # (n,) K_yy


@dataclass(frozen=True)
class GenomicPart:
    """The genotypes of one term. Animals are the genotyped of the term, `chosen` those by which K was inverted."""

    number: int  # of the term in the design
    name: str
    ids: pl.Series  # (m,) genotyped animals
    levels: np.ndarray  # (m,) int64 their levels in the term
    codes: np.ndarray  # (m,) int64 in the pedigree; empty without one
    chosen: np.ndarray  # (c,) int64 positions among the m
    coded: Additive  # scaled genotypes of the chosen; scale 0 where a SNP is not used
    blending: Blending
    of_pedigree: AMatrix | None
    solve: Solve  # K^-1 x among the chosen
    is_single_step: bool = False
    tau: float = 1.0
    omega: float = 0.0  # of the pedigree's inverse; what is not single-step has none

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """SNPs and their scaled genotypes (SNPs, chosen), float64."""
        for first in range(0, len(self.coded.scale), SNPS):
            rows = np.arange(first, min(first + SNPS, len(self.coded.scale)))
            yield rows, self.coded.double(rows)

    def multiply_genotypes(self, v: np.ndarray) -> np.ndarray:
        """(p, k) X v, of v (chosen, k)."""
        return np.concatenate([x @ v for _, x in self.blocks()])

    def compute_effects(self, u: np.ndarray) -> np.ndarray:
        """(p, k) effects of one copy of the counted allele, from breeding values (m, k) of the genotyped."""
        v = self.multiply_genotypes(self.solve(u[self.chosen]))
        return self.blending.snps * self.coded.scale[:, None] * v

    @cached_property
    def inverse_A22(self) -> np.ndarray:
        """(m, m) of the genotyped."""
        assert self.of_pedigree is not None, "single-step has a pedigree"
        return self.of_pedigree.inverse_among(self.codes)

    def relate(self, products: np.ndarray, squares: np.ndarray, code: np.ndarray) -> NewAnimals:
        """New animals from X'x (chosen, n), x'x (n,), and their codes in the pedigree (n,), -1: not in it."""
        b, n = self.blending, len(squares)
        of_pedigree, pedigree_diagonal = np.zeros((len(self.ids), n)), np.ones(n)
        share = 1 - self.omega if self.is_single_step else 0.0
        if b.pedigree or share:
            of_pedigree, pedigree_diagonal = self._pedigree_columns(code)
        k = b.shift + b.snps * products + b.pedigree * of_pedigree[self.chosen]
        prior = b.shift + b.snps * squares + b.pedigree * pedigree_diagonal + b.identity
        solved = self.solve(k)
        conditional = (prior - np.einsum("on,on->n", k, solved)) / self.tau
        weight = np.zeros((len(self.ids), n))
        weight[self.chosen] = solved
        if share:
            by_pedigree = self.inverse_A22 @ of_pedigree
            rest = pedigree_diagonal - np.einsum("on,on->n", of_pedigree, by_pedigree)
            c, d = 1 / conditional, share / rest
            weight, conditional = (c * weight + d * by_pedigree) / (c + d), 1 / (c + d)
        return NewAnimals(weight, np.maximum(conditional, 0.0), prior)

    def _pedigree_columns(self, code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(m, n) A_oy and (n,) A_yy; an animal that is not in the pedigree is a founder without progeny."""
        assert self.of_pedigree is not None
        known = np.flatnonzero(code >= 0)
        unit = np.zeros((self.of_pedigree.n_levels, known.size))
        unit[code[known], np.arange(known.size)] = 1.0
        columns = self.of_pedigree.times(unit)
        block, diagonal = np.zeros((len(self.ids), len(code))), np.ones(len(code))
        block[:, known] = columns[self.codes]
        diagonal[known] = columns[code[known], np.arange(known.size)]
        return block, diagonal


def genomic_parts(analysis: Analysis, prepared: Prepared) -> list[GenomicPart]:
    """List the genomic parts of each term with additive relationships from genotypes; none without genotypes."""
    if prepared.genotypes is None:
        return []
    terms = [(i, term.name) for i, term in enumerate(prepared.design.terms) if term.kind == "random"]
    specs = {name: analysis.model.random[name].relationship for _, name in terms if name in analysis.model.random}
    return [
        _genomic_part(analysis, prepared, number, name, spec)
        for number, name in terms
        if isinstance(spec := specs.get(name), Genomic)
    ]


def pedigree_matrix(analysis: Analysis, prepared: Prepared, relationship: object, spec: Genomic) -> AMatrix | None:
    """A of the animals as the term was built with it; None where it needs no pedigree."""
    if not spec.needs_pedigree or prepared.pedigree is None:
        return None
    if isinstance(relationship, of_single_step.SingleStep):
        gamma = relationship.facts.get("metafounders", {}).get("gamma")
        if gamma is not None:
            return metafounders(relationship.relatives, np.array(gamma), relationship.facts)
        return AMatrix(relationship.relatives)
    return additive(Pedigree(), prepared.pedigree, analysis.data)


def _genomic_part(analysis: Analysis, prepared: Prepared, number: int, name: str, spec: Genomic) -> GenomicPart:
    genotypes, relationship = prepared.genotypes, prepared.design.terms[number].relationship
    assert genotypes is not None and relationship.dense is not None
    of_pedigree = pedigree_matrix(analysis, prepared, relationship, spec)
    if isinstance(spec, SingleStep):
        assert prepared.pedigree is not None
        ids, codes, _ = match_pedigree(name, spec, genotypes, prepared.pedigree)
        levels = codes
    else:
        ids, codes = genotypes.animals["animal"], pedigree_codes(genotypes, of_pedigree, spec, name)
        levels = np.arange(len(ids))
    coded, rows = scaled(Asked(name, spec, genotypes, ids, genotypes.packed(ids), codes, of_pedigree))
    used = np.zeros(len(coded.scale))
    used[rows] = coded.scale[rows]
    tuned, w = relationship.facts.get("tuned", {"a": 0.0, "b": 1.0}), spec.blend
    a, b, with_pedigree = tuned["a"], tuned["b"], w > 0 and spec.blend_with == "A22"
    blending = Blending(a, b * (1 - w), b * w if with_pedigree else 0.0, 0.0 if with_pedigree else b * w)
    weights = (True, spec.tau, spec.omega) if isinstance(spec, SingleStep) else ()
    part = GenomicPart(
        number, name, ids, levels, codes, np.arange(len(ids)), replace(coded, scale=used), blending, of_pedigree,
        np.copy, *weights,
    )  # fmt: skip
    if spec.core is None:
        return replace(part, solve=_make_block_solver(part, relationship.dense))
    core = _find_core(name, spec, ids, relationship)
    part = replace(part, chosen=core, coded=replace(part.coded, store=genotypes.packed(ids.gather(core))))
    return replace(part, solve=_make_core_solver(part, relationship.dense))


def _make_block_solver(part: GenomicPart, block: DenseBlock | CoreBlock) -> Solve:
    """K^-1 x, from the block tau K^-1 - omega A22^-1 of single-step, or K^-1 of genomic relationships."""
    m = len(part.ids)
    inverse = block.values[:m, :m].astype(np.float64)  # metafounders stand behind the animals
    if part.is_single_step and part.omega:
        inverse += part.omega * part.inverse_A22
    inverse /= part.tau
    return lambda x: inverse @ x


def _make_core_solver(part: GenomicPart, block: DenseBlock | CoreBlock) -> Solve:
    """K_cc^-1 x of the core."""
    if isinstance(block, CoreBlock):
        inverse = block.parts.of_core
        return lambda x: inverse @ x
    c, b = len(part.chosen), part.blending
    K = sum((x.T @ x for _, x in part.blocks()), np.zeros((c, c))) * b.snps + b.shift + b.identity * np.eye(c)
    if b.pedigree:
        assert part.of_pedigree is not None
        K += b.pedigree * part.of_pedigree.submatrix(part.codes[part.chosen])
    factor = cho_factor(K, lower=True)
    return lambda x: cho_solve(factor, x)


def _find_core(name: str, spec: Genomic, ids: pl.Series, relationship: Relationship) -> np.ndarray:
    """Positions of the core among the genotyped, as the run chose them."""
    block, core = relationship.dense, keep_core_size(spec, relationship).core
    assert core is not None
    if isinstance(block, CoreBlock):
        return block.parts.core
    return choose_core(name, len(ids), ids, core, lambda: np.empty((0, 0)), [])


def keep_core_size(spec: Genomic, relationship: Relationship) -> Genomic:
    """Set a random core to as many animals as the run took to explain a share of the relationships."""
    if spec.core is None or spec.core.explained is None:
        return spec
    size = relationship.facts["core"]["animals"]
    return spec.model_copy(update={"core": spec.core.model_copy(update={"size": size, "explained": None})})
