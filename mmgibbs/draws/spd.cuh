// Cholesky factors of large matrices by many blocks: panels of PANEL columns, two rounds each. Every element is computed
// by the operations of small_matrices.py in the same order, so that it has the same bits.
#pragma once
#include "rounds.cuh"
#include "small_matrices.cuh"

namespace mmgibbs {

const int PANEL = 64, PANEL_ROWS = 32, TILE = 32;

// L with L L' = A for C matrices (n_rows, m) float64 in place, lower triangles; the rows m ... n_rows - 1 below, b',
// become (L^-1 b)'. The blocks on the diagonal are left alone: their factors are in `diagonals`. NaN where a matrix is
// not positive definite.
struct Spd {
    static const int THREADS = 256;
    double *A;          // (C, n_rows, m)
    double *diagonals;  // (C, panels, PANEL, PANEL), lower
    int m;
    int n_rows;
    int n_matrices;

    __device__ int panels() const { return (m + PANEL - 1) / PANEL; }
    __device__ int rounds() const { return 2 * panels() - 1; }

    __device__ void round(int r) const {
        __shared__ double shared[(PANEL + PANEL_ROWS) * PANEL];
        if (r % 2 == 0) factor_panel(r / 2, shared);
        else update_rest(r / 2, shared);
    }

    // The factor of the block on the diagonal, by every block for itself, with PANEL_ROWS rows below it.
    __device__ void factor_panel(int panel, double *rows) const {
        const int first = panel * PANEL, width = m - first < PANEL ? m - first : PANEL, below = first + width;
        const int pieces = n_rows - below > 0 ? (n_rows - below + PANEL_ROWS - 1) / PANEL_ROWS : 1;
        for (int work = (int)blockIdx.x; work < pieces * n_matrices; work += (int)gridDim.x) {
            const int c = work / pieces, begin = below + work % pieces * PANEL_ROWS;
            const int count = n_rows - begin < PANEL_ROWS ? n_rows - begin : PANEL_ROWS;
            double *matrix = A + (size_t)c * n_rows * m + first;
            PHASE {
                for (int at = (int)threadIdx.x; at < (width + count) * width; at += (int)blockDim.x) {
                    const int i = at / width, j = at % width;
                    rows[at] = matrix[(size_t)(i < width ? first + i : begin + i - width) * m + j];
                }
            }
            BARRIER
            block_cholesky(rows, width, width + count);
            PHASE {
                for (int at = (int)threadIdx.x; at < count * width; at += (int)blockDim.x)
                    matrix[(size_t)(begin + at / width) * m + at % width] = rows[width * width + at];
                if (work % pieces == 0)
                    for (int at = (int)threadIdx.x; at < width * width; at += (int)blockDim.x)
                        diagonals[((size_t)c * panels() + panel) * PANEL * PANEL + at / width * PANEL + at % width] = rows[at];
            }
            BARRIER
        }
    }

    // A[i, l] -= sum over the columns of the panel of A[i, k] A[l, k], for all i >= l behind it: a tile a block, four
    // elements a thread.
    __device__ void update_rest(int panel, double *rows) const {
        const int first = panel * PANEL, rest = first + PANEL, stride = PANEL + 1;
        const int tiles_down = (n_rows - rest + TILE - 1) / TILE, tiles_across = (m - rest + TILE - 1) / TILE;
        double *columns = rows + TILE * stride;
        for (int work = (int)blockIdx.x; work < tiles_down * tiles_across * n_matrices; work += (int)gridDim.x) {
            const int down = work / tiles_across % tiles_down, across = work % tiles_across;
            if (across > down) continue;
            double *matrix = A + (size_t)(work / (tiles_down * tiles_across)) * n_rows * m;
            const int top = rest + down * TILE, start = rest + across * TILE;
            PHASE {
                for (int at = (int)threadIdx.x; at < TILE * PANEL; at += (int)blockDim.x) {
                    const int i = at / PANEL, k = at % PANEL;
                    rows[i * stride + k] = top + i < n_rows ? matrix[(size_t)(top + i) * m + first + k] : 0.0;
                    columns[i * stride + k] = start + i < m ? matrix[(size_t)(start + i) * m + first + k] : 0.0;
                }
            }
            BARRIER
            PHASE {
                for (int at = (int)threadIdx.x; at < TILE * TILE / 4; at += (int)blockDim.x) {
                    const int i = at / (TILE / 2) * 2, l = at % (TILE / 2) * 2;
                    double sums[2][2];
                    for (int a = 0; a < 4; ++a) {
                        const int row = top + i + a / 2, column = start + l + a % 2;
                        sums[a / 2][a % 2] = row < n_rows && column < m ? matrix[(size_t)row * m + column] : 0.0;
                    }
                    for (int k = 0; k < PANEL; ++k) {
                        const double r0 = rows[i * stride + k], r1 = rows[(i + 1) * stride + k];
                        const double c0 = columns[l * stride + k], c1 = columns[(l + 1) * stride + k];
                        sums[0][0] -= r0 * c0;
                        sums[0][1] -= r0 * c1;
                        sums[1][0] -= r1 * c0;
                        sums[1][1] -= r1 * c1;
                    }
                    for (int a = 0; a < 4; ++a) {
                        const int row = top + i + a / 2, column = start + l + a % 2;
                        if (row < n_rows && column < m && column <= row)
                            matrix[(size_t)row * m + column] = sums[a / 2][a % 2];
                    }
                }
            }
            BARRIER
        }
    }
};

// Shared memory of block_solve_panels.
const int SOLVE_VALUES = (PANEL + 1) * PANEL;

// x becomes L'^-1 x for a factor of Spd, by one block: x in global memory, panels from the last.
__device__ inline void block_solve_panels(const Spd &spd, int c, double *x, double *shared) {
    double *diagonal = shared, *solution = shared + PANEL * PANEL;
    const double *L = spd.A + (size_t)c * spd.n_rows * spd.m;
    for (int panel = spd.panels() - 1; panel >= 0; --panel) {
        const int first = panel * PANEL, width = spd.m - first < PANEL ? spd.m - first : PANEL;
        const double *factor = spd.diagonals + ((size_t)c * spd.panels() + panel) * PANEL * PANEL;
        PHASE {
            for (int at = (int)threadIdx.x; at < width * width; at += (int)blockDim.x)
                diagonal[at] = factor[at / width * PANEL + at % width];
            for (int i = (int)threadIdx.x; i < width; i += (int)blockDim.x) solution[i] = x[first + i];
        }
        BARRIER
        block_solve_transposed(diagonal, solution, width);
        PHASE {
            for (int i = (int)threadIdx.x; i < width; i += (int)blockDim.x) x[first + i] = solution[i];
            for (int i = (int)threadIdx.x; i < first; i += (int)blockDim.x) {
                double value = x[i];
                for (int k = width - 1; k >= 0; --k) value -= L[(size_t)(first + k) * spd.m + i] * solution[k];
                x[i] = value;
            }
        }
        BARRIER
    }
}

}  // namespace mmgibbs
