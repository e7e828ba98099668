"""Genomic relationships without the SNPs of one chromosome, for tests of its SNPs (Yang et al. 2014).

With h_c = the share that chromosome c has in G (sum of 2pq by VanRaden 1, number of SNPs by VanRaden 2), and G_c = the
products of its SNPs on the scale of G,

    G without c = (G - G_c) / (1 - h_c)

which is the same method applied to the other SNPs, at the same allele frequencies. It is blended, tuned and inverted as
the run did, by the same core.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from mmgibbs.config import Analysis
from mmgibbs.config.genomic_relationships import Genomic, SingleStep
from mmgibbs.data.genomic_parts import keep_core_size, pedigree_matrix
from mmgibbs.data.genomic_relationships import (
    Asked,
    blend,
    combine_with_pedigree,
    invert_genomic_matrix,
    match_pedigree,
    pedigree_block,
    pedigree_codes,
    scaled,
)
from mmgibbs.data.prepared import Prepared
from mmgibbs.errors import DataError
from mmgibbs.genotypes.relationship import products
from mmgibbs.models.design import Design
from mmgibbs.models.relationships import genomic
from mmgibbs.models.relationships.base import Relationship
from mmgibbs.models.terms import Related


@dataclass(frozen=True)
class GenomicMatrix:
    """G of one term, as products of its SNPs."""

    number: int  # of the term in the design
    asked: Asked

    @cached_property
    def scaled(self) -> tuple:
        """Scaled genotypes and the SNPs that are used."""
        return scaled(self.asked)

    @cached_property
    def matrix(self) -> np.ndarray:
        """(m, m) of every SNP, neither blended nor tuned."""
        return products(*self.scaled).matrix

    def leave_out(self, is_left_out: np.ndarray) -> Relationship:
        """The relationship without these SNPs (p,) bool."""
        coded, rows = self.scaled
        of_chromosome = rows[is_left_out[rows]]
        p = coded.centre[of_chromosome] / 2
        share = float(np.sum(coded.scale[of_chromosome] ** 2 * 2 * p * (1 - p)))
        K = self.matrix.copy()
        if of_chromosome.size:
            K -= products(coded, of_chromosome).matrix
            K /= 1 - share
        asked, spec = self.asked, self.asked.spec
        if isinstance(spec, SingleStep):
            assert asked.of_pedigree is not None, "single-step has a pedigree"
            return combine_with_pedigree(asked.term, spec, asked.ids, asked.codes, K, asked.of_pedigree, {})[0]
        with_pedigree = spec.blend > 0 and spec.blend_with == "A22"
        blend(K, spec, pedigree_block(asked.of_pedigree, asked.codes) if with_pedigree else None)
        return invert_genomic_matrix(genomic.Genomic, asked.term, spec, asked.ids, K, {})[0]


@dataclass(frozen=True)
class ChromosomesLeftOut:
    """The design of a run with its genomic relationships without one chromosome."""

    design: Design
    matrices: tuple[GenomicMatrix, ...]
    chromosome: pl.Series  # (p,) of the SNPs of the run

    def leave_out(self, chromosome: str) -> Design:
        """The design for tests of SNPs on this chromosome."""
        is_left_out = (self.chromosome == chromosome).fill_null(False).to_numpy()
        if is_left_out.all():
            raise DataError(
                f"every SNP of the run is on chromosome {chromosome}, so that no relationships are left without it; "
                "needed SNPs of several chromosomes"
            )
        terms = list(self.design.terms)
        for made in self.matrices if is_left_out.any() else ():
            terms[made.number] = replace(terms[made.number], prior=Related(made.leave_out(is_left_out)))
        return replace(self.design, terms=tuple(terms))


def leave_chromosomes_out(analysis: Analysis, prepared: Prepared) -> ChromosomesLeftOut:
    """Leave chromosomes out of every additive term with relationships from genotypes."""
    assert prepared.genotypes is not None, "relationships from genotypes"
    specs = {name: random.relationship for name, random in analysis.model.random.items()}
    matrices = tuple(
        GenomicMatrix(number, _asked(analysis, prepared, number, term.name, spec))
        for number, term in enumerate(prepared.design.terms)
        if term.kind == "random" and isinstance(spec := specs.get(term.name), Genomic)
    )
    return ChromosomesLeftOut(prepared.design, matrices, prepared.genotypes.snps["chromosome"])


def _asked(analysis: Analysis, prepared: Prepared, number: int, name: str, spec: Genomic) -> Asked:
    genotypes, relationship = prepared.genotypes, prepared.design.terms[number].relationship
    assert genotypes is not None
    of_pedigree = pedigree_matrix(analysis, prepared, relationship, spec)
    spec = keep_core_size(spec, relationship)
    if isinstance(spec, SingleStep):
        assert prepared.pedigree is not None, "single-step has a pedigree"
        ids, codes, _ = match_pedigree(name, spec, genotypes, prepared.pedigree)
    else:
        ids, codes = genotypes.animals["animal"], pedigree_codes(genotypes, of_pedigree, spec, name)
    return Asked(name, spec, genotypes, ids, genotypes.packed(ids), codes, of_pedigree)
