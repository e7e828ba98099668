"""Why two sides have nothing to compare, in words: names, traits or ids that are not the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import polars as pl

from mmgibbs.comparison.sides import Component, Side
from mmgibbs.comparison.solutions import have_names
from mmgibbs.report.html_tables import listed
from pedigree.spelling import normal_forms
from pedigree.tables import quoted

SHOWN = 3  # ids of each side
_OF_BLUPF90 = (
    ". A file of BLUPF90 without original ids has numbers of levels; levels.csv or renaddNN.ped beside it has ids"
)


def explain_unmatched(a: Side, b: Side) -> str:
    """What there is, and what is needed; for sides without a component in common."""
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
