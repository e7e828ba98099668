"""Whom to select: section `decisions`. Candidates, how many of them, by which traits or indexes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from mmgibbs.config.effects import Model, Random, component_names
from mmgibbs.config.fields import (
    NUMBER,
    ByName,
    FilePath,
    Fraction,
    Identifier,
    Number,
    Section,
    Some,
    Text,
    TraitNames,
)
from mmgibbs.config.messages import Expected, Problems, unexpected
from mmgibbs.config.text import show
from mmgibbs.errors import describe_unknown_trait, nearest
from mmgibbs.models.families import FAMILIES

_FORMS = "all, a list of ids, {born_after: YEAR} or {file: PATH}"
_TEXT = {"type": ["string", "integer"]}
PerCent = Annotated[float, Field(gt=0, lt=100), NUMBER, Expected("per cent of the candidates, above 0 and below 100")]
Weights = dict[str, float]  # component of the term, trait, or probability[trait:category] -> economic weight
_WEIGHT = Expected("a number: what one unit of the trait is worth")
WeightsOfIndex = Annotated[
    dict[str, Annotated[Number, _WEIGHT]], Field(min_length=1), Expected("the weights of traits: {TRAIT: WEIGHT}")
]


class Candidates(Section):
    """Who may be selected: every level of the term unless the file says otherwise."""

    short_forms: ClassVar = ({"const": "all"}, {"type": "array", "items": _TEXT, "minItems": 1})

    ids: Annotated[Some[Identifier], Expected("a list of ids")] = ()
    """The ids of the candidates."""

    born_after: Annotated[Number, Expected("a year, such as 2015")] | None = None
    """Candidates are the animals born after this year."""

    file: FilePath | None = None
    """A text file with the id of a candidate on each line."""

    @classmethod
    def long_form(cls, value: object) -> object:
        if value == [] or (isinstance(value, str) and value != "all"):
            raise unexpected(value, _FORMS)
        return {"ids": value} if isinstance(value, list) else {} if isinstance(value, str) else value

    def as_file(self) -> Any:
        given = {key: v for key, v in super().as_file().items() if v not in (None, [])}
        return given.get("ids", given) or "all"

    def check(self, problems: Problems) -> None:
        choices = {"a list of ids": self.ids or None, "born_after": self.born_after, "file": self.file}
        first, *following = [name for name, choice in choices.items() if choice is not None] or ["all"]
        if following:
            problems.add((), f"{first} cannot be combined with {following[0]}; needed one: {_FORMS}")


class Decisions(Section):
    """The posterior of whom to select."""

    candidates: Candidates = Candidates()
    """Who may be selected: all, a list of ids, {born_after: YEAR} or {file: PATH}."""

    top: Annotated[Some[PerCent], Expected("a list of per cents")] = (1.0, 5.0, 10.0)
    """Percentages of the candidates that are selected."""

    traits: TraitNames = ()
    """Traits to rank by. Default: every trait; with an index, those with a direct effect in the term."""

    index: Annotated[ByName[WeightsOfIndex], Expected("{NAME OF THE INDEX: {TRAIT: WEIGHT}}")] = {}
    """Indexes: name of each -> trait or component -> economic weight of one unit."""

    rank_interval: Annotated[Fraction, Expected("a probability between 0 and 1, such as 0.9")] = 0.9
    """Probability that the interval of a rank covers."""

    term: Annotated[Text, Expected("the name of a random effect")] = ""
    """The random effect whose levels are ranked. Default: the one with a relationship."""


_ON_RECORDS = re.compile(r"(probability|expected_count)\[([^\[\]:]+)(?::([^\[\]]+))?\]")
FORMS_ON_RECORDS = {kind: family.criterion for kind, family in FAMILIES.items() if family.criterion}
TYPES_ON_RECORDS = " or ".join(", ".join(FORMS_ON_RECORDS).rsplit(", ", 1))


def parse_record_criterion(name: str) -> tuple[str, str, str] | None:
    """('probability', 'ease', 'difficult') of 'probability[ease:difficult]'; None for the name of a component."""
    match = _ON_RECORDS.fullmatch(name)
    return None if match is None else (match[1], match[2], match[3] or "")


def check_on_records(decisions: Decisions | None, types: Mapping[str, str], problems: Problems) -> None:
    """Probabilities and expected counts in an index are of traits that have them; types: trait -> its type."""
    for index, weights in (decisions.index if decisions is not None else {}).items():
        for name in weights:
            criterion = parse_record_criterion(name)
            if criterion is None:
                continue
            what, trait, category = criterion
            place = ("decisions", "index", index, name)
            if trait not in types:
                problems.add(place, describe_unknown_trait(trait, types))
            elif types[trait] not in FORMS_ON_RECORDS:
                problems.add(place, f"{trait} is {types[trait]}, needed a {TYPES_ON_RECORDS} trait")
            else:
                needed = FORMS_ON_RECORDS[types[trait]].format(trait)
                if (what, bool(category)) != (needed.partition("[")[0], ":" in needed):
                    problems.add(place, f"{trait} is {types[trait]}, needed {needed}")


def criteria(decisions: Decisions, random: Random) -> dict[str, Weights]:
    """List the criteria of complete decisions: trait or index -> component of the term or record scale -> weight."""
    wanted = {trait: {trait: 1.0} for trait in decisions.traits} | decisions.index
    return {
        name: {
            label: w
            for of, w in weights.items()
            if (label := of if parse_record_criterion(of) else find_component(of, random)) is not None
        }
        for name, weights in wanted.items()
    }


def find_component(name: str, random: Random) -> str | None:
    """A component by its name, 'maternal:weaning_weight', or by the trait whose direct effect it is; None: neither."""
    labels = component_names(random)
    only = next(iter(random.effects)) if len(random.effects) == 1 else "direct"
    return next((label for label in (name, f"{only}:{name}") if label in labels), None)


def complete_decisions(
    decisions: Decisions | None, model: Model, names: Sequence[str], method: str, problems: Problems
) -> Decisions | None:
    """Fill in term and traits; `names`: the traits of the analysis. What does not fit goes to `problems`."""
    if decisions is None:
        return None
    if model.plugin is not None or method != "gibbs":
        got = "model.plugin" if model.plugin is not None else f"sampler.method: {method}"
        needed = "draws of breeding values: a mixed model with method: gibbs"
        problems.add(("decisions",), f"cannot be combined with {got}; needed {needed}")
        return decisions
    term = decisions.term or _related(model)
    if term not in model.random:
        missing = "missing, needed the random effect whose levels are ranked"
        got = f"{show(term)} is not a random effect" if term else missing
        problems.add(("decisions", "term"), f"{got}; {nearest(term, model.random, 'the random effects are')}")
        return decisions
    random = model.random[term]
    traits = decisions.traits or tuple(t for t in names if not decisions.index or find_component(t, random))
    _check_components([(("traits",), t) for t in traits], term, random, problems)
    for name, weights in decisions.index.items():
        place = ("index", name)
        _check_components([((*place, of), of) for of in weights], term, random, problems)
        components = [find_component(of, random) for of in weights]
        twice = next((c for i, c in enumerate(components) if c is not None and c in components[:i]), None)
        if name in traits:
            problems.add(("decisions", *place), "this name is already a trait, needed another name")
        if twice is not None:
            problems.add(("decisions", *place), f"found two weights for {twice}, needed one")
        if not any(weights.values()):
            problems.add(("decisions", *place), "found weights of 0 alone, needed one that is not 0")
    return decisions.model_copy(update={"term": term, "traits": traits})


def _check_components(
    wanted: Sequence[tuple[tuple[str, ...], str]], term: str, random: Random, problems: Problems
) -> None:
    """A problem for each (place, name) that is neither a component nor a trait."""
    for place, name in wanted:
        if find_component(name, random) is None and parse_record_criterion(name) is None:
            labels = component_names(random)
            of_trait = [label for label in labels if label.endswith(f":{name}")]
            needed = f"needed one of {', '.join(of_trait)}" if of_trait else nearest(name, labels, "there are")
            got = f"{show(name)} is neither a trait with a direct effect nor a component of {term}"
            problems.add(("decisions", *place), f"{got}; {needed}")


def _related(model: Model) -> str:
    """The one random effect with relationships, or the only one; '' where that does not settle it."""
    related = [name for name, r in model.random.items() if r.relationship.related] or list(model.random)
    return related[0] if len(related) == 1 else ""
