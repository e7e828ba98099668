"""Whether one model by REML is nested in another: terms, effects, structures of covariances, residual classes.

A random term of the smaller model is in the larger one where a term there has the same relationship and every component
of it: an effect of the same column on the same trait, multiplied by the same function of the same covariate. An
intercept is the constant Legendre polynomial, and names of terms and effects do not count. Elements of the covariance
matrices are then compared one by one: those that the smaller model lacks must be free to be 0 in the larger one.
Matrices with a structure are compared as a whole.

Where this does not settle it nothing is claimed, and `Unknown` says why.

Every structure of a covariance matrix is nested in `full`. In which others it is nested its kind says
(models/structures): `diagonal` in all that have free variances and an inverse, reduced rank in factor-analytic ones.

Where the smaller model is the larger one without some of its common factors, the matrix L L' of those is on its
boundary, and nothing determines their directions: D is not chi-square with the parameters that the smaller model lacks.
The full matrix contains both models, so that D is at most the statistic of the smaller one within the full matrix,
which is chi-square: its p value is an upper bound. A matrix of reduced rank is on the boundary of the larger ones,
where D has a mixture of chi-squares: that with most degrees of freedom gives an upper bound too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from mmgibbs.models.structures import STRUCTURES
from mmgibbs.models.structures.base import StructureForm
from mmgibbs.report.finished import Finished


@dataclass(frozen=True)
class Restriction:
    """Restriction of the structure of the smaller model, which fixes so many parameters of the larger one.

    most: degrees of freedom of a chi-square that gives an upper bound of p where common factors are lacking; elsewhere
    D is chi-square with `parameters` itself.
    """

    words: str
    parameters: int
    most: int
    lacks_factors: bool


def read_kind(section: Any) -> str:
    """Return the kind that the key `structure` in the analysis of a run has, a word or a section."""
    return str(section["kind"] if isinstance(section, dict) else section or "full")


def make_form(section: Any, k: int) -> StructureForm:
    """Make the form of the key `structure` for k components."""
    keys: dict[str, Any] = section if isinstance(section, dict) else {}
    kind, equal = read_kind(section), keys.get("variances") == "equal"
    factors = (keys.get("factors") or 1) if "factors" in STRUCTURES[kind].key_names else 0
    return StructureForm(kind, k, factors, equal, keys.get("distances", "equal"))


def simplify_form(form: StructureForm) -> StructureForm:
    """Make the form that stands for all those of the same model."""
    return STRUCTURES[form.kind].simplify(form)


def count_parameters(form: StructureForm) -> int:
    """Parameters that the matrix determines."""
    return min(STRUCTURES[form.kind].count_parameters(form), form.n_elements)


def count_surplus(section: Any, k: int) -> int:
    """Parameters of k components that a structure has beyond the elements of the matrix: too many common factors."""
    form = make_form(section, k)
    return max(STRUCTURES[form.kind].count_parameters(form) - form.n_elements, 0)


def find_restriction(term: str, small: Any, large: Any, k: int, rho: float | None) -> Restriction | None:
    """Return what the first structure of k components fixes in the second; None where it is not nested.

    rho: estimated correlation of the first one, if it has one.
    """
    a, b = (simplify_form(make_form(section, k)) for section in (small, large))
    if not _is_nested(a, b, rho):
        return None
    n, smaller, larger = count_parameters(b) - count_parameters(a), STRUCTURES[a.kind], STRUCTURES[b.kind]
    lacks_factors = ("factors" in larger.key_names and b.factors > smaller.count_factors(a)) or (
        smaller.is_singular and a != b
    )
    most = a.n_elements - count_parameters(a) if lacks_factors else n
    return Restriction(
        f"{term} {describe_structure(small)} instead of {describe_structure(large)}", n, most, lacks_factors
    )


def _is_nested(a: StructureForm, b: StructureForm, rho: float | None) -> bool:
    if b.is_full or a == b:
        return True
    smaller, larger = STRUCTURES[a.kind], STRUCTURES[b.kind]
    if (b.equal and not a.equal) or (larger.is_singular and not smaller.is_singular):
        return False
    return smaller.is_nested(a, larger, b, rho)


def describe_structure(section: Any) -> str:
    """'factor_analytic with 2 factors and equal variances'."""
    kind = read_kind(section)
    if not isinstance(section, dict):
        return kind
    parts = []
    if "factors" in STRUCTURES[kind].key_names:
        n = section.get("factors") or 1
        parts.append(f"{n} factor{'s' if n > 1 else ''}")
    if section.get("variances") == "equal":
        parts.append("equal variances")
    if section.get("distances", "equal") != "equal":
        parts.append("distances of numbers")
    return kind + (f" with {' and '.join(parts)}" if parts else "")


RESIDUAL = "residual"
LEVEL_KEYS = ("level", "levels", "weights", "mates")  # that say which levels of an effect a record has
_ELEMENT = re.compile(r"^(.+)\.(?:var|cov)\[(.+?)(?:\|([^\]|]*))?\]$")


@dataclass(frozen=True)
class Nested:
    """lacking: free elements of the larger model that the smaller one lacks or has fixed; variances: how many of them
    are variances that are 0 there; equal: how many more are equal to another one in the smaller model; restrictions:
    what structures of covariance matrices fix in the smaller model."""

    lacking: tuple[str, ...]
    variances: int
    equal: int
    restrictions: tuple[Restriction, ...] = ()


@dataclass(frozen=True)
class NotNested:
    why: str


@dataclass(frozen=True)
class Unknown:
    why: str


class _Key(NamedTuple):
    """An element of a covariance matrix: its components in alphabetical order, and its residual class."""

    term: str
    components: tuple[str, ...]
    residual_class: str | None


class _Element(NamedTuple):
    name: str
    value: float
    is_free: bool


class _Component(NamedTuple):
    """Identity of a component of a term, whatever its name."""

    level: str
    unknown_level: str
    trait: str
    column: str  # of the covariate; '' of an intercept
    order: int  # of its polynomial; -1 of the covariate itself
    span: str  # the range of the polynomial


_Place = tuple[str, str]  # term and component, as parameters name them


def nested(small: Finished, large: Finished) -> Nested | NotNested | Unknown:
    """Return whether the first model is nested in the second one; data and fixed effects are those of both."""
    residuals = [_correlations_of_residuals(run.record["analysis"]) for run in (small, large)]
    if residuals[0] != residuals[1]:
        return Unknown("the residuals are correlated in one of them, or in another way")
    places = _embedding(small.record["analysis"], large.record["analysis"])
    if not isinstance(places, dict):
        return places
    restrictions = _find_restrictions(small, large, places)
    if not isinstance(restrictions, dict):
        return restrictions
    elements = _drop_terms(_elements(small), {small_name for small_name, _ in restrictions})
    large_elements = _drop_terms(_elements(large), {large_name for _, large_name in restrictions})
    classes = _classes(small.record["analysis"], large.record["analysis"], large_elements)
    if not isinstance(classes, tuple):
        return classes
    used: dict[_Key, _Element] = {}
    equal = 0
    for key, element in elements.items():
        images = _images(key, places, classes)
        equal += (len(images) - 1) * element.is_free
        for image in images:
            problem = _problem(element, large_elements.get(image), places, key)
            if problem is not None:
                return problem
            used[image] = element
    for key, large_element in large_elements.items():
        if key not in used and not large_element.is_free and large_element.value:
            return NotNested(f"{large_element.name} is fixed in one model, and the other lacks it")
    lacking = {key: e for key, e in large_elements.items() if e.is_free and not (key in used and used[key].is_free)}
    at_0 = [key for key in lacking if len(key.components) == 1 and not (key in used and used[key].value)]
    fixing = tuple(r for r in restrictions.values() if r.parameters)
    return Nested(tuple(e.name for e in lacking.values()), len(at_0), equal, fixing)


def _drop_terms(elements: Mapping[_Key, _Element], terms: set[str]) -> dict[_Key, _Element]:
    return {key: element for key, element in elements.items() if key.term not in terms}


def _find_restrictions(
    small: Finished, large: Finished, places: Mapping[_Place, tuple[_Place, bool]]
) -> dict[tuple[str, str], Restriction] | NotNested | Unknown:
    """Return restrictions by the names of a term in both models, of terms with a structure in one of them."""
    out: dict[tuple[str, str], Restriction] = {}
    terms, large_terms = (run.record["analysis"]["model"]["random"] for run in (small, large))
    for name, kind in (*_list_kinds(small), *_list_kinds(large)):
        if kind not in STRUCTURES:
            return Unknown(
                f"the covariance matrix of {name} is {kind} in one of them, which this version does not know"
            )
    for name, term in terms.items():
        labels = list(_components(term))
        images = [places[name, label] for label in labels]
        large_names = list(dict.fromkeys(place[0] for place, _ in images))
        sections = [_section(small, name), *(_section(large, n) for n in large_names)]
        structures = [section.get("structure") for section in sections]
        if not any(isinstance(structure, dict) for structure in structures):
            continue
        same = len(large_names) == 1 and [p[1] for p, _ in images] == list(_components(large_terms[large_names[0]]))
        if not same or any(is_moved for _, is_moved in images) or any(s.get("fixed") for s in sections):
            kind = next(s["kind"] for s in structures if isinstance(s, dict))
            return Unknown(f"the covariance matrix of {name} is {kind} in one of them, and its components are others")
        means = dict(small.summary.select("parameter", "mean").iter_rows())
        made = find_restriction(name, structures[0], structures[1], len(labels), means.get(f"{name}.rho"))
        if made is None:
            described = [describe_structure(structure) for structure in structures]
            return NotNested(
                f"the covariance matrix of {name} is {described[0]} in one of them, {described[1]} in the other"
            )
        out[name, large_names[0]] = made
    matched = {large_name for _, large_name in out}
    for name in large_terms:
        structure = _section(large, name).get("structure")
        if isinstance(structure, dict) and name not in matched:
            return Unknown(
                f"the covariance matrix of {name} is {structure['kind']} in one of them, which the other lacks"
            )
    return out


def _list_kinds(run: Finished) -> list[tuple[str, str]]:
    """List each random term and the kind of structure of its covariance matrix."""
    names = run.record["analysis"]["model"]["random"]
    return [(name, read_kind(_section(run, name).get("structure"))) for name in names]


def count_undetermined(run: Finished) -> int:
    """Parameters of which the data say nothing; those that no data would determine (surplus factors) do not count."""
    terms = run.record["analysis"]["model"]["random"]
    surplus = (count_surplus(_section(run, n).get("structure"), len(_components(term))) for n, term in terms.items())
    return max(run.record.get("undetermined_elements", 0) - sum(surplus), 0)


def _section(run: Finished, term: str) -> Mapping[str, Any]:
    """The keys of a term below `variances`, {} without any."""
    return run.record["analysis"]["variances"].get(term) or {}


def _correlations_of_residuals(analysis: Mapping[str, Any]) -> str:
    """The keys that say how residuals are correlated, as JSON: equal texts are the same correlations."""
    residual = analysis["variances"].get("residual") or {}
    kinds = {name: (keys or {}).get("relationship") for name, keys in (residual.get("classes") or {}).items()}
    kinds = {name: kind for name, kind in kinds.items() if kind is not None}
    return json.dumps([residual.get("relationship"), residual.get("known"), kinds], sort_keys=True)


def _problem(
    element: _Element, image: _Element | None, places: Mapping[_Place, tuple[_Place, bool]], key: _Key
) -> NotNested | Unknown | None:
    """Why an element of the smaller model cannot be its image in the larger one."""
    if image is None:
        return NotNested(f"{element.name} is 0 in one of them") if element.is_free or element.value else None
    if not element.is_free and element.value and any(places[key.term, c][1] for c in _describe_term(key, places)):
        return Unknown(f"{element.name} is fixed, in another unit than {image.name}")
    if not image.is_free and (element.is_free or element.value != image.value):
        return NotNested(f"{image.name} is fixed in one of them")
    return None


def _describe_term(key: _Key, places: Mapping[_Place, Any]) -> tuple[str, ...]:
    return tuple(c for c in key.components if (key.term, c) in places)


# ------------------------------------------------------------------------------------------------ elements


def _elements(run: Finished) -> dict[_Key, _Element]:
    """Variances and covariances; those that were fixed have an error of 0."""
    out = {}
    for name, value, sd in run.summary.select("parameter", "mean", "sd").iter_rows():
        match = _ELEMENT.match(name)
        if match is not None and (".var[" in name or ".cov[" in name):
            is_residual = match[1] == RESIDUAL
            inside = match[2] if is_residual or match[3] is None else f"{match[2]}|{match[3]}"
            components = tuple(sorted(inside.split(","))) if ".cov[" in name else (inside,)
            key = _Key(match[1], components, match[3] if is_residual else None)
            out[key] = _Element(name, float(value), sd is None or sd != 0)
    return out


def _classes(
    small: Mapping[str, Any], large: Mapping[str, Any], large_elements: Mapping[_Key, _Element]
) -> tuple[str | None, ...] | NotNested | Unknown:
    """The residual classes of the larger model that stand for the one of the smaller; () where they are the same."""
    by, by_other = (analysis["variances"]["residual"].get("by") for analysis in (small, large))
    if by == by_other:
        return ()
    if by_other is None:
        return NotNested(f"residual variances differ by {by} in one of them")
    if by is not None:
        return Unknown(f"whether the classes of {by_other} divide those of {by}")
    return tuple(dict.fromkeys(key.residual_class for key in large_elements if key.term == RESIDUAL))


def _images(key: _Key, places: Mapping[_Place, tuple[_Place, bool]], classes: tuple[str | None, ...]) -> list[_Key]:
    """Find the elements of the larger model that an element of the smaller model corresponds to."""
    if key.term == RESIDUAL:
        return [key._replace(residual_class=c) for c in classes or (key.residual_class,)]
    if any((key.term, c) not in places for c in key.components):
        return [key]
    moved = [places[key.term, c][0] for c in key.components]
    return [_Key(moved[0][0], tuple(sorted(c for _, c in moved)), None)]


# ------------------------------------------------------------------------------------------------ terms


def _embedding(
    small: Mapping[str, Any], large: Mapping[str, Any]
) -> dict[_Place, tuple[_Place, bool]] | NotNested | Unknown:
    """Place of each component in the larger model, and whether it is in another unit there."""
    out: dict[_Place, tuple[_Place, bool]] = {}
    terms = large["model"]["random"]
    for name, term in small["model"]["random"].items():
        alike = [n for n, large_term in terms.items() if _relationship(large_term) == _relationship(term)]
        alike.sort(key=lambda n: n != name)
        taken = {place for place, _ in out.values()}
        embeddings = [_components_nested(name, term, n, terms[n], taken) for n in alike]
        fitting = next((f for f in embeddings if isinstance(f, dict)), None)
        if fitting is None:
            unknown = next((f for f in embeddings if isinstance(f, Unknown)), None)
            why = next((f for f in embeddings if isinstance(f, NotNested)), None)
            return unknown or why or NotNested(f"{name} is in one of them alone, or related in another way")
        out |= fitting
    return out


def _relationship(term: Mapping[str, Any]) -> str:
    return json.dumps(term.get("relationship", "identity"), sort_keys=True)


def _components_nested(
    name: str, term: Mapping[str, Any], other_name: str, large_term: Mapping[str, Any], taken: set[_Place]
) -> dict[_Place, tuple[_Place, bool]] | NotNested | Unknown:
    """The components of a term among those of another one."""
    out: dict[_Place, tuple[_Place, bool]] = {}
    theirs, wanted = _components(large_term), _components(term)
    are_enough = sum((other_name, n) not in taken for n in theirs) >= len(wanted)
    for label, component in wanted.items():
        free = {n: c for n, c in theirs.items() if (other_name, n) not in taken | {place for place, _ in out.values()}}
        places = [n for n, c in free.items() if _function(c) == _function(component)]
        if not places:
            same = [c for c in free.values() if c[:3] == component[:3]]
            if are_enough and any(_may_contain(c, component) for c in same):
                return Unknown(f"whether the covariates of {other_name} have {_words(component)} of {name} among them")
            return NotNested(f"{name} has {_words(component)} that the other model lacks")
        out[name, label] = (other_name, places[0]), free[places[0]].order != component.order
    return out


def _function(component: _Component) -> _Component:
    """Give an intercept and the constant polynomial the same component."""
    is_constant = component.order == 0
    return component._replace(column="", span="") if is_constant else component


def _may_contain(large_component: _Component, component: _Component) -> bool:
    """A covariate may be constant, and its polynomials have it, and those of another range, among their sums."""
    return (component.order == 0 and large_component.order == -1) or (large_component.column == component.column != "")


def _words(component: _Component) -> str:
    return "an intercept" if component.order == 0 else f"the covariate {component.column}"


def _components(term: Mapping[str, Any]) -> dict[str, _Component]:
    """Component as parameters name it -> what it is."""
    out = {}
    for effect, keys in (term.get("effects") or {"": term}).items():
        level = ", ".join(str(keys[key]) for key in LEVEL_KEYS if keys.get(key))
        of_all = level, keys.get("unknown_level", "error")
        for trait in keys["traits"]:
            for number, (column, order, span) in enumerate(_functions(keys)):
                is_numbered = bool(keys.get("legendre") or keys.get("covariates"))
                label = f"{effect}.{number}" if is_numbered else effect
                out[f"{label}:{trait}" if label else trait] = _Component(*of_all, trait, column, order, span)
    return out


def _functions(keys: Mapping[str, Any]) -> list[tuple[str, int, str]]:
    """(column, order, range) of each coefficient of an effect."""
    if keys.get("legendre"):
        of = keys["legendre"]
        return [(of["column"], j, str(of.get("range"))) for j in range(of["degree"] + 1)]
    return [(c, -1, "") for c in keys["covariates"]] if keys.get("covariates") else [("", 0, "")]


# ------------------------------------------------------------------------------------------------ fixed effects


def fixed_effects_key(analysis: Mapping[str, Any]) -> set[str]:
    """Fixed effects as what they are: names, their order and reference levels do not change the model."""
    out, classes = set(), False
    for effect in analysis["model"].get("fixed", {}).values():
        keys = {key: value for key, value in effect.items() if key != "reference"}
        out.add(json.dumps(keys | {"traits": sorted(effect.get("traits", ()))}, sort_keys=True))
        classes |= effect.get("kind") == "class" and effect.get("prior", "flat") == "flat"
    intercept = analysis["model"].get("intercept", "auto")
    # 'auto' is an intercept wherever no class contains it, and beside classes one says nothing new
    return out if intercept is not False or classes else out | {"no intercept"}
