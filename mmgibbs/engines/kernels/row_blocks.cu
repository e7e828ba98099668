// r_k -= A_ki x_i for one slice of a row block (equations/explicit/row_blocks.py): the CUDA twin of subtract_rows in hybrid/kernels.py,
// with the same sums in the same order, so with --fmad=false (NVRTC) or -ffp-contract=off (g++) the same bits.
//
//     row      (m)                the levels of block k that meet block i           r  (levels, r_width)  float64
//     indptr   (m + 1)            elements of each of them                          x  (levels, x_width)  REAL
//     indices  (elements)         levels of block i
//     values   (elements, kc, kr) column component, row component                   REAL: float or double
//
// One thread per listed row and row component. Rows of more than PIECE elements are summed in pieces, then over their pieces.

#ifndef REAL
#define REAL float
#endif
typedef unsigned int u32;
typedef unsigned long long u64;

template <int KC>
__device__ inline double sum_columns(const u32 *indices, const REAL *values, const REAL *x, u64 kr, u64 kc, u64 a, u64 x_width,
                                     u64 first, u64 last) {
    const u64 n = KC ? KC : kc;
    double sum = 0.0;
    for (u64 e = first; e < last; ++e) {
        const REAL *there = x + indices[e] * x_width;
        const REAL *here = values + e * n * kr + a;
        for (u64 b = 0; b < n; ++b) sum += (double)here[b * kr] * (double)there[b];
    }
    return sum;
}

// Row component a of the sum over elements first ... last - 1; x points to the slice's first column component.
__device__ inline double sum_elements(const u32 *indices, const REAL *values, const REAL *x, u64 kr, u64 kc, u64 a, u64 x_width,
                                      u64 first, u64 last) {
    switch (kc) {
        case 1: return sum_columns<1>(indices, values, x, kr, kc, a, x_width, first, last);
        case 2: return sum_columns<2>(indices, values, x, kr, kc, a, x_width, first, last);
        case 3: return sum_columns<3>(indices, values, x, kr, kc, a, x_width, first, last);
        case 4: return sum_columns<4>(indices, values, x, kr, kc, a, x_width, first, last);
        default: return sum_columns<0>(indices, values, x, kr, kc, a, x_width, first, last);
    }
}

__device__ inline u64 thread_number() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }

// Rows of at most PIECE elements; n = m kr threads.
extern "C" __global__ void subtract_rows(u64 n, const u32 *row, const u64 *indptr, const u32 *indices, const REAL *values, u64 kr,
                                         u64 kc, u64 row_at, u64 column_at, const REAL *x, u64 x_width, double *r, u64 r_width) {
    const u64 i = thread_number();
    if (i >= n) return;
    const u64 m = i / kr, a = i % kr, first = indptr[m], last = indptr[m + 1];
    if (last - first > PIECE) return;
    const double total = 0.0 + sum_elements(indices, values, x + column_at, kr, kc, a, x_width, first, last);
    r[row[m] * r_width + row_at + a] -= total;
}

// piece_first, piece_last: (pieces) elements of long rows; n = pieces kr threads; partial (pieces, kr).
extern "C" __global__ void sum_pieces(u64 n, const u64 *piece_first, const u64 *piece_last, const u32 *indices, const REAL *values,
                                      u64 kr, u64 kc, u64 column_at, const REAL *x, u64 x_width, double *partial) {
    const u64 i = thread_number();
    if (i >= n) return;
    const u64 p = i / kr, a = i % kr;
    partial[i] = sum_elements(indices, values, x + column_at, kr, kc, a, x_width, piece_first[p], piece_last[p]);
}

// long_row (rows): the level of each long row, pieces long_ptr[l] ... long_ptr[l + 1] - 1; n = rows kr threads.
extern "C" __global__ void subtract_long_rows(u64 n, const u32 *long_row, const u64 *long_ptr, u64 kr, u64 row_at,
                                              const double *partial, double *r, u64 r_width) {
    const u64 i = thread_number();
    if (i >= n) return;
    const u64 l = i / kr, a = i % kr;
    double total = 0.0;
    for (u64 p = long_ptr[l]; p < long_ptr[l + 1]; ++p) total += partial[p * kr + a];
    r[long_row[l] * r_width + row_at + a] -= total;
}
