"""Pairs of components of two sides, how far their solutions agree, and why two sides have nothing to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import polars as pl

from mmgibbs.data.levels import natural_order
from mmgibbs.errors import DataError
from mmgibbs.pedigree.spelling import find_respelled, normal_forms
from mmgibbs.pedigree.tables import counted, quoted
from mmgibbs.report.agreement import compute_agreement, rank_levels
from mmgibbs.report.comparison.sides import Base, Component, Side
from mmgibbs.report.html_tables import listed

_SAME = 0.5  # share of common levels from which components of files without names belong together
FEW = 10  # common levels that are enough for a table with one column of values


@dataclass(frozen=True)
class Pair:
    """A component of both sides. table: level, a, b, rank_a, rank_b, difference (b - a), places (rank_a - rank_b)."""

    label: str
    label_b: str
    table: pl.DataFrame
    only_a: int  # levels that the other side lacks
    only_b: int
    notes: tuple[str, ...] = ()  # how levels were matched, and what values are measured from

    def statistics(self, top: int = 20) -> dict[str, float | int | str | None]:
        """The row of this pair in comparison.csv; None where values do not vary, or no level is in both."""
        return {
            "component": self.label,
            "component_b": self.label_b,
            "levels": self.table.height,
            "only_a": self.only_a,
            "only_b": self.only_b,
            **compute_agreement(self.table, top),
        }

    def farthest(self, n: int) -> pl.DataFrame:
        """The levels with the largest differences."""
        return self.table.sort(pl.col("difference").abs(), descending=True, maintain_order=True).head(n)


def pairs(a: Side, b: Side) -> list[Pair]:
    """Components that belong together, in the order of the first side."""
    return [_pair(x, y) for x, y in matched(a, b)]


def matched(a: Side, b: Side) -> list[tuple[Component, Component]]:
    """Match components by names where both have some; else the traits in their order, by the levels in common."""
    if have_names(a, b):
        named = {(c.term, c.effect, c.trait): c for c in b.components}
        return [(c, named[c.term, c.effect, c.trait]) for c in a.components if (c.term, c.effect, c.trait) in named]
    of_a, of_b = _trait_numbers(a.components), _trait_numbers(b.components)
    places = product(range(len(a.components)), range(len(b.components)))
    lone = any(len(side.components) == 1 and side.kind == "table" for side in (a, b))
    alike = {(i, j): _alike(a.components[i], b.components[j], lone) for i, j in places}
    other_trait = {(i, j): a.components[i].trait != b.components[j].trait for i, j in alike}
    chosen: dict[int, int] = {}
    # of equal shares the trait of the same name, else the first
    for (i, j), share in sorted(alike.items(), key=lambda item: (-item[1], other_trait[item[0]], item[0])):
        free = share > 0 and i not in chosen and j not in chosen.values()
        if free and _same_trait(a.components[i], b.components[j], of_a, of_b):
            chosen[i] = j
    return [(a.components[i], b.components[j]) for i, j in sorted(chosen.items())]


def have_names(a: Side, b: Side) -> bool:
    """Check that both sides have names of effects, by which these are matched."""
    return all(c.term for c in a.components) and all(c.term for c in b.components)


def _alike(x: Component, y: Component, lone: bool) -> float:
    """Common levels as a share of all levels of both; 0 where most levels of the smaller are not in the other, as of
    two effects that are numbered. lone: one side is a table with one column of values, of which FEW are enough, as of
    an evaluation of another country.
    """
    common = _normalise_ids(x).join(_normalise_ids(y), on="level", how="semi").height
    least = min(x.values.height, y.values.height)
    return (
        0.0
        if common < max(1.0, min(_SAME * least, FEW if lone else least))
        else common / (x.values.height + y.values.height - common)
    )


def _trait_numbers(components: Sequence[Component]) -> dict[str, int]:
    """Trait -> 1, 2, ... in the order of the file."""
    names = list(dict.fromkeys(c.trait for c in components))
    if all(name.isdigit() for name in names):
        return {name: int(name) for name in names}
    return {name: i for i, name in enumerate(names, 1)}


def _same_trait(x: Component, y: Component, of_a: dict[str, int], of_b: dict[str, int]) -> bool:
    """Compare traits by name; by number where one side has numbers alone, or one trait."""
    if x.trait == y.trait or len(of_a) == 1 or len(of_b) == 1:
        return True
    return (x.trait.isdigit() or y.trait.isdigit()) and of_a[x.trait] == of_b[y.trait]


def _normalise_ids(component: Component) -> pl.DataFrame:
    return pl.DataFrame({"level": normal_forms(component.values["level"])}).unique()


def _pair(x: Component, y: Component) -> Pair:
    for side, component in (("the first", x), ("the second", y)):
        twice = component.values.filter(pl.col("level").is_duplicated())["level"]
        if len(twice):
            raise DataError(f"found '{twice[0]}' more than once in {side} solutions; needed each level once")
    respelled, spelled = _spelled_alike(y.values, x.values["level"])
    both = x.values.rename({"value": "a"}).join(
        respelled.rename({"value": "b"}), on="level", how="inner", maintain_order="left"
    )
    only = x.values.height - both.height, y.values.height - both.height
    both, measured = _from_one_base(both, x, y)
    return Pair(x.label, y.label, rank_levels(both), *only, (*spelled, *measured))


def _spelled_alike(values: pl.DataFrame, levels: pl.Series) -> tuple[pl.DataFrame, list[str]]:
    """Values with those levels in the spelling of the other side that are not there as they are written, where one
    level of each side is meant; and a note on them."""
    ours = levels.filter(~levels.is_in(values["level"].implode()))
    theirs = values["level"].filter(~values["level"].is_in(levels.implode()))
    if not len(ours) or not len(theirs):
        return values, []
    alike = find_respelled(theirs, ours).filter(pl.col("n_ids") == 1)
    alike = alike.filter(~pl.col("id").is_duplicated())
    if not alike.height:
        return values, []
    first = alike.row(0, named=True)
    said = (
        f"{counted(alike.height, 'level')} matched in another spelling, such as '{first['id']}' and '{first['text']}'"
    )
    return values.with_columns(pl.col("level").replace(alike["text"], alike["id"])), [said]


def _from_one_base(both: pl.DataFrame, x: Component, y: Component) -> tuple[pl.DataFrame, list[str]]:
    """Values that do not depend on what was set to 0: fixed classes as differences from one level, breeding values from
    one unknown-parent group."""
    bases = [component.base for component in (x, y)]
    known = [base for base in bases if base is not None]
    if not known or not both.height:
        return both, []
    if len(known) == 2 and known[0].of_all is not None and known[0].of_all == known[1].of_all:
        return both, []
    if any(base.is_class for base in known):
        if both.height < 2:
            return both, []
        references = [base.reference for base in known if both["level"].is_in([base.reference]).any()]
        level = references[0] if references else both["level"][natural_order(both["level"])[0]]
        at = both.filter(level=level).row(0, named=True)
        moved = both.with_columns(pl.col("a") - at["a"], pl.col("b") - at["b"])
        return moved, [f"differences from {quoted(level)}, as another level may be set to 0 in each"]
    return _from_one_group(both, bases)


def _from_one_group(both: pl.DataFrame, bases: Sequence[Base | None]) -> tuple[pl.DataFrame, list[str]]:
    first, second = bases
    if first is None or second is None:
        group = next(base.reference for base in bases if base is not None)
        return both, [f"one side is relative to the unknown-parent group {quoted(group)}: means are not comparable"]
    if first.reference == second.reference:
        return both, []
    if first.reference in second.groups:
        moved = both.with_columns(pl.col("b") - second.groups[first.reference])
        said = f"relative to the unknown-parent group {quoted(first.reference)}, which is not the base of b"
        return moved, [said]
    groups = f"{quoted(first.reference)} in a and {quoted(second.reference)} in b"
    return both, [f"relative to the unknown-parent groups {groups}: means are not comparable"]


def parameter_table(a: Side, b: Side) -> pl.DataFrame | None:
    """Means and SDs of the parameters of two runs; `apart`: difference in units of the mean of both SDs."""
    if a.run is None or b.run is None:
        return None
    frames = [
        side.run.summary.select("parameter", pl.col("mean").alias(f"mean_{x}"), pl.col("sd").alias(f"sd_{x}"))
        for side, x in ((a, "a"), (b, "b"))
        if side.run is not None
    ]
    both = frames[0].join(frames[1], on="parameter", how="inner", maintain_order="left")
    spread = (pl.col("sd_a") + pl.col("sd_b")) / 2
    apart = pl.when(spread > 0).then((pl.col("mean_b") - pl.col("mean_a")) / spread)
    return both.with_columns(apart=apart)


SHOWN = 3  # ids of each side
_OF_BLUPF90 = (
    ". A file of BLUPF90 without original ids has numbers of levels; levels.csv or renaddNN.ped beside it has ids"
)


def explain_unmatched(a: Side, b: Side) -> str:
    """Explain sides without a component in common: what there is, and what is needed."""
    if not a.components or not b.components:
        return f"no solutions in {a.name if not a.components else b.name}"
    if have_names(a, b):
        return (
            "no effect of one side has the term, effect and trait of one of the other: "
            f"a has {_labels(a.components)}; b has {_labels(b.components)}. Needed the same names, or a table with a "
            "column of ids and one of values in place of a run"
        )
    of_all = [(x, y, _intersection(x, y)) for x, y in product(a.components, b.components)]
    x, y, common = max(of_all, key=lambda pair: (pair[2].height, pair[0].values.height + pair[1].values.height))
    least = min(x.values.height, y.values.height)
    if not least:
        return f"no values of {x.label if not x.values.height else y.label}"
    if not common.height:
        return (
            f"no level of one side is one of the other, in any spelling: a has {_ids(x)}; b has {_ids(y)}. "
            f"Needed ids that name the same animals{_OF_BLUPF90 * any(side.kind == 'blupf90' for side in (a, b))}"
        )
    if 2 * common.height >= least:
        return (
            f"the levels of {x.label} in a and of {y.label} in b are the same, or most of them, but not their traits: "
            f"a has {_traits(a.components)}; b has {_traits(b.components)}. Needed the same names of traits, or one "
            "trait on one side"
        )
    return (
        f"{common.height:,} of the {x.values.height:,} levels of {x.label} in a are among the {y.values.height:,} of "
        f"{y.label} in b: too few to say that these belong together"
    )


def _intersection(x: Component, y: Component) -> pl.DataFrame:
    of = [pl.DataFrame({"level": normal_forms(c.values["level"])}) for c in (x, y)]
    return of[0].join(of[1], on="level", how="semi")


def _labels(components: Sequence[Component]) -> str:
    return listed([quoted(c.label) for c in components])


def _traits(components: Sequence[Component]) -> str:
    return listed(list(dict.fromkeys(quoted(c.trait) for c in components)))


def _ids(component: Component) -> str:
    """'00001', '00002', '00003', ... (animal, weight)."""
    first = [quoted(level) for level in component.values["level"].head(SHOWN)]
    return f"{', '.join(first)}{', ...' * (component.values.height > SHOWN)} ({component.label})"
