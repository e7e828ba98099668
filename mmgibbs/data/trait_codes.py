"""Numbers that mean a missing value elsewhere (-9, -999.9, 999), among the values, scores and bounds of traits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from mmgibbs.config import Trait
from mmgibbs.data.missing_codes import MissingCodes, find_missing_codes, find_score_codes
from mmgibbs.data.phenotypes import Phenotypes
from mmgibbs.data.responses import TraitColumns
from mmgibbs.models.families import Response


def warn_of_trait_codes(
    traits: Sequence[Trait], y: np.ndarray, responses: Sequence[Response], phenotypes: Phenotypes
) -> tuple[str, ...]:
    """Return a warning for each trait with such a number; y: (n, T), responses: of the traits that are not normal."""
    out = []
    of_trait = {response.trait: response for response in responses}
    for i, trait in enumerate(traits):
        for path, column, values, codes in _codes_of_trait(trait, y[:, i], of_trait.get(i), phenotypes):
            where = f" (the first in row {phenotypes.rows[codes.rows(values)[0]]})"
            said = codes.describe(path, column, _advice(trait, codes), where)
            out.append(f"{phenotypes.name}: {said}")
    return tuple(out)


def _advice(trait: Trait, codes: MissingCodes) -> str:
    return f"write traits.{trait.name}.missing: {codes.written(trait.missing)}"


def _codes_of_trait(
    trait: Trait, y: np.ndarray, response: Response | None, phenotypes: Phenotypes
) -> Iterator[tuple[str, str, np.ndarray, MissingCodes]]:
    """(YAML path, column, values (n,), codes) of each column of the trait that has codes."""
    path = f"traits.{trait.name}"
    table = TraitColumns(trait, phenotypes)
    find: Callable[[np.ndarray], MissingCodes | None] = find_missing_codes
    if response is None:
        columns = [(path, trait.column, y)]
    elif response.labels:
        if trait.categories is not None or trait.positive is not None:
            return  # the user has looked at the categories
        category, of_label = response.values(), np.array([*map(table.number, response.labels), np.nan])
        scores = of_label[np.nan_to_num(category, nan=len(response.labels)).astype(int)]
        columns, find = [(path, trait.column, scores)], find_score_codes
    elif trait.lower and trait.upper:
        columns = [
            (f"{path}.{key}", column, table.numbers(key, open_end))
            for key, column, open_end in (("lower", trait.lower, -np.inf), ("upper", trait.upper, np.inf))
        ]
    else:
        columns = [(path, trait.column, table.numbers())]
    for of_column, column, values in columns:
        codes = find(values)
        if codes is not None:
            yield of_column, column, values, codes
