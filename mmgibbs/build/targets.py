"""The targets of `sampler.stop`: which parameters and levels they are about, and the verdict on the draws so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np

from mmgibbs.build.assemble import Assembled
from mmgibbs.config import Sampler
from mmgibbs.config.sampling import Stop
from mmgibbs.errors import ConfigError, nearest
from mmgibbs.models.labels import component_labels
from mmgibbs.posterior.draw_names import threshold_name
from mmgibbs.posterior.moments import pool
from mmgibbs.posterior.parameters import named_parameters
from mmgibbs.posterior.result import ChainResult, stacked_draws
from mmgibbs.posterior.stopping import Target, Wanted, assess, largest_error, matching
from mmgibbs.sampler.mixed_model import MixedModel

Parameters = Callable[[list], Mapping[str, np.ndarray]]  # results of all chains -> name -> (chains, draws)


class StoppingRule:
    """Called with the results of all chains so far: True where every target is met. `verdict`: the last one."""

    def __init__(
        self,
        wanted: Iterable[Wanted],
        parameters: Parameters,
        burn_in: int,
        say: Callable[[str], None],
        error_of_breeding_values: Callable[[list], tuple[float, str]] | None = None,
    ):
        """parameters: those that are sampled; error_of_breeding_values: see assess, of results."""
        self.wanted, self.parameters, self.burn_in, self.say = tuple(wanted), parameters, burn_in, say
        self._error = error_of_breeding_values
        self.verdict: list[Target] = []

    def __call__(self, results: list) -> bool:
        of = self._error
        error = None if of is None else lambda: of(results)
        self.verdict = assess(self.wanted, self.parameters(results), error)
        for target in self.verdict:
            self.say(f"after {results[0].sweeps - self.burn_in:,} samples: {target}")
        return all(target.met for target in self.verdict)

    @property
    def facts(self) -> list[dict]:
        """Facts for run.json."""
        return [
            {
                "target": t.wanted.name,
                "parameters": list(t.wanted.patterns) if t.wanted.name != "mcse_ebv" else [],
                "needed": t.wanted.needed,
                "found": t.found,
                "at": t.at,
                "met": t.met,
            }
            for t in self.verdict
        ]

    @property
    def missed(self) -> list[str]:
        return [f"sampler.stop.{t.wanted.key}: missed after max_samples: {t.fact}" for t in self.verdict if not t.met]


def read_targets(stop: Stop | None) -> list[Wanted]:
    """The targets of a `sampler.stop`; none where there is none."""
    return [] if stop is None else [Wanted(*target) for target in stop.targets]


def check_patterns(wanted: Iterable[Wanted], names: Iterable[str]) -> None:
    """ConfigError for a pattern that fits no parameter."""
    names = list(names)
    for w in wanted:
        for pattern in w.patterns if w.name != "mcse_ebv" else ():
            if not matching([pattern], names):
                place = "mcse" if w.name == "mcse" else "parameters"
                known = nearest(pattern.replace("*", ""), names, "the parameters are")
                raise ConfigError(f"sampler.stop.{place}: no parameter fits '{pattern}'; {known}")


# ------------------------------------------------------------------------------------------------ of a mixed model


def breeding_value_terms(model: MixedModel) -> list[int]:
    """Terms whose levels are related, by a pedigree or a user's file; all random terms where none is."""
    related = [i for i in model.random_terms if model.design.terms[i].relationship.related]
    return related or model.random_terms


def check_targets(stop: Stop | None, assembled: Assembled) -> None:
    """ConfigError for targets that no sampling can meet or miss, as nothing of the kind is sampled."""
    wanted, model = read_targets(stop), assembled.model
    names = [w.name for w in wanted]
    if "mcse_ebv" in names and not model.random_terms:
        raise ConfigError("sampler.stop.mcse_ebv: found no random term, needed one, or other targets")
    ordinal = [r for r in model.design.responses if r.n_free_thresholds]
    moving = not model.residual.fixed or any(not model.covariance(i).fixed for i in model.random_terms)
    moving = moving or bool(ordinal) or any(scale.names for scale in model.observed)
    for name in names:
        if name != "mcse_ebv" and not moving:
            raise ConfigError(
                f"sampler.stop.{name}: every variance is fixed; needed sampled variances, or mcse_ebv alone"
            )
    if any(name != "mcse_ebv" for name in names):
        check_patterns(wanted, _sampled(assembled, _starting_draws(assembled)))


def check_functions(assembled: Assembled, method: str) -> None:
    """ConfigError for a function of a parameter that the model does not have, and for what is no function."""
    if assembled.residual.functions:
        starts = _starting_draws(assembled, method != "blup")  # BLUP has matrices alone
        without = replace(assembled.residual, functions=())
        known = named_parameters(assembled.terms, starts, without, assembled.markers).draws
        for function in assembled.residual.functions:
            function.compute(known)


def _starting_draws(assembled: Assembled, has_structures: bool = True) -> dict[str, np.ndarray]:
    """What named_parameters takes, as one draw at the starts."""
    from mmgibbs.sampler.covariances import starting_matrices  # late: REML and BLUP seldom ask
    from mmgibbs.sampler.markers.effects import starting_draws
    from mmgibbs.sampler.markers.joint import joint_starting_draws

    model = assembled.model
    starts = {name: matrix[None, None] for name, matrix in starting_matrices(model, 0).items()}
    for info in assembled.terms:
        if info.structure is not None and has_structures:
            starts[info.structure_draws] = info.structure.fit(starts[info.matrix][0, 0])[None, None]
    for r in model.design.responses:
        if r.n_free_thresholds:
            starts[threshold_name(r.trait)] = r.start_of_cuts()[None, None, 2:-1]
    starts |= {scale.draws: np.zeros((1, 1, len(scale.names))) for scale in model.observed}
    starts |= {of.draws: np.ones((1, 1, 2)) for of in assembled.residual.moments}
    for markers in model.design.markers:
        starts |= starting_draws(markers) if markers.joint is None else joint_starting_draws(markers, markers.joint)
    return starts


def stopping_rule(
    sampler: Sampler, assembled: Assembled, ids: Callable[[int, int], str], say: Callable[[str], None]
) -> StoppingRule | None:
    """Make the rule of `sampler.stop` in a mixed model. ids(term, level): name of a level."""
    if sampler.stop is None:
        return None
    model = assembled.model

    def label(term: int, level: int, component: int) -> str:
        t = model.design.terms[term]
        return f"{t.name} {component_labels(t, model.design.traits)[component]} of {ids(term, level)}"

    def error(results: list[ChainResult]) -> tuple[float, str]:
        return largest_error(pool([c.moments for c in results]), breeding_value_terms(model), label)

    parameters = lambda results: _sampled(assembled, stacked_draws(results))
    return StoppingRule(read_targets(sampler.stop), parameters, sampler.burn_in, say, error)


def _sampled(assembled: Assembled, matrices: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Draws of the variances that are not fixed, and of what follows from them, by name."""
    named = named_parameters(assembled.terms, matrices, assembled.residual, assembled.markers)
    return {name: draws for name, draws in named.draws.items() if name not in named.fixed}
