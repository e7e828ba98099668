"""Compiled loops over row blocks: r_k -= A_ki x_i, the factors of the levels' own blocks, and the draw of one block.

`kernels/row_blocks.cu` holds the CUDA twin of `subtract_rows`: the same sums in the same order, so the same bits.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from mmgibbs.draws.normal import fill_normals
from mmgibbs.draws.over_relaxation import NOISE, OVER_RELAXED, TOWARDS_MEAN
from mmgibbs.draws.small_matrices import SINGULAR, cholesky_reciprocal
from mmgibbs.equations.records import sum_level_cross_products
from mmgibbs.equations.relationships import weight
from mmgibbs.machine.intrinsics import prefetch, stack
from mmgibbs.pedigree.kernels import kernel

CHUNK = 256  # levels whose normals are drawn together
PIECE = 512  # elements of a row that are summed in one go: a long row is the sum of its pieces, on every device
AHEAD = np.uint64(32)  # elements: how early the x of later elements is asked for
ONE, TWO = np.uint64(1), np.uint64(2)


@kernel
def subtract_rows(row, matrix, indptr, indices, number, matrices, kr_, kc_, rows, columns, x, r, first, last):
    """r_l -= M' sum_e number_e x_e for the listed rows first ... last - 1 of one slice, M their matrix
    (equations/explicit/row_blocks.py).

    row, matrix (rows,): level and matrix of each row m, whose elements are indptr[m] ... indptr[m + 1] - 1 of indices
    (elements,), the levels of x, and number (elements,). matrices (matrices, column components, row components);
    r (levels, k) float64, x (levels, k); rows, columns: where the slice's components begin in them, and their distance.
    kr_, kc_: tuples as long as the slice has row and column components, () for a loop of any length.
    """
    kr = np.uint64(len(kr_) if len(kr_) > 0 else matrices.shape[2])
    kc = np.uint64(len(kc_) if len(kc_) > 0 else matrices.shape[1])
    piece = carray(stack(kc_, 1, 1), (kc,)) if len(kc_) > 0 else np.empty(kc)
    total = carray(stack(kc_, 1, 1), (kc,)) if len(kc_) > 0 else np.empty(kc)
    row_at, row_step, column_at, column_step = rows[0], rows[1], columns[0], columns[1]
    end = np.uint64(indices.size - 1)
    for m in range(np.uint64(first), np.uint64(last)):
        for b in range(kc):
            total[b] = 0.0
        for start in range(indptr[m], indptr[m + ONE], np.uint64(PIECE)):
            for b in range(kc):
                piece[b] = 0.0
            for e in range(start, min(start + np.uint64(PIECE), indptr[m + ONE])):
                prefetch(x, indices[min(e + AHEAD, end)])
                for b in range(kc):
                    piece[b] += np.float64(number[e]) * np.float64(x[indices[e], column_at + b * column_step])
            for b in range(kc):
                total[b] += piece[b]
        for a in range(kr):
            s = 0.0
            for b in range(kc):
                s += total[b] * matrices[matrix[m], b, a]
            r[row[m], row_at + a * row_step] -= s


@kernel
def factor_block(term, K, Ginv, Rinv, first, last, c_first, c_last, joint, out):
    """Factor the block P = kappa_ll G^-1 + sum_r W_r' R_r^-1 W_r of each level, as its draw needs it.

    Levels first ... last - 1 (sweep positions), components c_first ... c_last - 1; out (w (w + 1) / 2, levels).

    term, K: lists of equations/structured.py; Ginv (k, k), Rinv (patterns, T, T) float64.
    joint: the rows of L, P = L L';  else the rows of the lower triangle of P. The diagonal holds its reciprocal, 0
    where set to 0 (which makes the draw 0). Returns -1 or the first position whose block is not positive definite.
    """
    w, k = c_last - c_first, Ginv.shape[0]
    data, P, L = np.empty((k, k)), np.empty((w, w)), np.empty((w, w))
    held = np.zeros(w, np.bool_)
    for level in range(np.uint64(first), np.uint64(last)):
        sum_level_cross_products(term, Rinv, level, data)
        kappa = weight(K, level)
        for i in range(w):
            held[i] = term.active.shape[0] > 0 and term.active[level, c_first + i] == 0
            for j in range(i + 1):
                P[i, j] = data[c_first + i, c_first + j] + kappa * Ginv[c_first + i, c_first + j]
                if held[i] or held[j]:
                    P[i, j] = 1.0 if i == j else 0.0
        if joint:
            if not cholesky_reciprocal(P, L, SINGULAR):
                return np.int64(level)
        else:
            for i in range(w):
                if not P[i, i] > 0.0:
                    return np.int64(level)
                for j in range(i):
                    L[i, j] = P[i, j]
                L[i, i] = 1.0 / P[i, i]
        at = 0
        for i in range(w):
            for j in range(i + 1):
                out[at, level - np.uint64(first)] = 0.0 if i == j and held[i] else L[i, j]
                at += 1
    return np.int64(-1)


@kernel
def sample_block(code, coupling, factor, joint, r, x, c_first, number, stream, seed, chain):
    """Draw one block given its right-hand sides r (levels, w): level by level in order, jointly (`joint`) or site by
    site.

    code      (levels,) in model order          coupling  of the block with itself (equations/explicit/row_blocks.py)
    factor    from factor_block, (w (w + 1) / 2, levels), with the same `joint`
    x         (levels, w) updated in place; c_first is its first component

    Levels that are not coupled are drawn side by side, `width` of them: the loops over them vectorise.
    """
    w = np.uint64(x.shape[1])
    indptr, indices, matrix, elements, matrices = coupling
    coupled = indices.size > 0
    normals = np.empty((CHUNK, np.uint64(c_first) + w))
    s, old = np.empty((w, np.uint64(CHUNK))), np.empty((w, np.uint64(CHUNK)))
    n_levels = np.uint64(code.size)
    for chunk in range(np.uint64(0), n_levels, np.uint64(CHUNK)):
        end = min(n_levels, chunk + np.uint64(CHUNK))
        fill_normals(normals, number, code[chunk:end], stream, seed, chain)
        width = ONE if coupled else end - chunk
        for first in range(chunk, end, width):
            for a in range(w):
                for i in range(width):
                    s[a, i] = r[first + i, a]
                    old[a, i] = x[first + i, a]
            if coupled:
                for e in range(indptr[first], indptr[first + ONE]):
                    for b in range(w):
                        xb = np.float64(elements[e]) * np.float64(x[indices[e], b])
                        for a in range(w):
                            s[a, 0] -= matrices[matrix[e], b, a] * xb
            at = first - chunk, np.uint64(c_first)  # where these levels and components stand in `normals`
            if joint:
                _draw_jointly(w, width, factor, first, s, old, normals, at)
            else:
                _draw_sites(w, width, factor, first, s, old, normals, at)
            for a in range(w):
                for i in range(width):
                    x[first + i, a] = s[a, i]


@kernel(forceinline=True)
def _draw_jointly(w, width, factor, first, s, old, z, at):
    """s <- a x + L'^-1 (f L^-1 s + n z), N(P^-1 s, P^-1) over-relaxed (draws/over_relaxation.py), for levels side by
    side: s and `old` (w, levels), which is x before, z (levels, w), factor (w (w + 1) / 2, levels).
    """
    for a in range(w):
        row = a * (a + ONE) // TWO  # of the lower triangle
        for b in range(a):
            for i in range(width):
                s[a, i] -= np.float64(factor[row + b, first + i]) * s[b, i]
        for i in range(width):
            s[a, i] *= np.float64(factor[row + a, first + i])
    for a in range(w):
        for i in range(width):
            s[a, i] = TOWARDS_MEAN * s[a, i] + NOISE * z[at[0] + i, at[1] + a]
    for back in range(ONE, w + ONE):
        a = w - back
        row = a * (a + ONE) // TWO
        for i in range(width):
            s[a, i] *= np.float64(factor[row + a, first + i])
        for b in range(a):
            for i in range(width):
                s[b, i] -= np.float64(factor[row + b, first + i]) * s[a, i]
    for a in range(w):
        for i in range(width):
            s[a, i] += OVER_RELAXED * old[a, i]


@kernel(forceinline=True)
def _draw_sites(w, width, factor, first, s, old, z, at):
    """s_a <- x_a ~ N((s_a - sum_{b != a} P_ab x_b) / P_aa, 1 / P_aa), a in turn, for levels side by side;
    old (w, levels) is x before.
    """
    for a in range(w):
        row = a * (a + ONE) // TWO
        for b in range(w):
            if b < a:
                for i in range(width):
                    s[a, i] -= np.float64(factor[row + b, first + i]) * s[b, i]
            elif b > a:
                for i in range(width):
                    s[a, i] -= np.float64(factor[b * (b + ONE) // TWO + a, first + i]) * old[b, i]
        for i in range(width):
            scale = np.float64(factor[row + a, first + i])
            s[a, i] = s[a, i] * scale + z[at[0] + i, at[1] + a] * np.sqrt(scale)
