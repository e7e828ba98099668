// Sums and matrices of one block of threads: the twin of small_matrices.py and of hierarchical/population.py, which have each
// element's operations in the same order. All matrices are float64, k columns wide, in shared or global memory.
//
// Every function is called by all threads of a block, behind a BARRIER, and ends with one.
#pragma once
#include "elementary.cuh"
#include "phases.cuh"

namespace mmgibbs {

// Sum over the threads of a block, a power of two, of what each wrote to sums: into sums[0], as a tree.
__device__ inline void block_sum(double *sums) {
    for (word32 half = blockDim.x / 2; half > 0; half /= 2) {
        PHASE { if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half]; }
        BARRIER
    }
}

// L with L L' = A in place of the lower triangle of A; rows k ... n_rows - 1 below, b', become (L^-1 b)'. NaN where a pivot
// is not above `singular` times its diagonal element in `diagonal` (k, k), or above 0 where that is null.
__device__ inline void block_cholesky(double *A, int k, int n_rows, const double *diagonal = 0, double singular = 0.0) {
    for (int j = 0; j < k; ++j) {
        const int width = k - j - 1;
        const double least = diagonal ? singular * diagonal[j * k + j] : 0.0;
        PHASE {
            const double pivot = A[j * k + j], root = pivot > least ? sqrt(pivot) : not_a_number();
            for (int i = j + 1 + (int)threadIdx.x; i < n_rows; i += (int)blockDim.x) A[i * k + j] /= root;
        }
        BARRIER
        PHASE {
            if (threadIdx.x == 0) A[j * k + j] = A[j * k + j] > least ? sqrt(A[j * k + j]) : not_a_number();
            for (int at = (int)threadIdx.x; at < (n_rows - j - 1) * width; at += (int)blockDim.x) {
                const int i = j + 1 + at / width, l = j + 1 + at % width;
                if (l <= i) A[i * k + l] -= A[i * k + j] * A[l * k + j];
            }
        }
        BARRIER
    }
}

// L with L L' = A, lower; A is read. NaN in the last diagonal element where a pivot is not above `singular` times its
// diagonal element.
__device__ inline void block_factor(const double *A, double *L, int k, double singular) {
    PHASE {
        for (int at = (int)threadIdx.x; at < k * k; at += (int)blockDim.x)
            if (at % k <= at / k) L[at] = A[at];
    }
    BARRIER
    block_cholesky(L, k, k, A, singular);
}

// x becomes L'^-1 x: columns from the last.
__device__ inline void block_solve_transposed(const double *L, double *x, int k) {
    for (int j = k - 1; j >= 0; --j) {
        PHASE { if (threadIdx.x == 0) x[j] /= L[j * k + j]; }
        BARRIER
        PHASE { for (int i = (int)threadIdx.x; i < j; i += (int)blockDim.x) x[i] -= L[j * k + i] * x[j]; }
        BARRIER
    }
}

// X = L^-1 B of a lower B, or L^-1 where that is null: a thread a column.
__device__ inline void block_solve_lower(const double *L, const double *B, double *X, int k) {
    PHASE {
        for (int j = (int)threadIdx.x; j < k; j += (int)blockDim.x)
            for (int i = j; i < k; ++i) {
                double s = B ? B[i * k + j] : i == j ? 1.0 : 0.0;
                for (int m = j; m < i; ++m) s -= L[i * k + m] * X[m * k + j];
                X[i * k + j] = s / L[i * k + i];
            }
    }
    BARRIER
}

// Q = M' M of a lower M.
__device__ inline void block_gram_of_lower(const double *M, double *Q, int k) {
    PHASE {
        for (int at = (int)threadIdx.x; at < k * k; at += (int)blockDim.x) {
            const int i = at / k, j = at % k;
            if (j <= i) {
                double s = 0.0;
                for (int m = i; m < k; ++m) s += M[m * k + i] * M[m * k + j];
                Q[i * k + j] = s;
                Q[j * k + i] = s;
            }
        }
    }
    BARRIER
}

// Q = V^-1 of a positive definite V, whose lower triangle is lost; M (k, k) is overwritten.
__device__ inline void block_invert(double *V, double *M, double *Q, int k) {
    block_cholesky(V, k, k);
    block_solve_lower(V, 0, M, k);
    block_gram_of_lower(M, Q, k);
}

}  // namespace mmgibbs
