"""A mixed model from its analysis: tables -> design -> equations -> chains, or BLUP -> tables of what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from mmgibbs.build.assemble import Assembled, assemble
from mmgibbs.build.decisions import candidate_ids, decision_facts, decision_notes, read_decisions, short_batches
from mmgibbs.build.engine import ChosenEngine, choose_engine
from mmgibbs.build.genotyped import files_of_genotyped
from mmgibbs.build.level_names import name_levels
from mmgibbs.build.memory_estimate import refuse_sampling_beyond_memory, refuse_solving_beyond_memory
from mmgibbs.build.observed_scale import read_probabilities
from mmgibbs.build.pev_samples import PevSamples, error_columns, shares_of_variance, words_of_samples
from mmgibbs.build.predictive import extreme_levels, liability_facts
from mmgibbs.build.targets import StoppingRule, check_targets, stopping_rule
from mmgibbs.build.totals import totals_frame, with_totals
from mmgibbs.build.trends import birth_year_averages
from mmgibbs.build.windows import files_of_windows
from mmgibbs.config import Analysis
from mmgibbs.data.prepare import prepare
from mmgibbs.data.prepared import Prepared
from mmgibbs.engines.choice import EngineChoice
from mmgibbs.engines.direct.standard_errors import MONTE_CARLO, MOST_EQUATIONS, affordable_posterior_sd, posterior_sd
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import StructuredEquations, structured_equations
from mmgibbs.errors import ModelError, Stopped
from mmgibbs.machine.signals import StopSignals
from mmgibbs.machine.speed import Lines, Tell, describe_duration, estimate_seconds
from mmgibbs.machine.threads import Threads, cores
from mmgibbs.models.labels import component_labels
from mmgibbs.models.markers import Markers
from mmgibbs.posterior.decisions import Decided
from mmgibbs.posterior.moments import LONG_ENOUGH, PooledMoments, pool
from mmgibbs.posterior.parameters import named_parameters
from mmgibbs.posterior.probabilities import Probabilities
from mmgibbs.posterior.result import (
    ChainResult,
    pooled,
    pooled_by_prefix,
    posterior_mean,
    sample_stats,
    stacked_draws,
)
from mmgibbs.posterior.summary import LevelDraws, summary_table
from mmgibbs.posterior.thinned import KeptDraws
from mmgibbs.reml.estimate import Estimates, estimate
from mmgibbs.results.animals import animals_file
from mmgibbs.results.decisions import candidates_frame, decision_files, response_frame
from mmgibbs.results.marker_draws import marker_draws_file
from mmgibbs.results.markers import (
    breeding_values_frame,
    markers_file,
    prior_variances,
    second_moments,
    shared_moments,
    variance_of_missing,
)
from mmgibbs.results.predictive import predicted_files, predicted_frame
from mmgibbs.results.tables import LevelColumns, sd_column, solutions_frame, summary_frame
from mmgibbs.runs.chains import Executor
from mmgibbs.runs.place import RunFolder
from mmgibbs.runs.problem import Clock, Sampled, Tables, sample
from mmgibbs.runs.progress import Console
from mmgibbs.runs.record import model_counts, model_record
from mmgibbs.runs.reml import RemlWatch, draws_by_name, estimates_table, stopped_words
from mmgibbs.sampler.schedule import Schedule
from pedigree.messages import split_messages

WITHOUT_ERRORS = "prediction error variances and reliabilities, which were not computed yet"
EARLY_FROM_EQUATIONS = 5_000  # solutions are written before their errors are computed, which take seconds from here
SHARE_OF_DIAGONALS = 0.15  # of the speed of matrix products that the diagonal of H reaches

if TYPE_CHECKING:
    from mmgibbs.engines.pcg.prediction_errors import MonteCarloPev
    from mmgibbs.engines.pcg.solver import PcgSolver, Solution


@dataclass(frozen=True)
class PosteriorEstimates:
    """Posterior moments of every level, and the draws of the covariance matrices."""

    moments: PooledMoments
    draws: dict[str, np.ndarray]  # covariance matrices by name, (chains, draws, ...)
    facts: dict  # for run.json
    levels: dict[str, np.ndarray] = field(default_factory=dict)  # (chains, draws, levels, k) of chosen levels
    averages: dict[str, np.ndarray] = field(default_factory=dict)  # (chains, draws, birth years, k)
    markers: dict[str, PooledMoments] = field(default_factory=dict)  # of effects, breeding values, chances of classes
    states: dict[str, PooledMoments] = field(default_factory=dict)  # of SNPs over several traits
    totals: dict[str, PooledMoments] = field(default_factory=dict)  # number of the trait -> of total breeding values
    effects: dict[str, KeptDraws] = field(default_factory=dict)  # some draws of SNP effects
    slopes: dict[str, KeptDraws] = field(default_factory=dict)  # number of the trait -> of J, of the same draws
    statistics: dict[str, np.ndarray] = field(default_factory=dict)  # name -> (chains, draws), for /sample_stats
    probabilities: dict[str, PooledMoments] = field(default_factory=dict)  # trait -> of every level
    decided: Decided | None = None
    estimates: Estimates | None = None  # by REML
    pev: MonteCarloPev | None = None  # by Monte Carlo, of BLUP
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class MixedModelProblem:
    """See problem.Problem."""

    analysis: Analysis
    prepared: Prepared
    assembled: Assembled
    equations: StructuredEquations
    chosen: ChosenEngine
    schedule: Schedule

    @property
    def choice(self) -> EngineChoice:
        return self.chosen.engine

    @property
    def stage(self) -> str:
        return "sampling" if self.analysis.sampler.method == "gibbs" else "solving"

    def solve(self, folder: RunFolder, console: Console, executor: Executor) -> PosteriorEstimates:
        try:
            match self.analysis.sampler.method:
                case "blup":
                    estimates = self._blup(folder, console, executor)
                case "reml":
                    estimates = self._reml(folder, console, executor)
                case _:
                    estimates = self._gibbs(folder, console, executor)
            self._make_diagonals(estimates, console)
            return estimates
        except ModelError as error:
            warned = (f"warning: {note}" for note in self.assembled.notes)  # most likely why
            raise ModelError("\n".join([name_levels(str(error), self.prepared), *warned])) from error

    def _make_diagonals(self, estimates: PosteriorEstimates, console: Console) -> None:
        """Diagonals of relationships that reliabilities need, and that take long, with a word before."""
        sd = dict(zip((t.name for t in self.prepared.design.terms), estimates.moments.sd, strict=True))
        for term in self.prepared.design.terms:
            operations = 0.0 if term.kind == "fixed" else term.relationship.diagonal_operations
            if operations and not np.isnan(sd[term.name]).all():
                symbol, n = term.relationship.symbol, term.n_levels
                seconds = estimate_seconds(operations, SHARE_OF_DIAGONALS)
                console.say(f"reliabilities: the diagonal of {symbol} for {n:,} levels{describe_duration(seconds)}")
                _ = term.relationship.diagonal

    # Gibbs

    def _gibbs(self, folder: RunFolder, console: Console, executor: Executor) -> PosteriorEstimates:
        model = self.assembled.model
        warned, of_decisions = split_messages(decision_notes(self.analysis, self.prepared, model.decisions))
        before = [
            *self._unused_threads(),
            *self._interweaving_notes(),
            *of_decisions,
        ]
        console.say_all(before)
        from mmgibbs.runs.mixed_model_chains import MixedModelFactory  # late: REML and BLUP make no chains

        factory = MixedModelFactory(model, self.equations, self.choice, self.schedule, self.analysis.sampler.seed)
        rule = None if folder.samples is not None else self._stopping_rule(console)
        sampled = sample(factory, folder, console, executor, rule, self._shown_shares, self._parameters_so_far)
        chains: list[ChainResult] = sampled.results
        decided = None if model.decisions is None else pooled(chains, "decisions")
        after = _notes(chains, decided)
        console.say_all(after)
        return PosteriorEstimates(
            moments=pool([c.moments for c in chains]),
            draws=stacked_draws(chains),
            facts=self._facts(sampled),
            levels=pooled_by_prefix(chains, "levels."),
            averages=pooled_by_prefix(chains, "averages."),
            markers=pooled_by_prefix(chains, "markers."),
            states=pooled_by_prefix(chains, "states."),
            probabilities=pooled_by_prefix(chains, "probabilities."),
            totals=pooled_by_prefix(chains, "totals."),
            effects=pooled_by_prefix(chains, "effects."),
            slopes=pooled_by_prefix(chains, "slopes."),
            statistics=sample_stats(chains),
            decided=decided,
            notes=[*before, *after],
            warnings=[*warned, *sampled.missed],
        )

    def _stopping_rule(self, console: Console) -> StoppingRule | None:
        ids = lambda term, level: self.prepared.levels[term].ids[level]
        return stopping_rule(self.analysis.sampler, self.assembled, ids, console.say)

    def _facts(self, sampled: Sampled) -> dict:
        """For run.json."""
        from mmgibbs.sampler.covariances import START_SCALES

        names, chains = [t.name for t in self.assembled.model.design.terms], sampled.results
        facts = {
            "method": "gibbs",
            "engine": self.choice.name,
            "engine_chosen_because": self.chosen.why,
            **({"engine_estimates": self.chosen.estimates} if self.chosen.estimates else {}),
            "update": self.choice.update,
            "threads": self.choice.threads,
            "device": self.choice.device,
            "interweaved_terms": [names[i] for i in self.schedule.interweave],
            "not_interweaved": self._not_interweaved(),
            "start_scales": [START_SCALES[c % len(START_SCALES)] for c in range(len(chains))],
            "seconds_per_chain": [c.seconds for c in chains],
            **sampled.facts,
        }
        decisions = self.assembled.model.decisions
        return facts if decisions is None else facts | {"decisions": decision_facts(self.analysis, decisions)}

    def _not_interweaved(self) -> dict[str, str | None]:
        """Term -> why it is left out."""
        from mmgibbs.sampler.interweave import reason_not_interweaved

        model, wanted = self.assembled.model, self.analysis.sampler.interweave and self.choice.name != "marginal"
        out = [i for i in model.random_terms if wanted and i not in self.schedule.interweave]
        return {model.design.terms[i].name: reason_not_interweaved(model, i) for i in out}

    def _unused_threads(self) -> list[str]:
        """Of an engine that was not asked for by its name."""
        asked, used = self.analysis.sampler.threads or 1, self.choice.threads
        if asked <= used:
            return []
        return [f"sampler.threads: engine {self.choice.name} ({self.chosen.why}) uses {used} of the {asked}"]

    def _interweaving_notes(self) -> list[str]:
        if self.analysis.sampler.interweave is not True:
            return []
        return [
            f"sampler.interweave: term '{name}' is left out: {why}" for name, why in self._not_interweaved().items()
        ]

    def _parameters_so_far(self, draws: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Those that are sampled."""
        if not draws:
            return {}
        named = named_parameters(self.assembled.terms, draws, self.assembled.residual, self.assembled.markers)
        return {name: values for name, values in named.draws.items() if name not in named.fixed}

    def _shown_shares(self, values: Mapping[str, np.ndarray]) -> str:
        """'h2[weaning_weight] 0.31 ...' of one draw; residual variances where there is no h2."""
        draws = {name: matrix[None, None] for name, matrix in values.items()}
        named = named_parameters(self.assembled.terms, draws, self.assembled.residual, self.assembled.markers).draws
        chosen = {k: v for k, v in named.items() if k.startswith("h2[")} or {
            k: v for k, v in named.items() if k.startswith("residual.var[")
        }
        return ", ".join(f"{name} {draw.item():.3f}" for name, draw in list(chosen.items())[:4])

    # BLUP

    def _blup(self, folder: RunFolder, console: Console, executor: Executor) -> PosteriorEstimates:
        """By PCG at the given variances; PEV by a selected inverse where the equations are few enough."""
        from mmgibbs.engines.pcg.prediction_errors import prior_diagonals  # late: REML has no use for PCG
        from mmgibbs.sampler.covariances import starting_matrices

        model, s, equations = self.assembled.model, self.analysis.sampler, self.equations
        G, R = [None if c is None else c.start for c in model.covariances], model.residual.start
        if equations.real != np.float64:
            equations = structured_equations(model.design, equations.partition)
        threads, sampled = s.threads or cores(), None
        if s.pev_samples is not None:
            diagonals = prior_diagonals(model.design, self.analysis.data.inbreeding == "account")
            sampled = PevSamples(s.pev_samples, s.seed, diagonals)
        tell = console.say if executor.max_local_calls else None  # on other machines nobody hears it
        shared = equations, G, R
        calls: list[tuple] = [(s.tolerance, threads, s.preconditioner, tell)]
        (solution,) = executor.each(solve_equations, shared, calls, ["solving"])
        console.say(
            f"PCG: {solution.iterations} iterations ({solution.preconditioned_by}), relative residual "
            f"{solution.relative_residual:.1e}"
        )
        facts = {
            "method": "blup",
            "engine": "pcg",
            "threads": threads,
            "preconditioner": solution.preconditioner,
            "absorbed": None if solution.absorbed is None else solution.absorbed._asdict(),
            "iterations": solution.iterations,
            "relative_residual": solution.relative_residual,
            **executor.facts,
        }
        theta = model.design.to_original_scale(solution.theta)
        fixed = {name: matrix[None, None] for name, matrix in starting_matrices(model, 0).items()}
        n, limit = equations.n_equations, MOST_EQUATIONS if s.pev_limit is None else s.pev_limit
        if sampled is not None or EARLY_FROM_EQUATIONS <= n <= limit:
            self._keep_solutions(folder, PosteriorEstimates(PooledMoments.exact(theta, None), fixed, facts))
        calls = [(s.pev_limit, threads, sampled, s.preconditioner, tell, solution.iterations)]
        ((sd, blank, by_samples),) = executor.each(errors_of_solutions, shared, calls, ["prediction error variances"])
        notes = [] if blank is None else [f"PEV and reliability are blank: {blank} {MONTE_CARLO}"]
        if by_samples is not None:
            errors = shares_of_variance(model.design, G, by_samples)
            facts["monte_carlo_pev"] = {"samples": by_samples.samples, "because": blank, "errors": errors}
            notes = [words_of_samples(by_samples, str(blank), errors)]
        console.say_all(notes)
        return PosteriorEstimates(PooledMoments.exact(theta, sd), fixed, facts, notes=notes, pev=by_samples)

    def _keep_solutions(self, folder: RunFolder, estimates: PosteriorEstimates) -> None:
        """Write what is solved before the errors of it are computed, which may take far longer."""
        folder.write_unfinished(self.tables(estimates), self.record(estimates, {}), WITHOUT_ERRORS)

    # REML

    def _reml(self, folder: RunFolder, console: Console, executor: Executor) -> PosteriorEstimates:
        """Variances by REML, and BLUP at them with the PEV of every level."""
        model, s = self.assembled.model, self.analysis.sampler
        watch = RemlWatch(folder, console.say if executor.max_local_calls else None)
        shared = (model.design, model.covariances, model.residual)
        call = (s.tolerance, s.max_iterations, watch if executor.max_local_calls else None, watch.start)
        with StopSignals(watch.ask_to_stop) as stop:
            ((fitted,),) = (executor.each(estimate, shared, [call], ["estimating"]),)
        if not executor.max_local_calls:
            for iteration, log_likelihood in enumerate(fitted.facts["log_likelihoods"]):
                console.say(f"REML: iteration {iteration}, log likelihood {log_likelihood:.4f}")
        place = fitted.elements.vector(fitted.variances)
        matrices = draws_by_name(fitted, [place], bool(model.residual.classes))
        facts = {"method": "reml", "engine": "direct", **fitted.facts, **executor.facts}
        moments = PooledMoments.exact(fitted.solutions, fitted.sd)
        warnings = [*fitted.warnings, *(() if self.assembled.undetermined else fitted.undetermined_words)]
        result = PosteriorEstimates(
            moments, matrices, facts, estimates=fitted, notes=list(fitted.notes), warnings=warnings
        )
        if stop.signal is not None and fitted.facts["stopped"]:
            said = stopped_words(stop.signal, fitted)
            folder.write_unfinished(self.tables(result), self.record(result, {}), said)
            raise Stopped(stop.signal, said)
        console.say(
            f"REML: log likelihood {fitted.criteria.log_likelihood:.3f}, AIC {fitted.criteria.aic:.2f}, BIC "
            f"{fitted.criteria.bic:.2f} ({fitted.criteria.parameters} elements of covariance matrices)"
        )
        console.say_all(fitted.notes)
        return result

    # What was found, as tables

    def tables(self, estimates: PosteriorEstimates) -> Tables:
        terms, matrices = self.assembled.terms, estimates.draws
        parameters = named_parameters(terms, matrices, self.assembled.residual, self.assembled.markers)
        means = {t.name: posterior_mean(matrices[t.matrix]) for t in terms}
        candidates, response = self._decision_tables(estimates)
        design = self.prepared.design
        breeding_values = [
            breeding_values_frame(m, labels, estimates.markers[m.key], matrices, design.traits).with_columns(
                pl.Series(name, values) for name, values in self._genomic_probabilities(estimates, j).items()
            )
            for j, (m, labels) in enumerate(zip(design.markers, self.prepared.markers, strict=True))
        ]
        more = self._probability_columns(estimates) if estimates.pev is None else error_columns(estimates.pev)
        solutions = solutions_frame(self.prepared, estimates.moments, means, more)
        return Tables(
            summary=summary_frame(
                summary_table(parameters.draws, parameters.fixed)
                if estimates.estimates is None
                else estimates_table(estimates.estimates, self.assembled)
            ),
            solutions=pl.concat([solutions, *breeding_values, *self._totals(estimates)], how="diagonal"),
            decisions=candidates,
            response=response,
            draws={
                "parameters": parameters.draws,
                "levels": self._level_draws(estimates),
                "sample_stats": estimates.statistics,
                "attributes": {"analysis": self.analysis.name},
            },
            files=markers_file(self.prepared, estimates.markers, estimates.states)
            | marker_draws_file(self.prepared, estimates.effects, matrices, estimates.slopes)
            | files_of_windows(
                self.prepared, estimates.effects, estimates.markers, self.analysis.output.escape_formulas
            )
            | files_of_genotyped(self.prepared)
            | animals_file(self.prepared.pedigree)
            | decision_files(candidates, response, self.analysis.output.csv, self.analysis.output.escape_formulas)
            | predicted_files(self._predicted(estimates), self.analysis.output.escape_formulas),
        )

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
        """The same for the animals of a term of SNP effects, where it is their first own effect."""
        marker_probabilities = [
            p for p in self.assembled.model.probabilities if p.term is None and p.markers[0] == term
        ]
        return _probability_moments(marker_probabilities[0], estimates) if marker_probabilities else {}

    def record(self, estimates: PosteriorEstimates, seconds: dict[str, float]) -> dict:
        parameters = named_parameters(
            self.assembled.terms, estimates.draws, self.assembled.residual, self.assembled.markers
        )
        warnings = [*self.assembled.notes, *estimates.warnings]
        of_run = model_record(
            self.analysis,
            self.prepared,
            self.equations,
            parameters,
            estimates.facts,
            seconds,
            warnings,
            estimates.notes,
        )
        design, scales = self.prepared.design, self.assembled.model.observed
        liabilities = liability_facts(design, scales, estimates.draws, estimates.statistics)
        extreme = [vars(levels) for levels in extreme_levels(self.prepared)]
        return of_run | ({"liabilities": liabilities, "extreme_levels": extreme} if liabilities else {})

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


def read_mixed_model(
    analysis: Analysis, samples: int | None, console: Console, clock: Clock, begun_with: str | None = None
) -> MixedModelProblem:
    """Tables -> design -> equations.

    samples: sweeps after burn-in to go to, where that is not for the analysis to say. begun_with: see choose_engine.
    """
    prepared = prepare(
        analysis,
        lambda stage, operations=0.0: console.say(f"reading: {stage}{describe_duration(estimate_seconds(operations))}"),
    )
    assembled = with_totals(with_trends(_assembled(analysis, prepared), prepared), prepared)
    clock.lap("data")
    console.say_all((*prepared.design.notes, *assembled.notes))
    chosen = choose_engine(analysis.sampler, assembled.model, begun_with)
    schedule = _checked_schedule(analysis, assembled, chosen.engine, samples)
    order = partition(prepared.design, chosen.partition)
    equations = structured_equations(prepared.design, order, analysis.sampler.precision)
    clock.lap("equations")
    console.say(
        f"{equations.n_equations:,} equations, {prepared.design.n_records:,} records, {equations.bytes / 1e6:,.1f} MB"
    )
    if analysis.sampler.method == "gibbs":
        console.say(f"engine {chosen.engine.name} ({chosen.why})")
    return MixedModelProblem(analysis, prepared, assembled, equations, chosen, schedule)


def mixed_model_counts(analysis: Analysis) -> dict:
    """What `mmgibbs check` prints of a mixed model; nothing is sampled."""
    prepared = prepare(analysis)
    assembled = _assembled(analysis, prepared)
    chosen = choose_engine(analysis.sampler, assembled.model)
    _checked_schedule(analysis, assembled, chosen.engine, None)
    counts = model_counts(analysis, prepared, assembled)
    if analysis.sampler.method == "gibbs":
        counts |= {"engine": chosen.engine.name, "engine_chosen_because": chosen.why}
    warned, notes = split_messages(decision_notes(analysis, prepared, assembled.model.decisions))
    return counts | {"notes": [*counts["notes"], *notes], "warnings": [*counts["warnings"], *warned]}


def _assembled(analysis: Analysis, prepared: Prepared) -> Assembled:
    """The ranks of the candidates are counted in every draw, and probabilities of categories are averaged."""
    assembled = assemble(analysis, prepared)
    asked = analysis.output.probabilities
    probabilities = read_probabilities(asked, prepared, assembled.terms, assembled.model.observed)
    decisions = read_decisions(analysis, prepared, assembled)
    return replace(assembled, model=replace(assembled.model, decisions=decisions, probabilities=probabilities))


def with_trends(assembled: Assembled, prepared: Prepared) -> Assembled:
    """The mean of each birth year is kept in every draw of the terms whose levels are the animals of the pedigree."""
    years = birth_year_averages(prepared.birth_years)
    names = [t.name for t in prepared.design.terms]
    is_complete = lambda name: prepared.levels[names.index(name)].diagonal is None  # no animal is set to 0
    averaged = {
        info.name: years
        for info in assembled.terms
        if years is not None and info.of_pedigree and is_complete(info.name)
    }
    return replace(assembled, model=replace(assembled.model, averaged=averaged))


def _checked_schedule(analysis: Analysis, assembled: Assembled, choice: EngineChoice, samples: int | None) -> Schedule:
    """ConfigError for targets of what is not sampled, DeviceError where it would not fit into memory."""
    s, solves = analysis.sampler, analysis.sampler.method != "gibbs"
    interweave: tuple[int, ...] = ()
    if not solves and choice.name != "marginal":
        from mmgibbs.sampler.interweave import terms_to_interweave

        interweave = terms_to_interweave(assembled.model, s.interweave)
    runs = s.burn_in, s.samples, s.thin, s.refresh_every, s.chains
    schedule = Schedule(*runs, interweave, samples or s.most_samples)
    if solves:
        refuse_solving_beyond_memory(analysis, assembled)
    else:
        check_targets(s.stop, assembled)
        refuse_sampling_beyond_memory(analysis, assembled, schedule, choice.bytes)
    return schedule


def _notes(chains: list[ChainResult], decided: Decided | None) -> list[str]:
    """What the chains say of themselves."""
    notes = list(dict.fromkeys(note for c in chains for note in c.notes))
    notes += [] if decided is None else short_batches(decided)
    if chains[0].moments.batch_length < LONG_ENOUGH:
        notes.append(
            f"MCSE and ESS of breeding values: {sum(c.moments.n_draws for c in chains):,} kept draws are too few "
            "to see the autocorrelation, so the true errors are larger; about 400 are needed "
            "(sampler.samples, sampler.thin)"
        )
    return notes


def solve_equations(
    equations: StructuredEquations,
    G: Sequence[np.ndarray | None],
    R: np.ndarray,
    tolerance: float,
    threads: int = 1,
    preconditioner: str = "auto",
    tell: Tell | None = None,
) -> Solution:
    """BLUE and BLUP by PCG; tell: called before it begins, and once a minute."""
    if tell is not None:
        tell(f"PCG: solving {equations.n_equations:,} equations, 50 to 500 iterations as a rule")
    solver, lines = _solver(equations, G, R, threads, preconditioner), Lines(tell)
    said = lambda n: lines.show(lambda seconds: f"PCG: iteration {n:,}, {seconds / n:.2g} s for each")
    return solver.solve(tolerance, callback=said)


def errors_of_solutions(
    equations: StructuredEquations,
    G: Sequence[np.ndarray | None],
    R: np.ndarray,
    pev_limit: int | None,
    threads: int = 1,
    sampled: PevSamples | None = None,
    preconditioner: str = "auto",
    tell: Tell | None = None,
    iterations: int = 0,
) -> tuple[list[np.ndarray] | None, str | None, MonteCarloPev | None]:
    """(posterior SD of every level, on the original scale, or None, why it is not computed, and what samples say of
    it).

    It is not computed above `pev_limit` equations, or where that is None where it is estimated to take too long. tell:
    called before each step that may take long; iterations: that the solution took."""
    n = equations.n_equations
    used = equations.bytes + 8 * 8 * sum(t.n_levels * t.n_components for t in equations.design.terms)
    if pev_limit is None:
        sd = affordable_posterior_sd(equations.design, G, R, used, tell)
    elif n > pev_limit:
        sd = f"{n:,} equations are above sampler.pev_limit {pev_limit:,}"
    else:
        sd = posterior_sd(equations.design, G, R, used, tell)
    if not isinstance(sd, str):
        return sd, None, None
    if sampled is None:
        return None, sd, None
    from mmgibbs.engines.pcg.prediction_errors import monte_carlo_pev

    solver = _solver(equations, G, R, threads, preconditioner)
    by_samples = monte_carlo_pev(solver, G, R, sampled.diagonals, sampled.samples, sampled.seed, tell, iterations)
    return by_samples.sd, sd, by_samples


def _solver(
    equations: StructuredEquations, G: Sequence[np.ndarray | None], R: np.ndarray, threads: int, preconditioner: str
) -> PcgSolver:
    from mmgibbs.engines.pcg.solver import PcgSolver

    solver = PcgSolver(equations, Threads(threads), preconditioner)
    solver.set_variances(G, R)
    return solver
