// Inverse-Wishart draws by one block of threads: the twin of inverse_wishart.py.
#pragma once
#include "gamma.cuh"
#include "small_matrices.cuh"

namespace mmgibbs {

const double SINGULAR = 1e-12;  // of a diagonal element, as in small_matrices.py

// Bartlett's T of G given L, lower: T T' = L' G^-1 L = X' X, X = B^-1 L with G = B B'. Whether rounding lets it be found;
// X and products (k, k) are overwritten.
__device__ inline bool block_bartlett_factor(const double *G, const double *L, double *T, double *X, double *products, int k) {
    block_factor(G, T, k, SINGULAR);
    const bool has_factor = T[k * k - 1] > 0.0;
    BARRIER  // T is written next
    if (!has_factor) return false;
    block_solve_lower(T, L, X, k);
    block_gram_of_lower(X, products, k);
    block_factor(products, T, k, SINGULAR);
    const bool is_known = T[k * k - 1] > 0.0;
    BARRIER
    return is_known;
}

// G ~ IW(nu, S), (k, k), over-relaxed from `now` unless that is null; NaN where S is not positive definite. The lower
// triangle of S is lost; work (3, k, k), (2, k, k) where `now` is null, is overwritten. Row i has the counters of level
// first_row + i, or first_row + members[i]. Every thread of the block calls it, behind a BARRIER; it ends with one.
__device__ inline void block_inverse_wishart(double nu, double *S, const double *now, double *work, double *G, int k,
                                             word32 number, word32 first_row, const int *members, word32 stream,
                                             word32 k0, word32 k1) {
    double *T = work, *A = work + k * k;
    block_cholesky(S, k, k);
    const bool is_known = now && block_bartlett_factor(now, S, T, A, A + k * k, k);
    PHASE {
        for (int at = (int)threadIdx.x; at < k * k; at += (int)blockDim.x) {
            const int i = at / k, j = at % k;
            const word32 row = first_row + (word32)(members ? members[i] : i);
            if (j == i) {
                const double square = is_known ? over_relaxed_chi_square(nu - i, T[at] * T[at], number, row, stream, 0, k0, k1)
                                               : chi_square(nu - i, number, row, stream, 0, k0, k1);
                T[at] = sqrt(square);
            } else if (j < i) {
                const double z = normal(number, row, stream, (word32)(2 + j), k0, k1);
                T[at] = is_known ? OVER_RELAXED * T[at] + NOISE * z : z;
            }
        }
    }
    BARRIER
    PHASE {  // A T' = L, column by column from the first
        for (int i = (int)threadIdx.x; i < k; i += (int)blockDim.x)
            for (int j = 0; j < k; ++j) {
                double s = j <= i ? S[i * k + j] : 0.0;
                for (int m = 0; m < j; ++m) s -= A[i * k + m] * T[j * k + m];
                A[i * k + j] = s / T[j * k + j];
            }
    }
    BARRIER
    PHASE {
        for (int at = (int)threadIdx.x; at < k * k; at += (int)blockDim.x) {
            const int i = at / k, j = at % k;
            double s = 0.0;
            for (int m = 0; m < k; ++m) s += A[i * k + m] * A[j * k + m];
            G[at] = s;
        }
    }
    BARRIER
}

}  // namespace mmgibbs
