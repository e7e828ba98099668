// Horseshoe probit regression (regressions/horseshoe), p <= n, all chains in lockstep:
//
//     draw_latent          z given the linear predictors, and the sums X'z, 1'z, z'z of a piece of the rows
//     fill_precision       W'W + diag(d) with W'z as a row below it
//     factor               spd.cuh
//     draw_coefficients    the factor of z, coefficients and intercept: a block a chain
//     draw_shrinkage       the scales of the prior, the kept draw: a block a chain
//
// z given the linear predictors, and every scale given what it depends on, have the bits of the host.
namespace mmgibbs {

const int HORSESHOE_THREADS = 256, ROWS = 32, COLUMNS = 64, PARTS = HORSESHOE_THREADS / ROWS;

struct Horseshoe {
    const VALUE *values;      // (n, p)
    const unsigned char *positive;  // (n)
    const double *gram;       // (p + 1, p + 1): W'W, W = [Z 1]
    const double *centre;     // (p): Z = (values - centre) / scale
    const double *scale;      // (p)
    double *sums;             // (C, pieces, p + 2)
    double *square;           // (C): z'z
    double *solution;         // (C, p + 1): coefficients and intercept
    double *beta;             // (C, p)
    double *intercept;        // (C)
    double *local;            // (C, p): lambda^-2
    double *local_auxiliary;  // (C, p): 1/nu
    double *global;           // (C): tau^-2
    double *global_auxiliary; // (C): 1/xi
    double *slab;             // (C): c^-2; 0 without a slab
    word32 *sweep;            // (C): number of the sweep that is next
    const word32 *chain;      // (C): second word of the key of each chain
    unsigned *arrived;        // of a cooperative launch
    double intercept_precision;
    double global_precision;  // 1/t^2
    double slab_square;       // s^2
    double slab_df;
    unsigned long long places[4];  // in a slot of the ring: beta, intercept, global, slab
    word32 seed;
    int n;
    int p;
    int n_chains;
    int rows_of_piece;
    int n_pieces;
    int has_expansion;
    int has_slab;
};

struct Streams {
    word32 latent, rescale, coefficients, local, local_auxiliary, global, global_auxiliary, slab;
};

__device__ __forceinline__ double raw_coefficient(const Horseshoe &s, int c, int j) {
    return s.beta[(size_t)c * s.p + j] / s.scale[j];
}

// A piece of the rows a block, ROWS at a time and for all chains before the next, so that they are read from memory
// once. Products and sums over eight columns, or over ROWS rows, in REAL; beyond in float64.
__global__ void __launch_bounds__(HORSESHOE_THREADS) draw_latent(Horseshoe s, Streams streams) {
    __shared__ double parts[PARTS][ROWS], z[ROWS], centring[HORSESHOE_THREADS];
    __shared__ REAL x[ROWS][COLUMNS + 1], b[COLUMNS];
    const int first = (int)blockIdx.x * s.rows_of_piece;
    const int last = s.n - first < s.rows_of_piece ? s.n : first + s.rows_of_piece;
    PHASE {
        for (int c = 0; c < s.n_chains; ++c) {
            double *sums = s.sums + ((size_t)c * s.n_pieces + blockIdx.x) * (s.p + 2);
            for (int j = (int)threadIdx.x; j < s.p + 2; j += (int)blockDim.x) sums[j] = 0.0;
        }
    }
    BARRIER
    for (int top = first; top < last; top += ROWS) {
        const int count = last - top < ROWS ? last - top : ROWS;
        for (int c = 0; c < s.n_chains; ++c) {
            double *sums = s.sums + ((size_t)c * s.n_pieces + blockIdx.x) * (s.p + 2);
            PHASE {
                parts[threadIdx.x / ROWS][threadIdx.x % ROWS] = 0.0;
                centring[threadIdx.x] = 0.0;
            }
            BARRIER
            for (int start = 0; start < s.p; start += COLUMNS) {
                PHASE {
                    for (int at = (int)threadIdx.x; at < ROWS * COLUMNS; at += (int)blockDim.x) {
                        const int i = at / COLUMNS, j = start + at % COLUMNS;
                        x[i][at % COLUMNS] = i < count && j < s.p ? (REAL)s.values[(size_t)(top + i) * s.p + j] : (REAL)0;
                    }
                    for (int k = (int)threadIdx.x; k < COLUMNS; k += (int)blockDim.x) {
                        const double raw = start + k < s.p ? raw_coefficient(s, c, start + k) : 0.0;
                        b[k] = (REAL)raw;
                        centring[k] += start + k < s.p ? raw * s.centre[start + k] : 0.0;
                    }
                }
                BARRIER
                PHASE {
                    const int i = (int)threadIdx.x % ROWS, part = (int)threadIdx.x / ROWS;
                    REAL total = 0;
                    for (int k = part * (COLUMNS / PARTS); k < (part + 1) * (COLUMNS / PARTS); ++k) total += x[i][k] * b[k];
                    parts[part][i] += (double)total;
                }
                BARRIER
            }
            PHASE {
                const int i = (int)threadIdx.x;
                if (i < ROWS) {
                    double eta = s.intercept[c], centred = 0.0;
                    for (int part = 0; part < PARTS; ++part) eta += parts[part][i];
                    for (int k = 0; k < COLUMNS; ++k) centred += centring[k];
                    eta -= centred;
                    const double sign = i < count && s.positive[top + i] ? 1.0 : -1.0;
                    z[i] = i < count ? sign * truncated_normal_positive(sign * eta, s.sweep[c], (word32)(top + i), streams.latent,
                                                                        0, s.seed, s.chain[c])
                                     : 0.0;
                }
            }
            BARRIER
            PHASE {
                for (int j = (int)threadIdx.x; j < s.p + 2; j += (int)blockDim.x) {
                    REAL total = 0;
                    double exact = 0.0;
                    for (int i = 0; i < count; ++i) {
                        if (j < s.p) total += (REAL)s.values[(size_t)(top + i) * s.p + j] * (REAL)z[i];
                        else exact += j == s.p ? z[i] : z[i] * z[i];
                    }
                    sums[j] += j < s.p ? (double)total : exact;
                }
            }
            BARRIER
        }
    }
}

// Sum over the pieces of the rows, in their order.
__device__ __forceinline__ double sum_pieces(const Horseshoe &s, int c, int j) {
    double total = 0.0;
    for (int piece = 0; piece < s.n_pieces; ++piece) total += s.sums[((size_t)c * s.n_pieces + piece) * (s.p + 2) + j];
    return total;
}

// d_j of chain c; that of the intercept last.
__device__ __forceinline__ double prior_precision(const Horseshoe &s, int c, int j) {
    if (j == s.p) return s.intercept_precision;
    const double d = s.global[c] * s.local[(size_t)c * s.p + j] + s.slab[c];
    return d < LARGEST_PRECISION ? d : LARGEST_PRECISION;
}

// A thread an element.
__global__ void __launch_bounds__(HORSESHOE_THREADS) fill_precision(Horseshoe s, Spd spd) {
    PHASE {
        const size_t step = (size_t)gridDim.x * blockDim.x, matrix_size = (size_t)spd.n_rows * spd.m;
        for (size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x; at < matrix_size * spd.n_matrices; at += step) {
            const int c = (int)(at / matrix_size), i = (int)(at % matrix_size / spd.m), j = (int)(at % spd.m);
            if (i == spd.m) {
                const double total = sum_pieces(s, c, j);
                spd.A[at] = j == s.p ? total : (total - s.centre[j] * sum_pieces(s, c, s.p)) / s.scale[j];
                if (j == 0) s.square[c] = sum_pieces(s, c, s.p + 1);
            } else if (j <= i) {
                spd.A[at] = s.gram[(size_t)i * spd.m + j] + (i == j ? prior_precision(s, c, j) : 0.0);
            }
            if (at == 0) *s.arrived = 0;
        }
    }
}

// (b, a) = L'^-1 (g L^-1 W'z + normals), g^2 ~ Gamma(n / 2, rate (z'z - |L^-1 W'z|^2) / 2), or 1.
__global__ void __launch_bounds__(HORSESHOE_THREADS) draw_coefficients(Horseshoe s, Spd spd, Streams streams) {
    __shared__ double sums[HORSESHOE_THREADS], factor, shared[SOLVE_VALUES];
    const int c = (int)blockIdx.x;
    const word32 sweep = s.sweep[c], chain = s.chain[c];
    const double *half = spd.A + ((size_t)c * spd.n_rows + spd.m) * spd.m;
    double *solution = s.solution + (size_t)c * spd.m;
    PHASE {
        double sum = 0.0;
        for (int j = (int)threadIdx.x; j < spd.m; j += (int)blockDim.x) sum += half[j] * half[j];
        sums[threadIdx.x] = sum;
    }
    BARRIER
    block_sum(sums);
    PHASE {
        if (threadIdx.x == 0) {
            const double misfit = s.square[c] - sums[0];
            factor = 1.0;
            if (s.has_expansion && !(misfit > SMALLEST_MISFIT * s.square[c])) factor = not_a_number();
            else if (s.has_expansion) factor = sqrt(2.0 * gamma(0.5 * s.n, sweep, 0, streams.rescale, 0, s.seed, chain) / misfit);
        }
    }
    BARRIER
    PHASE {
        for (int j = (int)threadIdx.x; j < spd.m; j += (int)blockDim.x)
            solution[j] = factor * half[j] + normal(sweep, (word32)j, streams.coefficients, 0, s.seed, chain);
    }
    BARRIER
    block_solve_panels(spd, c, solution, shared);
    PHASE {
        for (int j = (int)threadIdx.x; j < s.p; j += (int)blockDim.x) s.beta[(size_t)c * s.p + j] = solution[j];
        if (threadIdx.x == 0) s.intercept[c] = solution[s.p];
    }
}

// Uniform k of a slice step: word pair k mod 2 of draw k div 2 of level 0.
__device__ __forceinline__ double draw_step_uniform(const Horseshoe &s, int c, word32 stream, int k) {
    double u, v;
    uniform_pair(s.sweep[c], 0, stream, draw_word((word32)k >> 1, 0), s.seed, s.chain[c], u, v);
    return k & 1 ? v : u;
}

// The density of x = log of a scale less its old value: shape x - rate e^x + sum_j log(old e^x a_j + b_j) / 2, with
// a = local, b = slab for tau^-2, and a = 1, b = tau^-2 local for c^-2.
struct Density {
    const double *local;
    double old, rate, shape, addend;
    int p;
    bool is_slab;
    __device__ __forceinline__ double term(int j, double now) const {
        return is_slab ? log(addend * local[j] + now) : log(now * local[j] + addend);
    }
};

struct Bracket {
    double low, high, level, point;
    int tries;
    bool is_open;
};

// The density at b.point into sums[0] of thread 0; ends with a barrier.
__device__ __forceinline__ void sum_terms(const Density &density, const Bracket &b, double *sums) {
    PHASE {
        double sum = 0.0;
        const double now = density.old * exp(b.point);
        for (int j = (int)threadIdx.x; j < density.p; j += (int)blockDim.x) sum += density.term(j, now);
        sums[threadIdx.x] = sum;
    }
    BARRIER
    block_sum(sums);
}

__device__ __forceinline__ double compute_log_density(const Density &density, double x, double sum_of_logs) {
    return density.shape * x - density.old * exp(x) * density.rate + 0.5 * sum_of_logs;
}

// One slice step from 0 by shrinkage (horseshoe/slice.py): b.point is how far the log of the scale moves; 0 where
// MAX_TRIES candidates were outside. Uniforms of level 0 of the stream.
__device__ __forceinline__ void slice_scale(const Horseshoe &s, int c, word32 stream, const Density &density, Bracket &b, double *sums) {
    PHASE { if (threadIdx.x == 0) b.point = 0.0; }
    BARRIER
    sum_terms(density, b, sums);
    PHASE {
        if (threadIdx.x == 0) {
            b.level = compute_log_density(density, 0.0, sums[0]) + log(draw_step_uniform(s, c, stream, 0));
            b.low = -LOG_WIDTH * draw_step_uniform(s, c, stream, 1);
            b.high = b.low + LOG_WIDTH;
            b.tries = 0, b.is_open = true;
            b.point = b.low + (b.high - b.low) * draw_step_uniform(s, c, stream, 2);
        }
    }
    BARRIER
    while (b.is_open) {
        sum_terms(density, b, sums);
        PHASE {
            if (threadIdx.x == 0) {
                ++b.tries;
                if (compute_log_density(density, b.point, sums[0]) > b.level) {
                    b.is_open = false;
                } else {
                    if (b.point < 0.0) b.low = b.point;
                    else b.high = b.point;
                    b.is_open = b.tries < MAX_TRIES;
                    b.point = b.is_open ? b.low + (b.high - b.low) * draw_step_uniform(s, c, stream, 2 + b.tries) : 0.0;
                }
            }
        }
        BARRIER
    }
}

// lambda_j^-2 given its auxiliary variable, and with a slab by an independence step (horseshoe/prior.py).
__device__ __forceinline__ double draw_local(const Horseshoe &s, int c, int j, double rate, const Streams &streams) {
    const word32 sweep = s.sweep[c], chain = s.chain[c], level = (word32)j;
    const double drawn = exponential(sweep, level, streams.local, 0, s.seed, chain);
    if (!s.has_slab) return drawn / rate;
    const double k = s.slab[c] / s.global[c], old = s.local[(size_t)c * s.p + j], odds = sqrt(PI * k * rate);
    double u, v;
    uniform_pair(sweep, level, streams.local + 1, draw_word(0, 0), s.seed, chain, u, v);
    const double z = normal(sweep, level, streams.local + 2, 0, s.seed, chain);
    const double proposed = (u * (1.0 + odds) < odds ? 0.5 * (z * z) : drawn) / rate;
    const double old_ratio = sqrt(old + k) / (sqrt(old) + sqrt(k)), new_ratio = sqrt(proposed + k) / (sqrt(proposed) + sqrt(k));
    return v * old_ratio < new_ratio ? proposed : old;
}

__global__ void __launch_bounds__(HORSESHOE_THREADS) draw_shrinkage(Horseshoe s, Ring ring, Streams streams) {
    __shared__ double sums[HORSESHOE_THREADS], squares[HORSESHOE_THREADS], global_rate, slab_rate, overall;
    __shared__ Bracket bracket;
    const int c = (int)blockIdx.x;
    const word32 sweep = s.sweep[c], chain = s.chain[c];
    double *beta = s.beta + (size_t)c * s.p, *local = s.local + (size_t)c * s.p, *slot = find_slot(ring, sweep);
    double *auxiliary = s.local_auxiliary + (size_t)c * s.p;
    PHASE {
        double scaled = 0.0, square = 0.0;
        for (int j = (int)threadIdx.x; j < s.p; j += (int)blockDim.x) {
            const double beta_square = beta[j] * beta[j];
            local[j] = draw_local(s, c, j, auxiliary[j] + 0.5 * s.global[c] * beta_square, streams);
            auxiliary[j] = exponential(sweep, (word32)j, streams.local_auxiliary, 0, s.seed, chain) / (1.0 + local[j]);
            scaled += local[j] * beta_square, square += beta_square;
            if (slot) slot[s.places[0] + (size_t)c * s.p + j] = beta[j];
        }
        sums[threadIdx.x] = scaled, squares[threadIdx.x] = square;
    }
    BARRIER
    block_sum(sums);
    block_sum(squares);
    PHASE {
        if (threadIdx.x == 0) {
            global_rate = s.global_auxiliary[c] + 0.5 * sums[0];
            slab_rate = 0.5 * (s.slab_df * s.slab_square + squares[0]);
            if (!s.has_slab) overall = gamma(0.5 * (s.p + 1), sweep, 0, streams.global, 0, s.seed, chain) / global_rate;
        }
    }
    BARRIER
    if (s.has_slab) {
        const Density global_density = {local, s.global[c], global_rate, 0.5, s.slab[c], s.p, false};
        slice_scale(s, c, streams.global, global_density, bracket, sums);
        PHASE { if (threadIdx.x == 0) overall = s.global[c] * exp(bracket.point); }
        BARRIER
        const Density slab_density = {local, s.slab[c], slab_rate, 0.5 * s.slab_df, overall, s.p, true};
        slice_scale(s, c, streams.slab, slab_density, bracket, sums);
    }
    PHASE {
        if (threadIdx.x == 0) {
            s.global[c] = overall;
            s.global_auxiliary[c] =
                exponential(sweep, 0, streams.global_auxiliary, 0, s.seed, chain) / (s.global_precision + overall);
            if (s.has_slab) s.slab[c] = s.slab[c] * exp(bracket.point);
            if (slot) {
                slot[s.places[1] + c] = s.intercept[c];
                slot[s.places[2] + c] = overall;
                slot[s.places[3] + c] = s.slab[c];
            }
            s.sweep[c] = sweep + 1;
        }
    }
}

}  // namespace mmgibbs
