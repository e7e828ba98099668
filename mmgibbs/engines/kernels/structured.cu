// Structured sweeps on a GPU: one thread per level of a colour, the whole state resident.
//
// Levels with long lists (sires with thousands of progeny, sexes with millions of records) are taken apart: sum_pieces
// gives a block of threads to each piece, draw_long_levels one to each level (draw_levels_of_few_pieces a thread),
// move_pieces again one to each piece. The number of threads and the pieces are fixed, so the order of the sums is.

namespace mmgibbs {

// A level whose lists are cut into pieces.
template <int K, class Kin>
__device__ __forceinline__ bool is_long(const Term<K> &term, const Kin &kin, const Long &lists, word32 level) {
    word32 first, last;
    relatives(kin, level, first, last);
    return term.visit_ptr[level + 1] - term.visit_ptr[level] > lists.longest_visits ||
           last - first > lists.longest_relatives;
}

// part[m][0] = sum over the threads of part[m][thread], as a tree.
template <int M>
__device__ __forceinline__ void sum_over_threads(double (*part)[THREADS]) {
    for (word32 half = blockDim.x / 2; half > 0; half /= 2) {
        PHASE {
            if (threadIdx.x < half)
                for (int m = 0; m < M; ++m) part[m][threadIdx.x] += part[m][threadIdx.x + half];
        }
        BARRIER
    }
}

// Blocks that a multiprocessor must have room for where levels are small: a level waits for memory most of its time, so
// more threads at once are worth the few values that no longer fit in registers. Of larger levels most would not: 0
// leaves the number to the compiler.
__device__ constexpr int blocks_at_once(int components) {
    return components <= 4 ? 8 : 0;
}

template <int K, int T, class Kin>
__global__ void __launch_bounds__(THREADS, blocks_at_once(K))
    sweep_levels(Term<K> term, Kin kin, Records records, Long lists, word32 first, word32 last, int joint,
                 const word32 *counter, bits64 *failed) {
    PHASE {
        const word32 level = first + blockIdx.x * blockDim.x + threadIdx.x;
        if (level < last && !is_long<K>(term, kin, lists, level)) {
            double P[K][K], row[K], rhs[K], change[K];
            whole_row<K>(kin, level, term.theta, row);
            start_system<K, T>(term, kin, records, level, row, P, rhs);
            const word32 first_visit = term.visit_ptr[level], last_visit = term.visit_ptr[level + 1];
            for (word32 v = first_visit; v < last_visit; ++v) add_visit<K, T>(term, records, v, rhs);
            draw_change<K>(term, level, counter, joint, P, rhs, change, failed);
            shift<K>(term.theta, level, change);
            for (word32 v = first_visit; v < last_visit; ++v) move_visit<K, T>(term, records, v, change);
        }
    }
}

// sums[p] = sum over piece p of W_r' R_r^-1 e_r (visits) or of kappa_lm theta_m (relatives).
template <int K, int T, class Kin>
__global__ void __launch_bounds__(THREADS) sum_pieces(Term<K> term, Kin kin, Records records, Long lists) {
    __shared__ double part[K][THREADS];
    const Piece piece = lists.pieces[blockIdx.x];
    const bool visits = blockIdx.x < lists.n_visit_pieces;
    PHASE {
        double sum[K];
        for (int c = 0; c < K; ++c) sum[c] = 0.0;
        for (word32 i = piece.first + threadIdx.x; i < piece.last; i += blockDim.x) {
            if (visits)
                add_visit<K, T>(term, records, i, sum);
            else
                add_relative<K>(kin, lists.levels[piece.number], i, term.theta, sum);
        }
        for (int c = 0; c < K; ++c) part[c][threadIdx.x] = sum[c];
    }
    BARRIER
    sum_over_threads<K>(part);
    PHASE {
        for (word32 c = threadIdx.x; c < K; c += blockDim.x) lists.sums[(size_t)blockIdx.x * K + c] = part[c][0];
    }
}

// part[c][0] = sum over the pieces ptr[number] ... ptr[number + 1] - 1.
template <int K>
__device__ __forceinline__ void sum_of_pieces(const Long &lists, const word32 *ptr, word32 number,
                                              double (*part)[THREADS]) {
    PHASE {
        double sum[K];
        for (int c = 0; c < K; ++c) sum[c] = 0.0;
        for (word32 p = ptr[number] + threadIdx.x; p < ptr[number + 1]; p += blockDim.x)
            for (int c = 0; c < K; ++c) sum[c] += lists.sums[(size_t)p * K + c];
        for (int c = 0; c < K; ++c) part[c][threadIdx.x] = sum[c];
    }
    BARRIER
    sum_over_threads<K>(part);
}

// Draw long level `number` from what its pieces add up to.
template <int K, int T, class Kin>
__device__ __forceinline__ void draw_long_level(Term<K> term, const Kin &kin, const Records &records,
                                                const Long &lists, word32 number, const double (&of_visits)[K],
                                                const double (&of_relatives)[K], int joint, const word32 *counter,
                                                bits64 *failed) {
    const word32 level = lists.levels[number];
    double P[K][K], row[K], rhs[K], change[K];
    own_row<K>(kin, level, term.theta, row);
    for (int c = 0; c < K; ++c) row[c] += of_relatives[c];
    start_system<K, T>(term, kin, records, level, row, P, rhs);
    for (int c = 0; c < K; ++c) rhs[c] += of_visits[c];
    draw_change<K>(term, level, counter, joint, P, rhs, change, failed);
    shift<K>(term.theta, level, change);
    for (int c = 0; c < K; ++c) lists.changes[(size_t)number * K + c] = change[c];
}

template <int K, int T, class Kin>
__global__ void __launch_bounds__(THREADS) draw_long_levels(Term<K> term, Kin kin, Records records, Long lists,
                                                            int joint, const word32 *counter, bits64 *failed) {
    __shared__ double part[K][THREADS], of_visits[K];
    const word32 number = blockIdx.x;
    sum_of_pieces<K>(lists, lists.visit_piece_ptr, number, part);
    PHASE {
        for (word32 c = threadIdx.x; c < K; c += blockDim.x) of_visits[c] = part[c][0];
    }
    BARRIER
    sum_of_pieces<K>(lists, lists.relative_piece_ptr, number, part);
    PHASE {
        if (threadIdx.x == 0) {
            double relatives[K];
            for (int c = 0; c < K; ++c) relatives[c] = part[c][0];
            draw_long_level<K, T>(term, kin, records, lists, number, of_visits, relatives, joint, counter, failed);
        }
    }
}

// The same where every long level of the colour has few pieces: a thread each, which adds them one after another.
template <int K, int T, class Kin>
__global__ void __launch_bounds__(THREADS)
    draw_levels_of_few_pieces(Term<K> term, Kin kin, Records records, Long lists, word32 n, int joint,
                              const word32 *counter, bits64 *failed) {
    PHASE {
        const word32 number = blockIdx.x * blockDim.x + threadIdx.x;
        if (number < n) {
            double of_visits[K], of_relatives[K];
            for (int c = 0; c < K; ++c) of_visits[c] = of_relatives[c] = 0.0;
            for (word32 p = lists.visit_piece_ptr[number]; p < lists.visit_piece_ptr[number + 1]; ++p)
                for (int c = 0; c < K; ++c) of_visits[c] += lists.sums[(size_t)p * K + c];
            for (word32 p = lists.relative_piece_ptr[number]; p < lists.relative_piece_ptr[number + 1]; ++p)
                for (int c = 0; c < K; ++c) of_relatives[c] += lists.sums[(size_t)p * K + c];
            draw_long_level<K, T>(term, kin, records, lists, number, of_visits, of_relatives, joint, counter, failed);
        }
    }
}

// e_r -= W_r change for the visits of each piece. A record that meets its level twice is moved by the thread of its
// first visit.
template <int K, int T>
__global__ void __launch_bounds__(THREADS) move_pieces(Term<K> term, Records records, Long lists) {
    const Piece piece = lists.pieces[blockIdx.x];
    PHASE {
        double change[K];
        for (int c = 0; c < K; ++c) change[c] = lists.changes[(size_t)piece.number * K + c];
        for (word32 v = piece.first + threadIdx.x; v < piece.last; v += blockDim.x) {
            if (!term.visit_effect) {
                move_visit<K, T>(term, records, v, change);
            } else if (v == piece.first || term.visit_record[v] != term.visit_record[v - 1]) {
                for (word32 w = v; w < piece.last && term.visit_record[w] == term.visit_record[v]; ++w)
                    move_visit<K, T>(term, records, w, change);
            }
        }
    }
}

// Classes of levels of a term, whose data part of P is the same.
struct Classes {
    const word32 *cell_ptr;      // (n + 1)
    const word32 *cell_pattern;  // (cells)
    const REAL *cell_sums;       // (cells, regressors, regressors)
    const int *trait;            // (k)
    const int *regressor;        // (k)
    double *parts;               // (n, k (k + 1) / 2) lower triangles
    word32 n;
    int k;
    int regressors;
};

// The data part of P of each class, of some terms.
__global__ void __launch_bounds__(THREADS)
    class_precisions(const Classes *terms, int n_terms, const double *Rinv, int n_traits) {
    PHASE {
        word32 at = blockIdx.x * blockDim.x + threadIdx.x;
        int term = 0;
        while (term < n_terms && at >= terms[term].n) at -= terms[term++].n;
        if (term < n_terms) {
            const Classes &of = terms[term];
            double *part = of.parts + (size_t)at * (of.k * (of.k + 1) / 2);
            for (int a = 0; a < of.k; ++a)
                for (int b = 0; b <= a; ++b) {
                    const int place = of.regressor[a] * of.regressors + of.regressor[b];
                    const int traits = of.trait[a] * n_traits + of.trait[b];
                    double sum = 0.0;
                    for (word32 cell = of.cell_ptr[at]; cell < of.cell_ptr[at + 1]; ++cell)
                        sum += (double)of.cell_sums[(size_t)cell * of.regressors * of.regressors + place] *
                               Rinv[(size_t)of.cell_pattern[cell] * n_traits * n_traits + traits];
                    part[a * (a + 1) / 2 + b] = sum;
                }
        }
    }
}

// Which draws the next sweep uses: kept on the device, so that a recorded sweep need not change.
__global__ void set_counter(word32 *counter, word32 sweep, word32 seed, word32 chain) {
    PHASE {
        counter[0] = sweep, counter[1] = seed, counter[2] = chain;
    }
}

}  // namespace mmgibbs
