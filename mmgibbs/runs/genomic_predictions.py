"""Breeding values of newly genotyped animals from a run with genomic or single-step relationships.

    u_y = q'u        PEV = G_cc Var(u_y | u) + q' C^cc q        (data/genomic_parts.py has q and Var(u_y | u))

u are the run's breeding values, and C^cc is their prediction error covariance of component c, at the run's variances.
These are the values that an evaluation with the new animals in it has, one at a time, where allele frequencies, tuning
and variances stay as they are; by single-step also where every parent without genotypes is as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genomic_parts import GenomicPart, genomic_parts
from mmgibbs.data.genotypes.alleles import Counterparts, counterparts
from mmgibbs.data.genotypes.file_format import GenotypeFile
from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.errors import ConfigError, DataError, option_name
from mmgibbs.genotypes.relationship import Additive
from mmgibbs.likelihood.restricted import Point
from mmgibbs.models.labels import components, effect_label
from mmgibbs.pedigree.tables import agreeing, counted
from mmgibbs.report.finished import Finished
from mmgibbs.results.markers import breeding_value_columns
from mmgibbs.runs.model_of_run import RunModel, factor_model, restore_model
from mmgibbs.runs.other_genotypes import open_other_genotypes, warn_of_disagreement

ANIMALS = 512  # at a time: their relationships take 8 bytes x genotyped animals each
SYMBOLS = ("G", "H")  # of relationships that have such predictions


class NewGenotypes(NamedTuple):
    """Genotypes of the new animals: what the run's SNPs are in their file."""

    file: GenotypeFile
    matched: Counterparts

    def scale_blocks(self, coded: Additive, animals: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """SNPs of the run and scaled genotypes (SNPs, animals); a missing one, and a SNP that the file lacks, counts
        as the mean of the run."""
        row = self.matched.row
        absent = np.flatnonzero(row < 0)
        if absent.size:
            of_mean = coded.scale[absent] * (coded.mean[absent] - coded.centre[absent])
            yield absent, np.repeat(of_mean[:, None], len(animals), axis=1)
        for snps, m in self.matched.read_copies(self.file, animals):
            m = np.where(np.isnan(m), coded.mean[snps, None], m)
            yield snps, coded.scale[snps, None] * (m - coded.centre[snps, None])

    def call_rates(self, animals: np.ndarray) -> np.ndarray:
        """(animals,) share of the SNPs of the run that are known."""
        known = np.zeros(len(animals))
        for _, m in self.matched.read_copies(self.file, animals):
            known += (~np.isnan(m)).sum(axis=0)
        return known / len(self.matched.row)


def has_genomic_terms(finished: Finished) -> bool:
    """Check whether some random term has relationships from genotypes that predict new animals."""
    return any(kind["symbol"] in SYMBOLS for kind in finished.relationships.values())


def predict_new_animals(
    finished: Finished, section: Genotypes, pedigree: Path | None
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Rows as of the solutions with `call_rate`, for every animal of a file of genotypes; and notes.

    pedigree: a file with the new animals, in place of that of the run.
    """
    if pedigree is not None and finished.animals is None:
        raise ConfigError(
            f"predict: {option_name('pedigree')}: '{finished.directory}' is a run without a pedigree; needed none"
        )
    model = restore_model("predict", finished, lambda text: None, pedigree)
    if pedigree is not None:
        _refuse_other_parents(finished, model, pedigree)
    genotypes = model.prepared.genotypes
    assert genotypes is not None, "relationships from genotypes"
    file = open_other_genotypes(section, {trait.column or trait.name for trait in model.analysis.traits})
    snps = genotypes.snps.with_columns(number=pl.Series(genotypes.checked.kept_snps))
    matched = counterparts(snps, genotypes.file.n_snps, file, section.map is not None)
    new = NewGenotypes(file, matched)
    factor, notes = factor_model(model), list[str]()
    point = None if isinstance(factor, str) else factor
    if isinstance(factor, str):
        notes.append(f"no sd, PEV and reliability: {factor}")
    notes += warn_of_disagreement(genotypes, file, matched)
    frames = []
    for part in genomic_parts(model.analysis, model.prepared):
        values, of_part = _predict_part(finished, model, part, new, point)
        frames.append(values)
        notes += of_part
    others = [kind["words"] for kind in finished.relationships.values() if kind["symbol"] == "D"]
    if others:
        notes.append("dominance effects are not predicted")
    notes = [f"warning: {warning}" for warning in file.warnings + matched.warnings] + notes
    return pl.concat(frames), (*notes, *file.notes, *matched.notes)


def _predict_part(
    finished: Finished, model: RunModel, part: GenomicPart, new: NewGenotypes, point: Point | None
) -> tuple[pl.DataFrame, list[str]]:
    """Rows of one term, animal by animal in the order of the file within each component."""
    u = read_breeding_values(model, part)
    known = pl.DataFrame({"id": part.ids}).with_row_index("place")
    place = new.file.ids.to_frame("id").join(known, on="id", how="left", maintain_order="left")["place"]
    is_new = place.is_null().to_numpy()
    code = np.full(new.file.n_animals, -1, np.int64)
    if part.of_pedigree is not None and model.prepared.pedigree is not None:
        code = model.prepared.pedigree.codes(new.file.ids).fill_null(-1).to_numpy().astype(np.int64)
    n, k = new.file.n_animals, u.shape[1]
    mean, pev, prior = (np.full((n, k), np.nan) for _ in range(3))
    for first in range(0, n, ANIMALS):
        animals = first + np.flatnonzero(is_new[first : first + ANIMALS])
        if not animals.size:
            continue
        products, squares = _relate_genotypes(part, new, animals)
        related = part.relate(products, squares, code[animals])
        mean[animals] = related.weight.T @ u
        if point is not None:
            variance = np.diag(np.asarray(model.variances.G[part.number]))
            pev[animals] = np.outer(related.conditional, variance) + error_variances(point, part, related.weight)
            prior[animals] = np.outer(_prior_diagonal(model, part, related.weight, related), variance)
    frames = _frames(model, part, new, mean, pev, prior)
    values = pl.concat(_with_run_values(finished, frame, new.file.ids.filter(pl.Series(~is_new))) for frame in frames)
    return values, _notes(model, part, new.file.ids, is_new, code)


def _relate_genotypes(part: GenomicPart, new: NewGenotypes, animals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """X'x (chosen, n) and x'x (n,) of new animals, by their places in the file."""
    products, squares = np.zeros((len(part.chosen), len(animals))), np.zeros(len(animals))
    for snps, x in new.scale_blocks(part.coded, animals):
        squares += np.einsum("ja,ja->a", x, x)
        for rows in np.array_split(np.arange(len(snps)), -(-len(snps) // 1024)):
            products += part.coded.double(snps[rows]).T @ x[rows]
    return products, squares


def _prior_diagonal(model: RunModel, part: GenomicPart, weight: np.ndarray, related: NamedTuple) -> np.ndarray:
    """(n,) K_yy; with weights of single-step that of the weighted inverse."""
    if not part.is_single_step or (part.tau == 1 and part.omega == 1):
        return np.asarray(related.prior)  # type: ignore[attr-defined]
    relationship = model.design.terms[part.number].relationship
    full = np.zeros((relationship.n_levels, weight.shape[1]))
    full[part.levels] = weight
    explained = np.einsum("on,on->n", weight, relationship.times(full)[part.levels])
    return np.asarray(related.conditional + explained)  # type: ignore[attr-defined]


def error_variances(point: Point, part: GenomicPart, weight: np.ndarray) -> np.ndarray:
    """(n, k) q' C^cc q of each component, of weights (genotyped, n) on the levels of the genotyped."""
    places, n = point.likelihood.layout, weight.shape[1]
    k = places.shapes[part.number][1]
    out = np.empty((n, k))
    for c in range(k):
        place = places.first[part.number] + part.levels * k + c
        equation = places.equation[place]
        b = np.zeros((int(places.active.sum()), n))
        b[equation[equation >= 0]] = weight[equation >= 0]
        out[:, c] = np.einsum("en,en->n", b, point.solve_equations(b))
    return out


def read_breeding_values(model: RunModel, part: GenomicPart) -> np.ndarray:
    """(genotyped, k) of a term, from the solutions of the run."""
    finished = model.finished
    assert finished.solutions is not None, "a mixed model has solutions"
    of_term = finished.solutions.filter((pl.col("term") == part.name) & (pl.col("effect") != "group"))
    columns = []
    for component in components(model.design.terms[part.number], model.design.traits):
        rows = of_term.filter(effect=effect_label(component.effect, component.coefficient), trait=component.trait)
        matched = part.ids.to_frame("level").join(
            rows.select("level", "mean"), on="level", how="left", maintain_order="left"
        )
        if matched["mean"].null_count():
            raise DataError(
                f"'{finished.directory}' has no solution of {part.name} for animal "
                f"{matched.filter(pl.col('mean').is_null())['level'][0]}; needed its genotypes and solutions as they "
                "were"
            )
        columns.append(matched["mean"].to_numpy())
    return np.stack(columns, axis=1)


def _frames(
    model: RunModel, part: GenomicPart, new: NewGenotypes, mean: np.ndarray, pev: np.ndarray, prior: np.ndarray
) -> list[pl.DataFrame]:
    """Make the frame of each component."""
    call_rate = new.call_rates(np.arange(new.file.n_animals))
    return [
        breeding_value_columns(
            part.name, effect_label(of.effect, of.coefficient), of.trait, new.file.ids, mean[:, c], np.sqrt(pev[:, c]),
            prior[:, c],
        ).with_columns(call_rate=pl.Series(call_rate))
        for c, of in enumerate(components(model.design.terms[part.number], model.design.traits))
    ]  # fmt: skip


def _with_run_values(finished: Finished, frame: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
    """Rows of animals that the run has with their genotypes are those of the run."""
    if not len(ids) or finished.solutions is None:
        return frame
    key = frame.row(0, named=True)
    of_run = finished.component(key["term"], key["effect"], key["trait"]).filter(pl.col("level").is_in(ids.implode()))
    shared = [name for name in frame.columns if name in of_run.columns]
    order = frame.select("level", "call_rate").with_row_index("order")
    joined = pl.concat(
        [
            frame.filter(~pl.col("level").is_in(ids.implode())),
            of_run.select(shared).join(order.select("level", "call_rate"), on="level").select(frame.columns),
        ]
    )
    return joined.join(order.select("level", "order"), on="level").sort("order").drop("order")


def _notes(model: RunModel, part: GenomicPart, ids: pl.Series, is_new: np.ndarray, code: np.ndarray) -> list[str]:
    notes, n_old = [], int((~is_new).sum())
    if n_old:
        notes.append(
            f"{counted(n_old, 'animal')} of the file {agreeing(n_old, 'is')} in the run with genotypes: "
            f"{part.name} is that of the run"
        )
    uses_pedigree = part.blending.pedigree > 0 or (part.is_single_step and part.omega != 1)
    outside = ids.filter(pl.Series(is_new & (code < 0)))
    if uses_pedigree and len(outside):
        shown = ", ".join(outside.head(SHOWN))
        notes.append(
            f"warning: {counted(len(outside), 'animal', 'is')} not in the pedigree, such as {shown}: the share of "
            f"pedigree relationships in {part.name} is left out of {'its' if len(outside) == 1 else 'their'} values; "
            f"{option_name('pedigree')} names a pedigree with them"
        )
    if part.is_single_step and part.omega != 1:
        notes.append(
            f"{part.name}: omega is {part.omega:g}, so that new genotypes change the relationships of the others: "
            "values are near those of an evaluation with the animals in it"
        )
    informed = ids.filter(pl.Series(is_new & _has_information(model, part, code)))
    if len(informed):
        notes.append(
            f"warning: {counted(len(informed), 'newly genotyped animal', 'has')} records or progeny in the run, such "
            f"as {', '.join(informed.head(SHOWN))}: the prediction is by genotypes and leaves them out; needed a new "
            "run with their genotypes"
        )
    return notes


def _has_information(model: RunModel, part: GenomicPart, code: np.ndarray) -> np.ndarray:
    """(n,) bool: an animal of the pedigree has records in this term, or progeny."""
    if part.of_pedigree is None or not part.is_single_step:
        return np.zeros(len(code), bool)
    term, kin = model.design.terms[part.number], part.of_pedigree.relatives
    has_some = np.zeros(term.n_levels + 1, bool)
    for level in (*(effect.level for effect in term.effects), kin.sire, kin.dam):
        has_some[level[level >= 0]] = True
    return np.where(code >= 0, has_some[np.maximum(code, 0)], False)


def _refuse_other_parents(finished: Finished, model: RunModel, pedigree: Path) -> None:
    """DataError where animals of the run have other parents in the new pedigree, or are not in it."""
    read, animals = model.prepared.pedigree, finished.animals
    assert read is not None and animals is not None
    ids = pl.concat([read.ids, pl.Series([None], dtype=pl.String)])
    now = pl.DataFrame(
        {"id": read.ids}
        | {k: ids.gather(np.where(c < len(read.ids), c, -1)) for k, c in (("sire", read.sire), ("dam", read.dam))}
    )
    joined = animals.select("id", "sire", "dam").join(now, on="id", how="left", suffix="_now")
    same = pl.col("sire").eq_missing(pl.col("sire_now")) & pl.col("dam").eq_missing(pl.col("dam_now"))
    other = joined.filter(~(same & pl.col("id").is_in(read.ids.implode())))
    if other.height:
        raise DataError(
            f"{pedigree.name}: {counted(other.height, 'animal')} of the run {agreeing(other.height, 'is')} not in it "
            f"with the same parents, such as {', '.join(other['id'].head(SHOWN))}; needed the pedigree of the run and "
            "the new animals"
        )
