"""Draws of the effects of a block of SNPs on one trait, each from a normal or from a mixture of normals.

With C_j and q_j of sweep.py,

    normal     a_j ~ N(q / (C + 1/v_j), 1 / (C + 1/v_j))
    mixture    log P(class k) = log pi_k - log(1 + C v_k) / 2 + q^2 / (C + 1/v_k) / 2 + constant,    v_k = 0: a_j = 0
               then a_j as above with v_k: the effect is integrated out when its class is drawn
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from mmgibbs.draws.elementary import exp, log
from mmgibbs.pedigree.kernels import kernel
from mmgibbs.sampler.markers.block import place_of_turn, update_right_hand_sides
from mmgibbs.sampler.markers.choose import choose


@kernel
def draw_classes(draws, block, products, snps, a):
    """Class and effect of each SNP of the block; draws: `ClassDraws`.

    block.log_ratio: + sum over the SNPs of log(sum of the weights under the prior / sum under the one that it is
    compared with), where that has classes.
    """
    of_class, prior, compared, z, u, chances = draws
    effects, r, changes, v = a[:, 0], block.r[0], block.changes[0], prior.variance
    gram, precision, weight = products.gram[0, snps.number], products.Q[0, 0, 0], np.empty(prior.log_share.size)
    for turn in range(snps.size):
        j = place_of_turn(snps.size, turn, snps.is_backward)
        i, chosen, new = snps.first + j, 0, 0.0
        C = precision * gram[j, j]
        q = r[j] + C * effects[i]
        if compared.log_share.size > 0:
            _log_weights(C, q, i, compared, weight)
            block.log_ratio[0] -= _log_sum(weight)
        if weight.size > 0:
            _log_weights(C, q, i, prior, weight)
            if compared.log_share.size > 0:
                block.log_ratio[0] += _log_sum(weight)
            of_class[i] = chosen = choose(weight, u[i], chances[i])
        variance = v[chosen, i if v.shape[1] > 1 else 0]
        if variance != 0.0:  # also where it is not a number: then nor is the effect
            P = C + 1.0 / variance
            new = q / P + z[i] / sqrt(P)
        changes[j] = new - effects[i]
        if changes[j] != 0.0:
            effects[i] = new
            update_right_hand_sides(r, gram, precision * changes[j], j, snps.size, snps.is_backward)


@kernel(forceinline=True)
def _log_weights(C, q, i, classes, weight):
    """weight (K,): log of P(class k) of SNP i, its effect integrated out, less the same for every class."""
    v = classes.variance
    for k in range(weight.size):
        variance = v[k, i if v.shape[1] > 1 else 0]
        weight[k] = classes.log_share[k]
        if variance != 0.0:  # also where it is not a number: then nor is the weight
            weight[k] += 0.5 * (q * q / (C + 1.0 / variance) - log(1.0 + C * variance))


@kernel(forceinline=True)
def _log_sum(weight):
    """log sum_k exp(weight_k)."""
    top, total = -np.inf, 0.0
    for k in range(weight.size):
        if weight[k] > top:
            top = weight[k]
    for k in range(weight.size):
        total += exp(weight[k] - top)
    return top + log(total)
