"""What `device: gpu` does not take: a row for each rule, in this one place.

A rule sees the method, the engine and, once data are read, the design: what is refused by keys alone is refused before.
What an engine takes on no device it says itself (`refuses` of engines/base.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from mmgibbs.models.engine_kinds import ENGINES, SOLVERS, WITHOUT_SWEEPS
from mmgibbs.models.families import FAMILIES

if TYPE_CHECKING:
    from mmgibbs.models.design import Design
    from mmgibbs.models.terms import Term

MAX_COMPONENTS = 40  # of a level: so many sums in float64 of each of 128 threads fit in 48 KB of shared memory
MAX_ENTRIES = 2**32 - 1  # of a list of records: positions have 32 bits on a device


class Asked(NamedTuple):
    """An analysis with `device: gpu`."""

    method: str
    engine: str  # 'auto' until it is chosen
    design: Design | None = None  # None before data are read
    preconditioner: str = "auto"

    @property
    def samples(self) -> bool:
        """True if location effects are drawn."""
        return self.method == "gibbs"

    @property
    def sweeps(self) -> bool:
        """True if location effects are drawn level by level."""
        return self.samples and self.engine not in WITHOUT_SWEEPS


class GpuRule(NamedTuple):
    """A rule of refusal on a GPU: the case, the reason and the advice."""

    name: str
    find: Callable[[Asked], str | None]  # what is refused, in words that follow "cannot be combined with"
    why: str
    needed: str


def _find_terms(of_analysis: Callable[[Asked], object], is_refused: Callable[[Term], object], words: str) -> Callable:
    """A rule's `find` for random terms of a kind; words: with {term}, {name}, {k} and {stiff}."""

    def find(asked: Asked) -> str | None:
        terms = asked.design.terms if asked.design is not None and of_analysis(asked) else ()
        for term in filter(is_refused, terms):
            where, stiff = f"model.random.{term.name}", term.relationship.stiff_part
            return words.format(term=where, name=term.name, k=term.n_components, stiff=stiff)
        return None

    return find


def _find_engine(name: str) -> Callable[[Asked], str | None]:
    """A rule's `find` for an engine that draws."""
    return lambda asked: f"engine: {name}" if asked.samples and asked.engine == name else None


def _find_family(name: str) -> Callable[[Asked], str | None]:
    """A rule's `find` for traits of a family."""

    def find(asked: Asked) -> str | None:
        design = asked.design
        of_family = [] if design is None else [design.traits[r.trait] for r in design.responses if r.kind == name]
        return f"traits.{of_family[0]}.type: {name}" if of_family else None

    return find


def _find_long_list(asked: Asked) -> str | None:
    for term in asked.design.terms if asked.design is not None else ():
        n = sum(int((effect.level >= 0).sum()) for effect in term.effects)
        if n > MAX_ENTRIES:
            return f"term '{term.name}', whose levels meet {n:,} records, more than {MAX_ENTRIES:,}"
    return None


ON_CPU = "device: cpu or auto"
GPU_RULES = (
    GpuRule("reml", lambda a: "method: reml" if a.method == "reml" and a.engine not in SOLVERS else None,
            "it factorises sparse equations, which the CPU does", f"engine: pcg, or {ON_CPU}"),
    GpuRule("absorption", lambda a: "preconditioner: absorption" if a.preconditioner == "absorption" else None,
            "levels are absorbed on the CPU", f"auto or blocks, or {ON_CPU}"),
    *(GpuRule(name, _find_engine(name), kind.why_not_gpu, f"engine: structured, hybrid or pcg, or {ON_CPU}")
      for name, kind in ENGINES.items() if not kind.gpu),
    GpuRule("correlated residuals",
            lambda a: "variances.residual.known" if a.design is not None and a.design.correlated else None,
            "correlated residuals need a factor of sparse equations, which the CPU makes", ON_CPU),
    GpuRule("reduced rank",
            _find_terms(lambda a: True, lambda t: t.n_scores is not None, "variances.{name}.structure: reduced_rank"),
            "its matrix has no inverse, and the scores of its levels are drawn on the CPU",
            "engine: serial or structured with device: cpu or auto"),
    GpuRule("curves",
            _find_terms(lambda a: not a.samples, lambda t: t.relationship.stiff_part, "{stiff} ({term})"),
            "iterations hardly solve for them, and a factor is made on the CPU", ON_CPU),
    GpuRule("single-step by a core",
            _find_terms(lambda a: not a.sweeps, lambda t: getattr(t.relationship.dense, "share_taken", 0.0),
                        "single-step relationships by a core ({term})"),
            "products with the pedigree of the genotyped are made by a sparse factor, on the CPU", ON_CPU),
    GpuRule("splines",
            _find_terms(lambda a: a.sweeps, lambda t: t.relationship.joint_levels, "{stiff} ({term})"),
            "its levels have to be drawn all at once, by engine: marginal on the CPU",
            f"relationship: random_walk for a curve, or {ON_CPU}"),
    GpuRule("estimated correlations",
            _find_terms(lambda a: a.samples, lambda t: t.relationship.has_free_parameters,
                        "correlations that are estimated ({term})"),
            "they change the relationship matrix in every sweep",
            f"known correlations (rho, and fixed: true), or {ON_CPU}"),
    GpuRule("several levels",
            _find_terms(lambda a: a.sweeps, lambda t: t.has_several_levels,
                        "an effect with several levels per record ({term})"),
            "a GPU follows one level of a record", ON_CPU),
    GpuRule("components",
            _find_terms(lambda a: a.sweeps and not ENGINES[a.engine].wide_levels_on_gpu,
                        lambda t: t.n_components > MAX_COMPONENTS,
                        "term '{name}', which has {k} components per level"),
            f"a level has at most {MAX_COMPONENTS} there", ON_CPU),
    *(GpuRule(f"family {name}", _find_family(name), "its liabilities are drawn on the CPU", ON_CPU)
      for name, family in FAMILIES.items() if not family.is_on_gpu),
    GpuRule("long lists", _find_long_list, "positions in a list have 32 bits there", ON_CPU),
)  # fmt: skip


def find_gpu_refusals(asked: Asked) -> Iterator[tuple[GpuRule, str]]:
    """Rules that refuse an analysis, with what they refuse in words."""
    for rule in GPU_RULES:
        refused = rule.find(asked)
        if refused is not None:
            yield rule, refused


def describe_gpu_refusal(asked: Asked) -> str | None:
    """Message that follows "sampler.device: "; None where a GPU takes the analysis."""
    for rule, refused in find_gpu_refusals(asked):
        return f"found gpu, which cannot be combined with {refused}: {rule.why}; needed {rule.needed}"
    return None
