"""RANDOM_REGRESSION and RR_POSITION of a parameter file -> covariates or Legendre polynomials of a random effect.

`data` names columns with covariates that are ready. `legendre` names one column, of which polynomials are computed.
Here they are normalised (Kirkpatrick, Lofsvold & Bulmer 1990), on the range of the data:

    phi_j(u) = sqrt((2j+1)/2) P_j(u),     u = 2 (x - low) / (high - low) - 1

The public description of renumf90 does not give the scale of its own. Where it is P_j, a covariance of the coefficients
j and k of phi is 2 / sqrt((2j+1)(2k+1)) times that of P; predictions are the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from mmgibbs.errors import DataError
from mmgibbs.exchange.blupf90_context import Context
from mmgibbs.exchange.blupf90_pedigree import WARNING
from mmgibbs.exchange.blupf90_read import Stated, StatedEffect


@dataclass(frozen=True)
class Coefficients:
    """Multipliers of the effects of a level.

    These are keys of the effect in the analysis, {} for one coefficient that is 1.
    """

    keys: dict
    number: int = 1


def read_coefficients(context: Context, effect: StatedEffect) -> Coefficients:
    """The random regression of an EFFECT with RANDOM. ConfigError and DataError name the line or the row."""
    stated = effect.stated
    for keyword, needed in (("RANDOM_REGRESSION", "RR_POSITION"), ("RR_POSITION", "RANDOM_REGRESSION")):
        if keyword in stated and needed not in stated:
            raise context.refuse(stated[keyword].line, f"{keyword}: found no {needed}, needed both or none")
    if "RANDOM_REGRESSION" not in stated:
        return Coefficients({})
    optional = stated["OPTIONAL"].value if "OPTIONAL" in stated else ()
    if {"mat", "mpe"} & set(optional):
        raise context.refuse(
            stated["RANDOM_REGRESSION"].line,
            f"OPTIONAL {' '.join(optional)}: cannot be combined with RANDOM_REGRESSION; needed pe or none",
        )
    if stated["RANDOM_REGRESSION"].value == "legendre":
        return _legendre(context, effect)
    positions = stated["RR_POSITION"]
    context.check(positions.line, "RR_POSITION", positions.value)
    return Coefficients({"covariates": [context.columns[p] for p in positions.value]}, len(positions.value))


def _legendre(context: Context, effect: StatedEffect) -> Coefficients:
    """The matrix says how many polynomials there are: `order` is a degree for some and a number of them for others."""
    positions, kind = effect.stated["RR_POSITION"], effect.stated["RANDOM_REGRESSION"]
    position, *order = positions.value
    if len(order) > 1:
        raise context.refuse(
            positions.line,
            f"RR_POSITION: found {len(positions.value)} numbers with legendre, needed the position of the covariate, "
            "and the order of the polynomials if you like",
        )
    context.check(positions.line, "RR_POSITION", [position])
    number = _number_of_polynomials(context, effect, kind)
    if order and order[0] not in (number, number - 1):
        raise context.refuse(
            positions.line,
            f"RR_POSITION: found order {order[0]} and (CO)VARIANCES of {number} polynomials, needed {number - 1} (the "
            f"degree) or {number} (how many there are)",
        )
    low, high = _range(context, positions, position)
    column = context.columns[position]
    context.note(
        kind.line,
        f"{WARNING}RANDOM_REGRESSION legendre: normalised polynomials sqrt((2j+1)/2) P_j of {column}, j = 0 to "
        f"{number - 1}, with its range in the data [{low:g}, {high:g}] mapped to [-1, 1]; the scale of renumf90 is not "
        "in its public description: where yours are P_j, multiply each covariance of j and k by "
        "2 / sqrt((2j+1)(2k+1))",
    )
    return Coefficients({"legendre": {"column": column, "degree": number - 1, "range": [low, high]}}, number)


def _number_of_polynomials(context: Context, effect: StatedEffect, kind: Stated) -> int:
    if "(CO)VARIANCES" not in effect.stated:
        raise context.refuse(
            kind.line, "RANDOM_REGRESSION legendre: found no (CO)VARIANCES, needed a matrix of traits x polynomials"
        )
    matrix, traits = effect.stated["(CO)VARIANCES"], len(context.traits)
    rows = len(matrix.value)
    if rows % traits:
        needed = f"as many rows for each of the {traits} traits as there are polynomials"
        raise context.refuse(matrix.line, f"(CO)VARIANCES: found a {rows} x {rows} matrix, needed {needed}")
    return rows // traits


def _range(context: Context, positions: Stated, position: int) -> tuple[float, float]:
    """Least and greatest value of the covariate, over all records."""
    cells = context.values(position)
    values = cells.cast(pl.Float64, strict=False).fill_null(math.nan).to_numpy()
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        raise DataError(
            f"{context.data.name} row {context.row(int(wrong[0]))}: found {cells[int(wrong[0])]!r} in column "
            f"{position}, needed a number: RR_POSITION of {context.parameters.path.name} line {positions.line}"
        )
    low, high = float(values.min()), float(values.max())
    if low == high:
        raise context.refuse(
            positions.line,
            f"RR_POSITION: found {low:g} in every record of column {position}, needed two values or more",
        )
    return low, high
