// r_k -= A_ki x_i for one slice of a row block (equations/explicit/row_blocks.py): the CUDA twin of subtract_rows in hybrid/kernels.py,
// with the same sums in the same order, so with --fmad=false (NVRTC) or -ffp-contract=off (g++) the same bits.
//
//     row, matrix  (rows)         level and matrix of each row, by level            r  (levels, r_width)  float64
//     indptr       (rows + 1)     elements of each of them                          x  (levels, x_width)  REAL
//     indices      (elements)     levels of block i                                 number (elements)     REAL: float or double
//     matrices     (matrices, kc, kr) float64: column component, row component
//
// One thread per level and row component, of the level's first row. Rows of more than PIECE elements are summed in pieces beforehand.

#ifndef REAL
#define REAL float
#endif
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned long long u64;

__device__ inline u64 thread_number() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }

// The sum over elements first ... last - 1 for one column component, the first of x.
__device__ inline double sum_elements(const u32 *indices, const REAL *number, const REAL *x, u64 x_width, u64 first, u64 last) {
    double sum = 0.0;
    for (u64 e = first; e < last; ++e) sum += (double)number[e] * (double)x[indices[e] * x_width];
    return sum;
}

// piece_first, piece_last: (pieces) elements of long rows; n = pieces kc threads; partial (pieces, kc).
extern "C" __global__ void sum_pieces(u64 n, const u64 *piece_first, const u64 *piece_last, const u32 *indices, const REAL *number,
                                      u64 kc, u64 column_at, u64 column_step, const REAL *x, u64 x_width, double *partial) {
    const u64 i = thread_number();
    if (i >= n) return;
    const u64 p = i / kc, b = i % kc;
    partial[i] = sum_elements(indices, number, x + column_at + b * column_step, x_width, piece_first[p], piece_last[p]);
}

// piece_ptr (rows + 1): the pieces of each row, none of one of at most PIECE elements; 0 where all rows are such.
// n = rows kr threads.
extern "C" __global__ void subtract_rows(u64 n, const u32 *row, const u16 *matrix, const u64 *indptr, const u32 *indices,
                                         const REAL *number, const double *matrices, u64 kr, u64 kc, u64 row_at, u64 row_step,
                                         u64 column_at, u64 column_step, const REAL *x, u64 x_width, double *r, u64 r_width,
                                         const u64 *piece_ptr, const double *partial) {
    const u64 i = thread_number();
    if (i >= n) return;
    const u64 a = i % kr, rows = n / kr;
    u64 m = i / kr;
    const u32 level = row[m];
    if (m && row[m - 1] == level) return;
    for (; m < rows && row[m] == level; ++m) {
        double s = 0.0;
        for (u64 b = 0; b < kc; ++b) {
            double total = 0.0;
            if (piece_ptr && piece_ptr[m] < piece_ptr[m + 1])
                for (u64 p = piece_ptr[m]; p < piece_ptr[m + 1]; ++p) total += partial[p * kc + b];
            else
                total += sum_elements(indices, number, x + column_at + b * column_step, x_width, indptr[m], indptr[m + 1]);
            s += total * matrices[(matrix[m] * kc + b) * kr + a];
        }
        r[level * r_width + row_at + a * row_step] -= s;
    }
}
