// Log likelihood and gradient of the multinomial logit for all chains (regressions/multinomial/softmax_gradient.py): the
// rows are read once for all of them.
namespace mmgibbs {

const int HMC_THREADS = 256, HMC_ROWS = 64, HMC_PARTS = HMC_THREADS / HMC_ROWS;  // of a block; rows at a time
const int WIDTH = 64, GROUP = 16;  // columns of the rows, and of the coefficients, that are in shared memory at a time

struct Trajectory {
    const VALUE *values;         // (n, p)
    const double *trials;        // (n); null where each is 1
    const double *column_centre; // (p): Z = (values - centre) / scale, and 1 for the intercept
    const double *column_scale;  // (p)
    const double *totals;        // (K - 1, d): Y'Z
    const double *prior_scale;   // (d)
    const double *inverse;       // (C, K - 1, d): 1 / masses of a diagonal mass matrix; else null, and M = S (x) A:
    const double *S;             // (M, K - 1, K - 1), M 1 or C
    const double *A;             // (M, d, d)
    const double *root_S;        // root_S z root_A ~ N(0, M)
    const double *root_A;
    const double *inverse_S;
    const double *inverse_A;
    double *z;                   // (C, K - 1, d): normals of the momentum
    double *momentum;
    double *velocity;            // M^-1 momentum, where M is no diagonal
    double *tried;               // position
    double *tried_gradient;
    REAL *slopes;                // tried / column_scale
    double *work;                // (2, C, K - 1, d)
    double *weighed;             // (2, C, K - 1, d): M (end - centre) and M (start - centre), where M is no diagonal
    double *logits;              // (pieces, C (K - 1), HMC_ROWS)
    double *row_partitions;      // (pieces, C, HMC_ROWS)
    double *sums;                // (pieces, C, K - 1, d): (n softmax)'(values - centre)
    double *partitions;          // (pieces, C): sums of n log(1 + sum exp)
    double *position;            // (C, K - 1, d): the state, as in multinomial/hmc.py
    double *gradient;
    double *log_density;         // (C)
    double *acceptance;
    double *steps;
    double *temperature;         // null with adaptation; without it these are:
    double *log_step;
    double *mean_log_step;
    double *log_length;
    double *mean_log_length;
    double *shortfall;
    double *square_slope;
    double *centre;              // (C, K - 1, d)
    double *variance;            // (C, K - 1, d); null where the masses are not learnt
    double *step_size;           // (C): of the next trajectory
    double *ratio;               // its length over the step
    double *planned;             // its steps
    double *slope;               // of the ChEES criterion, times the acceptance
    word32 *turns;               // leapfrog steps that softmax_rows has begun, and that `kick` has done
    word32 *sweep;               // (C): number of the trajectory that is next
    const word32 *chain;         // (C): second word of the key of each chain
    double first_step;
    bits64 places[6];            // in a slot: position, log_density, acceptance, steps and the mean logarithms
    word32 momenta;              // streams
    word32 decisions;
    word32 seed;
    word32 burn_in;
    int n;
    int p;
    int d;                       // p, and 1 with an intercept
    int n_categories;            // K - 1
    int n_chains;
    int n_masses;                // M
    int rows_of_piece;
    int n_pieces;
    int most_steps;
    int is_cauchy;               // the prior; else normal
    int is_pooled;               // all chains learn together
};

// Columns first ... of Z scale for some rows: values less their centre, and 1 for the intercept.
__device__ inline void load_columns(const Trajectory &s, int top, int count, int first, REAL *z) {
    PHASE {
        for (int at = (int)threadIdx.x; at < HMC_ROWS * WIDTH; at += (int)blockDim.x) {
            const int i = at / WIDTH, a = first + at % WIDTH;
            REAL value = 0;
            if (i < count && a < s.p) value = (REAL)s.values[(size_t)(top + i) * s.p + a] - (REAL)s.column_centre[a];
            else if (i < count && a < s.d) value = 1;
            z[i * (WIDTH + 1) + at % WIDTH] = value;
        }
    }
    BARRIER
}

// Adds what columns first ... give of the logits: a thread a row and every fourth four coefficients' columns.
__device__ inline void add_logits(const Trajectory &s, int first, const REAL *z, double *logits) {
    const int n_columns = s.n_chains * s.n_categories, width = s.d - first < WIDTH ? s.d - first : WIDTH;
    PHASE {
        const int i = (int)threadIdx.x % HMC_ROWS;
        for (int q = 4 * ((int)threadIdx.x / HMC_ROWS); q < n_columns; q += 4 * HMC_PARTS) {
            const REAL *slopes = s.slopes + (size_t)q * s.d + first, *row = z + i * (WIDTH + 1);
            const int count = n_columns - q < 4 ? n_columns - q : 4;
            const size_t next[4] = {0, count > 1 ? (size_t)s.d : 0, count > 2 ? 2 * (size_t)s.d : 0, count > 3 ? 3 * (size_t)s.d : 0};
            REAL totals[4] = {0, 0, 0, 0};
            for (int a = 0; a < width; ++a)
                for (int u = 0; u < 4; ++u) totals[u] += row[a] * slopes[next[u] + a];
            for (int u = 0; u < 4; ++u)
                if (u < count) logits[(q + u) * HMC_ROWS + i] += (double)totals[u];
        }
    }
    BARRIER
}

// Logits become n softmax, 0 beyond the last row; sums of n log(1 + sum exp) are added up by chain.
__device__ inline void normalise_rows(const Trajectory &s, int top, int count, double *logits, double *row_partitions,
                                      double *partitions) {
    const int K1 = s.n_categories;
    PHASE {
        const int i = (int)threadIdx.x % HMC_ROWS;
        const double trials = i < count ? s.trials ? s.trials[top + i] : 1.0 : 0.0;
        for (int c = (int)threadIdx.x / HMC_ROWS; c < s.n_chains; c += HMC_PARTS) {
            double *row = logits + (size_t)c * K1 * HMC_ROWS + i;
            double largest = 0.0;
            for (int k = 0; k < K1; ++k)
                if (row[k * HMC_ROWS] > largest) largest = row[k * HMC_ROWS];
            double total = exp(-largest);
            for (int k = 0; k < K1; ++k) {
                row[k * HMC_ROWS] = exp(row[k * HMC_ROWS] - largest);
                total += row[k * HMC_ROWS];
            }
            for (int k = 0; k < K1; ++k) row[k * HMC_ROWS] = i < count ? row[k * HMC_ROWS] / total * trials : 0.0;
            row_partitions[c * HMC_ROWS + i] = i < count ? (log(total) + largest) * trials : 0.0;
        }
    }
    BARRIER
    PHASE {
        for (int c = (int)threadIdx.x; c < s.n_chains; c += (int)blockDim.x) {
            double total = 0.0;
            for (int i = 0; i < HMC_ROWS; ++i) total += row_partitions[c * HMC_ROWS + i];
            partitions[c] += total;
        }
    }
}

// Adds (n softmax)'Z of some rows for columns first ..., GROUP columns of the coefficients at a time, four sums a thread.
__device__ inline void add_products(const Trajectory &s, int count, int first, const REAL *z, REAL *shares,
                                    const double *probabilities, double *sums) {
    const int n_columns = s.n_chains * s.n_categories, stride = HMC_ROWS + 1;
    for (int q0 = 0; q0 < n_columns; q0 += GROUP) {
        PHASE {
            for (int at = (int)threadIdx.x; at < GROUP * HMC_ROWS; at += (int)blockDim.x) {
                const int q = q0 + at / HMC_ROWS;
                shares[at / HMC_ROWS * stride + at % HMC_ROWS] =
                    q < n_columns ? (REAL)probabilities[q * HMC_ROWS + at % HMC_ROWS] : (REAL)0;
            }
        }
        BARRIER
        PHASE {
            for (int at = (int)threadIdx.x; at < GROUP / 2 * WIDTH / 2; at += (int)blockDim.x) {
                const int u = at / (WIDTH / 2) * 2, a = at % (WIDTH / 2), right = a + WIDTH / 2;
                REAL t00 = 0, t01 = 0, t10 = 0, t11 = 0;
                for (int i = 0; i < count; ++i) {
                    const REAL z0 = z[i * (WIDTH + 1) + a], z1 = z[i * (WIDTH + 1) + right];
                    const REAL share0 = shares[u * stride + i], share1 = shares[(u + 1) * stride + i];
                    t00 += share0 * z0;
                    t01 += share0 * z1;
                    t10 += share1 * z0;
                    t11 += share1 * z1;
                }
                double *out = sums + (size_t)(q0 + u) * s.d + first;
                const bool has_left = first + a < s.d, has_right = first + right < s.d;
                if (q0 + u < n_columns && has_left) out[a] += (double)t00;
                if (q0 + u < n_columns && has_right) out[right] += (double)t01;
                if (q0 + u + 1 < n_columns && has_left) out[s.d + a] += (double)t10;
                if (q0 + u + 1 < n_columns && has_right) out[s.d + right] += (double)t11;
            }
        }
        BARRIER
    }
}

// A piece of the rows a block, HMC_ROWS at a time. Products and sums of these in REAL, all other sums in float64.
__global__ void __launch_bounds__(HMC_THREADS) softmax_rows(Trajectory s) {
    __shared__ REAL z[HMC_ROWS * (WIDTH + 1)], shares[GROUP * (HMC_ROWS + 1)];
    const int first = (int)blockIdx.x * s.rows_of_piece, n_columns = s.n_chains * s.n_categories;
    const int last = s.n - first < s.rows_of_piece ? s.n : first + s.rows_of_piece;
    double *logits = s.logits + (size_t)blockIdx.x * n_columns * HMC_ROWS;
    double *row_partitions = s.row_partitions + (size_t)blockIdx.x * s.n_chains * HMC_ROWS;
    double *sums = s.sums + (size_t)blockIdx.x * n_columns * s.d;
    double *partitions = s.partitions + (size_t)blockIdx.x * s.n_chains;
    PHASE {
        if (blockIdx.x == 0 && threadIdx.x == 0) s.turns[0] = s.turns[1] + 1;
        for (size_t at = threadIdx.x; at < (size_t)n_columns * s.d; at += blockDim.x) sums[at] = 0.0;
        for (int c = (int)threadIdx.x; c < s.n_chains; c += (int)blockDim.x) partitions[c] = 0.0;
    }
    BARRIER
    for (int top = first; top < last; top += HMC_ROWS) {
        const int count = last - top < HMC_ROWS ? last - top : HMC_ROWS;
        PHASE {
            for (int at = (int)threadIdx.x; at < n_columns * HMC_ROWS; at += (int)blockDim.x) logits[at] = 0.0;
        }
        BARRIER
        for (int a = 0; a < s.d; a += WIDTH) {
            load_columns(s, top, count, a, z);
            add_logits(s, a, z, logits);
        }
        normalise_rows(s, top, count, logits, row_partitions, partitions);
        for (int a = 0; a < s.d; a += WIDTH) {
            if (s.d > WIDTH) load_columns(s, top, count, a, z);
            add_products(s, count, a, z, shares, logits, sums);
        }
    }
}

}  // namespace mmgibbs
