// Draws of covariance matrices (sampler/covariances.py) and their interweaving (sampler/interweave.py) on the device, so
// that a sweep with sampled variances is one graph: small matrices, each by one block of threads.
//
//     draw_covariances  G of the terms given Theta' K^-1 Theta: a block a term
//     draw_scaling      M of one term by a Metropolis step, and G = M G M'
//     draw_residuals    R of each class given the sums of squares and products of its residuals; R^-1 of each missing
//                       pattern, and what augments its missing residuals; what end_sweep does, where it is the last
//     draw_auxiliaries  auxiliary variables of scale priors; what end_sweep does
//     end_sweep         the kept draw, and the number of the next sweep
//     set_scales, invert_matrices   what all of these leave besides the values, before the first sweep
//
// A matrix that cannot be drawn or inverted is noted in `lost`, first sweep first, and the sweep goes on.

namespace mmgibbs {

const word32 SWEEPS_APART = 20;  // from one draw that is independent of the matrix before to the next, as in covariances.py

// A covariance matrix: where it is, its prior, and the sums that it is drawn from.
struct Matrix {
    double *now;            // (k, k)
    double *inverse;        // (k, k)
    double *scale;          // (k, k) S of its prior
    const double *degrees;  // (blocks) of freedom, those of the data included
    const int *members;     // (k) components, block by block
    const int *first;       // (blocks + 1) of each block among the members
    const int *unit;        // (blocks) which of its members has the variance 1 by convention; -1: none
    const double *strands;  // (k (k + 1) / 2, n_strands): sums of squares and products
    double *work;           // (12, k, k)
    word32 n_strands;
    word32 stream;
    word32 first_row;       // of its draws
    word32 number;          // for messages
    int k;
    int n_blocks;
    int is_sampled;
};

// How a trait is observed, one of categories, bounds or counts (the others are null), and what its liability depends on.
struct Response {
    const short *category;   // (n): -1 where not observed
    const double *lower;     // (n)
    const double *upper;     // (n)
    const double *count;     // (n)
    const double *exposure;  // (n)
    double *cuts;            // (K + 1): -inf, t_1, ..., inf
    double *proposed;        // (K + 1)
    double *B;               // (patterns, T): the mean of the residual given the others is B e,
    double *s;               // (patterns): its standard deviation at weight 1; 0 where the trait is missing
    REAL *y;                 // (n, T)
    word32 stream;
    int trait;
    int T;
};

// A missing pattern of each row: what its records know of R.
struct Patterns {
    const unsigned char *observed;  // (n, T)
    const int *matrix;              // (n): the residual matrix of its class
    const int *block;               // (matrices, T): the block of each trait
    double *Rinv;                   // (n, T, T)
    double *fill;                   // (n, T, T): e = fill e_observed + noise z / sqrt(w)
    double *noise;                  // (n, T, T)
    double *work;                   // (n, T, T)
    int *traits;                    // (n, T)
    const Response *responses;
    int n;
    int T;
    int n_responses;
};

// L of a term whose effects are scaled: its elements (row, column), and log prior and Jacobian as exponents of l_ii.
struct Scaling {
    const int *row;           // (p)
    const int *column;        // (p)
    const double *exponents;  // (k)
    const double *strands;    // (p (p + 1) / 2 + p, n_strands): lower triangle of H, then s
    double *work;             // (2 p + 2, p)
    double *change;           // (k, k): M - I, then 1 where it is not 0
    double *accepted;         // whether it was accepted
    word32 n_strands;
    word32 stream;
    int p;
};

__device__ inline bool is_finite_matrix(const double *A, int k) {
    for (int at = 0; at < k * k; ++at)
        if (!(magnitude(A[at]) < infinity())) return false;
    return true;
}

// out[m] = the sum of row m of (n, n_strands), as a tree over the threads.
__device__ inline void fold_rows(const double *strands, word32 n_strands, int n, double *out) {
    __shared__ double part[1][THREADS];
    for (int m = 0; m < n; ++m) {
        PHASE {
            double sum = 0.0;
            for (word32 s = threadIdx.x; s < n_strands; s += blockDim.x) sum += strands[(size_t)m * n_strands + s];
            part[0][threadIdx.x] = sum;
        }
        BARRIER
        sum_over_threads<1>(part);
        PHASE { if (threadIdx.x == 0) out[m] = part[0][0]; }
        BARRIER
    }
}

// inverse = now^-1.
__device__ inline void invert_matrix(const Matrix &m, word32 sweep, bits64 *lost) {
    double *V = m.work, *X = m.work + m.k * m.k;
    PHASE { for (int at = (int)threadIdx.x; at < m.k * m.k; at += (int)blockDim.x) V[at] = m.now[at]; }
    BARRIER
    block_invert(V, X, m.inverse, m.k);
    PHASE {
        if (threadIdx.x == 0 && !(is_finite_matrix(m.now, m.k) && is_finite_matrix(m.inverse, m.k)))
            atomicMin(lost, (bits64)sweep << 32 | m.number);
    }
    BARRIER
}

const word32 OF_B = 1 << 16;  // added to the level of a draw, as in unit_diagonals.py

// R (k, k) with R_uu = 1 into `drawn`, given W (k, k) and its degrees of freedom: sampler/unit_diagonals.py, for one such u.
// With f the others, D ~ IW(degrees, W_ff - W_fu W_uf / W_uu), B ~ N(W_uf / W_uu, D / W_uu), R_uf = B, R_ff = D + B'B.
// work (7, k, k) is overwritten.
__device__ inline void draw_beside_unit(const Matrix &m, double degrees, const double *W, int u, int k, const int *members,
                                        const word32 *counter, double *work, double *drawn) {
    const int n = k - 1, size = k * k;
    const word32 row = m.first_row + (word32)members[0];
    double *S = work, *D = work + size, *L = work + 2 * size, *B = work + 3 * size, *more = work + 4 * size;
    PHASE {
        for (int at = (int)threadIdx.x; at < n * n; at += (int)blockDim.x) {
            const int i = at / n + (at / n >= u), j = at % n + (at % n >= u);
            S[at] = W[i * k + j] - W[u * k + i] * (W[u * k + j] / W[u * k + u]);
        }
    }
    BARRIER
    block_inverse_wishart(degrees, S, 0, more, D, n, counter[0], m.first_row, members, m.stream, counter[1], counter[2]);
    block_factor(D, L, n, 0.0);
    PHASE {
        for (int j = (int)threadIdx.x; j < n; j += (int)blockDim.x) {
            double sum = 0.0;
            for (int l = 0; l <= j; ++l)
                sum += normal(counter[0], row + OF_B, m.stream, (word32)l, counter[1], counter[2]) * L[j * n + l];
            B[j] = W[u * k + j + (j >= u)] / W[u * k + u] + sum / sqrt(W[u * k + u]);
        }
    }
    BARRIER
    PHASE {
        for (int at = (int)threadIdx.x; at < size; at += (int)blockDim.x) {
            const int i = at / k, j = at % k, a = i - (i > u), b = j - (j > u);
            drawn[at] = i == u && j == u ? 1.0 : i == u ? B[b] : j == u ? B[a] : (D[a * n + b] + D[b * n + a]) / 2 + B[a] * B[b];
        }
    }
    BARRIER
}

// The matrix given its sums, block by block; elements outside of blocks become 0.
__device__ inline void draw_matrix(const Matrix &m, const word32 *counter, bits64 *lost) {
    const int k = m.k, size = k * k;
    const word32 sweep = counter[0];
    double *products = m.work, *before = m.work + size, *S = m.work + 2 * size, *now = m.work + 3 * size;
    double *drawn = m.work + 4 * size, *work = m.work + 5 * size;
    fold_rows(m.strands, m.n_strands, k * (k + 1) / 2, products);
    PHASE {
        for (int at = (int)threadIdx.x; at < size; at += (int)blockDim.x) {
            before[at] = m.now[at];
            m.now[at] = 0.0;
        }
    }
    BARRIER
    for (int b = 0; b < m.n_blocks; ++b) {
        const int *members = m.members + m.first[b], kb = m.first[b + 1] - m.first[b];
        PHASE {
            for (int at = (int)threadIdx.x; at < kb * kb; at += (int)blockDim.x) {
                const int i = members[at / kb], j = members[at % kb], row = i > j ? i : j, column = i > j ? j : i;
                S[at] = m.scale[i * k + j] + products[row * (row + 1) / 2 + column];
                now[at] = before[i * k + j];
            }
        }
        BARRIER
        const bool is_independent = sweep <= SWEEPS_APART || sweep % SWEEPS_APART == 0;
        if (m.unit[b] >= 0) draw_beside_unit(m, m.degrees[b], S, m.unit[b], kb, members, counter, work, drawn);
        else
            block_inverse_wishart(m.degrees[b], S, is_independent ? 0 : now, work, drawn, kb, sweep, m.first_row, members, m.stream,
                                  counter[1], counter[2]);
        PHASE {
            for (int at = (int)threadIdx.x; at < kb * kb; at += (int)blockDim.x)
                m.now[members[at / kb] * k + members[at % kb]] = drawn[at];
        }
        BARRIER
    }
    invert_matrix(m, sweep, lost);
}

__global__ void __launch_bounds__(THREADS) draw_covariances(const Matrix *matrices, const word32 *counter, bits64 *lost) {
    draw_matrix(matrices[blockIdx.x], counter, lost);
}

// sum_i exponents_i log|l_ii| - tr(S G^-1) / 2, G = L L'; X (k, k) is overwritten.
__device__ inline double log_factors(const double *L, const double *exponents, const double *S, double *X, int k) {
    double total = 0.0;
    for (int i = 0; i < k; ++i) {
        total += exponents[i] * log(magnitude(L[i * k + i]));
        for (int j = 0; j <= i; ++j) {
            double t = i == j ? 1.0 : 0.0;
            for (int m = j; m < i; ++m) t -= L[i * k + m] * X[m * k + j];
            X[i * k + j] = t / L[i * k + i];
        }
        for (int a = 0; a <= i; ++a)
            for (int b = 0; b <= i; ++b) total -= 0.5 * X[i * k + a] * S[a * k + b] * X[i * k + b];
    }
    return total;
}

// By one thread: a proposal for M, (k, k), and whether it is accepted. H = factor factor', G = L L'.
__device__ inline bool propose_scaling(const Matrix &m, const Scaling &s, const double *factor, const double *L,
                                       const double *right, double *at, const word32 *counter, double *M, double *moved_L,
                                       double *X) {
    const int k = m.k, p = s.p;
    if (!(factor[p * p - 1] > 0.0 && L[k * k - 1] > 0.0)) return false;
    const double now = log_factors(L, s.exponents, m.scale, X, k);
    for (int a = 0; a < p; ++a) {
        at[a] = 0.0;
        for (int b = 0; b < a; ++b) at[a] -= factor[a * p + b] * at[b];
        at[a] = (at[a] + right[a]) / factor[a * p + a];
    }
    for (int a = p - 1; a >= 0; --a) {  // the elements' changes take the place of `at`
        double change = TOWARDS_MEAN * at[a] + NOISE * normal(counter[0], 0, s.stream, (word32)a, counter[1], counter[2]);
        for (int b = a + 1; b < p; ++b) change -= factor[b * p + a] * at[b];
        at[a] = change / factor[a * p + a];
    }
    for (int a = 0; a < k * k; ++a) M[a] = a / k == a % k ? 1.0 : 0.0;
    for (int a = 0; a < p; ++a) M[s.row[a] * k + s.column[a]] = at[a] + (s.row[a] == s.column[a] ? 1.0 : 0.0);
    for (int a = 0; a < k; ++a)
        for (int b = 0; b <= a; ++b) {
            moved_L[a * k + b] = 0.0;
            for (int c = b; c <= a; ++c) moved_L[a * k + b] += M[a * k + c] * L[c * k + b];
        }
    const double then = log_factors(moved_L, s.exponents, m.scale, X, k);
    double u, unused;
    uniform_pair(counter[0], 1, s.stream, draw_word(0, 0), counter[1], counter[2], u, unused);
    return log(u) < then - now;
}

__global__ void __launch_bounds__(THREADS) draw_scaling(const Matrix *matrices, Scaling s, const word32 *counter, bits64 *lost) {
    __shared__ bool is_accepted;
    const Matrix &m = matrices[0];
    const int k = m.k, p = s.p, size = k * k, n_pairs = p * (p + 1) / 2;
    double *H = s.work, *factor = H + p * p, *at = factor + p * p, *right = at + p;
    double *M = m.work, *L = M + size, *moved_L = L + size, *X = moved_L + size;
    fold_rows(s.strands, s.n_strands, n_pairs, factor);
    fold_rows(s.strands + (size_t)n_pairs * s.n_strands, s.n_strands, p, right);
    PHASE {
        for (int a = (int)threadIdx.x; a < p * p; a += (int)blockDim.x)
            if (a % p <= a / p) H[a] = factor[a / p * (a / p + 1) / 2 + a % p];
    }
    BARRIER
    block_factor(H, factor, p, SINGULAR);
    block_factor(m.now, L, k, SINGULAR);
    PHASE {
        if (threadIdx.x == 0) {
            is_accepted = propose_scaling(m, s, factor, L, right, at, counter, M, moved_L, X);
            *s.accepted = is_accepted ? 1.0 : 0.0;
            s.change[size] = *s.accepted;
        }
    }
    BARRIER
    if (!is_accepted) return;
    PHASE {
        for (int a = (int)threadIdx.x; a < size; a += (int)blockDim.x) {
            s.change[a] = M[a] - (a / k == a % k ? 1.0 : 0.0);
            X[a] = 0.0;
            for (int c = 0; c < k; ++c) X[a] += M[a / k * k + c] * m.now[c * k + a % k];
        }
    }
    BARRIER
    PHASE {
        for (int a = (int)threadIdx.x; a < size; a += (int)blockDim.x) {
            const int i = a / k, j = a % k;
            double upper = 0.0, lower = 0.0;
            for (int c = 0; c < k; ++c) {
                upper += X[i * k + c] * M[j * k + c];
                lower += X[j * k + c] * M[i * k + c];
            }
            m.now[a] = (upper + lower) / 2;
        }
    }
    BARRIER
    invert_matrix(m, counter[0], lost);
}

// R[P, P]^-1 of a pattern, 0 elsewhere, by sweeping each observed trait: models/design.py.
__device__ inline void invert_observed(const double *R, const unsigned char *observed, double *A, int T) {
    for (int at = 0; at < T * T; ++at) A[at] = observed[at / T] && observed[at % T] ? R[at] : 0.0;
    for (int m = 0; m < T; ++m) {
        if (!observed[m]) continue;
        const double pivot = A[m * T + m] > 0.0 ? 1.0 / A[m * T + m] : not_a_number();
        for (int i = 0; i < T; ++i) {
            if (i == m) continue;
            const double multiple = A[i * T + m] * pivot;
            for (int j = 0; j < T; ++j)
                if (j != m) A[i * T + j] -= multiple * A[m * T + j];
            A[i * T + m] = -multiple;
        }
        for (int j = 0; j < T; ++j) A[m * T + j] *= pivot;
        A[m * T + m] = pivot;
    }
    for (int i = 0; i < T; ++i)
        for (int j = 0; j <= i; ++j) A[i * T + j] = A[j * T + i] = (A[i * T + j] + A[j * T + i]) / 2;
}

// Lower factor of R of n traits, in the order given; NaN behind a pivot that is not above 0.
__device__ inline void factor_traits(const double *R, const int *traits, int n, double *L, int T) {
    for (int j = 0; j < n; ++j) {
        double d = R[traits[j] * T + traits[j]];
        for (int m = 0; m < j; ++m) d -= L[j * T + m] * L[j * T + m];
        L[j * T + j] = d > 0.0 ? sqrt(d) : not_a_number();
        for (int i = j + 1; i < n; ++i) {
            double s = R[traits[i] * T + traits[j]];
            for (int m = 0; m < j; ++m) s -= L[i * T + m] * L[j * T + m];
            L[i * T + j] = s / L[j * T + j];
        }
    }
}

// fill and noise of a pattern: engines/augment.py.
__device__ inline void augment_pattern(const double *R, const Patterns &q, int pattern, const int *block) {
    const int T = q.T;
    const unsigned char *observed = q.observed + (size_t)pattern * T;
    double *fill = q.fill + (size_t)pattern * T * T, *noise = q.noise + (size_t)pattern * T * T;
    double *L = q.work + (size_t)pattern * T * T;
    int *traits = q.traits + (size_t)pattern * T;
    for (int at = 0; at < T * T; ++at) fill[at] = noise[at] = 0.0;
    for (int b = 0; b < T; ++b) {
        int n = 0, o = 0;
        for (int side = 1; side >= 0; --side) {  // observed traits of the block come first
            for (int t = 0; t < T; ++t)
                if (block[t] == b && (observed[t] != 0) == (side == 1)) traits[n++] = t;
            if (side == 1) o = n;
        }
        for (int i = 0; i < o; ++i) fill[traits[i] * T + traits[i]] = 1.0;
        if (o == 0 || o == n) continue;
        factor_traits(R, traits, n, L, T);
        for (int i = o; i < n; ++i) {
            double *row = fill + traits[i] * T;
            for (int j = o - 1; j >= 0; --j) {
                double s = L[i * T + j];
                for (int m = j + 1; m < o; ++m) s -= row[traits[m]] * L[m * T + j];
                row[traits[j]] = s / L[j * T + j];
            }
            for (int j = o; j <= i; ++j) noise[traits[i] * T + traits[j]] = L[i * T + j];
        }
    }
}

// What the residual of a trait depends on given its others: engines/liabilities.py, conditional_residuals.
__device__ inline void condition_pattern(const Response &of, const Patterns &q, int pattern) {
    const double *row = q.Rinv + ((size_t)pattern * q.T + of.trait) * q.T;
    const bool is_missing = row[of.trait] == 0.0;
    for (int o = 0; o < q.T; ++o) of.B[(size_t)pattern * q.T + o] = is_missing || o == of.trait ? 0.0 : -row[o] / row[of.trait];
    of.s[pattern] = is_missing ? 0.0 : 1.0 / sqrt(row[of.trait]);
}

__device__ inline void renew_patterns(const Matrix *residuals, const Patterns &q) {
    PHASE {
        for (int p = (int)threadIdx.x; p < q.n; p += (int)blockDim.x) {
            const double *R = residuals[q.matrix[p]].now;
            invert_observed(R, q.observed + (size_t)p * q.T, q.Rinv + (size_t)p * q.T * q.T, q.T);
            augment_pattern(R, q, p, q.block + q.matrix[p] * q.T);
            for (int m = 0; m < q.n_responses; ++m) condition_pattern(q.responses[m], q, p);
        }
    }
    BARRIER
}

// What a chain keeps of its draws: `values`, one after another, into the slot of the sweep.
struct Kept {
    const double *values;
    word32 n_values;
    Ring ring;
};

// The kept draw; then the next sweep begins.
__device__ inline void finish_sweep(const Kept &kept, word32 *counter) {
    double *slot = find_slot(kept.ring, counter[0]);
    PHASE {
        for (word32 at = threadIdx.x; slot && at < kept.n_values; at += blockDim.x) slot[at] = kept.values[at];
    }
    BARRIER
    PHASE { if (threadIdx.x == 0) counter[0] += 1; }
}

__global__ void __launch_bounds__(THREADS) draw_residuals(const Matrix *residuals, int n_matrices, Patterns q, Kept kept,
                                                          int is_last, word32 *counter, bits64 *lost) {
    for (int c = 0; c < n_matrices; ++c)
        if (residuals[c].is_sampled) draw_matrix(residuals[c], counter, lost);
    renew_patterns(residuals, q);
    if (is_last) finish_sweep(kept, counter);
}

// Auxiliary variables of the prior of a matrix: models/priors/mixture.py.
struct Auxiliaries {
    double *values;            // (k)
    double *scale;             // (k, k) S of the matrix, which they make
    const double *now;         // (k, k) the matrix
    const double *inverse;     // (k, k)
    const double *sizes;       // (k) of the block of each component
    const double *precisions;  // (k) 1 / unit
    double nu;
    double factor;
    double extra_shape;        // of a draw, beyond (nu + size) / 2
    word32 stream;
    word32 first_row;
    int k;
    int is_inverse;            // values are 1 / w, else w
    int is_of_one;             // k = 1, whose precision is 1 / G
};

// S given the auxiliary variable of a component.
__device__ __forceinline__ void set_scale(const Auxiliaries &of, int i) {
    of.scale[i * of.k + i] = 2.0 * of.factor * (of.is_inverse ? 1.0 / of.values[i] : of.values[i]);
}

__device__ inline void draw_auxiliary(const Auxiliaries &of, int i, const word32 *counter) {
    const double precision = of.is_of_one ? 1.0 / of.now[0] : of.inverse[i * of.k + i];
    const double shape = 0.5 * (of.nu + of.sizes[i]) + of.extra_shape;
    const double rate = of.factor * precision + of.precisions[i];
    const double drawn = gamma(shape, counter[0], of.first_row + (word32)i, of.stream, 0, counter[1], counter[2]) / rate;
    of.values[i] = of.is_inverse ? 1.0 / drawn : drawn;
    set_scale(of, i);
}

__global__ void __launch_bounds__(THREADS) set_scales(const Auxiliaries *auxiliaries, int n) {
    PHASE {
        for (int m = 0; m < n; ++m)
            for (int i = (int)threadIdx.x; i < auxiliaries[m].k; i += (int)blockDim.x) set_scale(auxiliaries[m], i);
    }
}

// The last of a sweep.
__global__ void __launch_bounds__(THREADS) draw_auxiliaries(const Auxiliaries *auxiliaries, int n, Kept kept, word32 *counter) {
    PHASE {
        for (int m = 0; m < n; ++m)
            for (int i = (int)threadIdx.x; i < auxiliaries[m].k; i += (int)blockDim.x)
                draw_auxiliary(auxiliaries[m], i, counter);
    }
    BARRIER
    finish_sweep(kept, counter);
}

__global__ void __launch_bounds__(THREADS) end_sweep(Kept kept, word32 *counter) { finish_sweep(kept, counter); }

__global__ void __launch_bounds__(THREADS)
    invert_matrices(const Matrix *matrices, int n_matrices, const Matrix *residuals, int n_residuals, Patterns q,
                    const word32 *counter, bits64 *lost) {
    for (int m = 0; m < n_matrices; ++m) invert_matrix(matrices[m], counter[0], lost);
    for (int c = 0; c < n_residuals; ++c) invert_matrix(residuals[c], counter[0], lost);
    renew_patterns(residuals, q);
}

}  // namespace mmgibbs
