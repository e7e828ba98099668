// Inverse-Wishart draws by one block of threads: the twin of inverse_wishart.py without a draw of before.
#pragma once
#include "gamma.cuh"
#include "small_matrices.cuh"

namespace mmgibbs {

// G ~ IW(nu, S), (k, k); NaN where S is not positive definite. The lower triangle of S is lost; T and A (k, k) are
// overwritten. Every thread of the block calls it, behind a BARRIER; it ends with one.
__device__ inline void block_inverse_wishart(double nu, double *S, double *T, double *A, double *G, int k, word32 number,
                                             word32 first_row, word32 stream, word32 k0, word32 k1) {
    block_cholesky(S, k, k);
    PHASE {
        for (int at = (int)threadIdx.x; at < k * k; at += (int)blockDim.x) {
            const int i = at / k, j = at % k;
            const word32 row = first_row + (word32)i;
            if (j == i) T[at] = sqrt(chi_square(nu - i, number, row, stream, 0, k0, k1));
            else if (j < i) T[at] = normal(number, row, stream, (word32)(2 + j), k0, k1);
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
