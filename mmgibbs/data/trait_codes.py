"""Numbers that mean a missing value elsewhere (-9, -999.9, 999), among the values, scores and bounds of traits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mmgibbs.config import Trait
from mmgibbs.config.text import as_number
from mmgibbs.data.missing_codes import MissingCodes, find_missing_codes, find_score_codes
from mmgibbs.data.phenotypes import Phenotypes
from mmgibbs.data.responses import drop_infinite_bounds
from mmgibbs.models.response import Categories, Response


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
    if isinstance(response, Categories):
        if trait.categories is not None or trait.positive is not None:
            return  # the user has looked at the categories
        of_label = [as_number(label) for label in response.labels]
        of_label = [np.nan if number is None else float(number) for number in of_label]
        columns = [(path, trait.column, np.where(response.category < 0, np.nan, np.array(of_label)[response.category]))]
    elif trait.type == "normal":
        columns = [(path, trait.column, y)]
    elif trait.lower and trait.upper:
        columns = [
            (
                f"{path}.{key}",
                column,
                drop_infinite_bounds(phenotypes, column, open_end).numbers(column, path, trait.missing),
            )
            for key, column, open_end in (("lower", trait.lower, -np.inf), ("upper", trait.upper, np.inf))
        ]
    else:
        columns = [(path, trait.column, phenotypes.numbers(trait.column, path, trait.missing))]
    find = find_score_codes if isinstance(response, Categories) else find_missing_codes
    for of_column, column, values in columns:
        codes = find(values)
        if codes is not None:
            yield of_column, column, values, codes
