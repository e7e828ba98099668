"""Records that share more than a breeding value: several of one animal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.config import Analysis
from mmgibbs.data.random import ANIMAL_COLUMNS
from mmgibbs.models.terms import Term
from pedigree.tables import quoted

_MANY = 10  # animals with several records, and one in so many, from which they are no accident


def warn_of_repeated_records(analysis: Analysis, terms: Sequence[Term], observed: np.ndarray) -> tuple[str, ...]:
    """A warning for each normal trait with several records of animals that have no effect but their breeding value.

    observed: (n, T) Boolean.
    """
    built, animals = {term.name: term for term in terms}, []
    for name, random in analysis.model.random.items():
        if random.relationship.of_pedigree or random.relationship.of_genotypes:
            written = zip(random.effects.values(), built[name].effects, strict=False)  # groups come after them
            animals += [(w.level, effect) for w, effect in written if w.level in ANIMAL_COLUMNS]
    every = [effect for term in terms for effect in term.effects if not effect.has_several_levels]
    out = []
    for t, trait in enumerate(analysis.traits):
        column, animal_effect = next(((c, e) for c, e in animals if t in e.traits), ("", None))
        if animal_effect is None or trait.type != "normal" or animal_effect.covariates is not None:
            continue
        rows = observed[:, t] & (animal_effect.level >= 0)
        animal = animal_effect.level[rows]
        records = np.bincount(animal)
        several, distinct = int((records > 1).sum()), int((records > 0).sum())
        if several < _MANY or several * _MANY < distinct:
            continue
        if not any(_is_nested(e.level[rows], animal) for e in every if e is not animal_effect and t in e.traits):
            out.append(
                f"traits.{trait.name}: {several:,} of {distinct:,} animals (column {quoted(column)}) have several "
                "records, and no effect beside their breeding value: what else their records share counts as genetic; "
                f"needed model.random.permanent_environment: {{level: {column}}}"
            )
    return tuple(out)


def _is_nested(level: np.ndarray, animal: np.ndarray) -> bool:
    """Levels (n,), -1 where a record has none, lie within animals, as their own ones do, and have several records."""
    has = level >= 0
    level, animal = level[has], animal[has]
    if not len(level) or (count := np.bincount(level)).max() <= 1:
        return False
    of = np.zeros(len(count), animal.dtype)
    of[level] = animal
    return bool((of[level] == animal).all())
