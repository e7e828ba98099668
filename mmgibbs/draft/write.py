"""The text of a drafted analysis file: what was seen, what was guessed, and what could be written in its place."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from mmgibbs.config.schema import MODELINE
from mmgibbs.config.tables import MISSING
from mmgibbs.data.alike_levels import describe_alike, describe_unknown
from mmgibbs.data.animal_ids import name_keys
from mmgibbs.data.missing_codes import find_missing_codes, written_codes
from mmgibbs.data.number_format import find_lost_marks, find_points_of_thousands, parse_column
from mmgibbs.draft.columns import FEW, Column, is_ambiguous
from mmgibbs.draft.guess import Guess, like_codes
from mmgibbs.draft.method import GIBBS, Method, method_lines
from mmgibbs.draft.roles import codes_among_words, guess_type, has_word, hint
from mmgibbs.draft.trial_lines import fixed_lines, means_key, random_lines, structure_lines
from mmgibbs.draft.yaml_text import entry, fold_lines, yaml_list, yaml_text
from mmgibbs.pedigree.tables import counted, quoted

_PROGENY = 1.5  # with records, of each dam, from which maternal effects are offered
_MAX_NAMED = 5  # animals that the pedigree lacks
_FEW_RECORDS = 100  # below it variances can hardly be estimated


def analysis_text(g: Guess, path: Path, method: Method = GIBBS) -> str:
    """The whole file, which is to be written to `path`: its folder is what paths in it are relative to."""
    name = file_name(path)
    lines = [
        *_head(g, path),
        f"name: {yaml_text(name)}",
        *_data(g, path.parent),
        "",
        *_traits(g),
        "",
        "model:",
        *_fixed(g, method.fixed),
        *_random(g),
        *_markers(g),
        "",
        *([] if method.variances is not None else structure_lines(g)),
        *method_lines(method, can_use_reml(g)),
        f"output: {{directory: {yaml_text(f'runs/{name}')}{means_key(g)}}}  # relative to where the command runs",
    ]
    return MODELINE + "\n".join(fold_lines(lines)) + "\n"


def describe_slips(g: Guess, columns: Sequence[Column]) -> list[str]:
    """Say which of these columns have numbers and a few values that are none."""
    return [
        f"{c.name} has numbers, and {c.odd_ones}, the first in row {g.odd[c.name]}: correct what is wrong, or write it "
        "into data.missing if it means a missing value"
        for c in columns
        if g.slips(c)
    ]


def explain_guess(g: Guess) -> list[str]:
    """A line for each column and for what was seen across columns: the head of the file, and what the command says."""
    width = max(len(c.name) for c in g.columns)
    lines = [f"{g.phenotypes.name}: {g.columns[0].n:,} records"]
    lines += [f"  {c.name:<{width}}  {c.describe(g.slips(c))}: {_use(g, c)}" for c in g.columns]
    for aside in g.aside:
        more = f" and {aside.n - 1:,} more" if aside.n > 1 else ""
        lines.append(f"  {aside.first}{more}: left out ({aside.why})")
    return lines + _explain_pairs(g)


def _use(g: Guess, c: Column) -> str:
    role = g.roles[c.name]
    if role.use == "trait":
        chosen = c in g.traits[: g.n_traits]
        return f"{'trait' if chosen else 'may be a trait'} ({role.why})"
    if role.use == "trial":
        return role.why
    return f"{role.use} ({role.why})" if role.why else role.use


def _explain_labels(g: Guess) -> list[str]:
    """A note of the traits and effects that cannot have the names of their columns."""
    renamed = [
        f"{c.label} for {quoted(c.name)}"
        for c in g.columns
        if c.label != c.name and g.roles[c.name].use in ("trait", "class", "random", "covariate", "trial")
    ]
    start = "note: the analysis file has other names for columns whose names it cannot have"
    return [f"{start}: {', '.join(renamed)}"] if renamed else []


def _explain_pairs(g: Guess) -> list[str]:
    out = [f"note: {note}" for note in g.of_records] + _explain_labels(g)
    out += [] if g.trial is None else [f"the table looks like {g.trial.describe()}"]
    if g.pedigree is not None and g.pedigree_file is not None:
        n = g.pedigree.n_animals  # codes from n on are groups
        sire, dam = g.pedigree.sire, g.pedigree.dam
        founders = int((((sire < 0) | (sire >= n)) & ((dam < 0) | (dam >= n))).sum())
        out.append(f"{g.pedigree_file.name}: {g.pedigree.n_animals:,} animals, {founders:,} of them without parents")
        out += g.unknown_parents.explain(g.pedigree, g.pedigree_file.name)
        out += [f"note: {name_keys(note)}" for note in g.of_pedigree]
        out += [f"warning: {name_keys(warning)}" for warning in g.pedigree.warnings]
    if g.repeated:
        out.append(f"{counted(g.repeated, 'animal', 'has')} several records of {g.traits[0].name}")
    if g.twice:
        where = f"row {g.twice[0]}" if len(g.twice) == 1 else f"the first is row {g.twice[0]}"
        out.append(
            f"warning: {counted(len(g.twice), 'row', 'is')} the same as an earlier one in every column ({where}): "
            "entered twice? A run takes each as a record"
        )
    out += g.unused_pedigree
    if _records_have_parents(g):
        path = shlex.quote(str(g.phenotypes))
        out.append(f"{g.phenotypes.name} has the parents of its animals: --pedigree {path} takes them from there")
    dams = _dams(g)
    if dams is not None:
        out.append(dams)
    if g.of_time is not None:
        time, status, *_ = g.of_time
        out.append(
            f"{time.name} may be a censored time: {status.name} is 0 or 1, and {g.of_time.still} in "
            f"{g.of_time.censored_codes:,} records may say that it has not ended (see traits)"
        )
    if g.of_size is not None:
        cases, size = g.of_size
        out.append(f"{cases.name} is never above {size.name}: cases of so many? (see traits)")
    if g.genotypes is not None:
        kind = f"{g.kind_of_genotypes} genotypes" if g.kind_of_genotypes else "genotypes"
        out.append(f"{g.genotypes.name}: {kind} of {g.genotyped[0]:,} of the {g.genotyped[1]:,} animals with records")
    out += [f"warning: {text}" for text in describe_slips(g, g.columns)]
    for c in g.columns:
        is_text = c.numbers is None and c.odd is None and not c.dates and c.levels > FEW
        if is_text and g.roles[c.name].use == "left out" and hint(c.name) == "trait":
            shown = ", ".join(quoted(value) for value in c.values()[:3])
            out.append(
                f"warning: {c.name} is named for a trait, but has text ({c.levels:,} different values: {shown}, ...): "
                "it is not used; needed numbers"
            )
    out += [
        f"warning: {quoted(code)} means a missing value in every column (data.missing), also in {name} "
        f"({counted(times, 'record')}): if it is a level there, write missing: {yaml_list([code])} for the traits and "
        "covariates where it means one, and not in data.missing"
        for code, name, times in g.codes_among_levels
    ]
    if g.decimal_is_guessed:
        out.append(f"warning: it is a guess that {_explain_commas(g)} (see data.decimal)")
    for c in g.columns:
        lost = find_lost_marks(c.text, parse_column(c.text, (), g.decimal).values) if c.numbers is not None else None
        if lost is not None:
            out.append(f"warning: {lost.describe(f'column {quoted(c.name)}', g.lines[lost.cells].tolist())}")
        points = None if c.numbers is None or c.commas else find_points_of_thousands(c.text, ())
        if points is not None:
            out.append(f"warning: {points.describe(f'column {quoted(c.name)}')}")
    for c in g.columns:
        if g.roles[c.name].use in ("class", "random"):
            odd = (describe_alike(c.text, c.name), describe_unknown(c.text, c.name, partial(_advise, g, c)))
            out += [f"warning: {said}" for said in odd if said is not None]
    for c in g.columns:
        if g.roles[c.name].use in ("class", "covariate") and (gaps := g.count_missing(c)):
            out.append(
                f"warning: {c.name} has no value in {counted(gaps, 'record')} of the trait: it is left out of the "
                "model until they have one (see model.fixed)"
            )
    for c in g.traits:
        if numbers := codes_among_words(c):
            times = int(c.text.is_in(numbers).sum())
            out.append(
                f"warning: traits.{c.label}: {times:,} of {c.known:,} values of column '{c.name}' are "
                f"{' or '.join(numbers)} among words: taken for missing values (traits.{c.label}.missing)"
            )
        codes = find_missing_codes(c.numbers) if c.numbers is not None and guess_type(c)[0] == "normal" else None
        if codes is not None:
            path = f"traits.{c.label}"
            out.append("warning: " + codes.describe(path, c.name, f"write {path}.missing: {codes.written()}"))
    known = g.traits[0].known
    if known < _FEW_RECORDS:
        out.append(f"warning: {known} records of {g.traits[0].name} are too few to estimate variances well")
    crossed = g.animals.crossed
    if crossed is not None and g.pedigree_file is not None:
        has = "sires" if crossed is g.animals.sire else "dams"
        out.append(
            f"warning: {crossed.name} of the records agrees with the {has} of {g.pedigree_file.name}: are its columns "
            "of sire and dam exchanged? A table without a line of names is read as id, sire, dam; where it is not, "
            "data needs pedigree_header: false and pedigree_columns: {id: 1, sire: 3, dam: 2}"
        )
    return out + _absent_animals(g)


def _advise(g: Guess, c: Column, cells: Sequence[str]) -> str:
    """Advise what to write where levels of a class mean a missing value."""
    path = f"model.{'random' if g.roles[c.name].use == 'random' else 'fixed'}.{c.label}"
    return f"write {path}.missing: {written_codes(cells)}"


def _absent_animals(g: Guess) -> list[str]:
    """List columns named for animals that have other ids than the pedigree, with an id of each that may be the same."""
    animals, absent = g.animals, g.animals.absent
    is_sire_model = animals.animal is None and animals.known > 0
    if g.pedigree_file is not None and animals.animal is None and not is_sire_model:
        most = "" if absent is None else f" (most in {absent.column}: {absent.known:,} of {absent.distinct:,})"
        return [
            f"warning: no column has the ids of {g.pedigree_file.name}{most}: the draft has no effect of the animal. "
            "Needed the ids written in the same way in both files, or model.random.genetic: {level: COLUMN, "
            "relationship: pedigree}"
        ]
    if absent is None:
        return []
    pair = f"the records have '{absent.example}'"
    pair += f", the pedigree '{absent.alike}'" if absent.alike is not None else ", which the pedigree lacks"
    if animals.animal is not None:
        if 2 * animals.known >= animals.distinct:
            return []
        return [
            "warning: most animals with records are not in the pedigree: are ids written in the same way in both "
            f"files? {pair[0].upper()}{pair[1:]}"
        ]
    said = (
        f"the pedigree has {absent.known:,} of the {absent.distinct:,} ids in {absent.column} ({pair}): a sire model "
        "therefore. For an animal model ids must be written in the same way in both files"
    )
    return [f"{'warning: ' if absent.alike is not None else ''}{said}"]


def _records_have_parents(g: Guess) -> bool:
    """Nothing was named as pedigree, and the records, one of each animal, could be."""
    animals = g.animals
    if g.pedigree is not None or g.unused_pedigree or animals.animal is None or None in (animals.sire, animals.dam):
        return False
    return animals.animal.levels == g.columns[0].n


def _dams(g: Guess) -> str | None:
    """Count the dams of the recorded animals, and those of them that have records."""
    animal = g.animals.animal
    if g.pedigree is None or animal is None:
        return None
    ids = animal.text.drop_nulls().unique()
    codes = g.pedigree.codes(ids).drop_nulls().to_list()
    of_each = _dams_by_record(g)
    dams = set(of_each)
    if not dams:
        return None
    both, share = len(dams & set(codes)), len(of_each) / len(dams)
    progeny = f"{share:.1f}".removesuffix(".0")
    if len(dams) == 1:
        return f"1 dam has {progeny} progeny with records; {'it has' if both else 'it has no'} records of its own"
    have = f"{both:,} have records of their own" if both > 1 else f"{both or 'none'} has records of its own"
    return f"{len(dams):,} dams have {progeny} progeny with records each; {have}"


def _dams_by_record(g: Guess) -> list[int]:
    """The dams of the animals with records, as often as they have progeny."""
    assert g.pedigree is not None and g.animals.animal is not None
    codes = g.pedigree.codes(g.animals.animal.text.drop_nulls().unique()).drop_nulls().to_list()
    return [int(g.pedigree.dam[c]) for c in codes if 0 <= g.pedigree.dam[c] < g.pedigree.n_animals]


def _several_progeny(g: Guess) -> bool:
    dams = _dams_by_record(g)
    return len(dams) >= _PROGENY * len(set(dams))


# ------------------------------------------------------------------------------------------------ sections


def _head(g: Guess, path: Path) -> list[str]:
    lines = [
        "Written by mmgibbs init, from what the tables look like. Nothing here is certain: read it, change what is",
        "wrong, use lines that begin with # if they fit better. Then",
        f"  mmgibbs check {shlex.quote(path.name)}",
        f"  mmgibbs run {shlex.quote(path.name)}",
        "",
        *explain_guess(g),
    ]
    return [f"# {line}".rstrip() for line in lines] + [""]


def _data(g: Guess, folder: Path) -> list[str]:
    lines = ["data:", f"  phenotypes: {yaml_text(relative_path(g.phenotypes, folder))}"]
    if g.stated.widths is not None:
        lines.append(f"  widths: {list(g.stated.widths)}")
    if not g.named:
        names = ", ".join(yaml_text(name) for name in g.names)
        lines.append("  # The file has no line of names: give the columns meaningful names.")
        lines.append(f"  header: [{names}]")
    if g.stated.encoding is not None:
        lines.append(f"  encoding: {yaml_text(g.stated.encoding)}")
    if g.decimal is not None:
        thousands = "." if g.decimal == "," else ","
        if_not = f": write {json.dumps(thousands)} if not" if g.decimal_is_guessed else ""
        lines.append(f"  decimal: {json.dumps(g.decimal)}  # {_explain_commas(g)}{if_not}")
    if g.missing:
        lines.append(f"  missing: {yaml_list([*MISSING, *g.missing])}")
    if g.pedigree_file is not None:
        lines.append(f"  pedigree: {yaml_text(relative_path(g.pedigree_file, folder))}")
        if g.stated.pedigree_widths is not None:
            lines.append(f"  pedigree_widths: {list(g.stated.pedigree_widths)}")
        if g.stated.pedigree_encoding is not None:
            lines.append(f"  pedigree_encoding: {yaml_text(g.stated.pedigree_encoding)}")
    if g.pedigree_file is not None:
        lines += g.unknown_parents.lines(g.pedigree, g.is_single_step)
    absent = g.animals.distinct - g.animals.known
    if g.pedigree is not None and absent:
        lines.append(
            f"  add_missing_animals: true  # {counted(absent, 'recorded animal', 'has')} no row in the pedigree"
            f"{_name_absent(g)}"
        )
    if g.genotypes is not None:
        lines.append(f"  genotypes: {yaml_text(relative_path(g.genotypes, folder))}")
        lines.append("  # genotypes: {file: ..., quality: {maf: 0.05, call_rate: 0.95}}")
    return lines


def _name_absent(g: Guess) -> str:
    """': 'A7' (row 12), 'A9' (row 40), ...' of the recorded animals that the pedigree lacks."""
    animal = g.animals.animal
    if animal is None or g.pedigree is None:
        return ""
    codes = g.pedigree.codes(animal.text)
    rows = (codes.is_null() & animal.text.is_not_null()).arg_true().to_list()
    first = {animal.text[row]: row for row in reversed(rows)}
    named = sorted(first.items(), key=lambda pair: pair[1])
    shown = ", ".join(f"{quoted(name)} (row {g.lines[row]})" for name, row in named[:_MAX_NAMED])
    return f": {shown}{', ...' if len(named) > _MAX_NAMED else ''}"


def _explain_commas(g: Guess) -> str:
    """'the comma of 115,763 (y) is decimal', 'thousands are separated, as in 4 441.85 (milk)'."""
    column = next((c for c in g.columns if c.in_groups and not is_ambiguous(c.in_groups)), None)
    if column is not None:
        return f"thousands are separated, as in {column.in_groups} ({column.name})"
    column = next(c for c in g.columns if c.in_groups)
    means = "is decimal" if g.decimal == "," else "separates thousands"
    return f"the comma of {column.in_groups} ({column.name}) {means}"


def _traits(g: Guess) -> list[str]:
    lines = ["traits:"]
    for i, c in enumerate(g.traits):
        if i == g.n_traits:
            lines.append("  # Traits that are listed together are analysed together, with their correlations:")
        lines += _trait(g, c, "  " if i < g.n_traits else "  # ")
    return lines + _censored_time(g) + _cases_of_size(g)


def _censored_time(g: Guess) -> list[str]:
    if g.of_time is None:
        return []
    time, status, still, ended = g.of_time
    values = f"{{right: {yaml_list([still])}, none: {yaml_list([ended])}}}"
    body = f"type: censored, censored: {yaml_text(status.name)}, values: {values}"
    positive = time.numbers is not None and not bool((time.numbers <= 0).any())
    swap = f"exchange {still} and {ended} if it is the other way round"
    return [
        f"  # {status.name} is 0 or 1, and its name is that of an end. If {time.name} is a time that had not",
        f"  # ended where it is {still} ({swap}), write in place of {time.name}:",
        f"  # {entry(time, body + (', log: true' if positive else ''))}{_warn_removed(g, time, status)}",
    ]


def _cases_of_size(g: Guess) -> list[str]:
    if g.of_size is None:
        return []
    cases, size = g.of_size
    of_all = f"in all it is {100 * g.of_size.share:.2g} % of it"
    return [
        f"  # {cases.name} is never above {size.name}: {of_all}. If it counts cases among so many animals,",
        f"  # and few of the animals are cases (a tenth, say), it is a rate. Write in place of {cases.name}:",
        f"  # {entry(cases, f'type: count, exposure: {yaml_text(size.name)}')}{_warn_removed(g, cases, size)}",
        "  # If many are: a table with a record of 0 or 1 for each animal, and type: binary.",
    ]


def _warn_removed(g: Guess, *columns: Column) -> str:
    """Add that effects of these columns are then to be removed."""
    used = [c.name for c in columns if g.roles[c.name].use in ("class", "covariate", "random")]
    return f"  # without {' and '.join(used)} in model" if used else ""


def _trait(g: Guess, c: Column, indent: str) -> list[str]:
    type, keys, why = guess_type(c)
    if c is g.traits[0] and g.censored is not None:
        status, cells = g.censored
        values = ", ".join(f"{side}: {yaml_list(v)}" for side, v in cells.items())
        keys, type, why = {"censored": status.name}, "censored", f"{status.name} says which values are only bounds"
        body = f"type: censored, censored: {yaml_text(status.name)}, values: {{{values}}}, log: true"
        return [f"{indent}{entry(c, body)}  # {why}"]
    body = "" if type == "normal" else f"type: {type}"
    if type == "normal" and g.is_by_site and g.trial is not None and g.trial.site is not None:
        body, why = f"by: {yaml_text(g.trial.site.name)}", f"{why}; a trait for each of the {g.trial.site.levels} sites"
    for key, value in keys.items():
        body += f", {key}: {yaml_list(value) if isinstance(value, list) else yaml_text(str(value))}"
    lines = [f"{indent}{entry(c, body)}  # {why}"]
    if type == "normal" and c.numbers is not None:
        lines += _missing_numbers(c, c.numbers)
    return lines


def _missing_numbers(c: Column, numbers: np.ndarray) -> list[str]:
    """A comment with the key for zeros among positive numbers, and other numbers that may mean a missing value."""
    codes = find_missing_codes(numbers)
    cells = {} if codes is None else {code.text: code.times for code in codes.codes}
    zeros = int((numbers == 0).sum())
    if zeros and bool((numbers[numbers != 0] >= 0)[~np.isnan(numbers[numbers != 0])].all()):
        cells.setdefault("0", zeros)
    if not cells:
        return []
    said = ", ".join(f"{counted(times, 'record', 'has')} {cell}" for cell, times in cells.items())
    return [f"  # {entry(c, f'missing: {written_codes(cells)}')}  # {said}: use this line where that means missing"]


def _fixed(g: Guess, keys: str) -> list[str]:
    """The section `fixed`; keys: of every effect."""
    lines = []
    for c in g.columns:
        role = g.roles[c.name]
        gaps = g.count_missing(c)
        if role.use in ("class", "covariate"):
            body = ", ".join(filter(None, ("kind: covariate" if role.use == "covariate" else "", keys)))
            lines.append(_line(c, body, role.why, gaps))
            if role.use == "covariate":
                lines.append(f"    # {entry(c, 'kind: covariate, degree: 2')}  # a curve")
            elif c.numbers is not None and c.levels > 4 and _is_ordered(c):
                lines.append(f"    # {entry(c, 'kind: covariate, degree: 2')}  # as numbers")
        elif role.use == "trait" and c not in g.traits[: g.n_traits] and like_codes(c) and not c.few:
            if c.numbers is not None:
                lines.append(f"    # {entry(c, 'kind: covariate')}  # if it is no trait")
        elif c.dates and role.use == "left out" and c.levels > 1:
            lines += _date_lines(c)
        elif role.use == "left out" and c.levels > 1 and c.n > c.levels and _may_have_an_effect(c):
            measured = c.numbers is not None and not c.few and not (g.named and hint(c.name) in ("class", "random"))
            body = "kind: covariate" if measured else ""
            lines.append(f"    # {entry(c, body)}  # left out: {role.why}")
    lines += fixed_lines(g, keys)
    active = any(not line.lstrip().startswith("#") for line in lines)
    return ["  fixed:" if active else "  fixed: {}  # the mean is always in the model", *lines]


def _date_lines(c: Column) -> list[str]:
    """Effects of columns that are to be made of dates, as comments."""
    year, season, age = (yaml_text(name) for name in (f"{c.label}_year", f"{c.label}_season", "age_at_recording"))
    return [
        f"    # {c.name} has dates, which are no levels. With columns made of it in the table:",
        f"    # {year}: {{}}  # the year, as 2019",
        f"    # {season}: {{}}  # year and season, as 2019-spring",
        f"    # {age}: {{kind: covariate}}  # if it is a birth: days from it to the record",
    ]


def _is_ordered(c: Column) -> bool:
    """Codes such as ages and parities, which may also be taken as numbers."""
    return hint(c.name) == "covariate" or has_word(c.name, ("parity", "lactation", "lact"))


def _may_have_an_effect(c: Column) -> bool:
    return not c.dates and c.levels <= 0.5 * c.known


def _line(c: Column, body: str, why: str, gaps: int) -> str:
    """An effect; as a comment where some records of the trait lack its value, which a run refuses."""
    if gaps:
        dropped = entry(c, ", ".join(filter(None, (body, "without_value: drop"))))
        lack = "1 record lacks it" if gaps == 1 else f"{gaps:,} records lack it"
        return f"    # {dropped}  # {lack}: write their values, or use this line, which leaves them out ({why})"
    return f"    {entry(c, body)}  # {why}"


def _random(g: Guess) -> list[str]:
    lines, animal = [], g.animals.animal
    if g.trial is not None:
        lines += random_lines(g, g.trial)
    elif g.pedigree is not None:
        lines += _genetic(g)
    elif animal is not None and (g.repeated or animal.name.lower() in ("line", "genotype", "variety")):
        if g.repeated:  # else the residual would be the same effect
            lines += [
                f"    {entry(animal, '')}  # several records of each; levels independent, as there is no pedigree"
            ]
        lines += [f"    # {entry(animal, 'relationship: inverse.txt')}  # the inverse of a relationship matrix"]
    elif g.animals.sire is not None and g.animals.sire.records_per_level >= _PROGENY:
        omit = "unknown_level: omit" if g.has_unknown(g.animals.sire) else ""
        lines += [f"    {entry(g.animals.sire, omit, 'level')}  # sires, independent, as there is no pedigree"]
    for c in g.columns_by_use("random"):
        body = "unknown_level: omit" if g.count_missing(c) else ""
        lines += [f"    {entry(c, body, 'level')}  # {g.roles[c.name].why}"]
    lines += [
        f"    # {entry(c, '', 'level')}  # random instead of fixed: {c.levels:,} levels"
        for c in g.columns_by_use("class")
        if c.levels > 20
    ]
    active = any(not line.lstrip().startswith("#") for line in lines)
    return (["  random:"] if active else ["  random: {}  # no pedigree, and no animals with several records"]) + lines


def _genetic(g: Guess) -> list[str]:
    animal = g.animals.animal
    if animal is None:
        if g.animals.sire is None:
            return [
                "    # genetic: {level: COLUMN, relationship: pedigree}  # which column has the ids of the pedigree?"
            ]
        omit = ", unknown_level: omit" if g.has_unknown(g.animals.sire) else ""
        sire = yaml_text(g.animals.sire.name)
        return [f"    sire: {{level: {sire}, relationship: pedigree{omit}}}  # a sire model: {g.animals.why}"]
    level = yaml_text(animal.name)
    kind = "pedigree" if g.selfing is None else f"{{kind: pedigree, selfing: {yaml_text(g.selfing)}}}"
    genotypes, single_step = (
        "",
        "{kind: single_step, tune: none, frequencies: half}" if g.unknown_parents.has_groups else "single_step",
    )
    if g.is_single_step and g.genotypes is not None:
        kind, genotypes = single_step, f"; {g.genotypes.name} has some of these animals, or relatives"
    lines = [f"    genetic: {{level: {level}, relationship: {kind}}}  # breeding values; {g.animals.why}{genotypes}"]
    if g.genotypes is not None and not g.genotyped[0] and not g.is_single_step:
        of_groups = "; data.groups then needs effect: metafounders, and gamma"
        lines += [
            f"    # With the genotypes, instead of `genetic`{of_groups if g.unknown_parents.has_groups else ''}:",
            f"    # genetic: {{level: {level}, relationship: {single_step}}}",
        ]
    if g.repeated:
        lines += [
            f"    permanent_environment: {{level: {level}}}  # {counted(g.repeated, 'animal', 'has')} several records"
        ]
    dams = _dams(g)
    if dams is None or not _several_progeny(g):
        return lines
    dam = yaml_text(g.animals.dam.name if g.animals.dam is not None else "dam")
    omit = ", unknown_level: omit" if _some_dams_unknown(g) else ""
    return [
        *lines,
        f"    # {dams}.",
        "    # With maternal effects, instead of `genetic`:",
        "    # genetic:",
        f"    #   relationship: {kind}",
        f"    #   effects: {{direct: {{level: {level}}}, maternal: {{level: {dam}{omit}}}}}",
        f"    # maternal_environment: {{level: {dam}{omit}}}",
    ]


def _some_dams_unknown(g: Guess) -> bool:
    assert g.pedigree is not None and g.animals.animal is not None
    if g.animals.dam is not None:
        return g.has_unknown(g.animals.dam)
    codes = g.pedigree.codes(g.animals.animal.text.drop_nulls().unique())
    return codes.null_count() > 0 or any(g.pedigree.dam[c] < 0 for c in codes.to_list())


def _markers(g: Guess) -> list[str]:
    if g.genotypes is None or g.animals.animal is None or g.trial is not None or g.is_single_step:
        return []
    if g.pedigree is not None and not g.genotyped[0]:  # genotypes of relatives are of use by single step alone
        return []
    # also where all are genotyped: data.genotypes.quality may leave some of them out
    body = f"level: {yaml_text(g.animals.animal.name)}, without_genotypes: keep"
    return [
        "  markers:",
        f"    snps: {{{body}}}  # SNP effects{' with the pedigree' if g.pedigree is not None else ''}",
        f"    # snps: {{{body}, prior: bayes_r}}  # many SNPs without an effect, few with a large one",
        *_genomic(g),
    ]


def _genomic(g: Guess) -> list[str]:
    """Relationships in place of effects of SNPs, where all animals with records are genotyped and have no pedigree."""
    if g.pedigree is not None or g.animals.animal is None or g.genotyped[0] < g.genotyped[1]:
        return []
    level = yaml_text(g.animals.animal.name)
    return [
        "  # GBLUP, instead of `markers`, under `random`:",
        f"    # genetic: {{level: {level}, relationship: genomic}}",
    ]


def can_use_reml(g: Guess) -> bool:
    """Check whether the model has normal traits and no effects of SNPs."""
    return g.is_normal and (g.genotypes is None or g.trial is not None)


def relative_path(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:  # another drive
        return path.resolve().as_posix()


def file_name(path: Path) -> str:
    return path.stem if path.stem != "analysis" else (path.resolve().parent.name or "analysis")


__all__: Sequence[str] = ("analysis_text", "can_use_reml", "explain_guess")
