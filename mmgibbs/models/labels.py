"""What the components of a term are called: 'direct:weaning_weight', or 'weaning_weight' for an unnamed effect.

Components run effect by effect, then trait by trait, then coefficient by coefficient. A coefficient of a random
regression is the effect's name, a point and its number ('rr.0:yield'); that of a fixed covariate is its slope, power or
polynomial ('slope', 'x^2', 'legendre.2'). Names of parameters, solutions, messages and exported equations all come
from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mmgibbs.models.design import Design
    from mmgibbs.models.markers import JointPriorSpec
    from mmgibbs.models.terms import Effect, Term


class Component(NamedTuple):
    """A component of a level."""

    effect: str  # '' where the term has one unnamed effect
    coefficient: str  # '' for the constant 1
    trait: str


def effect_label(effect: str, coefficient: str = "") -> str:
    """'maternal', 'rr.0', 'slope' (a covariate without a name of its own), ''."""
    return ".".join(label for label in (effect, coefficient) if label)


def component_label(effect: str, trait: str) -> str:
    """effect: as `effect_label` gives it."""
    return f"{effect}:{trait}" if effect else trait


def components(term: Term, traits: Sequence[str]) -> list[Component]:
    """List the components (k,) of a term of the design, in order."""
    return [
        Component(effect.name, coefficient, traits[trait])
        for effect in term.effects
        for trait in effect.traits
        for coefficient in effect.coefficients
    ]


def component_labels(term: Term, traits: Sequence[str]) -> list[str]:
    """Label the components (k,) for messages."""
    return [component_label(effect_label(c.effect, c.coefficient), c.trait) for c in components(term, traits)]


def parameter_labels(term: Term, traits: Sequence[str]) -> list[str]:
    """Label the components (k,) of a random term as parameters are named.

    Coefficients are numbered: 'rr.0:yield', '.1:y'.
    """
    return [component_label(label, traits[t]) for e in term.effects for t in e.traits for label in numbered(e)]


def stored_name(name: str) -> str:
    """Return a name as draws.nc stores it.

    '/', which NetCDF reads as a group, is replaced, and a name that is a dimension of all draws is changed.
    """
    return f"{name}_" if name in ("chain", "draw") else name.replace("/", "|")


def stored_dimensions(term: str) -> tuple[str, str]:
    """Name the dimensions of the draws of levels of a term in draws.nc: its levels and its components.

    Both are variables too.
    """
    return f"{stored_name(term)}_level", f"{stored_name(term)}_component"


def find_name_clash(parameters: Iterable[str], terms: Iterable[str] = ()) -> tuple[str, str, str] | None:
    """The first two that draws.nc would call by one name, in words, and that name; terms: with draws of levels."""
    every = [(repr(name), stored_name(name)) for name in parameters]
    for term in terms:
        keys = stored_name(term), *stored_dimensions(term)
        every += zip([f"{term!r}", f"the levels of {term!r}", f"the components of {term!r}"], keys, strict=True)
    seen: dict[str, str] = {}
    for what, name in every:
        if name in seen:
            return seen[name], what, name
        seen[name] = what
    return None


def state_labels(spec: JointPriorSpec, traits: Sequence[str]) -> list[str]:
    """Label the states (K,) of a SNP over several traits: 'none', 'milk', 'fat', 'milk+fat'.

    Classes that traits share are labelled by number, 'milk+fat:1'.
    """
    names = [traits[t] for t in spec.traits]
    if spec.whole:
        return [f"{'+'.join(names)}:{k}" for k in range(len(spec.states))]
    none = "none" if "none" not in names else "no trait"
    return ["+".join(trait for trait, acts in zip(names, state, strict=True) if acts) or none for state in spec.states]


def numbered(effect: Effect) -> list[str]:
    """Number the coefficients (m,) of a random regression: the effect's name, with '.j' for coefficient j."""
    if effect.covariates is None or effect.coefficients == ("",):
        return [effect.name]
    return [f"{effect.name}.{j}" for j in range(effect.n_regressors)]


def correlation_label(design: Design, group: int, name: str) -> str:
    """Name of a correlation of residuals of a group of records: 'residual.rho[row]', 'residual.rho[yield:row|S1]'."""
    records = design.correlated[group]
    trait = f"{design.traits[records.trait]}:" if design.n_traits > 1 else ""
    residual_class = f"|{design.residual_classes[records.residual_class]}" if design.residual_classes else ""
    return f"residual.rho[{trait}{name}{residual_class}]"
