"""Genomic and single-step relationships by a core of the animals, for what only multiplies vectors with K^-1: BLUP,
and sampling by engine pcg.

The same relationships as of genomic_relationships.py, to rounding: blended, of single-step tuned, and inverted by the
core (models/relationships/core.py). Of G and A22 only the columns of the core, the diagonal and the sum of all elements
are made, which is all that blending, tuning and the inverse need.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mmgibbs.config.genomic_relationships import Genomic, SingleStep
from mmgibbs.config.sampling import Sampler
from mmgibbs.data.genomic_relationships import (
    REAL,
    Asked,
    Means,
    blend,
    choose_core,
    compared,
    describe_genomic_matrix,
    diagonal_means,
    match_pedigree,
    no_inverse,
    pedigree_block,
    pedigree_codes,
    scaled,
    summarise_matrix,
    tune,
    tuning,
    weak_note,
)
from mmgibbs.data.genotypes.prepare import PreparedGenotypes
from mmgibbs.errors import DataError
from mmgibbs.genotypes.relationship import Additive, WithChosen, cross_products, products
from mmgibbs.models.relationships import genomic
from mmgibbs.models.relationships import single_step as of_single_step
from mmgibbs.models.relationships.core import CoreBlock, CoreParts, parts_of_core
from mmgibbs.models.relationships.inverse import Inverted
from mmgibbs.models.relationships.metafounders import Metafounders
from mmgibbs.models.relationships.pedigree import Pedigree as AMatrix
from mmgibbs.pedigree.partitioned import SubsetInverse
from mmgibbs.pedigree.read import Pedigree
from mmgibbs.pedigree.relationship import Relatives
from mmgibbs.pedigree.relationship_products import a_times_relatives, relationship_block

COLUMNS = 1024  # of A22 at once


def products_suffice(spec: object, sampler: Sampler, of_pedigree: AMatrix | None) -> bool:
    """The inverse by a core need not be formed: where no row of it is read, but for metafounders, whose block it would
    join, and omega above 1, where it is to be seen whether H is positive definite."""
    multiplied = sampler.method == "blup" or (sampler.method == "gibbs" and sampler.has_solver)
    if not multiplied or not isinstance(spec, Genomic) or spec.core is None or isinstance(of_pedigree, Metafounders):
        return False
    return not isinstance(spec, SingleStep) or spec.omega <= 1


def genomic_by_core(
    term: str, spec: Genomic, genotypes: PreparedGenotypes, of_pedigree: AMatrix | None
) -> tuple[genomic.Genomic, list[str]]:
    """G of the animals that are kept, in the order of the file, and notes."""
    ids, codes = genotypes.animals["animal"], pedigree_codes(genotypes, of_pedigree, spec, term)
    asked = Asked(term, spec, genotypes, ids, genotypes.packed(ids), codes, of_pedigree)
    notes: list[str] = []
    inverse = None if of_pedigree is None else SubsetInverse(of_pedigree.relatives, codes)
    parts, K, facts = _build_core(asked, inverse, notes)
    block = CoreBlock(np.arange(len(ids), dtype=np.int32), parts)
    return genomic.Genomic(block, K.diagonal, facts), notes + weak_note(term, _inverted(parts))


def single_step_by_core(
    term: str, spec: SingleStep, genotypes: PreparedGenotypes, pedigree: Pedigree, of_pedigree: AMatrix
) -> tuple[of_single_step.SingleStep, list[str]]:
    """H of the animals of the pedigree, and notes."""
    ids, codes, notes = match_pedigree(term, spec, genotypes, pedigree)
    asked = Asked(term, spec, genotypes, ids, genotypes.packed(ids), codes, of_pedigree)
    inverse = SubsetInverse(of_pedigree.relatives, codes)
    parts, _, facts = _build_core(asked, inverse, notes)
    block = CoreBlock(codes.astype(np.int32), parts, spec.tau, inverse, spec.omega)
    facts |= {"tau": spec.tau, "omega": spec.omega}
    return of_single_step.SingleStep(of_pedigree.relatives, block, facts), notes + weak_note(term, _inverted(parts))


def _build_core(
    asked: Asked, inverse: SubsetInverse | None, notes: list[str]
) -> tuple[CoreParts, WithChosen, dict[str, Any]]:
    """Build the core form of the blended and tuned matrix.

    It returns the inverse in the precision in which it is stored, its columns and diagonal, and the facts for run.json.
    inverse: A22^-1, where there is a pedigree. notes: as of `choose_core`.
    """
    spec, single_step = asked.spec, isinstance(asked.spec, SingleStep)
    weight = inverse.times(np.ones(len(asked.ids))) if inverse is not None and spec.frequencies == "base" else None
    coded, rows = scaled(asked, weight)
    assert spec.core is not None
    core = choose_core(
        asked.term, len(asked.ids), asked.ids, spec.core, lambda: _full_matrix(asked, coded, rows), notes
    )
    K = cross_products(coded, rows, core)
    facts = describe_genomic_matrix(asked.genotypes, spec, K, asked.of_pedigree)
    needed = single_step or (spec.blend > 0 and spec.blend_with == "A22")
    A22 = _pedigree_products(asked, core) if needed else None
    if single_step and A22 is not None:
        facts |= {"genotyped": len(K.matrix)} | _compared(K, A22, core)
    K = _blended(K, spec, A22, core)
    if isinstance(spec, SingleStep) and A22 is not None:
        tuned = tuning(_means(K), _means(A22), spec.tune)
        K, facts["tuned"] = _tuned(K, tuned["a"], tuned["b"]), tuned
    del A22
    try:
        parts = parts_of_core(K.matrix, K.diagonal, core)
    except np.linalg.LinAlgError as error:
        raise DataError(no_inverse(asked.term, K.matrix[core], asked.ids.gather(core), spec, error)) from None
    of_core = {"animals": int(core.size), "least_variance_left": parts.least, "condition_of": "core"}
    facts |= {"core": of_core | {"inverse": "products, never formed"}} | summarise_matrix(K.diagonal, _inverted(parts))
    return _cast_parts(parts, REAL[spec.storage]), K, facts


def _inverted(parts: CoreParts) -> Inverted:
    """Return the inverse as figures and notes read it: its error is unknown."""
    return Inverted(parts.of_core, parts.condition, np.nan)


def _cast_parts(parts: CoreParts, real: type) -> CoreParts:
    in_real = lambda a: np.ascontiguousarray(a.astype(real, copy=False))
    return parts._replace(of_core=in_real(parts.of_core), products=in_real(parts.products))


def _full_matrix(asked: Asked, coded: Additive, rows: np.ndarray) -> np.ndarray:
    """K, blended and tuned: for its eigenvalues alone."""
    K, spec = products(coded, rows).matrix, asked.spec
    of_A22 = isinstance(spec, SingleStep) or (spec.blend > 0 and spec.blend_with == "A22")
    A22 = pedigree_block(asked.of_pedigree, asked.codes) if of_A22 else None
    blend(K, spec, A22)
    if isinstance(spec, SingleStep) and A22 is not None:
        tune(K, A22, spec.tune)
    return K


def _pedigree_products(asked: Asked, core: np.ndarray) -> WithChosen:
    """A22 as `cross_products` has G."""
    assert asked.of_pedigree is not None, "a pedigree that is needed has been read"
    kin, codes = asked.of_pedigree.relatives, asked.codes
    columns = relationship_block(kin.sire, kin.dam, kin.inbreeding, codes, core)
    everybody = np.zeros(kin.n_animals)
    everybody[codes] = 1.0
    total = float(a_times_relatives(kin, everybody)[codes].sum())
    return WithChosen(columns, _pedigree_diagonal(kin, codes), total, "double")


def _pedigree_diagonal(kin: Relatives, codes: np.ndarray) -> np.ndarray:
    """(m,) of A22: 1 + F, and by columns where inbreeding is ignored, when it is not all 1."""
    if kin.inbreeding.any():
        return 1.0 + kin.inbreeding[codes]
    out = np.empty(codes.size)
    for first in range(0, codes.size, COLUMNS):
        chunk = np.arange(first, min(codes.size, first + COLUMNS))
        out[chunk] = relationship_block(kin.sire, kin.dam, kin.inbreeding, codes, chunk)[chunk, np.arange(chunk.size)]
    return out


def _blended(K: WithChosen, spec: Genomic, A22: WithChosen | None, core: np.ndarray) -> WithChosen:
    """(1 - w) K + w A22 or I; its columns in place."""
    w, n = spec.blend, len(K.diagonal)
    K.matrix[:] *= 1 - w
    if A22 is not None and spec.blend_with == "A22":
        for row, pedigree_row in zip(K.matrix, A22.matrix, strict=True):
            row += w * pedigree_row
        of_other, total = A22.diagonal, A22.total
    else:
        K.matrix[core, np.arange(core.size)] += w
        of_other, total = np.ones(n), float(n)
    return K._replace(diagonal=(1 - w) * K.diagonal + w * of_other, total=(1 - w) * K.total + w * total)


def _tuned(K: WithChosen, a: float, b: float) -> WithChosen:
    """a + b K; its columns in place."""
    K.matrix[:] *= b
    K.matrix[:] += a
    return K._replace(diagonal=a + b * K.diagonal, total=a * len(K.diagonal) ** 2 + b * K.total)


def _means(K: WithChosen) -> Means:
    return diagonal_means(len(K.diagonal), float(K.diagonal.sum()), K.total)


def _compared(G: WithChosen, A22: WithChosen, core: np.ndarray) -> dict[str, Any]:
    """Means of the two, and their correlation off the diagonal among the core."""
    names = ("diagonal", "off_diagonal", "mean")
    means = {"genomic_means": _means(G), "pedigree_means": _means(A22)}
    among_core = compared(G.matrix[core], A22.matrix[core])
    return among_core | {key: dict(zip(names, values, strict=True)) for key, values in means.items()}
