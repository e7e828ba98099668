"""The engine of an analysis: the one that it names, or the one that is estimated to give most effective draws a second.

`auto` compares the engines whose line in models/engine_kinds.py says so, by estimates made of counts: those that sweep
by the milliseconds of a sweep (engines/costs.py), and the quickest of them with those that integrate the effects out by
the milliseconds of an effective draw (effective_draws.py); of these one has to win by MARGIN. Never by a clock and
never by the machine, so that a file and its data give the same chain everywhere. What an analysis says of sweeps leaves
out engines that make none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mmgibbs.build.effective_draws import drawn_by_integrating, drawn_by_sweeps, integrating_cost, sweep_cost
from mmgibbs.config import Sampler
from mmgibbs.engines.choice import EngineChoice, engine_class
from mmgibbs.engines.costs import sweep_counts
from mmgibbs.errors import ConfigError
from mmgibbs.machine.device import import_cupy
from mmgibbs.machine.threads import cores
from mmgibbs.models.engine_kinds import ENGINES, INTEGRATING, select_engines
from mmgibbs.models.gpu_rules import Asked, describe_gpu_refusal
from mmgibbs.sampler.mixed_model import MixedModel

if TYPE_CHECKING:
    from mmgibbs.engines.direct.costs import Joined

MARGIN = 1.5  # by which an engine that integrates has to win: the estimates are no better


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
        comparison = (
            _compared(sampler, model)
            if begun_with is None
            else Compared(begun_with, "auto: the engine that the run was begun with", {})
        )
    if gpu:
        of_gpu = describe_gpu_refusal(Asked(sampler.method, comparison.name, model.design))
        if of_gpu is not None:
            raise ConfigError(f"sampler.device: {of_gpu}")
    device = "gpu" if gpu else "cpu"
    engine, kind = engine_class(comparison.name, device), ENGINES[comparison.name]
    refused = engine.refuses(model.design)
    correlated = _estimated_relationships(model)
    if sampler.method == "gibbs" and not kind.integrates:
        _refuse_joint_levels(comparison.name, sampler, model)
    if correlated and sampler.method == "gibbs" and not kind.draws_correlations:
        engines = " or ".join([*select_engines(lambda kind: kind.draws_correlations), "auto"])
        raise ConfigError(
            f"sampler.engine: found {comparison.name}, which cannot be combined with correlations that are estimated "
            f"({correlated}); needed {engines}, or known correlations (rho, and fixed: true)"
        )
    if sampler.is_sampled_reml:
        refuse_sampled_reml(model)
    if model.design.correlated and sampler.method == "gibbs":
        _refuse_correlated(sampler, model)
    if refused:
        raise ConfigError(f"sampler: engine {comparison.name} with device {device} cannot be combined with {refused}")
    if kind.integrates and structured_term(model) is not None:
        raise ConfigError(
            f"sampler.engine: expected serial, structured or pcg with {structured_term(model)}, got {comparison.name}"
        )
    if gpu:
        import_cupy()
    # levels of a colour stand herd by herd, which products with many equations read a fifth faster
    partition = "colour" if sampler.is_sampled_reml else kind.partitions[0]
    partition = partition if sampler.partition == "auto" else sampler.partition
    if partition not in kind.partitions:
        raise ConfigError(
            f"sampler.partition: found '{partition}', which cannot be combined with engine: {comparison.name}; needed "
            f"{kind.partitions[0]} or auto"
        )
    fixed = model.all_fixed and not model.design.responses  # whose liabilities move
    markers = bool(model.design.markers)
    threads = 1
    if "threads" in engine.options and kind.threads:
        threads = sampler.threads or max(1, cores() // sampler.chains)
    elif "threads" in engine.options and markers:  # whose effects alone they share, where they are asked for
        threads = sampler.threads or 1
    joined = joined_components(model)
    size = engine.count_bytes(model.design, joined) if sampler.method == "gibbs" else 0
    share = markers and sampler.threads is not None  # they wait long for a core that others use
    choice = EngineChoice(
        comparison.name, sampler.update, threads, device, fixed, sampler.tolerance, joined, share, size
    )
    return ChosenEngine(choice, partition, comparison.why, comparison.estimates)


def _refuse_joint_levels(engine: str, sampler: Sampler, model: MixedModel) -> None:
    """ConfigError where levels have to be drawn all at once, which engines that integrate alone do."""
    for term in model.design.terms:
        joint = term.relationship.joint_levels
        if joint is None:
            continue
        able, obstacle = _find_integrating(sampler, model)
        named = f"engine: {able}, " if obstacle is None else ""
        why = "" if obstacle is None else f" (engine {able}, which draws them, cannot be combined with {obstacle})"
        raise ConfigError(
            f"sampler.engine: found {engine}, which cannot draw {joint.what} (model.random.{term.name}): {joint.why}"
            f"{why}; needed method: reml or blup, {named}or {joint.instead}"
        )


def _refuse_correlated(sampler: Sampler, model: MixedModel) -> None:
    """ConfigError where no engine that integrates, which correlated residuals need, can sample a model."""
    engine, obstacle = _find_integrating(sampler, model)
    if obstacle is not None:
        raise ConfigError(
            f"variances.residual.known: needs engine: {engine} with method: gibbs, which cannot be combined with "
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


def _compared(sampler: Sampler, model: MixedModel) -> Compared:
    if sampler.device == "gpu":
        return _engine_of_gpu(sampler)
    if sampler.method != "gibbs":
        return _engine_by_size(sampler, model)
    design = model.design
    if design.correlated:
        name = _find_integrating(sampler, model)[0]
        return Compared(name, "auto: residuals are correlated (variances.residual.known)", {})
    correlated = _estimated_relationships(model)
    if correlated:
        name = select_engines(lambda kind: kind.draws_correlations)[0]
        return Compared(name, f"auto: correlations are estimated ({correlated})", {})
    integrating = select_engines(lambda kind: kind.integrates and "cpu" in kind.auto)
    obstacles = {name: find_obstacle(name, sampler, model) for name in integrating}
    able = [name for name, obstacle in obstacles.items() if obstacle is None]
    if not able and design.n_equations >= ENGINES[_find_fastest(design.n_equations)].fastest_from:
        return _engine_by_size(sampler, model)
    joint = next((t.relationship.joint_levels for t in design.terms if t.relationship.joint_levels), None)
    if able and joint is not None:
        return Compared(able[0], f"auto: {joint.what} are drawn all at once", {})
    sweeps = estimated_sweeps(model)
    free = [name for name in sweeps if _takes_partition(name, sampler)]
    best = min(free, key=lambda name: sweeps[name])
    shown = " and ".join(f"{ms:.2g} ms per sweep of {name}" for name, ms in sweeps.items())
    why = f"auto, by estimates: {shown}" + ("" if len(free) == len(sweeps) else f"; partition {sampler.partition}")
    estimates: dict[str, object] = {"milliseconds_per_sweep": sweeps}
    refused = {name: obstacle for name, obstacle in obstacles.items() if obstacle is not None}
    if refused:
        why += "".join(f"; {name} cannot be combined with {obstacle}" for name, obstacle in refused.items())
        estimates["refused"] = "; ".join(refused.values())
    if able:
        milliseconds = sweep_cost(sampler, model, sweeps[best])
        rivals = {name: _compare_integrating(name, sampler, model, milliseconds) for name in able}
        why += "".join(rival.words for rival in rivals.values())
        estimates["effective_draws_per_sweep"] = drawn_by_sweeps(model)
        estimates |= {name: rival.facts for name, rival in rivals.items()}
        winner = max(rivals, key=lambda name: rivals[name].ratio)
        best = winner if rivals[winner].ratio > MARGIN else best
    return Compared(best, why, estimates)


def _engine_of_gpu(sampler: Sampler) -> Compared:
    if sampler.method != "gibbs":
        return Compared(select_engines(lambda kind: kind.solves and kind.gpu)[0], "auto: device gpu", {})
    name = select_engines(lambda kind: "gpu" in kind.auto)[0]
    return Compared(name, "auto: device gpu" + _describe_partition(name, sampler), {})


def _engine_by_size(sampler: Sampler, model: MixedModel) -> Compared:
    """Choose the engine where nothing is sampled, or the equations are many."""
    size = model.design.n_equations
    fastest = _find_fastest(size)
    limit = ENGINES[fastest].fastest_from
    names = ((fastest,) if size >= limit else ()) + select_engines(lambda kind: kind.sweeps and "cpu" in kind.auto)
    able = [name for name in names if _takes_partition(name, sampler)]
    why = f"auto: {size:,} equations, {'at least' if size >= limit else 'fewer than'} {limit:,}"
    return Compared(able[0], why + _describe_partition(fastest, sampler), {})


def _find_fastest(size: int) -> str:
    """Find the engine that is the fastest from the most equations that there are, or else from the fewest."""
    names = sorted(select_engines(lambda kind: kind.fastest_from), key=lambda name: ENGINES[name].fastest_from)
    return next((name for name in reversed(names) if size >= ENGINES[name].fastest_from), names[0])


def _takes_partition(name: str, sampler: Sampler) -> bool:
    return sampler.partition in ("auto", *ENGINES[name].partitions)


def _describe_partition(name: str, sampler: Sampler) -> str:
    """', and partition equal' where an engine does not sweep the one that is asked for."""
    return "" if _takes_partition(name, sampler) else f", and partition {sampler.partition}"


class Rival(NamedTuple):
    """An engine that integrates, beside sweeps."""

    ratio: float  # of its effective draws per second to theirs; 0 where it may not be taken
    words: str
    facts: dict[str, object]


def _compare_integrating(name: str, sampler: Sampler, model: MixedModel, milliseconds: float) -> Rival:
    """Compare an engine with sweeps that take so many milliseconds for an effective draw."""
    for cost in engine_class(name, "cpu").likelihood_costs(model.design, joined_components(model)):
        ratio = milliseconds / integrating_cost(sampler, model, cost)
        if ratio <= MARGIN:  # a bound is mostly enough to know that it does not win
            break
    drawn = drawn_by_integrating(model)
    facts = {"effective_draws_per_sweep": drawn} | cost.facts | {"effective_draws_per_second_to_sweeps": ratio}
    facts |= {} if cost.is_bound else {"bytes": cost.bytes}
    words = f", {'at least ' * cost.is_bound}{cost.words}; {drawn_by_sweeps(model):.2g} effective draws per sweep"
    words += f", {drawn:.2g} of {name}"
    if cost.is_too_large(sampler.chains):
        return Rival(0.0, f"{words}, too large for {sampler.chains} chains", facts)
    times = f"{'at most' if cost.is_bound else 'about'} " + (f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}")
    # those between kept draws are lost
    kept = f" with thin: {sampler.thin}" if sampler.thin * drawn > 1 else ""
    words += f": {name} gives {times} times the effective draws per second{kept}"
    return Rival(ratio, words + ("" if ratio > MARGIN else ", too few"), facts)


def _find_integrating(sampler: Sampler, model: MixedModel) -> tuple[str, str | None]:
    """Find an engine that integrates and can sample the model, or the first, and what it cannot be combined with."""
    obstacles = {name: find_obstacle(name, sampler, model) for name in INTEGRATING}
    name = next((name for name, obstacle in obstacles.items() if obstacle is None), INTEGRATING[0])
    return name, obstacles[name]


def find_obstacle(name: str, sampler: Sampler, model: MixedModel) -> str | None:
    """Describe what an engine that integrates cannot be combined with, or what asks for sweeps; None: nothing."""
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
    engine = engine_class(name, "cpu")
    obstacle = structured_term(model) or engine.auto_obstacle(model.design, sampler.chains)
    if obstacle is not None:
        return obstacle
    refused = engine.refuses(model.design)
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
    names = select_engines(lambda kind: kind.sweeps and "cpu" in kind.auto)
    costs = {name: engine_class(name, "cpu").sweep_cost for name in names}
    return {name: cost.milliseconds(counts) for name, cost in costs.items() if cost is not None}
