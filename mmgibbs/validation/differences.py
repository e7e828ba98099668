"""In what the analyses of a comparison differ: relationships, variances, chains, and keys of the analysis file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mmgibbs.report.html_tables import Column, Table, decimals_of, number
from mmgibbs.results.relationships import relationships_of
from mmgibbs.validation.found import Validation
from mmgibbs.validation.head import given_variances
from mmgibbs.validation.page import how_solved
from mmgibbs.validation.plan import SAMPLE

SECTIONS = ("data", "traits", "model")  # of an analysis, that say what is evaluated; with `variances` if sampled
IN_WORDS = ("relationship", "start", "classes")  # keys that stand in words, or among the variances
NONE = "none"
NAMED_BY = ("file", "prior", "kind", "column")  # what a section is called by where another analysis has none


def difference_table(validations: Sequence[Validation]) -> Table | None:
    """A row for each thing in which they differ, a column for each analysis; None where nothing is known to differ."""
    in_words = _in_words(validations)
    rows = in_words + [(name, *_written(values)) for name, values in _differing(_sections(validations))]
    columns = [Column("What"), *(Column(str(v.info["analysis"])) for v in validations)]
    note = "Names with a full stop are keys of the analysis file." if len(rows) > len(in_words) else ""
    return Table("In what the analyses differ", columns, rows, note) if rows else None


def _in_words(validations: Sequence[Validation]) -> list[tuple[str, ...]]:
    found = [_facts(v) for v in validations]
    keys = list(dict.fromkeys(key for facts in found for key in facts))
    rows = [(key, *(facts.get(key, NONE) for facts in found)) for key in keys]
    return [row for row in rows if len(set(row[1:])) > 1 and not (NONE in row and row[0].startswith("number of"))]


def _facts(validation: Validation) -> dict[str, str]:
    """What is said of an analysis in words, or is a number."""
    info, head = validation.info, validation.head
    facts = {"records": f"{info['records']:,}", "solved": how_solved(info)} if "records" in info else {}
    if chain := info.get("sampled"):
        facts["each chain"] = f"{chain['burn_in']:,} sweeps of burn-in, {chain['samples']:,} sweeps"
    facts |= {f"levels of {term}": kind["sentence"] for term, kind in relationships_of(head).items()}
    facts |= {f"number of levels of {term}": f"{n:,}" for term, n in head.get("levels", {}).items()}
    given = given_variances(info.get("variances"), head.get("components", {}))
    return facts | {name: number(value, decimals_of(value, None)) for name, value in given}


def _sections(validations: Sequence[Validation]) -> list[dict[str, Any]]:
    sampled = any(v.info.get("variances") == SAMPLE for v in validations)
    names = (*SECTIONS, "variances") if sampled else SECTIONS
    return [{name: v.head.get("analysis", {}).get(name) or {} for name in names} for v in validations]


def _differing(values: Sequence[Any], name: str = "") -> Iterator[tuple[str, Sequence[Any]]]:
    """('model.random.animal.level', the value of each analysis) of what differs; a section that one has not, whole."""
    if all(isinstance(value, Mapping) for value in values):
        for key in dict.fromkeys(key for value in values for key in value):
            if key not in IN_WORDS:
                yield from _differing([value.get(key) for value in values], f"{name}.{key}" if name else key)
    elif any(value != values[0] for value in values) and not (None in values and name.startswith("model.random.")):
        yield name, values  # a random term that one has not is among what is said in words


def _written(values: Sequence[Any]) -> list[str]:
    """As cells: of files the name alone, where that tells them apart."""
    short = [_cell(value) for value in values]
    return short if len(set(short)) > 1 else [str(value) for value in values]


def _cell(value: Any) -> str:
    """A value; of a section what it is called by."""
    if isinstance(value, Mapping):
        return _cell(next((value[key] for key in NAMED_BY if value.get(key) is not None), "given"))
    if value is None or value == []:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(_cell(v) for v in value)
    return Path(str(value)).name if Path(str(value)).root else str(value)
