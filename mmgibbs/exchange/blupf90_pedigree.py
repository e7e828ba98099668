"""FILE, FILE_POS, UPG_TYPE, INBREEDING and PED_DEPTH of a parameter file -> the pedigree of an analysis.

An analysis has one group for the unknown parents of an animal. Where those of its sire and its dam differ, g and h, a
phantom sire P with unknown parents in g takes the sire's place:

    u_P = g + m_P,   u_X = u_P/2 + h/2 + m_X   ->   u_X = g/2 + h/2 + (m_P/2 + m_X),   variance 1/4 + 3/4

which is what X has without P (Westell, Quaas & Van Vleck 1988, J. Dairy Sci. 71:1310).
"""

from __future__ import annotations

import polars as pl

from mmgibbs.errors import DataError
from mmgibbs.exchange.blupf90_context import Context, explain_one_column
from mmgibbs.exchange.blupf90_read import StatedEffect
from mmgibbs.pedigree.parents import find_rows
from mmgibbs.pedigree.recode import IdIndex
from mmgibbs.pedigree.spelling import find_respelled
from mmgibbs.pedigree.tables import Table, agreeing, quoted

PHANTOM = "unknown_sire_of_"
UNKNOWN = "0"
WARNING = "WARNING: "  # what is to be told before everything else
SHOWN = 3  # ids named one by one
_CODES = {"yob": 0, "in_pedigrees": 0, "group": 1, "group_unisex": 1, "group_sex": 2}  # positions after the fifth


def enter_pedigree(context: Context, effect: StatedEffect, data: dict) -> None:
    """Enter the pedigree of an effect into `data`, the section of an analysis."""
    stated = effect.stated
    if "FILE" not in stated:
        alone = (
            "; where genotypes alone relate the animals (SNP_FILE), a file with every animal and unknown parents, "
            "ID 0 0, leaves it to them"
            if "SNP_FILE" in stated
            else ""
        )
        raise context.refuse(
            stated["RANDOM"].line,
            f"RANDOM {stated['RANDOM'].value}: found no FILE, needed the pedigree{alone}",
        )
    line, file = stated["FILE"].line, stated["FILE"].value
    where = line
    positions: tuple[int, ...] = (1, 2, 3)
    if "FILE_POS" in stated:
        where, positions = stated["FILE_POS"].line, stated["FILE_POS"].value
    table = context.open(line, "FILE", file)
    for position in positions:
        if position > len(table.names):
            raise context.refuse(
                where,
                f"FILE_POS: found position {position}, needed one from 1 to {len(table.names)} ({table.name})"
                + explain_one_column(table),
            )
    if 0 in positions[:3] or len(set(positions[:3])) < 3:
        raise context.refuse(
            where,
            f"FILE_POS: found {' '.join(map(str, positions[:3]))}, needed three columns, for animal, sire and dam",
        )
    if context.pedigree not in (None, (file, positions)):
        raise context.refuse(
            line,
            f"FILE: found a second pedigree, {file} {positions}, needed the first again, {context.pedigree}",
        )
    context.pedigree = file, positions
    _hold_against_the_data(context, effect, table, positions[:3], line)
    roles = dict(zip(("id", "sire", "dam"), positions, strict=False)) | (
        {"birth": positions[4]} if len(positions) > 4 and positions[4] else {}
    )
    data |= {"pedigree": context.path(file), "pedigree_separator": "whitespace", "pedigree_columns": roles}
    data |= {"unknown_parent": [UNKNOWN], "add_missing_animals": True, "inbreeding": _inbreeding(context, effect)}
    if len(positions) > 3 and positions[3]:
        context.note(
            where,
            f"FILE_POS: the alternate dam (column {positions[3]}) is not carried over: maternal effects are the dam's",
        )
    if "UPG_TYPE" in stated:
        _enter_groups(context, effect, table, roles, data)
    depth = stated["PED_DEPTH"].value if "PED_DEPTH" in stated else 3
    if depth:
        said = "is not stated (3 in renumf90)" if "PED_DEPTH" not in stated else str(depth)
        at = stated["PED_DEPTH"].line if "PED_DEPTH" in stated else line
        context.note(
            at, f"PED_DEPTH {said}: the pedigree is not cut back, and every animal is used, as with PED_DEPTH 0"
        )


def _hold_against_the_data(
    context: Context, effect: StatedEffect, table: Table, positions: tuple[int, ...], line: int
) -> None:
    """Refuse a pedigree that knows none of the recorded animals, tell of one that has rows for less than half of them.

    Such animals become founders, so that a wrong position, or ids written in two ways, would pass for an evaluation
    without a pedigree. A parent is known without a row of its own, as it is to renumf90.
    """
    column = max(effect.positions)
    recorded = context.values(column).drop_nulls().unique(maintain_order=True)
    recorded = recorded.filter(recorded != UNKNOWN)
    animals, *parents = table.read(list(positions)).get_columns()
    has_row = pl.Series(find_rows(IdIndex(animals.drop_nulls()), recorded) >= 0)
    of_parents = pl.concat(parents).drop_nulls().unique()
    known = has_row | pl.Series(find_rows(IdIndex(of_parents), recorded) >= 0)
    of_the_data = f"of the {len(recorded):,} animals of column {column} of {context.data.name}"
    where = f"{table.name} (FILE_POS {' '.join(map(str, positions))})"
    if len(recorded) and not known.any():
        raise context.refuse(
            line,
            f"FILE: found none {of_the_data} ({_some(recorded)}) among the animals of {where} ({_some(animals)}), "
            f"needed the same ids in both: {_respelled(recorded, animals) or 'is one of the positions wrong?'}",
        )
    if 2 * has_row.sum() >= len(recorded) and not known.all():
        context.note(
            line,
            f"{(~known).sum():,} {of_the_data} {agreeing(int((~known).sum()), 'is')} not in {where} "
            f"({_some(recorded.filter(~known))}): founders without parents here",
        )
    if 2 * has_row.sum() < len(recorded):
        context.note(
            line,
            f"{WARNING}only {has_row.sum():,} {of_the_data} have a row in {where}; the others "
            f"({_some(recorded.filter(~has_row))}) "
            "are founders without parents here: "
            + (
                _respelled(recorded.filter(~has_row), animals)
                or "are the positions right, and the ids the same in both?"
            ),
        )


def _respelled(ids: pl.Series, animals: pl.Series) -> str | None:
    """Describe ids that the animals have in another spelling; None where there are none."""
    pairs = find_respelled(ids, animals.drop_nulls())
    if not pairs.height:
        return None
    text, animal, _ = pairs.row(0)
    return f"{pairs.height:,} are there in another spelling, such as {quoted(animal)} for {quoted(text)}"


def _some(ids: pl.Series) -> str:
    return ", ".join([*(quoted(i, 20) for i in ids.head(SHOWN)), *(["..."] if len(ids) > SHOWN else [])])


def _inbreeding(context: Context, effect: StatedEffect) -> str:
    stated = effect.stated
    how = stated["INBREEDING"].value[0] if "INBREEDING" in stated else "file" if "INB_FILE" in stated else None
    if how is None:
        context.note(
            stated["RANDOM"].line,
            "INBREEDING is not stated: inbreeding is ignored (data.inbreeding: account takes it into account)",
        )
    if how == "file":
        line = stated["INB_FILE" if "INB_FILE" in stated else "INBREEDING"].line
        context.note(line, "inbreeding coefficients are not read from a file, but computed from the pedigree")
    return "account" if how in ("pedigree", "file") else "ignore"


# ------------------------------------------------------------------------------------------------ groups


def _enter_groups(context: Context, effect: StatedEffect, table: Table, roles: dict[str, int], data: dict) -> None:
    """Unknown-parent groups: a column of the pedigree where one says it all, else a new pedigree."""
    line, (kind, *years) = effect.stated["UPG_TYPE"].line, effect.stated["UPG_TYPE"].value
    assert context.pedigree is not None, "groups are those of a pedigree"
    positions = context.pedigree[1]
    codes = [p for p in positions[5:] if p]
    if len(codes) < _CODES[kind]:
        needed = f"{5 + _CODES[kind]} positions, the last for the group"
        raise context.refuse(line, f"UPG_TYPE {kind}: found FILE_POS {' '.join(map(str, positions))}, needed {needed}")
    if kind == "yob" and not (years and "birth" in roles):
        got = "no years" if not years else "no position of the birth year in FILE_POS"
        context.note(
            line,
            f"UPG_TYPE {' '.join([kind, *years])}: found {got}; not carried over: unknown parents have no groups",
        )
        return
    context.note(line, f"UPG_TYPE {kind}: groups are fixed effects (data.groups.effect)")
    if kind == "group_unisex":
        data["groups"] = {"column": str(codes[0]), "effect": "fixed"}
        return
    frame = table.read().select(pl.col(table.names[p - 1]).alias(role) for role, p in roles.items())
    if kind == "in_pedigrees":
        group = {p: pl.when(pl.col(p).str.contains(r"^-\d+$")).then(p) for p in ("sire", "dam")}
        groups = frame.select(**group)
        frame = frame.with_columns(
            pl.when(groups[p].is_null()).then(p).otherwise(pl.lit(UNKNOWN)).alias(p) for p in group
        )
    elif kind == "yob":
        groups = _groups_by_year(context, line, frame, sorted(map(int, years)))
    else:
        of_sire, of_dam = (table.read([codes[i]]).to_series() for i in (0, -1))
        if kind == "group":
            of_sire, of_dam = of_sire + "_sire", of_dam + "_dam"
        groups = frame.with_columns(gs=of_sire, gd=of_dam)
        groups = groups.select(
            pl.when(pl.col(p) == UNKNOWN).then(g).alias(p) for p, g in (("sire", "gs"), ("dam", "gd"))
        )
    name = f"{context.stem}_pedigree.csv"
    context.tables[name] = with_one_group(frame, groups, table)
    data |= {
        "pedigree": name,
        "pedigree_columns": {role: role for role in roles},
        "groups": {"column": "group", "effect": "fixed"},
    }
    del data["pedigree_separator"]
    context.note(
        line,
        f"{name} is a copy of the pedigree with a column of groups; {PHANTOM}ID is the sire of ID where dams have "
        "another; it is an animal like others, and a candidate of decisions: {candidates: all}",
    )


def _groups_by_year(context: Context, line: int, frame: pl.DataFrame, years: list[int]) -> pl.DataFrame:
    """Groups of the unknown parents by the birth year of their progeny, null where there is none."""
    birth = frame["birth"].cast(pl.Float64, strict=False)
    group = sum(((birth > year).cast(pl.Int32) for year in years), pl.repeat(1, len(birth), dtype=pl.Int32, eager=True))
    group = group.cast(pl.String).to_frame("g").select(pl.when((birth > 0).fill_null(False)).then("g")).to_series()
    context.note(
        line,
        f"UPG_TYPE yob: unknown parents of animals born up to {years[0]} are group 1"
        + "".join(f", from {a + 1} to {b} group {i}" for i, (a, b) in enumerate(zip(years, years[1:], strict=False), 2))
        + f", later group {len(years) + 1}: renumf90 writes the sizes of its groups, compare them",
    )
    return frame.select(pl.when(pl.col(p) == UNKNOWN).then(group).alias(p) for p in ("sire", "dam"))


def with_one_group(pedigree: pl.DataFrame, groups: pl.DataFrame, table: Table) -> pl.DataFrame:
    """The pedigree with a column `group`, and with phantom sires.

    pedigree: id, sire, dam[, birth], unknown parents '0'. groups: sire, dam, the group of a parent that is unknown,
    null where it is known. DataError names the row of `table` where an unknown parent has none.
    """
    for parent in ("sire", "dam"):
        without = ((pedigree[parent] == UNKNOWN) & groups[parent].is_null()).arg_true()
        if len(without):
            row = without[0]
            raise DataError(
                f"{table.name} row {table.line(row)}: found an unknown {parent} of '{pedigree['id'][row]}' without a "
                "group, needed one"
            )
    animals = pedigree.with_columns(gs=groups["sire"], gd=groups["dam"])
    differ = pl.col("gs").is_not_null() & pl.col("gd").is_not_null() & (pl.col("gs") != pl.col("gd"))
    phantom = pl.concat_str(pl.lit(PHANTOM), "id")
    unknown = pl.lit(UNKNOWN)
    phantoms = animals.filter(differ).select(
        phantom.alias("id"), unknown.alias("sire"), unknown.alias("dam"), pl.col("gs").alias("group")
    )
    animals = animals.select(
        "id",
        pl.when(differ).then(phantom).otherwise("sire").alias("sire"),
        *(c for c in pedigree.columns if c not in ("id", "sire")),
        pl.when(differ).then("gd").otherwise(pl.coalesce("gs", "gd")).alias("group"),
    )
    return pl.concat([animals, phantoms], how="diagonal")
