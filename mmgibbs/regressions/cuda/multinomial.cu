// Multinomial logit by Polya-Gamma variables (regressions/multinomial/polya_gamma.py), all chains in lockstep, for one
// category after another:
//
//     draw_weights    logits of the categories that changed, omega, and the sums of a piece of the rows
//     fill_curvature  Z' diag(omega) Z + P_j, with Z'(kappa + omega c) + P_j m_j as a row below it
//     factor          spd.cuh, where there is more than one panel
//     draw_category   the coefficients of the category: a block a chain
namespace mmgibbs {

const int MULTINOMIAL_THREADS = 256, ROWS = 32, PARTS = MULTINOMIAL_THREADS / ROWS;

struct Multinomial {
    const VALUE *values;        // (n, p)
    const int *successes;       // (n, K - 1)
    const int *trials;          // (n); null where each is 1
    const double *centre;       // (p): Z = (values - centre) / scale, and 1 for the intercept
    const double *scale;        // (p)
    const double *precision;    // (K - 1, d, d): P_j
    const double *shift;        // (K - 1, d): P_j m_j
    double *logits;             // (C, K - 1, n)
    double *sums;               // (C, pieces, d + 1, d): lower triangle, the right-hand side last
    double *solved;             // (C, d)
    double *beta;               // (C, K - 1, d)
    word32 *sweep;              // (C): number of the sweep that is next
    const word32 *chain;        // (C): second word of the key of each chain
    unsigned *arrived;          // of a cooperative launch
    word32 latent;              // streams of the first category
    word32 coefficients;
    word32 seed;
    int n;
    int p;
    int d;                      // p, and 1 with an intercept
    int n_categories;           // K - 1
    int n_chains;
    int rows_of_piece;
    int n_pieces;
};

// log sum over categories k != j, and the reference with logit 0, of exp(logit); 0 where that is the only one.
__device__ __forceinline__ double log_sum_except(const Multinomial &s, const double *logits, int j) {
    double largest = 0.0;
    for (int k = 0; k < s.n_categories; ++k)
        if (k != j && logits[(size_t)k * s.n] > largest) largest = logits[(size_t)k * s.n];
    double total = exp(-largest);
    for (int k = 0; k < s.n_categories; ++k)
        if (k != j) total += exp(logits[(size_t)k * s.n] - largest);
    return largest + log(total);
}

// Adds elements (a, b) ... (a + 1, b + 1) of Z' diag(omega) Z of some rows, with Z' right as row d.
__device__ __forceinline__ void add_four_products(const Multinomial &s, const REAL *z, const double *omega, const double *right,
                                                  int count, int a, int b, double *sums) {
    const int stride = MAX_COLUMNS + 1;
    double t00 = 0.0, t01 = 0.0, t10 = 0.0, t11 = 0.0;
    for (int i = 0; i < count; ++i) {
        const REAL *row = z + i * stride;
        const double first = a < s.d ? omega[i] * (double)row[a] : right[i];
        const double second = a + 1 < s.d ? omega[i] * (double)row[a + 1] : right[i];
        const double column = (double)row[b], next_column = b + 1 < s.d ? (double)row[b + 1] : 0.0;
        t00 += first * column;
        t01 += first * next_column;
        t10 += second * column;
        t11 += second * next_column;
    }
    double *first_sums = sums + (size_t)a * s.d + b, *second_sums = first_sums + s.d;
    if (b <= a) first_sums[0] += t00;
    if (b + 1 <= a && b + 1 < s.d) first_sums[1] += t01;
    if (a + 1 > s.d) return;
    second_sums[0] += t10;
    if (b + 1 < s.d) second_sums[1] += t11;
}

// A piece of the rows a block, ROWS at a time and for all chains before the next. Products in REAL, sums in float64.
__global__ void __launch_bounds__(MULTINOMIAL_THREADS) draw_weights(Multinomial s, int j) {
    __shared__ REAL z[ROWS * (MAX_COLUMNS + 1)];
    __shared__ double parts[PARTS][ROWS], omega[ROWS], right[ROWS];
    const int first = (int)blockIdx.x * s.rows_of_piece, stride = MAX_COLUMNS + 1, n_elements = (s.d + 1) * s.d;
    const int last = s.n - first < s.rows_of_piece ? s.n : first + s.rows_of_piece;
    const int first_stale = j == 0 ? 0 : j - 1, end_stale = j == 0 ? s.n_categories : j;
    PHASE {
        for (int c = 0; c < s.n_chains; ++c) {
            double *sums = s.sums + ((size_t)c * s.n_pieces + blockIdx.x) * n_elements;
            for (int at = (int)threadIdx.x; at < n_elements; at += (int)blockDim.x) sums[at] = 0.0;
        }
    }
    BARRIER
    for (int top = first; top < last; top += ROWS) {
        const int count = last - top < ROWS ? last - top : ROWS;
        PHASE {
            for (int at = (int)threadIdx.x; at < ROWS * s.d; at += (int)blockDim.x) {
                const int i = at / s.d, a = at % s.d;
                REAL value = 0;
                if (i < count && a == s.p) value = 1;
                else if (i < count) value = ((REAL)s.values[(size_t)(top + i) * s.p + a] - (REAL)s.centre[a]) / (REAL)s.scale[a];
                z[i * stride + a] = value;
            }
        }
        BARRIER
        for (int c = 0; c < s.n_chains; ++c) {
            double *sums = s.sums + ((size_t)c * s.n_pieces + blockIdx.x) * n_elements;
            double *logits = s.logits + (size_t)c * s.n_categories * s.n + top;
            for (int k = first_stale; k < end_stale; ++k) {
                const double *beta = s.beta + ((size_t)c * s.n_categories + k) * s.d;
                PHASE {
                    const int i = (int)threadIdx.x % ROWS, part = (int)threadIdx.x / ROWS;
                    double total = 0.0;
                    for (int a = part; a < s.d; a += PARTS) total += (double)(z[i * stride + a] * (REAL)beta[a]);
                    parts[part][i] = total;
                }
                BARRIER
                PHASE {
                    const int i = (int)threadIdx.x;
                    if (i < count) {
                        double total = 0.0;
                        for (int part = 0; part < PARTS; ++part) total += parts[part][i];
                        logits[(size_t)k * s.n + i] = total;
                    }
                }
                BARRIER
            }
            PHASE {
                const int i = (int)threadIdx.x;
                if (i < ROWS) {
                    omega[i] = right[i] = 0.0;
                    if (i < count) {
                        const int trials = s.trials ? s.trials[top + i] : 1;
                        const double offset = log_sum_except(s, logits + i, j), psi = logits[(size_t)j * s.n + i] - offset;
                        omega[i] = polya_gamma(trials, psi, s.sweep[c], (word32)(top + i), s.latent + (word32)j, 0, s.seed, s.chain[c]);
                        right[i] = s.successes[(size_t)(top + i) * s.n_categories + j] - 0.5 * trials + omega[i] * offset;
                    }
                }
            }
            BARRIER
            PHASE {
                const int across = (s.d + 1) / 2, pairs = (s.d + 2) / 2 * across;
                for (int at = (int)threadIdx.x; at < pairs; at += (int)blockDim.x) {
                    const int a = at / across * 2, b = at % across * 2;
                    if (b <= a + 1) add_four_products(s, z, omega, right, count, a, b, sums);
                }
            }
            BARRIER
        }
    }
}

// A thread an element; the sums over the pieces in their order.
__global__ void __launch_bounds__(MULTINOMIAL_THREADS) fill_curvature(Multinomial s, Spd spd, int j) {
    PHASE {
        const size_t step = (size_t)gridDim.x * blockDim.x;
        const int matrix_size = (s.d + 1) * s.d;
        for (size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x; at < (size_t)matrix_size * spd.n_matrices; at += step) {
            const int c = (int)(at / matrix_size), a = (int)(at % matrix_size) / s.d, b = (int)(at % s.d);
            if (at == 0) *s.arrived = 0;
            if (b > a) continue;
            double total = 0.0;
            for (int piece = 0; piece < s.n_pieces; ++piece)
                total += s.sums[((size_t)c * s.n_pieces + piece) * matrix_size + at % matrix_size];
            spd.A[at] = total + (a == s.d ? s.shift[j * s.d + b] : s.precision[((size_t)j * s.d + a) * s.d + b]);
        }
    }
}

// beta_j = L'^-1 (L^-1 r + normals), the kept draw, and after the last category the number of the next sweep.
__global__ void __launch_bounds__(MULTINOMIAL_THREADS) draw_category(Multinomial s, Spd spd, Ring ring, int j) {
    __shared__ double shared[SOLVE_VALUES];  // of a panel and the row below it, then of its solve
    const int c = (int)blockIdx.x;
    const word32 sweep = s.sweep[c];
    const double *half = spd.A + ((size_t)c * spd.n_rows + spd.m) * spd.m;
    const size_t first_of_category = ((size_t)c * s.n_categories + j) * s.d;
    double *x = s.solved + (size_t)c * s.d, *slot = find_slot(ring, sweep);
    if (spd.panels() == 1) spd.factor_panel(0, shared);
    PHASE {
        for (int a = (int)threadIdx.x; a < s.d; a += (int)blockDim.x)
            x[a] = half[a] + normal(sweep, (word32)a, s.coefficients + (word32)j, 0, s.seed, s.chain[c]);
    }
    BARRIER
    block_solve_panels(spd, c, x, shared);
    PHASE {
        for (int a = (int)threadIdx.x; a < s.d; a += (int)blockDim.x) {
            s.beta[first_of_category + a] = x[a];
            if (slot) slot[first_of_category + a] = x[a];
        }
        if (threadIdx.x == 0 && j == s.n_categories - 1) s.sweep[c] = sweep + 1;
    }
}

}  // namespace mmgibbs
