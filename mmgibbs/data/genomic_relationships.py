"""Relationship matrices from the genotypes of an analysis: G and D of the genotyped, and what single-step adds to A.

In this order: X'X of the genotypes (genotypes/relationship.py); blended, (1 - w) G + w A22 or I; of single-step, tuned,
a + b G; inverted in double. What was done is told in run.json.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.config.genomic_relationships import Core, Dominance, Genomic, GenotypeRelationship, SingleStep
from mmgibbs.data.animal_ids import explain_respelled
from mmgibbs.data.genotypes.prepare import PreparedGenotypes, choose_frequencies
from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.errors import DataError
from mmgibbs.genotypes.on_device import DeviceMatrices
from mmgibbs.genotypes.relationship import (
    Additive,
    Products,
    WithChosen,
    dominance,
    products,
    scaled_1,
    scaled_2,
)
from mmgibbs.genotypes.store import PackedGenotypes, Store
from mmgibbs.models.relationships import genomic
from mmgibbs.models.relationships import single_step as of_single_step
from mmgibbs.models.relationships.base import DenseBlock
from mmgibbs.models.relationships.core import core_size, inverse_by_core
from mmgibbs.models.relationships.inverse import Inverted, identical_pairs, invert
from mmgibbs.models.relationships.metafounders import Metafounders
from mmgibbs.models.relationships.pedigree import Pedigree as AMatrix
from mmgibbs.pedigree.messages import ResultWarning
from mmgibbs.pedigree.read import Pedigree
from mmgibbs.pedigree.tables import counted, quoted


@dataclass(frozen=True)
class Asked:
    """Genomic relationships of a term: of which animals, and from what."""

    term: str
    spec: Genomic
    genotypes: PreparedGenotypes
    ids: pl.Series
    store: Store  # of these animals
    codes: np.ndarray  # theirs in the pedigree, where it is needed
    of_pedigree: AMatrix | None


REAL = {"double": np.float64, "single": np.float32}
Means = tuple[float, float, float]  # of the diagonal, off it, of all
WEAK = 1e10  # condition from which an inverse is said to be poorly known


def build_genomic_matrix(
    term: str,
    spec: GenotypeRelationship,
    genotypes: PreparedGenotypes,
    of_pedigree: AMatrix | None,
    on: DeviceMatrices | None = None,
) -> tuple[genomic.Genomic, list[str]]:
    """G or D of the animals that are kept, in the order of the file, and notes.

    of_pedigree: A, where it is needed; on: a device that makes and inverts it.
    """
    ids = genotypes.animals["animal"]
    store, codes = genotypes.packed(ids), pedigree_codes(genotypes, of_pedigree, spec, term)
    kind: type[genomic.Genomic]
    if isinstance(spec, Dominance):
        if not isinstance(store, PackedGenotypes):
            raise DataError(
                f"model.random.{term}.relationship: {genotypes.file.name} has dosages that are not 0, 1 or 2, from "
                "which dominance relationships cannot be computed; needed genotypes"
            )
        made, kind = dominance(store, genotypes.frequency, on), genomic.Dominance
        K, facts = made.matrix, describe_genomic_matrix(genotypes, spec, made, None)
        K *= 1 - spec.blend
        K[np.diag_indices(len(K))] += spec.blend
    else:
        assert isinstance(spec, Genomic)
        made, kind = _additive(term, spec, genotypes, ids, store, of_pedigree, codes, on), genomic.Genomic
        K, facts = made.matrix, describe_genomic_matrix(genotypes, spec, made, of_pedigree)
        blend(K, spec, pedigree_block(of_pedigree, codes) if spec.blend and spec.blend_with == "A22" else None)
    return invert_genomic_matrix(kind, term, spec, ids, K, facts, on)


def invert_genomic_matrix(
    kind: type[genomic.Genomic],
    term: str,
    spec: GenotypeRelationship,
    ids: pl.Series,
    K: np.ndarray,
    facts: dict[str, Any],
    on: DeviceMatrices | None = None,
) -> tuple[genomic.Genomic, list[str]]:
    """The relationship with the matrix K, which is blended, and notes."""
    notes: list[str] = []
    diagonal, inverted = K.diagonal().copy(), _inverse(term, K, ids, spec, facts, notes, on)
    block = DenseBlock(np.arange(len(ids), dtype=np.int32), inverted.values.astype(REAL[spec.storage], copy=False))
    return kind(block, diagonal, facts | summarise_matrix(diagonal, inverted)), notes + weak_note(term, inverted)


def single_step(
    term: str,
    spec: SingleStep,
    genotypes: PreparedGenotypes,
    pedigree: Pedigree,
    of_pedigree: AMatrix,
    on: DeviceMatrices | None = None,
) -> tuple[of_single_step.SingleStep, list[str]]:
    """H of the animals of the pedigree, of which those kept of the genotypes are genotyped; and notes."""
    ids, code, notes = match_pedigree(term, spec, genotypes, pedigree)
    made = _additive(term, spec, genotypes, ids, genotypes.packed(ids), of_pedigree, code, on)
    facts = describe_genomic_matrix(genotypes, spec, made, of_pedigree) | {"genotyped": len(ids)}
    relationship, of_matrix = combine_with_pedigree(term, spec, ids, code, made.matrix, of_pedigree, facts, on)
    return relationship, notes + of_matrix


def combine_with_pedigree(
    term: str,
    spec: SingleStep,
    ids: pl.Series,
    code: np.ndarray,
    K: np.ndarray,
    of_pedigree: AMatrix,
    facts: dict[str, Any],
    on: DeviceMatrices | None = None,
) -> tuple[of_single_step.SingleStep, list[str]]:
    """H from the genomic relationships K as they are, which are blended and tuned in place, and notes."""
    notes: list[str] = []
    A22 = pedigree_block(of_pedigree, code)
    facts = facts | compared(K, A22)
    blend(K, spec, A22)
    facts |= {"tuned": tune(K, A22, spec.tune)}
    diagonal = K.diagonal().copy()
    del A22
    inverted = _inverse(term, K, ids, spec, facts, notes, on)
    S = inverted.values
    S *= spec.tau
    if spec.omega:
        of_others = of_pedigree.inverse_among(code)
        S -= spec.omega * of_others
        if spec.omega > 1:
            _refuse_indefinite(term, S + of_others)
    block = DenseBlock(code.astype(np.int32), S.astype(REAL[spec.storage], copy=False))
    facts |= {"tau": spec.tau, "omega": spec.omega} | summarise_matrix(diagonal, inverted)
    if isinstance(of_pedigree, Metafounders):
        block, facts = _with_metafounders(block, of_pedigree), facts | of_pedigree.facts
    return of_single_step.SingleStep(of_pedigree.relatives, block, facts), notes + weak_note(term, inverted)


def match_pedigree(
    term: str, spec: SingleStep, genotypes: PreparedGenotypes, pedigree: Pedigree
) -> tuple[pl.Series, np.ndarray, list[str]]:
    """Genotyped animals in the order of the pedigree, their codes in it, and notes."""
    ids, notes = genotypes.animals["animal"], []
    codes = pedigree.codes(ids)
    outside = ids.filter(codes.is_null())
    if len(outside):
        what = f"{counted(len(outside), 'genotyped animal', 'is')} not in the pedigree, such as "
        what += ", ".join(outside.head(SHOWN))
        if spec.outside_pedigree == "refuse" or len(outside) == len(ids):
            raise DataError(
                f"{genotypes.file.name}: {what}; needed a pedigree row for each, or model.random.{term}.relationship."
                "outside_pedigree: drop"
            )
        notes.append(f"{genotypes.file.name}: {what}; left out of model.random.{term}")
        ids = ids.filter(codes.is_not_null())
    order = np.argsort(codes.drop_nulls().to_numpy(), kind="stable")
    ids = ids.gather(order)
    code = codes.drop_nulls().to_numpy().astype(np.int64)[order]
    return ids, code, notes


def _with_metafounders(S: DenseBlock, of_pedigree: Metafounders) -> DenseBlock:
    """S and Gamma^-1."""
    from scipy.linalg import block_diag

    dense = of_pedigree.dense
    return DenseBlock(
        np.concatenate([S.levels, dense.levels]), block_diag(S.values, dense.values).astype(S.values.dtype, copy=False)
    )


def pedigree_codes(
    genotypes: PreparedGenotypes, of_pedigree: AMatrix | None, spec: GenotypeRelationship, term: str
) -> np.ndarray:
    """Pedigree codes of the animals that are kept; none without a pedigree."""
    codes = genotypes.matched.pedigree_code[genotypes.checked.kept_animals]
    if of_pedigree is not None and np.any(codes < 0):
        absent = genotypes.animals["animal"].filter(pl.Series(codes < 0))
        raise DataError(
            f"{genotypes.file.name}: {counted(len(absent), 'genotyped animal', 'is')} not in the pedigree, such as "
            f"{', '.join(absent.head(SHOWN))}; needed a pedigree row for each (model.random.{term}.relationship uses "
            "the pedigree)"
        )
    return codes if of_pedigree is not None else codes[:0]


def pedigree_block(of_pedigree: AMatrix | None, codes: np.ndarray) -> np.ndarray:
    assert of_pedigree is not None, "a pedigree that is needed has been read"
    return of_pedigree.submatrix(codes)


def _additive(
    term: str,
    spec: Genomic,
    genotypes: PreparedGenotypes,
    ids: pl.Series,
    store: Store,
    of_pedigree: AMatrix | None,
    codes: np.ndarray,
    on: DeviceMatrices | None = None,
) -> Products:
    """X'X of the store, which has these animals; codes: theirs in the pedigree, where it is needed."""
    return products(*scaled(Asked(term, spec, genotypes, ids, store, codes, of_pedigree)), on)


def scaled(asked: Asked, weight: np.ndarray | None = None) -> tuple[Additive, np.ndarray]:
    """The genotypes of which G is X'X, and the SNPs. weight: A22^-1 1, where it is known."""
    frequency = _frequency(asked, weight)
    if not np.any((frequency > 0) & (frequency < 1)):
        raise DataError(
            f"{asked.genotypes.file.name}: every allele frequency is 0 or 1 (model.random.{asked.term}.relationship."
            "frequencies)"
        )
    make = scaled_1 if asked.spec.method == "vanraden1" else scaled_2
    return make(asked.store, frequency, asked.genotypes.mean)


def _frequency(asked: Asked, weight: np.ndarray | None) -> np.ndarray:
    """(p,) of the counted allele.

    base: generalised least squares, 1'A22^-1 m / (2 1'A22^-1 1) (McPeek, Wu & Ober 2004, Biometrics 60:359), within 0
    and 1.
    """
    spec, genotypes, store = asked.spec, asked.genotypes, asked.store
    if spec.frequencies is None:
        return genotypes.frequency
    if spec.frequencies != "base":
        recorded = genotypes.matched.recorded[genotypes.find_rows(asked.ids)]
        of_genotyped, snps = genotypes.mean / 2, genotypes.snps["snp"]
        where = f"model.random.{asked.term}.relationship.frequencies"
        return choose_frequencies(spec.frequencies, genotypes.file.name, snps, of_genotyped, store, recorded, where)
    if weight is None:
        assert asked.of_pedigree is not None, "a pedigree that is needed has been read"
        weight = asked.of_pedigree.inverse_among(asked.codes).sum(axis=0)
    values = store.values(np.zeros(store.n_snps), mean=genotypes.mean)
    return np.clip(store.dot(store.every, values, weight) / (2 * weight.sum()), 0.0, 1.0)


def blend(K: np.ndarray, spec: Genomic, A22: np.ndarray | None) -> None:
    """K <- (1 - w) K + w A22, or + w I; in place."""
    K *= 1 - spec.blend
    if spec.blend and spec.blend_with == "A22":
        assert A22 is not None
        for row, pedigree_row in zip(K, A22, strict=True):
            row += spec.blend * pedigree_row
    elif spec.blend:
        K[np.diag_indices(len(K))] += spec.blend


def _means(K: np.ndarray) -> Means:
    """Compute the means of the diagonal, of what is off the diagonal, and of all."""
    return diagonal_means(len(K), float(K.trace()), float(K.sum()))


def diagonal_means(n: int, trace: float, total: float) -> Means:
    return trace / n, (total - trace) / max(1, n * (n - 1)), total / n**2


def tune(K: np.ndarray, A22: np.ndarray, way: str) -> dict[str, Any]:
    """K <- a + b K in place, and (a, b)."""
    tuned = tuning(_means(K), _means(A22), way)
    K *= tuned["b"]
    K += tuned["a"]
    return tuned


def tuning(of_K: Means, of_A22: Means, way: str) -> dict[str, Any]:
    """a and b of K <- a + b K, which brings genomic relationships to the scale of the pedigree, from their means.

    A22: means of the diagonal and off it are A22's; unit: they are 1 and 0; mean: b = 1 and the mean of all is A22's
    (Vitezica et al. 2011, Genet. Res. 93:357); fst: the difference a of the means, and b = 1 - a / 2 (the same; Powell
    et al. 2010); none.
    """
    diagonal, off, mean = of_K
    a, b = 0.0, 1.0
    if way in ("A22", "unit"):
        of_diagonal, of_off, _ = of_A22 if way == "A22" else (1.0, 0.0, 0.0)
        if not diagonal - off > 0:
            raise DataError(
                "single-step: the genomic relationships of the genotyped with themselves are no larger than with each "
                "other; needed more animals, or tune: none"
            )
        b = (of_diagonal - of_off) / (diagonal - off)
        a = of_diagonal - b * diagonal
    elif way in ("mean", "fst"):
        a = of_A22[2] - mean
        b = 1 - a / 2 if way == "fst" else 1.0
    return {"to": way, "a": a, "b": b}


def compared(K: np.ndarray, A22: np.ndarray) -> dict[str, Any]:
    """The genomic relationships as they are beside those of the pedigree: means, and their correlation off the
    diagonal."""
    n = len(K)
    names = ("diagonal", "off_diagonal", "mean")
    means = {
        key: dict(zip(names, _means(of), strict=True)) for key, of in (("genomic_means", K), ("pedigree_means", A22))
    }
    off = n * (n - 1)
    if not off:
        return means
    (_, g, _), (_, a, _) = _means(K), _means(A22)
    products = [float(np.vdot(x, y)) - float(x.diagonal() @ y.diagonal()) for x, y in ((K, A22), (K, K), (A22, A22))]
    cov, vg, va = (p / off - m for p, m in zip(products, (g * a, g * g, a * a), strict=True))
    return means | ({"correlation_off_diagonal": cov / np.sqrt(vg * va)} if vg > 0 and va > 0 else {})


def _inverse(
    term: str,
    K: np.ndarray,
    ids: pl.Series,
    spec: GenotypeRelationship,
    facts: dict[str, Any],
    notes: list[str],
    on: DeviceMatrices | None,
) -> Inverted:
    """Invert the matrix, whole or from a core, which enters `facts` and `notes`."""
    asked = spec.core if isinstance(spec, Genomic) else None
    core = None if asked is None else choose_core(term, len(K), ids, asked, lambda: K, notes)
    try:
        if core is None:
            return invert(K, on)
        inverse = inverse_by_core(K, core)
        facts["core"] = {"animals": int(core.size), "least_variance_left": inverse.least, "condition_of": "core"}
        return Inverted(inverse.values, inverse.condition, np.nan)
    except np.linalg.LinAlgError as error:
        raise DataError(no_inverse(term, K, ids, spec, error)) from None


def no_inverse(term: str, K: np.ndarray, ids: pl.Series, spec: GenotypeRelationship, error: Exception) -> str:
    """K: of these animals."""
    pairs = [f"{ids[i]} and {ids[j]}" for i, j in identical_pairs(K, SHOWN)]
    why = (
        f"these animals have the same genotypes: {', '.join(pairs)}; needed one of each "
        "(data.genotypes.quality.duplicate_animals: drop), or"
        if pairs
        else f"{len(K):,} animals may be more than their genotypes can tell apart; needed"
    )
    return (
        f"model.random.{term}.relationship: the {spec.name} relationships of the genotyped have no inverse "
        f"({error}): {why} a larger blend than {spec.blend:g}"
    )


def choose_core(
    term: str, n: int, ids: pl.Series, asked: Core, make_matrix: Callable[[], np.ndarray], notes: list[str]
) -> np.ndarray:
    """Positions of the core among n animals, rising; whole: makes K. notes: get one where a file repeats animals."""
    path = f"model.random.{term}.relationship.core"
    if asked.file is not None:
        lines = _core_animals(asked.file, f"{path}.file", notes)
        strange = lines.filter(~lines.is_in(ids.implode()))
        if len(strange):
            raise DataError(
                f"{asked.file.name}: found {counted(len(strange), 'animal')} without genotypes, such as "
                f"{', '.join(quoted(i) for i in strange.sort().head(SHOWN))}; needed genotyped animals ({path}.file)"
                + (f"\n{respelled}" if (respelled := explain_respelled(strange, ids, "the file of genotypes")) else "")
            )
        return np.flatnonzero(ids.is_in(lines.implode()).to_numpy())
    size = asked.size or core_size(make_matrix(), asked.explained or 1.0)
    if size > n:
        raise DataError(f"{path}.size: found {size:,}, needed at most {n:,}, the number of genotyped animals")
    return np.sort(np.random.default_rng(asked.seed).permutation(n)[:size])


def _core_animals(file: Path, path: str, notes: list[str]) -> pl.Series:
    """Ids of a file, one on each line, each once; a note counts the lines that repeat one."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8 text"
        raise DataError(f"{file}: cannot be read: {why}; needed the id of an animal on each line ({path})") from None
    lines = pl.Series("id", text.splitlines(), dtype=pl.String).str.strip_chars()
    lines = lines.filter(lines != "")
    if not len(lines):
        raise DataError(f"{file.name}: found no animals; needed the id of one on each line ({path})")
    again = lines.filter(~lines.is_first_distinct())
    if len(again):
        what = "line repeats an animal" if len(again) == 1 else "lines repeat animals"
        notes.append(
            f"{file.name}: {len(again):,} {what}, such as {quoted(again[0])}; each animal is in the core once ({path})"
        )
    return lines.unique(maintain_order=True)


def describe_genomic_matrix(
    genotypes: PreparedGenotypes, spec: GenotypeRelationship, made: Products | WithChosen, of_pedigree: AMatrix | None
) -> dict[str, Any]:
    used = {
        "snps": len(genotypes.frequency),
        "genotyped": len(made.matrix),
        "arithmetic": made.arithmetic,
        "storage": spec.storage,
        "blend": spec.blend,
        "with": spec.blend_with if isinstance(spec, Genomic) else "I",
    }
    if isinstance(spec, Genomic):
        used |= {"method": spec.method, "frequencies": str(spec.frequencies or genotypes.section.frequencies)}
    return used


def _refuse_indefinite(term: str, M: np.ndarray) -> None:
    try:
        np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        raise DataError(f"model.random.{term}.relationship: {of_single_step.NOT_DEFINITE}") from None


def summarise_matrix(matrix_diagonal: np.ndarray, inverted: Inverted) -> dict[str, Any]:
    diagonal = {
        "mean": float(matrix_diagonal.mean()),
        "least": float(matrix_diagonal.min()),
        "largest": float(matrix_diagonal.max()),
    }
    known = {} if np.isnan(inverted.error) else {"inverse_error": inverted.error}
    return {"diagonal": diagonal, "condition": inverted.condition} | known


def weak_note(term: str, inverted: Inverted) -> list[str]:
    if inverted.condition < WEAK:
        return []
    of = "of the core " if np.isnan(inverted.error) else ""
    error = "" if np.isnan(inverted.error) else f", largest error of their inverse {inverted.error:.1e}"
    return [
        ResultWarning(
            f"model.random.{term}: the genomic relationships {of}are close to singular (condition "
            f"{inverted.condition:.1e}{error}): a larger blend makes them safer"
        )
    ]
