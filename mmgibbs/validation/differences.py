"""In what the analyses of a comparison differ: relationships, variances, chains, and keys of the analysis file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mmgibbs.report.html_tables import Column, Table, count_decimals, listed, number
from mmgibbs.validation.found import Validation
from mmgibbs.validation.head import given_variances, how_solved, sentences
from mmgibbs.validation.plan import SAMPLE

SECTIONS = ("data", "traits", "model")  # of an analysis, that say what is evaluated; with `variances` if sampled
NONE = "none"
Place = tuple[str, ...]  # of a key of the analysis file: model, random, animal, level


def difference_table(validations: Sequence[Validation]) -> Table | None:
    """A row for each thing in which they differ, a column for each analysis; None where nothing is known to differ."""
    in_words = _in_words(validations)
    of_keys = [(".".join(place), *_written(values)) for place, values in _differing(_sections(validations))]
    of_keys = [row for row in of_keys if len(set(row[1:])) > 1]  # an empty list says what no key says
    rows = in_words + of_keys
    columns = [Column("What"), *(Column(str(v.info["analysis"])) for v in validations)]
    begin = listed(list(dict.fromkeys(f"{row[0].partition('.')[0]}." for row in of_keys)), "or")
    note = f"Names that begin with {begin} are keys of the analysis file." if of_keys else ""
    return Table("In what the analyses differ", columns, rows, note) if rows else None


def _in_words(validations: Sequence[Validation]) -> list[tuple[str, ...]]:
    found, short = [_facts(v) for v in validations], [_facts(v, short=True) for v in validations]
    keys = list(dict.fromkeys(key for facts in found for key in facts))
    of = lambda each, key: [facts.get(key, NONE) for facts in each]
    rows = [(key, *_apart(of(short, key), of(found, key))) for key in keys]
    return [row for row in rows if len(set(row[1:])) > 1 and not (NONE in row and row[0].startswith("number of"))]


def _facts(validation: Validation, short: bool = False) -> dict[str, str]:
    """What is said of an analysis in words, or is a number; short: of relationship files the name alone."""
    info, head = validation.info, validation.head
    facts = {"records": f"{info['records']:,}", "solved": how_solved(info)} if "records" in info else {}
    if chain := info.get("sampled"):
        facts["each chain"] = f"{chain['burn_in']:,} sweeps of burn-in, {chain['samples']:,} sweeps"
    facts |= {f"levels of {term}": sentence for term, sentence in sentences(head, short).items()}
    facts |= {f"number of levels of {term}": f"{n:,}" for term, n in head.get("levels", {}).items()}
    given = given_variances(info.get("variances"), head.get("components", {}))
    return facts | {name: number(value, count_decimals(value, None)) for name, value in given}


def _names(validations: Sequence[Validation]) -> tuple[str, ...]:
    """Sections of the analysis file that are compared."""
    sampled = any(v.info.get("variances") == SAMPLE for v in validations)
    return (*SECTIONS, "variances") if sampled else SECTIONS


def _sections(validations: Sequence[Validation]) -> list[dict[str, Any]]:
    names = _names(validations)
    return [{name: v.head.get("analysis", {}).get(name) or {} for name in names} for v in validations]


def _is_in_words(place: Place) -> bool:
    """Keys that stand in words, or among the variances: by their place, as an effect may have any of these names."""
    if place[:2] == ("model", "random"):
        return len(place) == 4 and place[3] == "relationship"
    return place[0] == "variances" and len(place) > 2 and place[-1] in ("start", "classes")


def _differing(values: Sequence[Any], place: Place = ()) -> Iterator[tuple[Place, Sequence[Any]]]:
    """(('model', 'random', 'animal', 'level'), the value of each analysis) of what differs; a section that one has
    not, whole."""
    if all(isinstance(value, Mapping) for value in values):
        for key in dict.fromkeys(key for value in values for key in value):
            if not _is_in_words(below := (*place, str(key))):
                yield from _differing([value.get(key) for value in values], below)
    elif any(value != values[0] for value in values) and not (None in values and place[:-1] == ("model", "random")):
        yield place, values  # a random term that one has not is among what is said in words


def _written(values: Sequence[Any]) -> list[str]:
    """As cells: of files the name alone, where that tells them apart."""
    section = "yes" if None in values else "given"  # one without a file, where another analysis has none
    return _apart([_cell(v, section) for v in values], [_cell(v, section, short=False) for v in values])


def _apart(short: list[str], full: list[str]) -> list[str]:
    """The short ones, where they tell apart what the full ones do."""
    return short if len(set(short)) == len(set(full)) else full


def _cell(value: Any, section: str, short: bool = True) -> str:
    """A value; of a section its file, the names of the sections in it, or `section`; short: without the paths of
    files."""
    if isinstance(value, Mapping):
        if value.get("file") is not None:
            return _cell(value["file"], section, short)
        within = [str(key) for key, v in value.items() if isinstance(v, Mapping)]
        return ", ".join(within) if within and len(within) == len(value) else section
    if value is None or value == []:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(_cell(v, section, short) for v in value)
    return Path(str(value)).name if short and Path(str(value)).root else str(value)
