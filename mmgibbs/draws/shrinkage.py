"""Full conditionals of the scales of two shrinkage priors given the coefficients, of SNP effects and of regressions.

Bayesian lasso (Park & Casella 2008): b_j ~ N(0, s^2 t_j),  t_j ~ Exp(lambda^2 / 2),  lambda^2 ~ Gamma(shape, rate)

    1/t_j | b_j ~ InvGauss(lambda s / |b_j|, lambda^2)        lambda^2 | t ~ Gamma(shape + p, rate + sum_j t_j / 2)

Horseshoe (Carvalho, Polson & Scott 2010) by inverse gammas (Makalic & Schmidt 2016): b_j ~ N(0, l_j^2 t^2), and each
squared scale h (an l_j^2, of half-Cauchy scale A = 1, or t^2) is the inverse of a gamma given its auxiliary variable n,

    1/h | n, b ~ Gamma(., rate 1/n + sum b^2 / (2 times the other squared scale))        1/n | h ~ Exp(rate 1/A^2 + 1/h)

Functions of numbers or arrays (NumPy's or a device's), compiled where a compiled loop calls them. What differs between
the samplers stays with them: where their random numbers come from, and whether they hold h or 1/h.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

SMALLEST = 1e-290  # |b| below it counts as that, so that its mean stays finite


def lasso_means(b: Any, lambda2: Any, s: Any = 1.0, xp: Any = np) -> Any:
    """Return the means of the inverse Gaussians of 1/t_j."""
    return xp.sqrt(lambda2) * s / xp.maximum(xp.abs(b), SMALLEST)


@register_jitable
def lasso_rate(rate: Any, total: Any) -> Any:
    """Return the rate of the gamma of lambda^2; total: the sum of t_j."""
    return rate + 0.5 * total


@register_jitable
def horseshoe_rate(inverse_auxiliary: Any, scaled: Any) -> Any:
    """Return the rate of the gamma of 1/h; inverse_auxiliary: 1/n, scaled: sum of b^2 / (2 * other squared scale)."""
    return inverse_auxiliary + scaled


@register_jitable
def horseshoe_auxiliary_rate(inverse_square: Any, precision: Any) -> Any:
    """Return the rate of the exponential of 1/n; inverse_square: 1/A^2, precision: 1/h."""
    return inverse_square + precision
