"""The tables and files of a mixed model, from its estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
import polars as pl

from mmgibbs.build.assemble import Assembled
from mmgibbs.build.decisions import candidate_ids
from mmgibbs.build.genotyped import files_of_genotyped
from mmgibbs.build.pev_samples import error_columns
from mmgibbs.build.totals import totals_frame
from mmgibbs.build.windows import files_of_windows
from mmgibbs.config import Analysis
from mmgibbs.data.prepared import Prepared
from mmgibbs.models.labels import component_labels
from mmgibbs.models.markers import Markers
from mmgibbs.models.relationships.selfing import SelfedPedigree
from mmgibbs.posterior.parameters import named_parameters
from mmgibbs.posterior.probabilities import Probabilities
from mmgibbs.posterior.result import posterior_mean
from mmgibbs.posterior.summary import LevelDraws, summary_table
from mmgibbs.results.curves import smooths_frame
from mmgibbs.results.decisions import candidates_frame, response_frame
from mmgibbs.results.factor_scores import scores_frame
from mmgibbs.results.field import field_frame, variogram_frame
from mmgibbs.results.folder import name_tables
from mmgibbs.results.marker_draws import marker_draws_file
from mmgibbs.results.markers import (
    breeding_values_frame,
    markers_file,
    prior_variances,
    second_moments,
    shared_moments,
    variance_of_missing,
)
from mmgibbs.results.means import COVARIANCES, means_frame, write_covariances
from mmgibbs.results.predictive import predicted_frame
from mmgibbs.results.tables import (
    LevelColumns,
    animals_frame,
    sd_column,
    solutions_frame,
    summary_frame,
)
from mmgibbs.runs.estimates import PosteriorEstimates
from mmgibbs.runs.fitted import fitted_frame
from mmgibbs.runs.means import means_tables
from mmgibbs.runs.problem import Tables
from mmgibbs.runs.reml import estimates_table
from mmgibbs.runs.snp_effects import FILE as SNP_EFFECTS


@dataclass(frozen=True)
class MixedModelTables:
    """Makes the tables of a mixed model from its estimates."""

    analysis: Analysis
    prepared: Prepared
    assembled: Assembled

    def build(self, estimates: PosteriorEstimates) -> Tables:
        terms, matrices = self.assembled.terms, estimates.draws
        parameters = named_parameters(terms, matrices, self.assembled.residual, self.assembled.markers)
        means = {t.name: posterior_mean(matrices[t.matrix]) for t in terms}
        candidates, response = self._decision_tables(estimates)
        adjusted_means = means_tables(self.assembled, estimates) if estimates.means else []
        design = self.prepared.design
        breeding_values = [
            breeding_values_frame(m, labels, estimates.markers[m.key], matrices, design.traits).with_columns(
                pl.Series(name, values) for name, values in self._genomic_probabilities(estimates, j).items()
            )
            for j, (m, labels) in enumerate(zip(design.markers, self.prepared.markers, strict=True))
        ]
        more = self._probability_columns(estimates) if estimates.pev is None else error_columns(estimates.pev)
        solutions = solutions_frame(self.prepared, estimates.moments, means, more)
        summary = summary_frame(
            summary_table(parameters.draws, parameters.fixed)
            if estimates.estimates is None
            else estimates_table(estimates.estimates, self.assembled)
        )
        pedigree = self.prepared.pedigree
        field = field_frame(self.prepared, estimates.moments, self.assembled.trends, estimates.means)
        tables = {
            "decisions": candidates,
            "response": response,
            "field": field,
            "variogram": None if field is None else variogram_frame(field),
            "factor_scores": scores_frame(summary, solutions),
            "fitted": fitted_frame(self.prepared, estimates.moments.mean) if self.analysis.output.fitted else None,
            "smooths": smooths_frame(self.prepared, self.assembled.model.means, estimates.means),
        }
        small_tables = {
            "means": means_frame(adjusted_means) if adjusted_means else None,
            "predicted_classes": self._predicted(estimates),
        }
        return Tables(
            summary=summary,
            solutions=pl.concat([solutions, *breeding_values, *self._totals(estimates)], how="diagonal"),
            decisions=candidates,
            response=response,
            draws={
                "parameters": parameters.draws,
                "levels": self._level_draws(estimates),
                "sample_stats": estimates.statistics,
                "attributes": {"analysis": self.analysis.name},
            },
            files={
                **markers_file(self.prepared, estimates.markers, estimates.states),
                **marker_draws_file(self.prepared, estimates.effects, matrices, estimates.slopes),
                **files_of_windows(self.prepared, estimates.effects, estimates.markers),
                **files_of_genotyped(self.prepared),
                SNP_EFFECTS: estimates.snp_effects,
                "animals.parquet": None
                if pedigree is None
                else animals_frame(pedigree, self._generations_of_selfing()),
                COVARIANCES: partial(write_covariances, adjusted_means) if adjusted_means else None,
                **name_tables(tables, self.analysis.output.csv),
                **name_tables(small_tables, "always"),
            },
        )

    def _generations_of_selfing(self) -> np.ndarray | None:
        """Return the generations of selfing of the animals, by code; None where no term has selfing."""
        related = (t.relationship for t in self.prepared.design.terms if t.kind == "random")
        return next((r.generations for r in related if isinstance(r, SelfedPedigree)), None)

    def _totals(self, estimates: PosteriorEstimates) -> list[pl.DataFrame]:
        design, terms = (
            self.prepared.design,
            dict(zip(self.assembled.model.random_terms, self.assembled.terms, strict=True)),
        )
        frames = []
        for total in self.assembled.model.totals:
            G = posterior_mean(estimates.draws[terms[total.term].matrix])
            genomic = [prior_variances(design.markers[j], estimates.draws) for j in total.markers]
            variance = float(G[total.component, total.component])
            missing = self._variance_of_missing([design.markers[j] for j in total.markers], estimates)
            frame = totals_frame(total, self.prepared, estimates.totals[str(total.trait)], variance, genomic, missing)
            for p in self.assembled.model.probabilities:
                if p.total is not None and p.total.trait == total.trait:
                    frame = frame.with_columns(
                        pl.Series(name, v) for name, v in _probability_moments(p, estimates).items()
                    )
            frames.append(frame)
        return frames

    def _variance_of_missing(self, markers: Sequence[Markers], estimates: PosteriorEstimates) -> np.ndarray:
        """(animals of the store,) of the sum over terms of SNP effects on one trait."""
        out = sum(variance_of_missing(m, second_moments(estimates.markers[m.key])) for m in markers)
        for first, second in combinations(markers, 2):
            out = out + 2 * variance_of_missing(
                first, shared_moments(first, second, estimates.markers, estimates.effects)
            )
        return np.asarray(out)

    def _predicted(self, estimates: PosteriorEstimates) -> pl.DataFrame | None:
        classes = self.assembled.model.predicted
        if not classes:
            return None
        return predicted_frame(classes, [estimates.draws[of.draws] for of in classes], self.prepared.design.traits)

    def _probability_columns(self, estimates: PosteriorEstimates) -> dict[tuple[int, int], LevelColumns]:
        """(term, component) -> its columns."""
        asked = self.assembled.model.probabilities
        return {
            (p.term, p.component): _probability_moments(p, estimates)
            for p in asked
            if p.term is not None and p.total is None
        }

    def _genomic_probabilities(self, estimates: PosteriorEstimates, term: int) -> LevelColumns:
        """Return the probabilities for the animals of a term of SNP effects, where it is their first own effect."""
        marker_probabilities = [
            p for p in self.assembled.model.probabilities if p.term is None and p.markers[0] == term
        ]
        return _probability_moments(marker_probabilities[0], estimates) if marker_probabilities else {}

    def _decision_tables(self, estimates: PosteriorEstimates) -> tuple[pl.DataFrame, pl.DataFrame] | tuple[None, None]:
        asked, section = self.assembled.model.decisions, self.analysis.decisions
        if estimates.decided is None or asked is None or section is None:
            return None, None
        top = section.top
        names = list(estimates.facts["decisions"]["criteria"])
        candidates = candidates_frame(estimates.decided, names, candidate_ids(asked, self.prepared), top)
        return candidates, response_frame(estimates.decided, names, top, asked.selected, asked.codes.size)

    def _level_draws(self, estimates: PosteriorEstimates) -> dict[str, LevelDraws]:
        design, model, out = self.prepared.design, self.assembled.model, {}
        for name, draws in estimates.levels.items():
            index = next(i for i, t in enumerate(design.terms) if t.name == name)
            ids = self.prepared.levels[index].ids.gather(model.saved[name]).to_list()
            out[name] = LevelDraws(draws, ids, component_labels(design.terms[index], design.traits))
        components = {info.name: info.components for info in self.assembled.terms}
        for name, draws in estimates.averages.items():
            out[f"trend[{name}]"] = LevelDraws(draws, model.averaged[name].labels, components[name])
        return out


def _probability_moments(asked: Probabilities, estimates: PosteriorEstimates) -> dict[str, np.ndarray]:
    """Means and standard deviations of the probabilities of one trait."""
    pooled = estimates.probabilities[asked.trait]
    means, deviations = pooled.mean[0].T, pooled.sd[0].T
    return dict(zip(asked.columns, means, strict=True)) | dict(
        zip(map(sd_column, asked.columns), deviations, strict=True)
    )
