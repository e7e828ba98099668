"""Draws of the covariance matrices, each from its full conditional (see model/covariance.py)."""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.inverse_wishart import inverse_wishart
from mmgibbs.draws.purpose import VARIANCE, stream
from mmgibbs.errors import ModelError
from mmgibbs.model.covariance import CovarianceModel


def draw_covariance(
    model: CovarianceModel, products: np.ndarray, n, number: int, term: int, key: tuple[int, int]
) -> np.ndarray:
    """One draw of G (or R) given the sum of squares and products (k, k) and the number of levels (records), per block
    where `n` is an array.
    """
    out = np.zeros_like(products)
    for b, block in enumerate(model.blocks):
        index = np.ix_(block, block)
        nu, S = model.prior(block)
        count = n[b] if np.ndim(n) else n
        out[index] = inverse_wishart(
            nu + count, S + products[index], number, block[0], stream(VARIANCE, term), key[0], key[1]
        )
    if not np.all(np.isfinite(out)):
        raise ModelError(
            f"variances.{model.name or '*'}: no covariance matrix can be drawn at sweep {number} of chain "
            f"{key[1] + 1}: the sum of squares and "
            "products is not positive definite, so the data do not determine this matrix; "
            f"needed a proper prior (variances.{model.name or '*'}.prior), fewer effects, or fixed variances"
        )
    return out
