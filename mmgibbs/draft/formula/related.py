"""The levels of random terms that a pedigree or genotypes, given beside a formula, relate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mmgibbs.draft.formula.columns import write_name
from mmgibbs.draft.formula.grammar import Factor, ParsedFormula, problem, refuse
from mmgibbs.errors import is_command, nearest, option_name
from mmgibbs.pedigree.columns import RECOGNISED

RELATIONSHIPS = ("iid", "pedigree", "genomic", "dominance", "single_step")  # calls around the level of a random term


def has_role(name: str, role: str) -> bool:
    """Check whether a column is named for animals (role id), sires or dams."""
    return "".join(c for c in name.lower() if c.isalnum()) in RECOGNISED[role]


def choose_related(formula: ParsedFormula, pedigree: Any, genotypes: Any) -> tuple[Any, Any, dict[str, str]]:
    """(table of the pedigree, genotypes, level -> relationship) of what is given beside a formula.

    A mapping says which level of a random term a table is of: {"animal": table}. Without one it is of the level that is
    named for animals, else for sires, else of the one that also stands within iid(), else of the only one. Levels
    within iid() are related by no table.
    """
    levels = [group.level[0] for group in formula.right.groups if len(group.level) == 1]
    stated = {f.name for group in formula.right.groups for f in group.level if f.is_call} & set(RELATIONSHIPS)
    _check_given(formula, stated, pedigree, genotypes)
    names = list(dict.fromkeys(f.name for f in levels if not f.is_call))
    tables: dict[str, Any] = {}
    by_level: dict[str, set[str]] = {}
    for what, given in (("pedigree", pedigree), ("genotypes", genotypes)):
        if given is None:
            continue
        is_by_level = isinstance(given, Mapping) and not (what == "genotypes" and "file" in given)
        if is_by_level:
            tables[what], chosen = _split_by_level(formula, what, given, names)
        else:
            tables[what] = given
            chosen = [] if stated - {"iid"} else _guess_level(formula, what, names)
        for name in chosen:
            by_level.setdefault(name, set()).add(what)
    kinds = {frozenset({"pedigree"}): "pedigree", frozenset({"genotypes"}): "genomic"}
    related = {name: kinds.get(frozenset(sources), "single_step") for name, sources in by_level.items()}
    return tables.get("pedigree"), tables.get("genotypes"), related


def independent_levels(formula: ParsedFormula) -> list[str]:
    """The columns within iid(): the formula says that their levels are independent."""
    calls = [factor for group in formula.right.groups for factor in group.level if factor.name == "iid"]
    return [part.name for call in calls for part in call.arguments if isinstance(part, Factor) and not part.is_call]


def _check_given(formula: ParsedFormula, stated: set[str], pedigree: Any, genotypes: Any) -> None:
    """ConfigError: the formula has pedigree(x) or the like without the table."""
    for what, given, users in (
        ("pedigree", pedigree, ("pedigree", "dominance", "single_step")),
        ("genotypes", genotypes, ("genomic", "single_step")),
    ):
        asked = next((call for call in users if call in stated), None)
        if given is None and asked is not None:
            table = "table of the pedigree" if what == "pedigree" else "file of genotypes"
            refuse(
                formula.text,
                f"{asked}() needs the {table}, which is not given; expected {_example(what)}, or (1 | COLUMN) for "
                "independent levels",
            )


def _example(what: str) -> str:
    return f"{option_name(what)} FILE" if is_command() else f"{what}=TABLE beside the formula"


def _split_by_level(
    formula: ParsedFormula, what: str, given: Mapping[str, Any], names: list[str]
) -> tuple[Any, list[str]]:
    for name in given:
        if name not in names and name in independent_levels(formula):
            refuse(
                formula.text,
                f"{what}: {name} has independent levels by iid({name}), which no table relates; expected "
                f"(1 | {write_name(name)}) for breeding values beside it, or no {what}",
            )
        if name not in names:
            refuse(formula.text, f"{what}: there is no (1 | {name}); {nearest(str(name), names, 'the levels are')}")
    tables = list(given.values())
    if not tables:
        refuse(formula.text, f"{what}: expected {{LEVEL: TABLE}}, got an empty mapping")
    if any(table is not tables[0] for table in tables):
        refuse(formula.text, f"{what}: expected one table for all levels, got {len(tables)} different ones")
    return tables[0], list(given)


def _guess_level(formula: ParsedFormula, what: str, names: list[str]) -> list[str]:
    """The level that a table relates, in a list; none where the formula says that the levels are independent."""
    for role in ("id", "sire"):
        of_role = [name for name in names if has_role(name, role)]
        if len(of_role) == 1:
            return of_role
    independent = independent_levels(formula)
    beside_independent = [name for name in names if name in independent]
    if len(beside_independent) == 1:  # (1 | ring) + (1 | iid(ring)): breeding values and permanent environments
        return beside_independent
    if independent and (not names or any(has_role(name, role) for name in independent for role in ("id", "sire"))):
        return []
    combined = {f.name for group in formula.right.groups if len(group.level) > 1 for f in group.level}
    has_combined_animals = any(has_role(name, "id") for name in combined)
    if len(names) == 1 and not has_combined_animals:
        return names
    call = "pedigree" if what == "pedigree" else "genomic"
    written = [] if has_combined_animals else [f"(1 | {call}({write_name(name)}))" for name in names]
    raise problem(
        formula.text,
        f"{what}: which level is it of? Expected {' or '.join([*written, '(1 | animal)'])}; the levels are "
        f"{', '.join(names) or 'none'}",
    )
