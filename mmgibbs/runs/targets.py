"""The targets of `sampler.stop` for a mixed model: which parameters and levels they are about, and the verdict."""

from __future__ import annotations

from collections.abc import Callable

from mmgibbs.errors import ConfigError
from mmgibbs.model.labels import component_labels
from mmgibbs.posterior.moments import pool
from mmgibbs.posterior.parameters import named_parameters
from mmgibbs.posterior.result import ChainResult, stacked_draws
from mmgibbs.posterior.stopping import Target, judge
from mmgibbs.sampler.mixed_model import MixedModel


def breeding_value_terms(model: MixedModel) -> list[int]:
    """Terms whose levels are related, by a pedigree or a user's file; all random terms where none is."""
    related = [i for i in model.random_terms if model.design.terms[i].relationship.related]
    return related or model.random_terms


def check_targets(wanted: dict[str, float], model: MixedModel) -> None:
    """ConfigError for targets that no sampling can meet or miss, as nothing of the kind is sampled."""
    if "mcse_ebv" in wanted and not model.random_terms:
        raise ConfigError("sampler.stop.mcse_ebv: found no random term, needed one, or other targets")
    moving = not model.residual.fixed or any(not model.covariances[i].fixed for i in model.random_terms)
    for name in ("rhat", "ess"):
        if name in wanted and not moving:
            raise ConfigError(
                f"sampler.stop.{name}: every variance is held fixed; needed sampled variances, or mcse_ebv alone"
            )


class StoppingRule:
    """Called with the results of all chains so far: True where every target is met. `verdict`: the last one."""

    def __init__(
        self,
        wanted: dict[str, float],
        assembled,
        ids: Callable[[int, int], str],
        burn_in: int,
        say: Callable[[str], None],
    ):
        """assembled: model and term infos (assemble.Assembled); ids(term, level): what a level is called."""
        self.wanted, self.assembled, self.ids, self.burn_in, self.say = wanted, assembled, ids, burn_in, say
        self.verdict: list[Target] = []

    def __call__(self, results: list[ChainResult]) -> bool:
        model = self.assembled.model
        named = named_parameters(self.assembled.terms, stacked_draws(results), self.assembled.residual)
        sampled = {name: draws for name, draws in named.draws.items() if name not in named.fixed}
        self.verdict = judge(
            self.wanted, sampled, pool([c.moments for c in results]), breeding_value_terms(model), self._label
        )
        for target in self.verdict:
            self.say(f"after {results[0].sweeps - self.burn_in:,} samples: {target}")
        return all(target.met for target in self.verdict)

    def _label(self, term: int, level: int, component: int) -> str:
        t = self.assembled.model.design.terms[term]
        return (
            f"{t.name} {component_labels(t, self.assembled.model.design.traits)[component]} of {self.ids(term, level)}"
        )

    @property
    def facts(self) -> list[dict]:
        """For run.json."""
        return [
            {"target": t.name, "needed": t.needed, "found": t.found, "at": t.at, "met": t.met} for t in self.verdict
        ]

    @property
    def missed(self) -> list[str]:
        return [f"sampler.stop.{t.name}: missed after max_samples: {t.fact}" for t in self.verdict if not t.met]
