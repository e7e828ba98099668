"""Records that share more than a breeding value: several of one animal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.config import Analysis
from mmgibbs.data.random import ANIMAL_COLUMNS
from mmgibbs.model.terms import Term
from pedigree.tables import quoted

_MANY = 10  # animals with several records, and one in so many, from which they are no accident


def warn_of_repeated_records(analysis: Analysis, terms: Sequence[Term], observed: np.ndarray) -> tuple[str, ...]:
    """A warning for each normal trait with several records of animals that have no effect but their breeding value.

    observed: (n, T) Boolean.
    """
    built = {term.name: term for term in terms}
    effects = [
        (written, effect, random.relationship.of_pedigree)
        for name, random in analysis.model.random.items()
        for written, effect in zip(random.effects.values(), built[name].effects, strict=False)  # groups come after them
    ]
    out = []
    for t, trait in enumerate(analysis.traits):
        own = next(
            ((w, e) for w, e, of_pedigree in effects if of_pedigree and w.level in ANIMAL_COLUMNS and t in e.traits),
            None,
        )
        if own is None or trait.type != "normal" or own[1].covariates is not None:
            continue
        animal, rows = own[1], observed[:, t] & (own[1].level >= 0)
        records = np.bincount(animal.level[rows])
        several, animals = int((records > 1).sum()), int((records > 0).sum())
        if several < _MANY or several * _MANY < animals:
            continue
        others = [e for _, e, _ in effects if e is not animal and t in e.traits]
        if not any(_are_the_same(e.level[rows], animal.level[rows]) for e in others):
            column = own[0].level
            out.append(
                f"traits.{trait.name}: {several:,} of {animals:,} animals (column {quoted(column)}) have several "
                "records, and no effect beside their breeding value: what else their records share counts as genetic; "
                f"needed model.random.permanent_environment: {{level: {column}}}"
            )
    return tuple(out)


def _are_the_same(a: np.ndarray, b: np.ndarray) -> bool:
    """Levels of one are those of the other, by other numbers."""
    pairs = np.unique(a.astype(np.int64) * (int(b.max()) + 1) + b).size
    return bool(a.min() >= 0) and pairs == np.unique(a).size == np.unique(b).size
