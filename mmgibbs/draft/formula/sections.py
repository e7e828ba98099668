"""The analysis that a formula stands for: its sections `traits` and `model`, and what it needs of `data`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from mmgibbs.config.effects import RESERVED
from mmgibbs.config.fields import NOT_IN_A_NAME
from mmgibbs.draft.formula.advice import advise_call, advise_effect
from mmgibbs.draft.formula.columns import Columns, advise_column, write_name
from mmgibbs.draft.formula.grammar import Factor, Group, ParsedFormula, Term, describe_term, problem, write_level
from mmgibbs.draft.formula.related import RELATIONSHIPS, has_role
from mmgibbs.errors import ConfigError, nearest
from mmgibbs.models.families import FAMILIES, NORMAL, Binary
from mmgibbs.pedigree.tables import quoted

TYPES = {NORMAL: NORMAL, "gaussian": NORMAL} | {
    name: kind for kind, family in FAMILIES.items() for name in family.formula_names
}
CLASS_CALLS = ("factor", "C", "as.factor", "as.character")
MAX_DEGREE = 20


@dataclass
class Sections:
    """Sections of an analysis that a formula adds. notes: what was decided for the user."""

    traits: dict[str, dict[str, Any]]
    model: dict[str, Any]
    data: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Covariate:
    """A regression on a column: powers up to `degree`, or Legendre polynomials."""

    column: str
    degree: int = 1
    legendre: dict[str, Any] | None = None

    def keys(self) -> dict[str, Any]:
        """Keys of the analysis file beside `kind`."""
        if self.legendre is not None:
            return {"legendre": self.legendre}
        return {"degree": self.degree} if self.degree > 1 else {}


def build_sections(
    formula: ParsedFormula,
    columns: Columns,
    family: str | Mapping[str, str] = "normal",
    related: Mapping[str, str] | None = None,
    has_pedigree: bool = False,
) -> Sections:
    """Turn a formula into sections of the analysis file.

    family: of every trait, or by trait. related: level of a random term -> its relationship, where the formula does not
    say. has_pedigree: dams and sires may be taken from it. ConfigError: the formula has what no analysis file has; the
    message has what to write instead.
    """
    return _Builder(formula, columns, related or {}, has_pedigree).build(family)


class _Builder:
    def __init__(
        self, formula: ParsedFormula, columns: Columns, related: Mapping[str, str], has_pedigree: bool
    ) -> None:
        self.formula, self.columns, self.related, self.has_pedigree = formula, columns, related, has_pedigree
        self.notes: list[str] = []
        self.exposure: str | None = None

    def build(self, family: str | Mapping[str, str]) -> Sections:
        fixed = self.build_fixed()
        random = self.build_random(fixed)
        traits = self.build_traits(family)
        model: dict[str, Any] = {}
        if self.formula.right.has_intercept is not None:
            model["intercept"] = self.formula.right.has_intercept
        model |= {"fixed": fixed} | ({"random": random} if random else {})
        return Sections(traits, model, {}, self.notes)

    def refuse(self, message: str) -> NoReturn:
        raise self.problem(message)

    def problem(self, message: str) -> ConfigError:
        return problem(self.formula.text, message)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def check_column(self, name: str) -> str:
        if name not in self.columns.names:
            advice = advise_column(self.formula.text, name, self.columns.names)
            self.refuse(f"the records have no column '{name}'; {advice}")
        return name

    # ------------------------------------------------------------------------------------------ traits

    def build_traits(self, family: str | Mapping[str, str]) -> dict[str, dict[str, Any]]:
        traits: dict[str, dict[str, Any]] = {}
        for response in self.formula.responses:
            column, keys = self.read_response(response)
            name = self.label(column)
            if name in traits:
                self.refuse(f"the trait {column} stands twice before '~'")
            traits[name] = ({"column": column} if name != column else {}) | keys
        types = self.read_family(family, list(traits))
        with_exposure = {kind for kind, of_kind in FAMILIES.items() if "exposure" in of_kind.keys}
        for name, keys in traits.items():
            if types[name] != NORMAL or "positive" in keys:
                kind = Binary.kind if "positive" in keys and types[name] == NORMAL else types[name]
                takes_positive = "positive" in FAMILIES[kind].keys
                if "positive" in keys and not takes_positive:
                    self.refuse(f"{name}[LEVEL] is a yes-or-no trait, which cannot be combined with the family {kind}")
                traits[name] = {"type": kind} | keys
                if takes_positive and "positive" not in keys:
                    traits[name] |= self.choose_positive(keys.get("column", name))
            if types[name] in with_exposure and self.exposure is not None:
                traits[name]["exposure"] = self.exposure
        if self.exposure is not None and not with_exposure.intersection(types.values()):
            self.refuse(f"offset(log({self.exposure})) is the exposure of a count; expected family='poisson'")
        return traits

    def choose_positive(self, column: str) -> dict[str, Any]:
        """The key `positive` of a binary trait whose values are words: true, or what the formula has to say."""
        words = self.columns.words.get(column, ())
        if {word.lower() for word in words} == {"false", "true"}:
            self.note(f"{column}: true counts as 1, false as 0")
            return {"positive": True}
        if len(words) == 2:
            expected = " or ".join(f"{write_level(column, word)} ~ ..." for word in reversed(words))
            self.refuse(
                f"the trait {column} has the values {quoted(words[0])} and {quoted(words[1])}: which of them counts "
                f"as 1? Expected {expected}"
            )
        return {}

    def read_response(self, response: Factor) -> tuple[str, dict[str, Any]]:
        """(column, keys of the trait)."""
        if not response.is_call:
            return self.check_column(response.name), {}
        first = response.arguments[0] if response.arguments else None
        if response.name == "[" and isinstance(first, Factor) and not first.is_call:
            level = response.arguments[1]
            positive = level.name if isinstance(level, Factor) else str(level)
            return self.check_column(first.name), {"positive": positive}
        if response.name == "log" and isinstance(first, Factor):
            self.refuse(
                f"a function of the response is not supported; make a column of log({first.name}) in the table. For a "
                "time that may not have ended, write in the analysis file: traits: "
                f"{{{first.name}: {{type: censored, log: true, censored: STATUS, values: {{right: [0], none: [1]}}}}}}"
            )
        advice = advise_call(response.name)
        if advice is not None:
            self.refuse(f"{response.text} before '~' is not supported: {advice}")
        raise self.problem(
            f"{response.text} before '~' is not supported; expected a column, a column with a level (ill[yes]), or "
            "cbind(a, b). A censored trait needs the analysis file: traits: "
            "{TIME: {type: censored, lower: COLUMN, upper: COLUMN}}"
        )

    def read_family(self, family: str | Mapping[str, str], traits: list[str]) -> dict[str, str]:
        by_trait = dict(family) if isinstance(family, Mapping) else dict.fromkeys(traits, family)
        for name, value in by_trait.items():
            if name not in traits:
                raise ConfigError(f"family: there is no trait '{name}'; {nearest(name, traits, 'the traits are')}")
            if not isinstance(value, str) or value.lower() not in TYPES:
                raise ConfigError(f"family: expected {', '.join(TYPES)}, got {value!r} (of trait {name})")
        return {name: TYPES[by_trait.get(name, NORMAL).lower()] for name in traits}

    # ------------------------------------------------------------------------------------------ fixed

    def build_fixed(self) -> dict[str, dict[str, Any]]:
        powers: dict[str, set[int]] = {}
        singles: dict[str, dict[str, Any]] = {}
        interactions: list[Term] = []
        for written in self.formula.right:
            term = self.remove_trait(written)
            if len(term) > 1:
                interactions.append(term)
            elif term:
                self.add_single(term[0], singles, powers)
        for column, found in powers.items():
            if found == {1} and column in self.columns.codes:
                self.note(
                    f"{column} has few whole numbers and is a covariate; factor({write_name(column)}) makes it a class"
                )
            absent = sorted(set(range(1, max(found) + 1)) - found)
            if absent:
                name = write_name(column)
                powers_text = " + ".join(name if power == 1 else f"I({name}**{power})" for power in absent)
                self.refuse(f"a power of {column} is in it without the lower ones; add {powers_text}")
            singles[column] = {"kind": "covariate"} | ({"degree": max(found)} if max(found) > 1 else {})
        fixed = {}
        for column, keys in singles.items():
            name = self.label(column)
            fixed[name] = ({"column": column} if name != column else {}) | keys
        for term in interactions:
            name, keys = self.build_interaction(term, singles)
            fixed[name] = keys
        return fixed

    def note_dates(self, factor: Factor) -> None:
        """A column of dates whose name stands alone is a class, of which a covariate may be meant."""
        if not factor.is_call and factor.name in self.columns.dates:
            self.note(
                f"{factor.name} has dates and is a class with a level for each; factor({factor.text}) says that this "
                "is meant. For a season, make a column of the year or the month; for a covariate, one of an age in days"
            )

    def add_single(self, factor: Factor, singles: dict[str, dict[str, Any]], powers: dict[str, set[int]]) -> None:
        """Add an effect of one column; powers of a covariate are collected."""
        if self.is_offset(factor):
            return
        self.note_dates(factor)
        power = self.read_power(factor)
        if power is not None:
            column, number = power
            singles.setdefault(column, {})
            powers.setdefault(column, set()).add(number)
            return
        covariate = self.read_covariate(factor)
        column = self.read_class(factor) if covariate is None else covariate.column
        if column in singles and not (column in powers and covariate == Covariate(column)):
            self.refuse(f"{column} is in it twice, once as {factor.text}; expected it once")
        if covariate == Covariate(column):
            singles.setdefault(column, {})
            powers.setdefault(column, set()).add(1)
        else:
            singles[column] = {} if covariate is None else {"kind": "covariate"} | covariate.keys()

    def is_offset(self, factor: Factor) -> bool:
        """offset(log(months)) is the exposure of counts."""
        if not factor.is_call or factor.name != "offset":
            return False
        inner = factor.arguments[0] if factor.arguments else None
        is_log = isinstance(inner, Factor) and inner.is_call and inner.name in ("log", "np.log")
        column = inner.arguments[0] if is_log and isinstance(inner, Factor) and inner.arguments else None
        if not isinstance(column, Factor) or column.is_call:
            self.refuse(f"{factor.text} is not supported; expected offset(log(COLUMN)) of a count")
        if self.exposure is not None:
            self.refuse("there are several offsets; expected one")
        self.exposure = self.check_column(column.name)
        return True

    def read_power(self, factor: Factor) -> tuple[str, int] | None:
        """(column, power) of I(age**2) and of {age**2}."""
        inner = factor.arguments[0] if factor.is_call and factor.name == "I" and factor.arguments else factor
        if not isinstance(inner, Factor) or not inner.is_call or inner.name != "**":
            return None
        column, power = inner.arguments
        if not isinstance(column, Factor) or column.is_call or type(power) is not int or not 1 <= power <= MAX_DEGREE:
            self.refuse(f"{factor.text} is not supported; expected a column to a power of 1 to {MAX_DEGREE}")
        return self.check_column(column.name), power

    def read_covariate(self, factor: Factor) -> Covariate | None:
        """The regression of a factor; None of a class."""
        if not factor.is_call:
            if not self.columns.has_numbers(self.check_column(factor.name)):
                return None
            return Covariate(factor.name)
        if factor.name in CLASS_CALLS:
            return None
        if factor.name == "I" and len(factor.arguments) == 1 and isinstance(factor.arguments[0], Factor):
            inner = factor.arguments[0]
            if not inner.is_call:
                return Covariate(self.check_column(inner.name))
        if factor.name == "poly":
            column, degree = self.read_curve(factor, extra=0)
            return Covariate(column, degree)
        if factor.name == "legendre":
            column, degree = self.read_curve(factor, extra=2)
            ends = [value for value in factor.arguments[2:] if isinstance(value, (int, float))]
            return Covariate(column, 1, {"degree": degree} | ({"range": ends} if ends else {}))
        raise self.problem(self.explain_call(factor))

    def read_curve(self, factor: Factor, extra: int) -> tuple[str, int]:
        """(column, degree) of poly(age, 2) and of legendre(age, 2, 1, 6)."""
        arguments = list(factor.arguments)
        named = dict(factor.keywords)
        if "degree" in named:
            arguments.append(named.pop("degree"))
        named.pop("raw", None)  # of R: the powers themselves, which these are
        example = f"{factor.name}(age, 2)" if not extra else "legendre(age, 2) or legendre(age, 2, 1, 6)"
        good = len(arguments) in (2, 2 + extra) and isinstance(arguments[0], Factor) and not arguments[0].is_call
        if named or not good or type(arguments[1]) is not int or not 1 <= arguments[1] <= MAX_DEGREE:
            self.refuse(f"{factor.text} is not supported; expected {example}")
        if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in arguments[2:]):
            self.refuse(f"{factor.text} is not supported; expected {example}")
        return self.check_column(arguments[0].name), arguments[1]

    def explain_call(self, factor: Factor) -> str:
        """Explain what to write in place of a call that is not known."""
        advice = self.advise(factor)
        if advice is not None:
            return advice
        if factor.name == "weights":
            return f"{factor.text} is not supported: {advise_call(factor.name)}"
        known = "factor(x), poly(x, 2), legendre(x, 2), I(x**2) and offset(log(x))"
        return (
            f"{factor.text} is not supported; expected a column or one of {known}. For another function, make a column "
            "of its values in the table"
        )

    def advise(self, factor: Factor) -> str | None:
        """The call, and what to write in place of it; None of a call that is not known."""
        columns = [part.name for part in factor.arguments if isinstance(part, Factor) and not part.is_call]
        advice = advise_effect(factor.name, columns, self.formula.responses[0].name)
        return None if advice is None else f"{factor.text}: {advice}"

    def read_class(self, factor: Factor) -> str:
        """The column of a class."""
        if not factor.is_call:
            return self.check_column(factor.name)
        first = factor.arguments[0] if len(factor.arguments) == 1 and not factor.keywords else None
        if not isinstance(first, Factor) or first.is_call:
            self.refuse(
                f"{factor.text} is not supported; expected {factor.name}(COLUMN). The level that is set to 0 is named "
                "in the analysis file: fixed: {COLUMN: {reference: LEVEL}}"
            )
        return self.check_column(first.name)

    def build_interaction(self, term: Term, singles: Mapping[str, Mapping[str, Any]]) -> tuple[str, dict[str, Any]]:
        """(name, keys) of an interaction; curves are of its one covariate."""
        covariates: dict[str, Covariate] = {}
        names: list[str] = []
        for factor in term:
            if factor.is_call and factor.name == "offset":
                self.refuse(f"{factor.text} cannot be in an interaction")
            self.note_dates(factor)
            power = self.read_power(factor)
            if power is not None:
                self.refuse(
                    f"{describe_term(term)}: a power within an interaction is not supported; expected "
                    f"poly({write_name(power[0])}, {power[1]}) in it, a curve for each class"
                )
            covariate = self.read_covariate(factor)
            column = self.read_class(factor) if covariate is None else covariate.column
            if column in names:
                self.refuse(f"{describe_term(term)} has the column {column} twice")
            names.append(column)
            if covariate is not None:
                covariates[column] = covariate
        keys: dict[str, Any] = {}
        name = ":".join(self.label(column) for column in names)
        if name != ":".join(names):
            keys["interaction"] = names
        is_known = [singles.get(column, {}).get("kind") == "covariate" for column in covariates]
        is_class_elsewhere = any(singles.get(c, {}).get("kind") == "covariate" for c in names if c not in covariates)
        if is_class_elsewhere and not covariates:
            keys["kind"] = "class"
        elif not all(is_known) or is_class_elsewhere:
            keys["covariates"] = list(covariates)
        curve = [covariate.keys() for covariate in covariates.values() if covariate.keys()]
        if curve and len(covariates) > 1:
            self.refuse(f"{describe_term(term)}: a curve can be combined with classes, not with another covariate")
        return name, keys | (curve[0] if curve else {})

    def remove_trait(self, term: Term) -> Term:
        """Remove `trait` from `trait:sex`, as MCMCglmm has it: every effect is on every trait."""
        if len(self.formula.responses) < 2 or "trait" in self.columns.names:
            return term
        return tuple(factor for factor in term if factor.is_call or factor.name != "trait")

    # ------------------------------------------------------------------------------------------ random

    def build_random(self, fixed: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        random: dict[str, dict[str, Any]] = {}
        intercepts: dict[tuple[str, str], str] = {}
        related_levels: set[str] = set()
        for group in self.formula.right.groups:
            names, relationship = self.read_level(group)
            level = ":".join(names)
            if group.has_intercept:
                key = (level, relationship)
                if key in intercepts:
                    self.refuse_repeated(group, intercepts[key])
                intercepts[key] = group.text
            for name, keys in self.build_group(group, names, relationship):
                is_environment = not relationship and level in related_levels
                random[self.free_name(name, relationship, is_environment, (*fixed, *random))] = keys
            related_levels |= {level} if relationship else set()
        return random

    def refuse_repeated(self, group: Group, before: str) -> NoReturn:
        """Refuse a second intercept of the levels of a random term."""
        level = describe_term(group.level)
        if group.text != before and "iid(" in f"{group.text}{before}":
            if self.has_pedigree:
                column = re.sub(r"iid\((.*)\)", r"\1", level)
                self.refuse(
                    f"{group.text} and {before} are the same effect, as the pedigree is not said to be of {column}; "
                    f"expected (1 | pedigree({column})) for one of them"
                )
            self.refuse(
                f"{group.text} and {before} are the same effect, as no pedigree or genotypes relate the levels; "
                "expected one of them, or the pedigree beside the formula"
            )
        self.refuse(
            f"{group.text} repeats the intercept of {before}; expected (0 + ... | {level}) in one of them, or one term "
            "for both"
        )

    def read_level(self, group: Group) -> tuple[list[str], str]:
        """(columns, relationship) of the levels of a random term."""
        relationship, names = "", []
        for factor in group.level:
            column = factor
            if factor.is_call and factor.name in RELATIONSHIPS and len(factor.arguments) == 1:
                inner = factor.arguments[0]
                if len(group.level) > 1:
                    trait, others = self.formula.responses[0].name, [f for f in group.level if f is not factor]
                    by_class = advise_effect("at", [f.name for f in others if not f.is_call], trait)
                    self.refuse(
                        f"{group.text}: combinations of columns are independent; expected them without {factor.name}. "
                        f"Or {by_class}"
                    )
                relationship, column = factor.name, inner if isinstance(inner, Factor) else factor
            elif factor.is_call and factor.name in CLASS_CALLS:
                names.append(self.read_class(factor))
                continue
            if column.is_call:
                self.refuse(self.explain_level(group, factor))
            names.append(self.check_level(column.name))
        if len(set(names)) < len(names):
            self.refuse(f"{group.text} has a column twice")
        if len(names) == 1 and not relationship:
            relationship = self.related.get(names[0], "")
        return names, "" if relationship == "iid" else relationship

    def check_level(self, name: str) -> str:
        """A column of levels; dams and sires may be in the pedigree alone."""
        is_parent = any(has_role(name, role) for role in ("sire", "dam"))
        return name if is_parent and self.has_pedigree else self.check_column(name)

    def explain_level(self, group: Group, factor: Factor) -> str:
        advice = self.advise(factor)
        if advice is not None:
            return advice
        calls = ", ".join(RELATIONSHIPS)
        return f"{group.text} is not supported; expected a column, columns with ':', or one of {calls}(COLUMN)"

    def build_group(self, group: Group, names: list[str], relationship: str) -> Iterable[tuple[str, dict[str, Any]]]:
        """(name, keys) of each term of the analysis that a random term stands for."""
        of_levels = {"relationship": relationship} if relationship else {}
        level = {"level": names[0]} if len(names) == 1 else {"interaction": names}
        covariates = [self.read_coefficient(group, term) for term in group.coefficients]
        base = ":".join(self.label(name) for name in names)
        if not covariates:
            yield base, level | of_levels
            return
        if not group.is_correlated:
            if group.has_intercept:
                yield base, level | of_levels
            for covariate in covariates:
                if covariate.keys():
                    self.refuse(
                        f"{group.text}: a curve has correlated coefficients; expected | in place of ||, and without "
                        f"correlations, in the analysis file, variances: {{{base}: {{structure: diagonal}}}}"
                    )
                yield f"{base}_{self.label(covariate.column)}", of_levels | self.slopes(level, [covariate.column])
            return
        slopes = "" if group.has_intercept else "".join(f"_{self.label(c.column)}" for c in covariates)
        yield f"{base}{slopes}", of_levels | self.build_curve(group, level, covariates)

    def build_curve(self, group: Group, level: dict[str, Any], covariates: list[Covariate]) -> dict[str, Any]:
        """A random regression: polynomials of one covariate with the intercept, or slopes without one."""
        if not group.has_intercept:
            if any(covariate.keys() for covariate in covariates):
                self.refuse(f"{group.text}: a curve includes its intercept; expected 1 in place of 0")
            return self.slopes(level, [covariate.column for covariate in covariates])
        if len(covariates) > 1:
            columns = ", ".join(covariate.column for covariate in covariates)
            of_level = ", ".join(f"{key}: {value}" for key, value in level.items()).replace("'", "")
            effect = f"{{{of_level}, covariates: [one, {columns}]}}"
            self.refuse(
                f"{group.text}: an intercept with slopes on several columns needs a column of ones, here called one, "
                f"and the analysis file: random: {{{describe_term(group.level)}: {{effects: {{rr: {effect}}}}}}}"
            )
        covariate = covariates[0]
        polynomials = covariate.legendre or {"degree": covariate.degree}
        self.note(
            f"{group.text}: its coefficients are those of Legendre polynomials of {covariate.column}, a curve of "
            f"degree {polynomials['degree']}; curves.csv has the variance along {covariate.column}"
        )
        return {"effects": {"rr": level | {"legendre": {"column": covariate.column} | polynomials}}}

    def slopes(self, level: dict[str, Any], columns: list[str]) -> dict[str, Any]:
        return {"effects": {"slope": level | {"covariates": columns}}}

    def read_coefficient(self, group: Group, term: Term) -> Covariate:
        """The covariate of a random coefficient."""
        if len(term) > 1:
            self.refuse(f"{group.text}: an interaction before the bar needs a column of its values in the table")
        if self.read_power(term[0]) is not None:
            self.refuse(f"{group.text}: expected poly(COLUMN, 2) in place of a power, which has all lower ones")
        covariate = self.read_covariate(term[0])
        if covariate is None:
            column = write_name(self.read_class(term[0]))
            level = describe_term(group.level)
            self.refuse(
                f"{group.text}: {column} is a class, for whose levels an effect cannot have correlated values in a "
                f"formula; expected (1 | {level}) + (1 | {level}:{column}), an effect of {level} and one within each "
                f"{column}. Or {advise_effect('us', [column], self.formula.responses[0].name)}"
            )
        return covariate

    # ------------------------------------------------------------------------------------------ names

    def label(self, column: str) -> str:
        """The name of an effect or a trait of a column."""
        if column in RESERVED:
            return f"{column}_effect"
        plain = "".join("_" if c in NOT_IN_A_NAME or not c.isprintable() else c for c in column).strip()
        return plain or "column"

    def free_name(self, name: str, relationship: str, is_environment: bool, taken: Iterable[str]) -> str:
        """A name for a random term that no other effect has.

        is_environment: it is independent, and stands behind a related term of its level.
        """
        taken = set(taken)
        if name not in taken:
            return name
        plain = re.sub(r":", "_", name)
        candidates = (["permanent_environment"] if is_environment else []) + [f"{plain}_{relationship or 'random'}"]
        candidates += [f"{plain}_{number}" for number in range(2, len(taken) + 3)]
        return next(candidate for candidate in candidates if candidate not in taken)
