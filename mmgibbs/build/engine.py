"""The engine of an analysis: the one that it names, or the one that is estimated to give most effective draws a second.

`auto` compares `serial`, `structured` and `marginal` by estimates made of counts (engines/costs.py): never by a clock
and never by the machine, so that a file and its data give the same chain everywhere. With m milliseconds a sweep and e
effective draws of the slowest variance in it, over b sweeps of burn-in and n after it,

    milliseconds of an effective draw = (set-up + (b + n) m) / (n e')

    marginal              e = 0.5 / (1 + (p / 5)^3)   p elements of the covariance matrices of random terms
    serial, structured    e = 0.14 / (r^2 sqrt(k))    r random terms on the trait that has most, of those with few
                                                      records for a level: their variances compete;
                                                      k components of the widest term
    one trait not normal  other e at the start of both, that of marginal 0.5 (q / 0.3)^2 for q of the records outside
                          the category that most are in: liabilities of a rare category move slowly (families)
    of kept draws         e' = (1 - a) / (1 + a) / thin,   a = ((1 - e) / (1 + e))^thin, as of an autoregression

which is what was measured within a factor of two or three (results of benchmarks, "Which engine"). `marginal` is taken
where it wins by MARGIN, of the others the one with the cheaper sweep. What an analysis says of sweeps leaves out
`marginal`, which makes none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mmgibbs.config import Sampler
from mmgibbs.engines.choice import EngineChoice, engine_class
from mmgibbs.engines.costs import LISTED, SWEEPS, FactorCost, dense_levels, factor_cost, least_cost, sweep_counts
from mmgibbs.errors import ConfigError
from mmgibbs.machine.device import import_cupy
from mmgibbs.machine.threads import cores
from mmgibbs.models.covariance import count_elements
from mmgibbs.models.families.base import EffectiveDraws
from mmgibbs.models.gpu_rules import Asked, describe_gpu_refusal
from mmgibbs.models.terms import Term
from mmgibbs.sampler.mixed_model import MixedModel

if TYPE_CHECKING:
    from mmgibbs.engines.direct.engine import Joined

MIN_STRUCTURED_EQUATIONS = 50_000  # from which structured is the faster one, and colours are not counted to know it
MAX_FACTOR_EQUATIONS = 100_000  # up to which a factor is looked at: a matter of seconds
MAX_FACTOR_BYTES = 2_000_000_000  # that the factors of all chains may take
MARGIN = 1.5  # by which marginal has to win: the estimates are no better
ELEMENTS_OF_MARGINAL = 5.0  # of covariance matrices, from which moves of all of them are much less likely
RECORDS_PER_LEVEL = 5.0  # from which the variance of a term is clear beside those of others
MOVE_MS = 0.06  # of a move of marginal beside the likelihood
LIABILITY_SWEEP_MS = 0.19  # of a sweep of marginal with liabilities, beside FACTORS_PER_SWEEP factorisations
FACTORS_PER_SWEEP = 2.0
SURROGATE_STEP_MS = 4e-7  # of a move of marginal, for each point, element and step of its surrogate
SURROGATE_LEARNING_MS = 1.3e-6  # once, for the cube of the points
GRADIENTS_PER_MOVE = 0.2  # of marginal, from MIN_GRADIENT_ELEMENTS elements on


NORMAL = EffectiveDraws(0.14, 0.5)


@dataclass(frozen=True)
class ChosenEngine:
    """An engine, the partition that it sweeps, and why."""

    engine: EngineChoice
    partition: str
    why: str
    estimates: dict[str, object]  # what auto went by, for run.json; empty where it was not asked


@dataclass(frozen=True)
class Compared:
    """Result of `auto`."""

    name: str
    why: str
    estimates: dict[str, object]


def choose_engine(sampler: Sampler, model: MixedModel, begun_with: str | None = None) -> ChosenEngine:
    """Choose the engine by `sampler.engine`; begun_with: the engine that a run continues with, None for a new run.

    A GPU is used where `device: gpu` asks for it, never by itself. Threads: `sampler.threads`, else the cores that
    chains in parallel leave. Raises ConfigError, or DeviceError for a GPU that is not there.
    """
    if sampler.partition == "effect" and model.design.n_scores:
        raise ConfigError(
            "sampler.partition: found effect, which cannot be combined with structure: reduced_rank, whose components "
            "are drawn together; needed auto"
        )
    gpu, comparison = sampler.device == "gpu", Compared(sampler.engine, "asked for", {})
    if comparison.name == "auto":
        comparison = _continued(begun_with) if begun_with is not None else _compared(sampler, model)
    if gpu:
        of_gpu = describe_gpu_refusal(Asked(sampler.method, comparison.name, model.design))
        if of_gpu is not None:
            raise ConfigError(f"sampler.device: {of_gpu}")
    device = "gpu" if gpu else "cpu"
    engine = engine_class(comparison.name, device)
    refused = engine.refuses(model.design)
    correlated = _estimated_relationships(model)
    if sampler.method == "gibbs" and comparison.name != "marginal":
        _refuse_joint_levels(comparison.name, sampler, model)
    if correlated and sampler.method == "gibbs" and comparison.name != "serial":
        raise ConfigError(
            f"sampler.engine: found {comparison.name}, which cannot be combined with correlations that are estimated "
            f"({correlated}); needed serial or auto, or known correlations (rho, and fixed: true)"
        )
    if sampler.is_sampled_reml:
        refuse_sampled_reml(model)
    if model.design.correlated and sampler.method == "gibbs":
        _refuse_correlated(sampler, model)
    if refused:
        raise ConfigError(f"sampler: engine {comparison.name} with device {device} cannot be combined with {refused}")
    if comparison.name == "marginal" and structured_term(model) is not None:
        raise ConfigError(
            f"sampler.engine: expected serial, structured or pcg with {structured_term(model)}, got marginal"
        )
    if gpu:
        import_cupy()
    # levels of a colour stand herd by herd, which products with many equations read a fifth faster
    kind = "colour" if sampler.is_sampled_reml else engine.partitions[0]
    kind = kind if sampler.partition == "auto" else sampler.partition
    if kind not in engine.partitions:
        raise ConfigError(
            f"sampler.partition: found '{kind}', which cannot be combined with engine: {comparison.name}; needed "
            f"{engine.partitions[0]} or auto"
        )
    fixed = model.all_fixed and not model.design.responses  # whose liabilities move
    markers = bool(model.design.markers)  # whose effects alone threads share in serial sweeps
    threads = 1
    if comparison.name == "serial":  # SNP effects share them, where they are asked for
        threads = (sampler.threads or 1) if markers else 1
    elif "threads" in engine.options:
        threads = sampler.threads or max(1, cores() // sampler.chains)
    joined = joined_components(model)
    size = 0
    if comparison.name == "marginal" and sampler.method == "gibbs":
        size = factor_cost(model.design, *joined).bytes
    share = markers and sampler.threads is not None  # they wait long for a core that others use
    choice = EngineChoice(
        comparison.name, sampler.update, threads, device, fixed, sampler.tolerance, joined, share, size
    )
    return ChosenEngine(choice, kind, comparison.why, comparison.estimates)


def _refuse_joint_levels(engine: str, sampler: Sampler, model: MixedModel) -> None:
    """ConfigError where levels have to be drawn all at once, which no engine but marginal does."""
    for term in model.design.terms:
        joint = term.relationship.joint_levels
        if joint is None:
            continue
        obstacle = marginal_obstacle(sampler, model)
        marginal = "engine: marginal, " if obstacle is None else ""
        why = "" if obstacle is None else f" (engine marginal, which draws them, cannot be combined with {obstacle})"
        raise ConfigError(
            f"sampler.engine: found {engine}, which cannot draw {joint.what} (model.random.{term.name}): {joint.why}"
            f"{why}; needed method: reml or blup, {marginal}or {joint.instead}"
        )


def _refuse_correlated(sampler: Sampler, model: MixedModel) -> None:
    """ConfigError where engine marginal, the one that correlated residuals have, cannot sample a model."""
    obstacle = marginal_obstacle(sampler, model)
    if obstacle is not None:
        raise ConfigError(
            "variances.residual.known: needs engine: marginal with method: gibbs, which cannot be combined with "
            f"{obstacle}; needed a model without it, or method: reml or blup"
        )


def refuse_sampled_reml(model: MixedModel) -> None:
    """ConfigError where REML by Monte Carlo cannot estimate a model."""
    problems = []
    structured = structured_term(model)
    if structured is None and model.design.n_scores:
        structured = f"variances.{model.design.reduced_rank_name}.structure: reduced_rank"
    if structured is not None:
        problems.append(f"{structured}: its matrix is not estimated by Monte Carlo")
    correlated = _estimated_relationships(model)
    if correlated:
        problems.append(f"{correlated}: correlations of a relationship are not estimated by Monte Carlo")
    problems += [
        f"model.random.{term.name}.relationship: its matrix is known by its inverse alone, so no effects can be "
        "simulated from it"
        for term in (model.design.terms[i] for i in model.random_terms)
        if not term.relationship.can_draw
    ]
    problems += [
        f"model.random.{term.name}.relationship: iterations do not solve for {term.relationship.stiff_part} "
        f"({term.relationship.words})"
        for term in model.design.terms
        if term.relationship.stiff_part
    ]
    if problems:
        needed = "sampler.engine: found pcg with method: reml; needed engine: auto, or another model"
        raise ConfigError("\n".join([*problems, needed]))


def _estimated_relationships(model: MixedModel) -> str:
    """'model.random.field': terms whose relationships have parameters to estimate; '' without such."""
    terms = [t for t in model.design.terms if t.relationship.has_free_parameters]
    return ", ".join(f"model.random.{term.name}" for term in terms)


def joined_components(model: MixedModel) -> Joined:
    """Components that may covary, of terms and of residuals."""
    of_terms = tuple(None if c is None else c.blocks for c in model.covariances)
    return of_terms, tuple(m.blocks for m in model.residual.matrices)


def _engine_by_size(sampler: Sampler, model: MixedModel) -> Compared:
    """Choose the engine where nothing is sampled, a GPU is asked for, or the equations are many."""
    if sampler.method != "gibbs" and sampler.device == "gpu":
        return Compared("pcg", "auto: device gpu", {})
    size, free = model.design.n_equations, _free(sampler)
    large = size >= MIN_STRUCTURED_EQUATIONS
    name = "structured" if sampler.device == "gpu" or (large and free) else "serial"
    why = f"auto: {size:,} equations, {'at least' if large else 'fewer than'} {MIN_STRUCTURED_EQUATIONS:,}"
    why = "auto: device gpu" if sampler.device == "gpu" else why
    return Compared(name, why + ("" if free else f", and partition {sampler.partition}"), {})


def _free(sampler: Sampler) -> bool:
    """The partition is one that structured sweeps."""
    return sampler.partition in ("auto", "colour")


def _continued(name: str) -> Compared:
    return Compared(name, "auto: the engine that the run was begun with", {})


def _compared(sampler: Sampler, model: MixedModel) -> Compared:
    if sampler.method != "gibbs" or sampler.device == "gpu":
        return _engine_by_size(sampler, model)
    if model.design.correlated:
        return Compared("marginal", "auto: residuals are correlated (variances.residual.known)", {})
    correlated = _estimated_relationships(model)
    if correlated:
        return Compared("serial", f"auto: correlations are estimated ({correlated})", {})
    design = model.design
    refused = marginal_obstacle(sampler, model)
    if refused and design.n_equations >= MIN_STRUCTURED_EQUATIONS:
        return _engine_by_size(sampler, model)
    joint = next((t.relationship.joint_levels for t in design.terms if t.relationship.joint_levels), None)
    if not refused and joint is not None:
        return Compared("marginal", f"auto: {joint.what} are drawn all at once", {})
    sweeps = estimated_sweeps(model)
    name = min(sweeps, key=lambda engine: sweeps[engine]) if _free(sampler) else "serial"
    shown = " and ".join(f"{ms:.2g} ms per sweep of {engine}" for engine, ms in sweeps.items())
    why = f"auto, by estimates: {shown}" + ("" if _free(sampler) else f"; partition {sampler.partition}")
    estimates: dict[str, object] = {"milliseconds_per_sweep": sweeps}
    if refused:
        return Compared(name, f"{why}; marginal cannot be combined with {refused}", estimates | {"refused": refused})
    joined = joined_components(model)
    milliseconds = sweep_cost(sampler, model, sweeps[name])
    cost = least_cost(design, *joined)  # mostly enough to know that marginal does not win
    least = milliseconds / marginal_cost(sampler, model, cost) <= MARGIN
    if not least:
        cost = factor_cost(design, *joined)
    ratio = milliseconds / marginal_cost(sampler, model, cost)
    estimates["effective_draws_per_sweep"] = drawn_by_sweeps(model)
    estimates["marginal"] = {
        "effective_draws_per_sweep": drawn_by_marginal(model),
        "elements": cost.elements,
        "operations": cost.operations,
        "without_fill": least,  # a factor has more elements and operations than that, and gives fewer effective draws
        "milliseconds_per_factorisation": cost.milliseconds,
        "effective_draws_per_second_to_sweeps": ratio,
    } | ({} if least else {"bytes": cost.bytes})
    why += f", {'at least ' * least}{cost.milliseconds:.2g} ms per factorisation ({cost.elements:,} elements)"
    why += f"; {drawn_by_sweeps(model):.2g} effective draws per sweep, {drawn_by_marginal(model):.2g} of marginal"
    if cost.bytes * sampler.chains > MAX_FACTOR_BYTES:
        return Compared(name, f"{why}, too large for {sampler.chains} chains", estimates)
    taken = ratio > MARGIN
    times = f"{'at most' if least else 'about'} " + (f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}")
    # those between kept draws are lost
    kept = f" with thin: {sampler.thin}" if sampler.thin * drawn_by_marginal(model) > 1 else ""
    why += f": marginal gives {times} times the effective draws per second{kept}{'' if taken else ', too few'}"
    return Compared("marginal" if taken else name, why, estimates)


def marginal_obstacle(sampler: Sampler, model: MixedModel) -> str | None:
    """Describe what engine marginal cannot be combined with, or what asks for sweeps; None: nothing."""
    asked = {
        "update": "level",
        "partition": "auto",
        "precision": "double",
        "interweave": "auto",
    }
    for key, usual in asked.items():
        if getattr(sampler, key) != usual:
            return f"sampler.{key}: {str(getattr(sampler, key)).lower()}"
    from mmgibbs.sampler.marginal.step import MIN_BURN_IN

    if sampler.burn_in < MIN_BURN_IN:
        return f"sampler.burn_in: {sampler.burn_in}, fewer than the {MIN_BURN_IN} sweeps in which it learns"
    if model.all_fixed:
        return "fixed variances"
    structured = structured_term(model)
    if structured is not None:
        return structured
    if model.design.n_equations > MAX_FACTOR_EQUATIONS:
        return f"{model.design.n_equations:,} equations, more than {MAX_FACTOR_EQUATIONS:,}"
    dense = sum(m * m for m in dense_levels(model.design))
    if LISTED * dense * sampler.chains > MAX_FACTOR_BYTES:  # known before anything of that size is built
        return f"relationships that join all of {sum(dense_levels(model.design)):,} animals"
    refused = engine_class("marginal", "cpu").refuses(model.design)
    return None if refused is None else refused.partition(";")[0]


def structured_term(model: MixedModel) -> str | None:
    """'variances.gen.structure: ar1' of a matrix that is sampled and has a structure; None: there is none."""
    for i in model.random_terms:
        covariance = model.covariance(i)
        if covariance.structure is not None and not covariance.fixed:
            return f"variances.{model.design.terms[i].name}.structure: {covariance.structure.kind}"
    return None


def estimated_sweeps(model: MixedModel) -> dict[str, float]:
    """Milliseconds of a sweep by engine."""
    counts = sweep_counts(model.design, sum(not model.covariance(i).fixed for i in model.random_terms))
    return {name: cost.milliseconds(counts) for name, cost in SWEEPS.items()}


def drawn_by_sweeps(model: MixedModel) -> float:
    """e of serial and structured, effective draws a sweep."""
    start = effective_draws(model).sweeps
    on_trait, widest = np.zeros(model.design.n_traits, int), 1
    for term in (model.design.terms[i] for i in model.random_terms if not model.covariance(i).fixed):
        on_trait[np.unique(term.component_trait)] += _has_few_records_per_level(term)
        widest = max(widest, term.n_components)
    competing = max(1, int(on_trait.max(initial=0)))
    return start / (competing**2 * widest**0.5)


def effective_draws(model: MixedModel) -> EffectiveDraws:
    """Return the effective draws by the type of the traits: normal, or the one that is not."""
    if not model.design.responses:
        return NORMAL
    terms = [model.design.terms[i] for i in model.random_terms if not model.covariance(i).fixed]
    return model.design.responses[0].expect_draws(any(_has_few_records_per_level(term) for term in terms))


def _has_few_records_per_level(term: Term) -> bool:
    """Compare the records with the levels that have some.

    Herds of dozens of animals have many records, animals and mothers have few.
    """
    levels = np.concatenate([effect.level[effect.level >= 0] for effect in term.effects])
    return levels.size < RECORDS_PER_LEVEL * np.unique(levels).size


def drawn_by_marginal(model: MixedModel) -> float:
    """e of marginal, effective draws a sweep."""
    of_terms = count_elements([model.covariance(i) for i in model.random_terms])
    return effective_draws(model).marginal / (1.0 + (of_terms / ELEMENTS_OF_MARGINAL) ** 3)


def count_kept(drawn: float, thin: int) -> float:
    """e' of draws that are kept."""
    a = ((1.0 - drawn) / (1.0 + drawn)) ** thin
    return (1.0 - a) / (1.0 + a) / thin


def sweep_cost(sampler: Sampler, model: MixedModel, milliseconds: float) -> float:
    """Milliseconds of an effective draw by sweeps of so many."""
    drawn = count_kept(drawn_by_sweeps(model), sampler.thin)
    return (sampler.burn_in + sampler.samples) * milliseconds / (sampler.samples * drawn)


def marginal_cost(sampler: Sampler, model: MixedModel, cost: FactorCost) -> float:
    """Milliseconds of an effective draw by engine marginal, the search for the shape of its proposals included."""
    drawn = count_kept(drawn_by_marginal(model), sampler.thin)
    sweeps = sampler.burn_in + sampler.samples
    if model.design.responses:
        move = LIABILITY_SWEEP_MS + FACTORS_PER_SWEEP * cost.milliseconds
        return sweeps * move / (sampler.samples * drawn)
    from mmgibbs.sampler.marginal.step import MIN_GRADIENT_ELEMENTS
    from mmgibbs.sampler.marginal.surrogate import STEPS, points_kept
    from mmgibbs.sampler.marginal.target import PAIRS, ROUNDS

    p = count_elements([*map(model.covariance, model.random_terms), *model.residual.matrices])
    looks = 2 * ROUNDS * max(PAIRS, p) + 6 * p + 10
    shape = looks * (cost.milliseconds + cost.gradient_ms)
    points = points_kept(p)
    shape += SURROGATE_LEARNING_MS * points**3
    move = MOVE_MS + SURROGATE_STEP_MS * STEPS * points * p + cost.milliseconds
    if p >= MIN_GRADIENT_ELEMENTS:
        move += GRADIENTS_PER_MOVE * cost.gradient_ms
    return (shape + sweeps * move) / (sampler.samples * drawn)
