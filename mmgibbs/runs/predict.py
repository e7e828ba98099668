"""Genomic breeding values of animals that were never in a run, from the SNP effects that its folder keeps.

Runs with genomic relationships are in genomic_predictions.py.

    g_a = sum_j (m_aj - c_j) b_j

m_aj are the copies of the run's counted allele, c_j the run's centre, b_j the effect of one copy. The mean of g_a comes
from the posterior means of b in markers.parquet, without further Monte Carlo error; its deviation from the draws of b
in marker_draws.npz. A genotype that is missing, and a SNP that the new file lacks, count as the run's mean. What it is
remains unknown: with V_jj the posterior variance of b_j, and SNPs independent in Hardy-Weinberg proportions, the
missing ones add to the prediction error variance, and with the prior variance v of an effect to that of g_a,

    sum_j 2 p_j q_j (V_jj + b_j^2)        and        sum_j 2 p_j q_j v.

Of a run whose SNP effects are those of all animals (single_step: epsilon), the breeding value of an animal with
genotypes is t_a = g_a over all terms, and J_a b with J_a = -1 where the run has the regression on J.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.config.markers import J
from mmgibbs.data.genotypes.alleles import Counterparts, counterparts
from mmgibbs.data.genotypes.file_format import GenotypeFile
from mmgibbs.data.genotypes.imputed import J_OF_GENOTYPED
from mmgibbs.errors import ConfigError, option_name
from mmgibbs.machine.files import replaced_file
from mmgibbs.machine.output_places import check_output_file, list_paths, list_run_inputs
from mmgibbs.pedigree.tables import counted
from mmgibbs.report.finished import Finished
from mmgibbs.results.csv_files import is_escaped, write_csv
from mmgibbs.results.marker_draws import EffectDraws, read_marker_draws
from mmgibbs.results.markers import FILE as MARKERS
from mmgibbs.results.markers import GEBV, TOTAL, breeding_value_columns, column_suffix, genotype_variances
from mmgibbs.results.reading import RunFiles, read_column_names
from mmgibbs.results.tables import SOLUTION_COLUMNS, count_negative
from mmgibbs.runs.genomic_predictions import has_genomic_terms, predict_new_animals
from mmgibbs.runs.model_of_run import read_finished_run
from mmgibbs.runs.other_genotypes import NamedGenotypes, genotypes_section, open_other_genotypes

ANIMALS = 16_384  # at a time: their draws take 8 bytes x draws x terms each


@dataclass(frozen=True)
class Predicted:
    """Genomic breeding values of every animal of a file.

    Attributes
    ----------
    values : polars.DataFrame
        A row for each term, trait and animal, with the columns of the solutions and `call_rate`.
    notes : tuple of str
        What to know about them; warnings begin with "warning: ".
    """

    values: pl.DataFrame  # a row for each term, trait and animal, with the columns of the solutions, and call_rate
    notes: tuple[str, ...]

    def _repr_html_(self) -> str:
        from mmgibbs.report.notebook import lines_as_html

        n_animals = self.values["level"].n_unique()
        heading = f"genomic breeding values of {counted(n_animals, 'animal')}"
        return lines_as_html([heading], self.notes, self.values)


@dataclass(frozen=True)
class _Effects:
    """Effects of the q SNPs of the run; T terms, D draws of each, or none."""

    names: list[tuple[str, str]]  # (T,) term and trait
    snps: pl.DataFrame  # (q) snp, counted, other, number
    every: int  # SNPs of the run's file
    mean: np.ndarray  # (q,) copies that a missing genotype counts as
    centre: np.ndarray  # (q,)
    effect: np.ndarray  # (q, T) of a copy
    deviation: np.ndarray  # (q, T) posterior standard deviation of the effect
    draws: list[EffectDraws]  # of each term, or none
    # trait -> name of its totals, and what J adds to the sum over the terms; {}: the sum is no breeding value
    totals: dict[str, tuple[str, float]]

    @property
    def weights(self) -> np.ndarray:
        """(q, T + T D) float64: what copies are multiplied by, for means and then for draws."""
        return np.concatenate([self.effect, *(d.effects.T for d in self.draws)], axis=1, dtype=np.float64)

    @property
    def squares(self) -> np.ndarray:
        """(q, T) what squares of copies are multiplied by, for the prior variance of g."""
        return np.stack([d.prior_variance * d.scale**2 for d in self.draws], axis=1)

    @property
    def genotype_variance(self) -> np.ndarray:
        """(q, 1) 2pq of a genotype that is missing."""
        return genotype_variances(self.mean)[:, None]

    @property
    def second_moments(self) -> np.ndarray:
        """(q, T + totals) posterior mean of the square of each effect, then of the sum over the terms of a total."""
        of_terms = self.effect**2 + self.deviation**2
        return np.column_stack([of_terms, *(self._moment_of_sum(trait, of_terms) for trait in self.totals)])

    def _moment_of_sum(self, trait: str, of_terms: np.ndarray) -> np.ndarray:
        """(q,) with the covariances of the kept draws between terms."""
        terms = self.trait_terms(trait)
        out = of_terms[:, terms].sum(axis=1)
        for a, b in combinations(terms, 2) if self.draws else ():
            away = [self.draws[i].effects - self.draws[i].effects.mean(axis=0, dtype=np.float64) for i in (a, b)]
            covariance = np.einsum("dj,dj->j", *away) / max(1, len(away[0]) - 1)
            out += 2 * (self.effect[:, a] * self.effect[:, b] + covariance)
        return out

    def trait_terms(self, trait: str) -> list[int]:
        return [i for i, (_, of) in enumerate(self.names) if of == trait]


def predict(
    run: str | os.PathLike,
    genotypes: NamedGenotypes,
    output: str | os.PathLike | None = None,
    *,
    pedigree: str | os.PathLike | None = None,
    escape_formulas: bool = False,
) -> Predicted:
    """Predict genomic breeding values of all animals of a genotype file, with the genotypes of a finished run.

    With SNP effects in the run, rows with effect `gebv` are the values that the SNPs explain. If all animals have SNP
    effects (`single_step: epsilon`), `total` is the breeding value, with J = -1. With relationships from genotypes
    (`genomic`, `single_step`), rows are breeding values of these terms, as an evaluation with the animals in it has.

    Parameters
    ----------
    run : path-like
        Folder of a finished run with SNP effects, or with relationships from genotypes.
    genotypes : path-like or mapping
        Any file that `data.genotypes` reads, or keys of that section: `{"file": "young.csv", "id": "tag"}`.
    output : path-like or None, default None
        File to write, .parquet or .csv.
    pedigree : path-like or None, default None
        For a run with relationships from genotypes and a pedigree: a file in its place with the new animals.
    escape_formulas : bool, default False
        In a csv file, put an apostrophe before text that a spreadsheet would take for a formula.

    Returns
    -------
    Predicted
        `values`, a Polars frame with a row for each animal, term and trait, and `notes`. Standard deviation, PEV and
        reliability are null if the run kept no draws (`output.save_marker_draws: 0`).

    Raises
    ------
    ConfigError
        The run has neither SNP effects nor relationships from genotypes, or an argument cannot be used.
    DataError
        The file of genotypes cannot be used, or the data of the run have changed.

    Examples
    --------
    >>> import mmgibbs
    >>> predicted = mmgibbs.predict("runs/genomic", "data_samples/genomic/genotypes.bed")
    >>> predicted.values["effect"].unique().to_list()
    ['gebv']
    """
    finished = read_finished_run("predict", run)
    section = genotypes_section("predict", genotypes)
    escape_formulas = escape_formulas or is_escaped(finished.record)
    if output is not None:
        inputs = [*list_paths(section.as_file()), pedigree, *list_run_inputs(finished.directory, finished.record)]
        what = "a table of mmgibbs predict"
        check_output_file(Path(output), what, _is_predicted, inputs=inputs, place=f"predict: {option_name('output')}")
    if finished.markers is None and has_genomic_terms(finished):
        values, notes = predict_new_animals(finished, section, None if pedigree is None else Path(pedigree))
        return _finish(values, notes, output, escape_formulas)
    effects, traits = _read_effects(finished), finished.record["analysis"]["traits"]
    if pedigree is not None:
        raise ConfigError(
            f"predict: {option_name('pedigree')} belongs to a run with relationships from genotypes; "
            f"'{finished.directory}' has SNP effects, which need no pedigree"
        )
    file = open_other_genotypes(section, {trait.get("column") or name for name, trait in traits.items()})
    matched = counterparts(effects.snps, effects.every, file, section.map is not None)
    frames = [
        _values(effects, file, matched, first, min(first + ANIMALS, file.n_animals))
        for first in range(0, file.n_animals, ANIMALS)
    ]
    order = pl.DataFrame({"term": [t for t, _ in effects.names], "trait": [s for _, s in effects.names]})
    values = pl.concat(frames)
    order = pl.concat([order, values.filter(effect=TOTAL).select("term", "trait").unique(maintain_order=True)])
    values = pl.concat([values.filter(term=term, trait=trait) for term, trait in order.iter_rows()])
    notes = tuple(f"warning: {warning}" for warning in file.warnings + matched.warnings) + file.notes + matched.notes
    if not effects.draws:
        notes += ("no sd: the run kept no draws of SNP effects (output.save_marker_draws)",)
    return _finish(values, notes, output, escape_formulas)


def _finish(values: pl.DataFrame, notes: tuple[str, ...], output: str | os.PathLike | None, escaped: bool) -> Predicted:
    notes += _notes_of_reliabilities(values)
    if output is not None:
        _write(values, Path(output), escaped)
    return Predicted(values, notes)


def _notes_of_reliabilities(values: pl.DataFrame) -> tuple[str, ...]:
    negative = count_negative(values["reliability"])
    if negative is None:
        return ()
    return (
        f"{negative['negative']:,} of {negative['of']:,} reliabilities are below 0: the deviation of such a value is "
        "above that of its prior, by Monte Carlo error or because the variance is uncertain",
    )


def _write(values: pl.DataFrame, path: Path, escaped: bool) -> None:
    try:
        with replaced_file(path) as new:
            values.write_parquet(new) if path.suffix == ".parquet" else write_csv(values, new, escaped)
    except OSError as error:
        raise ConfigError(f"predict: cannot write '{path}': {error.strerror}") from None


def _is_predicted(path: Path) -> bool:
    """Check whether a table has the columns of predicted values: those of the solutions, then the call rate."""
    return read_column_names(path) == [*SOLUTION_COLUMNS, "call_rate"]


def _read_effects(finished: Finished) -> _Effects:
    if finished.markers is None:
        raise ConfigError(
            f"predict: '{finished.directory}' has no {MARKERS} and no relationships from genotypes; needed a finished "
            "run with SNP effects (model.markers) or with relationship: genomic or single_step"
        )
    table = finished.markers.with_row_index("number")
    kept = table.filter("kept")
    terms = finished.record["analysis"]["model"]["markers"]
    traits = list(finished.record["analysis"]["traits"])
    names = [(term, trait) for term, section in terms.items() for trait in section["traits"] or traits]
    endings = [column_suffix(term, trait, terms) for term, trait in names]
    of_terms = lambda what: kept.select(
        pl.col(f"{what}_{e}").fill_null(0.0) for e in endings
    ).to_numpy()  # null: no SNP
    draws = {(d.term, d.trait): d for d in read_marker_draws(RunFiles(finished.directory, "predict: "))}
    return _Effects(
        names,
        kept.select("snp", "counted", "other", "number"),
        table.height,
        2 * kept["frequency"].to_numpy(),
        kept["centre"].to_numpy(),
        of_terms("effect"),
        of_terms("effect_sd"),
        [draws[name] for name in names] if draws else [],
        _j_totals(finished, terms, names),
    )


def _j_totals(
    finished: Finished, terms: dict[str, Any], names: Sequence[tuple[str, str]]
) -> dict[str, tuple[str, float]]:
    """`totals` of animals with genotypes; {} without single_step."""
    if not any(section.get("single_step", "none") == "epsilon" for section in terms.values()):
        return {}
    solutions = finished.solutions
    assert solutions is not None, "a run with SNP effects has solutions"
    of_j = solutions.filter((pl.col("term") == J) & pl.col("mean").is_not_null())
    slope = dict(of_j.select("trait", "mean").iter_rows())
    called = dict(solutions.filter(effect=TOTAL).select("trait", "term").unique().iter_rows())
    return {trait: (called[trait], J_OF_GENOTYPED * slope.get(trait, 0.0)) for _, trait in names}


def _values(effects: _Effects, file: GenotypeFile, matched: Counterparts, first: int, stop: int) -> pl.DataFrame:
    """Compute the values of animals first .. stop - 1 of the file."""
    n, q, terms = stop - first, len(matched.row), len(effects.names)
    weights, squares = effects.weights, effects.squares if effects.draws else np.zeros((q, terms))
    absent = matched.row < 0
    offset = (effects.mean - effects.centre)[absent]
    g = np.tile(offset @ weights[absent], (n, 1))
    prior = np.tile(offset**2 @ squares[absent], (n, 1))
    known = np.zeros(n)
    of_genotype = effects.genotype_variance
    of_missing, squares_of_missing = of_genotype * effects.second_moments, of_genotype * squares
    unknown = np.tile(of_missing[absent].sum(axis=0), (n, 1))  # (n, T + totals) what missing genotypes add to PEV
    prior += squares_of_missing[absent].sum(axis=0)
    for rows, m in matched.read_copies(file, slice(first, stop)):
        missing = np.isnan(m)
        known += (~missing).sum(axis=0)
        x = np.where(missing, effects.mean[rows, None], m) - effects.centre[rows, None]
        g += x.T @ weights[rows]
        prior += (x**2).T @ squares[rows] + missing.T @ squares_of_missing[rows]
        unknown += missing.T @ of_missing[rows]
    ids = file.ids[first:stop]
    frames = _totals(effects, g, prior, unknown, ids, known / q)
    for i, (term, trait) in enumerate(effects.names):
        sd = variance = np.full(n, np.nan)
        if effects.draws:
            d = [len(e.effects) for e in effects.draws]
            at = terms + sum(d[:i])
            variance = prior[:, i]
            sd = np.sqrt(g[:, at : at + d[i]].var(axis=1, ddof=1) + unknown[:, i]) if d[i] > 1 else sd
        columns = breeding_value_columns(term, GEBV, trait, ids, g[:, i], sd, variance)
        frames.append(columns.with_columns(call_rate=pl.Series(known / q)))
    return pl.concat(frames)


def _totals(
    effects: _Effects, g: np.ndarray, prior: np.ndarray, unknown: np.ndarray, ids: pl.Series, call_rate: np.ndarray
) -> list[pl.DataFrame]:
    """Compute the totals of each trait that has them.

    g (n, T + all draws), prior (n, T) and unknown (n, T + totals) as in _values.
    """
    frames, T = [], len(effects.names)
    ends = T + np.cumsum([0, *(len(d.effects) for d in effects.draws)])
    for number, (trait, (name, of_j)) in enumerate(effects.totals.items()):
        terms = effects.trait_terms(trait)
        sd = variance = np.full(len(g), np.nan)
        if effects.draws:
            draws = np.sum([g[:, ends[i] : ends[i + 1]] for i in terms], axis=0)
            slope = effects.draws[terms[0]].slope
            draws = draws if slope is None else draws + J_OF_GENOTYPED * slope
            variance = prior[:, terms].sum(axis=1)
            if draws.shape[1] > 1:
                sd = np.sqrt(draws.var(axis=1, ddof=1) + unknown[:, T + number])
        columns = breeding_value_columns(name, TOTAL, trait, ids, g[:, terms].sum(axis=1) + of_j, sd, variance)
        frames.append(columns.with_columns(call_rate=pl.Series(call_rate)))
    return frames
