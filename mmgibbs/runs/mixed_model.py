"""A mixed model that is ready to be solved: by Gibbs sampling, as BLUP, or by REML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mmgibbs.build.assemble import Assembled
from mmgibbs.build.decisions import decision_facts, decision_notes, short_batches
from mmgibbs.build.engine import ChosenEngine
from mmgibbs.build.level_names import name_levels
from mmgibbs.build.observed_scale import extreme_levels, liability_facts
from mmgibbs.build.pev_samples import PevSamples, shares_of_variance, words_of_samples
from mmgibbs.build.saved_draws import saved_draws_notes
from mmgibbs.build.targets import StoppingRule, stopping_rule
from mmgibbs.config import Analysis
from mmgibbs.config.sampling import TOLERANCES
from mmgibbs.data.prepared import Prepared
from mmgibbs.engines.choice import EngineChoice
from mmgibbs.engines.direct.solutions import needs_factor
from mmgibbs.engines.direct.standard_errors import MONTE_CARLO, MOST_EQUATIONS
from mmgibbs.equations.structured import StructuredEquations, structured_equations
from mmgibbs.errors import ModelError, Stopped
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.machine.signals import StopSignals
from mmgibbs.machine.speed import describe_duration, estimate_seconds
from mmgibbs.machine.threads import cores
from mmgibbs.pedigree.messages import split_messages
from mmgibbs.posterior.decisions import Decided
from mmgibbs.posterior.moments import LONG_ENOUGH, PooledMoments, pool
from mmgibbs.posterior.parameters import named_parameters
from mmgibbs.posterior.result import ChainResult, pooled, pooled_by_prefix, sample_stats, stacked_draws
from mmgibbs.reml.estimate_groups import estimate_by_groups
from mmgibbs.runs.blup import errors_of_solutions, solve_by_factor, solve_equations
from mmgibbs.runs.chains import Executor
from mmgibbs.runs.estimates import PosteriorEstimates, describe_dimensions, effective_dimensions
from mmgibbs.runs.means import means_tables, solve_means
from mmgibbs.runs.mixed_model_tables import MixedModelTables
from mmgibbs.runs.place import RunFolder
from mmgibbs.runs.problem import Sampled, Tables, sample
from mmgibbs.runs.progress import Console
from mmgibbs.runs.record import model_record
from mmgibbs.runs.reml import RemlWatch, draws_by_name, stopped_words
from mmgibbs.runs.snp_effects import snp_effects_of_run
from mmgibbs.sampler.schedule import Schedule

WITHOUT_ERRORS = "prediction error variances and reliabilities, which were not computed yet"
EARLY_FROM_EQUATIONS = 5_000  # solutions are written before their errors are computed, which take seconds from here
SHARE_OF_DIAGONALS = 0.15  # of the speed of matrix products that the diagonal of H reaches


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
                case "reml" if self.analysis.sampler.is_sampled_reml:
                    estimates = self._sampled_reml(folder, console, executor)
                case "reml":
                    estimates = self._reml(folder, console, executor)
                case _:
                    estimates = self._gibbs(folder, console, executor)
            self._say_that_nothing_is_drawn(estimates, console)
            self._make_diagonals(estimates, console)
            self._count_dimensions(estimates, console)
            return self._add_snp_effects(estimates, console)
        except ModelError as error:
            warned = (f"warning: {note}" for note in self.assembled.notes)  # most likely why
            raise ModelError("\n".join([name_levels(str(error), self.prepared), *warned])) from error

    def _say_that_nothing_is_drawn(self, estimates: PosteriorEstimates, console: Console) -> None:
        """Draws that the analysis asks for and the method does not make."""
        method = self.analysis.sampler.method
        if method != "gibbs":
            notes = saved_draws_notes(self.assembled.model, self.schedule, method)
            estimates.notes.extend(notes)
            console.note(notes)

    def _make_diagonals(self, estimates: PosteriorEstimates, console: Console) -> None:
        """Diagonals of relationships that reliabilities need, and that take long, with a word before."""
        sd = dict(zip((t.name for t in self.prepared.design.terms), estimates.moments.sd, strict=True))
        for term in self.prepared.design.terms:
            operations = 0.0 if term.kind == "fixed" else term.relationship.diagonal_operations
            if operations and not np.isnan(sd[term.name]).all():
                symbol, n = term.relationship.symbol, term.n_levels
                seconds = estimate_seconds(operations, SHARE_OF_DIAGONALS)
                console.tell(f"reliabilities: the diagonal of {symbol} for {n:,} levels{describe_duration(seconds)}")
                _ = term.relationship.diagonal

    def _count_dimensions(self, estimates: PosteriorEstimates, console: Console) -> None:
        """Effective dimensions of curves and field trends, for run.json and the console."""
        dimensions, notes = effective_dimensions(self.prepared, self.assembled, estimates.draws)
        estimates.notes.extend(notes)
        if dimensions:
            estimates.facts["effective_dimensions"] = dimensions
            console.note(describe_dimensions(dimensions))

    def _add_snp_effects(self, estimates: PosteriorEstimates, console: Console) -> PosteriorEstimates:
        """Effects of the SNPs behind genomic breeding values, where `output.snp_effects` asks for them."""
        if not self.analysis.output.snp_effects:
            return estimates
        console.tell("SNP effects from breeding values")
        frame, notes = snp_effects_of_run(
            self.analysis, self.prepared, self.assembled, estimates.moments.mean, estimates.draws
        )
        console.note(notes)
        return replace(estimates, snp_effects=frame, notes=[*estimates.notes, *notes])

    # Gibbs

    def _gibbs(self, folder: RunFolder, console: Console, executor: Executor) -> PosteriorEstimates:
        model = self.assembled.model
        warned, of_decisions = split_messages(decision_notes(self.analysis, self.prepared, model.decisions))
        before = [
            *self._unused_threads(),
            *self._interweaving_notes(),
            *of_decisions,
            *saved_draws_notes(model, self.schedule, "gibbs"),
        ]
        console.note(before)
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
            means=pooled_by_prefix(chains, "means."),
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
        """Return the facts for run.json."""
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

        model, wanted = self.assembled.model, self.analysis.sampler.interweave and not self.choice.kind.integrates
        out = [i for i in model.random_terms if wanted and i not in self.schedule.interweave]
        return {model.design.terms[i].name: reason_not_interweaved(model, i) for i in out}

    def _unused_threads(self) -> list[str]:
        """Describe threads that are not used by an engine that was not asked for by its name."""
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
        """Return the parameters that are sampled."""
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
        """Solve by PCG at the given variances."""
        from mmgibbs.sampler.covariances import starting_matrices

        model = self.assembled.model
        given = Variances([None if c is None else c.start for c in model.covariances], model.residual.start)
        fixed = {name: matrix[None, None] for name, matrix in starting_matrices(model, 0).items()}
        tolerance = self.analysis.sampler.default_tolerance
        if needs_factor(model.design):
            return self._solve_by_factor(given, fixed, console, executor)
        return self._solve_blup(given, fixed, self.analysis.sampler.tolerance or tolerance, folder, console, executor)

    def _solve_by_factor(
        self, variances: Variances, matrices: dict[str, np.ndarray], console: Console, executor: Executor
    ) -> PosteriorEstimates:
        """Solve by the factor of C at known variances, with every PEV."""
        model, G, R = self.assembled.model, variances.G, variances.R
        tell = console.say if executor.max_local_calls else None  # on other machines nobody hears it
        ((theta, sd, of_factor),) = executor.each(solve_by_factor, (model.design, G, R), [(tell,)], ["solving"])
        facts = {"method": "blup", "engine": "direct", **of_factor, **executor.facts}
        means = solve_means(model.design, model.means, variances, theta)
        return PosteriorEstimates(PooledMoments.exact(theta, sd), matrices, facts, means=means)

    def _solve_blup(
        self,
        variances: Variances,
        matrices: dict[str, np.ndarray],
        tolerance: float,
        folder: RunFolder,
        console: Console,
        executor: Executor,
    ) -> PosteriorEstimates:
        """Solve by PCG at known variances; PEV by a selected inverse where the equations are few enough."""
        from mmgibbs.engines.pcg.prediction_errors import prior_diagonals  # late: REML has no use for PCG

        model, s, equations = self.assembled.model, self.analysis.sampler, self.equations
        G, R = variances.G, variances.R
        if equations.real != np.float64:
            equations = structured_equations(model.design, equations.partition)
        threads, sampled = s.threads or cores(), None
        if s.pev_samples is not None:
            diagonals = prior_diagonals(model.design, self.analysis.data.inbreeding == "account")
            sampled = PevSamples(s.pev_samples, s.seed, diagonals)
        tell = console.say if executor.max_local_calls else None  # on other machines nobody hears it
        shared = equations, G, R
        calls: list[tuple] = [(tolerance, threads, s.preconditioner, tell, self.choice.device)]
        (solution,) = executor.each(solve_equations, shared, calls, ["solving"])
        console.say(
            f"PCG: {solution.iterations} iterations ({solution.preconditioned_by}), relative residual "
            f"{solution.relative_residual:.1e}"
        )
        facts = {
            "method": "blup",
            "engine": "pcg",
            "device": self.choice.device,
            "threads": threads,
            "preconditioner": solution.preconditioner,
            "absorbed": None if solution.absorbed is None else solution.absorbed._asdict(),
            "iterations": solution.iterations,
            "relative_residual": solution.relative_residual,
            **executor.facts,
        }
        theta = model.design.to_original_scale(solution.theta)
        n, limit = equations.n_equations, MOST_EQUATIONS if s.pev_limit is None else s.pev_limit
        if sampled is not None or EARLY_FROM_EQUATIONS <= n <= limit:
            self._keep_solutions(folder, PosteriorEstimates(PooledMoments.exact(theta, None), matrices, facts))
        calls = [(s.pev_limit, threads, sampled, s.preconditioner, tell, solution.iterations, self.choice.device)]
        ((sd, blank, by_samples),) = executor.each(errors_of_solutions, shared, calls, ["prediction error variances"])
        notes = [] if blank is None else [f"PEV and reliability are blank: {blank} {MONTE_CARLO}"]
        if by_samples is not None:
            errors = shares_of_variance(model.design, G, by_samples)
            facts["monte_carlo_pev"] = {"samples": by_samples.samples, "because": blank, "errors": errors}
            notes = [words_of_samples(by_samples, str(blank), errors)]
        console.say_all(notes)
        means = solve_means(model.design, model.means, variances, theta)
        return PosteriorEstimates(
            PooledMoments.exact(theta, sd), matrices, facts, means=means, notes=notes, pev=by_samples
        )

    def _keep_solutions(self, folder: RunFolder, estimates: PosteriorEstimates) -> None:
        """Write what is solved before the errors of it are computed, which may take far longer."""
        folder.write_unfinished(self.tables(estimates), self.record(estimates, {}), WITHOUT_ERRORS)

    # REML

    def _reml(self, folder: RunFolder, console: Console, executor: Executor) -> PosteriorEstimates:
        """Variances by REML, and BLUP at them with the PEV of every level."""
        model, s = self.assembled.model, self.analysis.sampler
        watch = RemlWatch(folder, console.tell if executor.max_local_calls else None)
        shared = (model.design, model.covariances, model.residual)
        followed = watch if executor.max_local_calls else None
        call = (s.tolerance, s.max_iterations, followed, watch.start, watch.correlations)
        with StopSignals(watch.ask_to_stop) as stop:
            (fitted,) = executor.each(estimate_by_groups, shared, [call], ["estimating"])
        if not executor.max_local_calls:
            for iteration, log_likelihood in enumerate(fitted.facts["log_likelihoods"]):
                console.tell(f"REML: iteration {iteration}, log likelihood {log_likelihood:.4f}")
        matrices = draws_by_name(fitted, [fitted.vector], bool(model.residual.classes))
        facts = {"method": "reml", "engine": "direct", **fitted.facts, **executor.facts}
        moments = PooledMoments.exact(fitted.solutions, fitted.sd)
        warnings = [*fitted.warnings, *(() if self.assembled.undetermined else fitted.undetermined_words)]
        design = model.design if fitted.correlations is None else fitted.correlations.renew(model.design)
        means = solve_means(design, model.means, fitted.variances, fitted.solutions)
        result = PosteriorEstimates(
            moments, matrices, facts, means=means, estimates=fitted, notes=list(fitted.notes), warnings=warnings
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

    def _sampled_reml(self, folder: RunFolder, console: Console, executor: Executor) -> PosteriorEstimates:
        """Variances by REML from sampled scores, and BLUP at them."""
        from mmgibbs.reml.monte_carlo.estimate import SampledSettings, estimate_sampled  # late: exact REML has no use
        from mmgibbs.runs.sampled_reml import SampledRemlWatch, describe_sampled, stopped_sampled_words

        model, s = self.assembled.model, self.analysis.sampler
        assert s.tolerance is not None, "a complete analysis has one"
        watch = SampledRemlWatch(folder, console.tell if executor.max_local_calls else None)
        threads, device = s.threads or cores(), self.choice.device
        settings = SampledSettings(s.reml_samples, s.seed, threads, s.tolerance, s.max_iterations, device)
        shared = (self.equations, model.covariances, model.residual)
        call = (settings, watch if executor.max_local_calls else None, watch.state)
        with StopSignals(watch.ask_to_stop) as stop:
            (fitted,) = executor.each(estimate_sampled, shared, [call], ["estimating"])
        matrices = draws_by_name(fitted, [fitted.vector], bool(model.residual.classes))
        facts = {"method": "reml", "engine": "pcg", **fitted.facts, **executor.facts}
        warnings = [*fitted.warnings, *(() if self.assembled.undetermined else fitted.undetermined_words)]
        known = {"estimates": fitted, "warnings": warnings}
        if stop.signal is not None and fitted.facts["stopped"]:
            moments = PooledMoments.exact(fitted.solutions, None)
            result = PosteriorEstimates(moments, matrices, facts, notes=list(fitted.notes), **known)
            said = stopped_sampled_words(stop.signal, fitted)
            folder.write_unfinished(self.tables(result), self.record(result, {}), said)
            raise Stopped(stop.signal, said)
        console.say(describe_sampled(fitted))
        console.say_all(fitted.notes)
        solved = self._solve_blup(fitted.variances, matrices, TOLERANCES["blup"], folder, console, executor)
        facts = solved.facts | {"solution_iterations": solved.facts["iterations"]} | facts
        return replace(solved, facts=facts, notes=[*fitted.notes, *solved.notes], **known)

    # Results

    def tables(self, estimates: PosteriorEstimates) -> Tables:
        return MixedModelTables(self.analysis, self.prepared, self.assembled).build(estimates)

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
        if self.analysis.output.means and estimates.means:
            of_run |= {"means": [table.facts for table in means_tables(self.assembled, estimates)]}
        return of_run | ({"liabilities": liabilities, "extreme_levels": extreme} if liabilities else {})


def _notes(chains: list[ChainResult], decided: Decided | None) -> list[str]:
    """List the notes of the chains."""
    notes = list(dict.fromkeys(note for c in chains for note in c.notes))
    notes += [] if decided is None else short_batches(decided)
    if chains[0].moments.batch_length < LONG_ENOUGH:
        notes.append(
            f"MCSE and ESS of breeding values: {sum(c.moments.n_draws for c in chains):,} kept draws are too few "
            "to see the autocorrelation, so the true errors are larger; about 400 are needed "
            "(sampler.samples, sampler.thin)"
        )
    return notes
