"""Parents that have no row as they are written: codes for unknown, ids in another spelling, and founders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from mmgibbs.pedigree.errors import PedigreeError
from mmgibbs.pedigree.group_names import find_group_names, match_groups, question_groups
from mmgibbs.pedigree.problems import Problems
from mmgibbs.pedigree.recode import IdIndex
from mmgibbs.pedigree.spelling import are_unknown_codes, find_respelled, find_similar, normal_forms
from mmgibbs.pedigree.tables import Table, agreeing, counted, quoted

UNKNOWN_VALUES = "the values for an unknown parent"  # what messages call the argument `unknown`
_SHOWN = 3  # ids named one by one
_MAX_IDS_RESPELLED = 100_000  # up to so many ids every spelling of each is compared ...
_MIN_SHARE = 0.2  # ... and of more, where this share of the known parents has no row
WHOLE_AS_FLOAT = r"^[0-9]+\.0+$"  # 5.0
# Of a parent without a row: progeny and mates from which its number is asked about, and how many times the progeny of
# the next parent of the same sex it has.
_MIN_PROGENY, _MIN_MATES, _MIN_PARENTS = 20, 10, 5
_MIN_TIMES = {"sire": 10, "dam": 5}
_CODES_WITHOUT_LETTERS = ". .. - -- * ? 0 00 000 0000 0.0 0,0 -1 -9 -99 -999 -9999 NaN".split()
_MIN_PROGENY_OF_ODD = 3  # of a parent whose id is unlike the others: '999', 'X', a word among numbers
_LIKE_A_CODE = "^(?:x+|(?:founder|base|dummy|phantom|other|foreign|herd|any)s?)$"
_NINES = "^9{2,18}$"
_MIN_NINES = 6  # of a number that is odd among larger ones
_MAX_WORDS = 2  # more parents without a digit are names


@dataclass
class PlacedParents:
    """Rows of the sires and dams once those without a row are dealt with.

    rows: sire and dam, (n,) int32, -1 unknown, n_rows + i for the founder added[i].
    """

    texts: list[pl.Series]
    rows: list[np.ndarray]
    added: pl.Series
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    possible_groups: tuple[str, ...] = ()  # names of parents without a row that look like groups


def find_rows(index: IdIndex, ids: pl.Series) -> np.ndarray:
    """(m,) int32: the row of each id, -1 where it is absent or null. '5.0' is found as '5' where it has no row itself:
    a column of whole numbers with gaps becomes floating numbers on its way through other programs.
    """
    rows = index.find(ids)
    absent = (pl.Series(rows < 0) & ids.str.contains(WHOLE_AS_FLOAT)).arg_true().to_numpy()
    if absent.size:
        rows[absent] = index.find(ids.gather(absent).str.replace(r"\.0+$", ""))
    return rows


def place_parents(
    name: str,
    ids: pl.Series,
    index: IdIndex,
    texts: Sequence[pl.Series],
    unknown: Sequence[str],
    ask_groups: bool = False,
    problems: Problems | None = None,
) -> PlacedParents:
    """Find the row of each sire and dam; null for those that are codes for unknown, founders for the rest.

    name: the table's. texts: sires and dams, null where unknown. unknown: the codes that the user has named; where
    there are none, every text is an animal. ask_groups: whether some may be groups. problems: takes what else is a
    PedigreeError, where most parents are ids in another spelling.
    """
    n = len(ids)
    placed = PlacedParents(list(texts), [index.find(p) for p in texts], pl.Series("id", [], pl.String))
    absent = [
        (pl.Series(row < 0) & text.is_not_null()).arg_true()
        for row, text in zip(placed.rows, placed.texts, strict=True)
    ]
    where = np.concatenate([a.to_numpy() for a in absent])
    if not where.size:
        return placed
    without_row = [t.gather(a).alias("id") for t, a in zip(placed.texts, absent, strict=True)]
    if ask_groups and unknown:
        placed.possible_groups = find_group_names(ids, without_row)
    if placed.possible_groups:
        placed.warnings.append(question_groups(name, without_row, placed.possible_groups))
    missing = pl.concat(without_row)
    unique = missing.gather(np.argsort(where, kind="stable")).unique(maintain_order=True)
    of_unique = IdIndex(unique).find(missing)
    times = np.bincount(of_unique, minlength=len(unique))
    is_code = are_unknown_codes(unique).to_numpy() if unknown else np.zeros(len(unique), bool)
    row_of = np.where(is_code, -1, find_rows(index, unique)).astype(np.int32)
    _say_codes(placed, name, unique, times, is_code, unknown)
    _say_floats(placed, name, unique, times, row_of >= 0, ids, row_of)
    is_founder = (row_of < 0) & ~is_code
    founders = unique.filter(pl.Series(is_founder))
    n_known = sum(len(t) - t.null_count() for t in placed.texts) - int(times[is_code].sum())
    if len(founders):
        _refuse_or_warn_respelled(placed, name, founders, times[is_founder], ids, index, n_known, problems)
    row_of[is_founder] = n + np.arange(len(founders))
    placed.added = founders
    start = 0
    for k, at in enumerate(absent):
        rows = row_of[of_unique[start : start + len(at)]]
        start += len(at)
        placed.rows[k][at.to_numpy()] = rows
        unknown_at = at.filter(pl.Series(rows < 0))
        if len(unknown_at):
            placed.texts[k] = placed.texts[k].clone().scatter(unknown_at, None)
    return placed


def _say_codes(
    placed: PlacedParents, name: str, texts: pl.Series, times: np.ndarray, is_code: np.ndarray, unknown: Sequence[str]
) -> None:
    """A note of codes that are a user's code in another spelling ('0.0', '00' for '0'), a warning of others."""
    named = normal_forms(pl.Series(unknown, dtype=pl.String))
    alike = normal_forms(texts).is_in(named.implode()).to_numpy()
    if placed.possible_groups:
        is_code = is_code & ~match_groups(texts, placed.possible_groups).to_numpy()
    for chosen, said in ((is_code & alike, placed.notes), (is_code & ~alike, placed.warnings)):
        if not chosen.any():
            continue
        codes = texts.filter(pl.Series(chosen))
        shown = ", ".join(
            f"{quoted(t)} ({counted(int(k), 'time')})"
            for t, k in zip(codes.head(_SHOWN), times[chosen][:_SHOWN], strict=True)
        )
        more = f" and {len(codes) - _SHOWN:,} more" if len(codes) > _SHOWN else ""
        is_single = len(codes) == 1
        text = f"{name}: {shown}{more}, {'a parent' if is_single else 'parents'} without a row, "
        text += f"{'is' if is_single else 'are'}"
        text += " taken for an unknown parent"
        if said is placed.warnings:
            text += f": add {'it' if is_single else 'them'} to {UNKNOWN_VALUES}; an animal of this id needs a row"
        said.append(text)


def _say_floats(
    placed: PlacedParents,
    name: str,
    texts: pl.Series,
    times: np.ndarray,
    is_float: np.ndarray,
    ids: pl.Series,
    row_of: np.ndarray,
) -> None:
    if is_float.any():
        first = int(np.flatnonzero(is_float)[0])
        placed.notes.append(
            f"{name}: {counted(int(times[is_float].sum()), 'parent')} written as a number with '.0' "
            f"{agreeing(int(times[is_float].sum()), 'is')} the animal of the whole number: {quoted(texts[first])} is "
            f"{quoted(ids[int(row_of[first])])}"
        )


def _refuse_or_warn_respelled(
    placed: PlacedParents,
    name: str,
    founders: pl.Series,
    times: np.ndarray,
    ids: pl.Series,
    index: IdIndex,
    n_known: int,
    problems: Problems | None,
) -> None:
    """A problem where most known parents would be founders for their spelling alone; a warning where some would."""
    if len(ids) <= _MAX_IDS_RESPELLED or times.sum() > _MIN_SHARE * n_known:
        pairs = find_respelled(founders, ids)
    else:
        pairs = _usual_respelled(founders, ids, index)
    is_respelled = pairs.height > 0
    if not is_respelled:
        pairs = find_similar(founders, ids)
    if not pairs.height:
        return
    count = pl.DataFrame({"text": founders, "times": times}).join(pairs, on="text", how="semi")["times"].sum()
    text, animal, _ = pairs.row(0)
    example = f"such as {quoted(text)}, where the table has {quoted(animal)}"
    if is_respelled and 2 * count > n_known:
        refused = (
            f"{name}: {count:,} of {n_known:,} known sires and dams have no row as they are written, and one in "
            f"another spelling, {example}; needed each id written in one way, as the relationships would be lost"
        )
        if problems is None:
            raise PedigreeError(refused)
        problems.add(refused)
        return
    placed.warnings.append(
        f"{name}: {counted(pairs.height, 'parent')} without a row {agreeing(pairs.height, 'is')} taken for "
        f"{'a founder' if pairs.height == 1 else 'founders'} ({counted(int(count), 'time')} a sire or dam), and "
        f"{agreeing(pairs.height, 'has')} a row in another spelling{'' if is_respelled else ', it seems'}, {example}: "
        "write each id in one way"
    )


def _usual_respelled(texts: pl.Series, ids: pl.Series, index: IdIndex) -> pl.DataFrame:
    """`find_respelled` by looking up the usual other spellings, which does not read every id."""
    forms = normal_forms(texts)
    width = len(ids[0])
    rows = np.full(len(texts), -1, np.int32)
    for spelling in (forms, forms.str.to_uppercase(), forms.str.to_titlecase(), forms.str.zfill(width)):
        rows = np.where(rows >= 0, rows, index.find(spelling))
    at = np.flatnonzero(rows >= 0)
    return pl.DataFrame({"text": texts.gather(at), "id": ids.gather(rows[at]), "n_ids": np.ones(at.size, np.uint32)})


def find_codes(ids: pl.Series, parents: Sequence[pl.Series]) -> pl.Series:
    """Return the parents without a row that mean an unknown one, each once: codes such as '.' and -9, and numbers of
    nines or other odd ids (`are_unlike`) that are both sires and dams.

    parents: sires and dams, null where known to be unknown.
    """
    unique = [p.rename("id").drop_nulls().unique() for p in parents]
    texts = pl.concat(unique).unique()
    texts = texts.filter(~texts.is_in(ids.unique().implode()))
    is_code = are_unknown_codes(texts)
    if len(unique) == 2 and len(texts):
        is_both = texts.is_in(unique[0].implode()) & texts.is_in(unique[1].implode())
        is_code |= is_both & pl.Series(are_unlike(texts, ids)) & normal_forms(texts).str.contains(_NINES)
    return texts.filter(is_code)


# ------------------------------------------------------------------------------------------------ questions


def question_codes_as_ids(table: Table, ids: pl.Series, index: IdIndex, parents: Sequence[np.ndarray]) -> list[str]:
    """A warning for each id such as '.' or '00' that has a row and is a parent: it is an animal because of that row."""
    out = []
    for row in index.find(pl.Series(_CODES_WITHOUT_LETTERS)):
        times = sum(int(np.count_nonzero(p == row)) for p in parents) if row >= 0 else 0
        if times:
            out.append(
                f"{table.name} row {table.line(int(row))}: {quoted(ids[int(row)])} has a row and is thus an animal, "
                f"{counted(times, 'time')} a parent: if it means an unknown parent, delete its row"
            )
    return out


def question_founders(
    name: str, added: pl.Series, parents: Sequence[np.ndarray], ids: pl.Series, possible_groups: Sequence[str] = ()
) -> list[str]:
    """Warnings of parents without a row that may be codes for unknown: of far more progeny, and mates, than others, or
    with an id unlike the others, or sires and dams of many mates. parents: rows of sires and dams, n_rows + i for
    added[i]; possible_groups: names that were asked about already.
    """
    if not len(added):
        return []
    n_rows, out = len(ids), []
    odd = are_unlike(added, ids)
    is_group = match_groups(added, possible_groups).to_numpy() if possible_groups else np.zeros(len(added), bool)
    uses = [np.bincount(p[p >= n_rows] - n_rows, minlength=len(added)) for p in parents]
    was_asked = np.zeros(len(added), bool)
    is_both = (uses[0] > 0) & (uses[1] > 0) & (uses[0] + uses[1] >= _MIN_PROGENY)
    for k, role in enumerate(("sire", "dam")):
        parent, mate = parents[k], parents[1 - k]
        progeny = np.bincount(parent[parent >= 0], minlength=n_rows + len(added))
        of_added, largest = progeny[n_rows:].copy(), progeny.max(initial=0)
        if np.count_nonzero(progeny) < _MIN_PARENTS:
            continue
        asked = odd & (of_added >= _MIN_PROGENY_OF_ODD)
        if of_added.max(initial=0) == largest >= _MIN_PROGENY:
            progeny[int(progeny.argmax())] = 0
            second = progeny.max()
            asked |= (of_added == largest) & (largest >= _MIN_TIMES[role] * second)
        asked |= is_both & (of_added > 0)
        asked &= ~(is_group | was_asked)
        for i in np.flatnonzero(asked)[:_SHOWN]:
            mates = np.unique(mate[(parent == n_rows + i) & (mate >= 0)]).size
            if not odd[i] and mates < _MIN_MATES:
                continue
            was_asked[i] = True
            also = f" and the {'dam' if role == 'sire' else 'sire'} of {uses[1 - k][i]:,}" if uses[1 - k][i] else ""
            out.append(
                f"{name}: {quoted(added[int(i)])} has no row and is the {role} of {of_added[i]:,} animals{also}, with "
                f"{counted(mates, 'mate')}: does it mean an unknown parent? Then add it to {UNKNOWN_VALUES}, else give "
                "it a row"
            )
    return out


def are_unlike(added: pl.Series, ids: pl.Series) -> np.ndarray:
    """Return which are unlike the ids of a table, (len(added),) bool: such as 'X', '999' above all numbers, and one
    or two without a digit where all ids have one.
    """
    forms = normal_forms(added)
    is_odd = forms.str.contains(_LIKE_A_CODE)
    nines = forms.str.contains(_NINES)
    if nines.any():
        largest = ids.cast(pl.Int64, strict=False).max()
        is_large = (forms.cast(pl.Int64, strict=False) > (-1 if largest is None else largest)).fill_null(False)
        is_odd |= nines & (is_large | (forms.str.len_chars() >= _MIN_NINES))
    words = ~added.str.contains("[0-9]")
    sample = ids.gather_every(max(1, len(ids) // 1000))
    if words.sum() <= _MAX_WORDS and sample.str.contains("[0-9]").all():
        is_odd |= words
    return is_odd.to_numpy()
