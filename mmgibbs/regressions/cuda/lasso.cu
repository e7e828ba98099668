// The Bayesian lasso (regressions/lasso.py), all chains in lockstep. With H = Z T, T = diag(tau):
//
//     p <= n:  S = I + T Z'Z T, its last row T Z'y;        fill_gram, factor, draw_by_gram, draw_scales
//     n < p:   M = I + H H', its last rows y and H z + w;  scale_rows, fill_row_gram, factor, draw_residuals,
//                                                          draw_by_rows, draw_scales
//
// Draws are those of the host, bit for bit given what they depend on; sums are in another order.
namespace mmgibbs {

const int LASSO_THREADS = 256;

struct Lasso {
    const double *gram;       // (p, p): Z'Z; null where n < p
    const double *right;      // (p): Z'y
    const double *reference;  // (p): b_0, about which the misfit is summed, as in lasso.py
    const double *residual_right;  // (p): Z'r, r = y - Z b_0
    const VALUE *values;      // (n, p); null where p <= n
    const double *centre;     // (p): Z = (values - centre) / scale * root
    const double *scale;      // (p)
    const double *root;       // (n): square roots of the weights; null where each is 1
    const double *y;          // (n)
    REAL *H;                  // (C, n, p)
    double *residuals;        // (C, n): M^-1 (y - v), or half and x of the coefficients (C, p)
    double *beta;             // (C, p)
    double *tau2;             // (C, p)
    double *sigma2;           // (C)
    double *lambda2;          // (C)
    double *alpha;            // (C)
    word32 *sweep;            // (C): number of the sweep that is next
    const word32 *chain;      // (C): second word of the key of each chain
    unsigned *arrived;        // of a cooperative launch
    double residual_square;   // r'r
    double mean;              // of the response
    double n_records;
    double residual_shape;    // with half of n - 1
    double residual_scale;
    double penalty_shape;     // with p
    double penalty_rate;
    unsigned long long places[4];  // in a slot of the ring: beta, sigma2, lambda2, alpha
    word32 seed;
    int n;
    int p;
    int is_penalty_sampled;
};

// The matrices of p <= n, lower triangles: a thread an element.
__global__ void __launch_bounds__(LASSO_THREADS) fill_gram(Lasso s, Spd spd) {
    PHASE {
        const size_t step = (size_t)gridDim.x * blockDim.x, matrix_size = (size_t)spd.n_rows * spd.m;
        for (size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x; at < matrix_size * spd.n_matrices; at += step) {
            const int c = (int)(at / matrix_size), i = (int)(at % matrix_size / s.p), j = (int)(at % s.p);
            const double *tau2 = s.tau2 + (size_t)c * s.p;
            if (i == s.p) spd.A[at] = sqrt(tau2[j]) * s.right[j];
            else if (j <= i) spd.A[at] = s.gram[(size_t)i * s.p + j] * sqrt(tau2[i]) * sqrt(tau2[j]) + (i == j ? 1.0 : 0.0);
            if (at == 0) *s.arrived = 0;
        }
    }
}

// H = Z T in the type of the products: a thread an element.
__global__ void __launch_bounds__(LASSO_THREADS) scale_rows(Lasso s, Spd spd) {
    PHASE {
        const size_t step = (size_t)gridDim.x * blockDim.x, chain_size = (size_t)s.n * s.p;
        for (size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x; at < chain_size * spd.n_matrices; at += step) {
            const int i = (int)(at % chain_size / s.p), j = (int)(at % s.p);
            const REAL away = (REAL)s.values[(size_t)i * s.p + j] - (REAL)s.centre[j];
            const REAL scaled = away * (REAL)(sqrt(s.tau2[at / chain_size * s.p + j]) / s.scale[j]);
            s.H[at] = s.root ? scaled * (REAL)s.root[i] : scaled;
            if (at == 0) *s.arrived = 0;
        }
    }
}

// The matrices of n < p and the two rows below, of a tile of TILE x TILE elements a block; products in REAL, sums in
// float64. The last tiles across have the rows below, element j of row n + 1 by thread j.
__global__ void __launch_bounds__(LASSO_THREADS) fill_row_gram(Lasso s, Spd spd, word32 coefficients, word32 noise) {
    __shared__ REAL rows[TILE][PANEL + 1], columns[TILE][PANEL + 1];
    __shared__ double sums[TILE * TILE], z[PANEL];
    const int tiles = (s.n + TILE - 1) / TILE, chain_size = tiles * (tiles + 1);
    for (int work = (int)blockIdx.x; work < chain_size * spd.n_matrices; work += (int)gridDim.x) {
        const int c = work / chain_size, down = work % chain_size / (tiles + 1), across = work % (tiles + 1);
        const bool is_below = across == tiles;
        if (across > down && !is_below) continue;
        const REAL *H = s.H + (size_t)c * s.n * s.p;
        double *A = spd.A + (size_t)c * spd.n_rows * spd.m;
        PHASE { for (int at = (int)threadIdx.x; at < TILE * TILE; at += (int)blockDim.x) sums[at] = 0.0; }
        BARRIER
        for (int first = 0; first < s.p; first += PANEL) {
            PHASE {
                for (int at = (int)threadIdx.x; at < TILE * PANEL; at += (int)blockDim.x) {
                    const int i = at / PANEL, k = at % PANEL, top = down * TILE + i, start = across * TILE + i;
                    const bool is_column = first + k < s.p;
                    rows[i][k] = is_column && top < s.n ? H[(size_t)top * s.p + first + k] : (REAL)0;
                    columns[i][k] = is_column && start < s.n ? H[(size_t)start * s.p + first + k] : (REAL)0;
                }
                if (is_below)
                    for (int k = (int)threadIdx.x; k < PANEL; k += (int)blockDim.x)
                        if (first + k < s.p)
                            z[k] = normal(s.sweep[c], (word32)(first + k), coefficients, 0, s.seed, s.chain[c]);
            }
            BARRIER
            PHASE {
                if (is_below) {
                    for (int i = (int)threadIdx.x; i < TILE; i += (int)blockDim.x)
                        for (int k = 0; k < PANEL && first + k < s.p; ++k) sums[i] += (double)rows[i][k] * z[k];
                } else {
                    for (int at = (int)threadIdx.x; at < TILE * TILE; at += (int)blockDim.x) {
                        double sum = sums[at];
                        for (int k = 0; k < PANEL; ++k) sum += (double)(rows[at / TILE][k] * columns[at % TILE][k]);
                        sums[at] = sum;
                    }
                }
            }
            BARRIER
        }
        PHASE {
            for (int at = (int)threadIdx.x; at < (is_below ? TILE : TILE * TILE); at += (int)blockDim.x) {
                if (is_below) {
                    const int i = down * TILE + at;
                    if (i >= s.n) continue;
                    A[(size_t)s.n * s.n + i] = s.y[i];
                    A[(size_t)(s.n + 1) * s.n + i] =
                        sums[at] + normal(s.sweep[c], (word32)i, noise, 0, s.seed, s.chain[c]);
                } else {
                    const int i = down * TILE + at / TILE, l = across * TILE + at % TILE;
                    if (i < s.n && l <= i) A[(size_t)i * s.n + l] = sums[at] + (i == l ? 1.0 : 0.0);
                }
            }
        }
        BARRIER
    }
}

// sigma2 of chain c, from the misfit that is the sum of `sums`, and r'r where p <= n; ends with a barrier.
__device__ __forceinline__ void draw_residual_variance(const Lasso &s, int c, double *sums, word32 residual) {
    block_sum(sums);
    PHASE {
        if (threadIdx.x == 0) {
            const double misfit = s.gram ? s.residual_square + sums[0] : sums[0];
            const double drawn = gamma(s.residual_shape, s.sweep[c], 0, residual, 0, s.seed, s.chain[c]);
            s.sigma2[c] = (s.residual_scale + 0.5 * misfit) / drawn;
        }
    }
    BARRIER
}

// beta = T L'^-1 (L^-1 T Z'y + sigma z), after sigma2 from x = L'^-1 L^-1 T Z'y and u = T x - b_0: a block a chain.
__global__ void __launch_bounds__(LASSO_THREADS) draw_by_gram(Lasso s, Spd spd, word32 residual, word32 coefficients) {
    __shared__ double sums[LASSO_THREADS], shared[SOLVE_VALUES];
    const int c = (int)blockIdx.x;
    const double *half = spd.A + ((size_t)c * spd.n_rows + spd.m) * spd.m;
    double *x = s.residuals + (size_t)c * s.p, *u = s.beta + (size_t)c * s.p;
    PHASE { for (int j = (int)threadIdx.x; j < s.p; j += (int)blockDim.x) x[j] = half[j]; }
    BARRIER
    block_solve_panels(spd, c, x, shared);
    PHASE {
        for (int j = (int)threadIdx.x; j < s.p; j += (int)blockDim.x)
            u[j] = sqrt(s.tau2[(size_t)c * s.p + j]) * x[j] - s.reference[j];
    }
    BARRIER
    PHASE {
        double sum = 0.0;
        for (int j = (int)threadIdx.x; j < s.p; j += (int)blockDim.x) {
            double product = 0.0;
            for (int i = 0; i < s.p; ++i) product += s.gram[(size_t)i * s.p + j] * u[i];
            sum += product * u[j] - 2.0 * u[j] * s.residual_right[j] + x[j] * x[j];
        }
        sums[threadIdx.x] = sum;
    }
    BARRIER
    draw_residual_variance(s, c, sums, residual);
    PHASE {
        for (int j = (int)threadIdx.x; j < s.p; j += (int)blockDim.x)
            x[j] = half[j] + sqrt(s.sigma2[c]) * normal(s.sweep[c], (word32)j, coefficients, 0, s.seed, s.chain[c]);
    }
    BARRIER
    block_solve_panels(spd, c, x, shared);
    PHASE {
        for (int j = (int)threadIdx.x; j < s.p; j += (int)blockDim.x)
            s.beta[(size_t)c * s.p + j] = sqrt(s.tau2[(size_t)c * s.p + j]) * x[j];
    }
}

// sigma2, NaN behind a pivot of M that is too large, and M^-1 (y - v), v = sigma (H z + w): a block a chain.
__global__ void __launch_bounds__(LASSO_THREADS) draw_residuals(Lasso s, Spd spd, word32 residual) {
    __shared__ double sums[LASSO_THREADS], shared[SOLVE_VALUES];
    const int c = (int)blockIdx.x;
    const double *half = spd.A + ((size_t)c * spd.n_rows + spd.m) * spd.m, *noise_half = half + spd.m;
    const double *diagonals = spd.diagonals + (size_t)c * spd.panels() * PANEL * PANEL;
    double *x = s.residuals + (size_t)c * s.n;
    PHASE {
        double sum = 0.0;
        for (int i = (int)threadIdx.x; i < s.n; i += (int)blockDim.x) {
            const double root = diagonals[(size_t)i * PANEL + i % PANEL];
            sum += root * root < LARGEST_PIVOT ? half[i] * half[i] : not_a_number();
        }
        sums[threadIdx.x] = sum;
    }
    BARRIER
    draw_residual_variance(s, c, sums, residual);
    PHASE {
        for (int i = (int)threadIdx.x; i < s.n; i += (int)blockDim.x) x[i] = half[i] - sqrt(s.sigma2[c]) * noise_half[i];
    }
    BARRIER
    block_solve_panels(spd, c, x, shared);
}

// beta = tau (sigma z + H' M^-1 (y - v)): a thread a coefficient.
__global__ void __launch_bounds__(LASSO_THREADS) draw_by_rows(Lasso s, Spd spd, word32 coefficients) {
    PHASE {
        const size_t step = (size_t)gridDim.x * blockDim.x;
        for (size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x; at < (size_t)s.p * spd.n_matrices; at += step) {
            const int c = (int)(at / s.p), j = (int)(at % s.p);
            const double *x = s.residuals + (size_t)c * s.n;
            const REAL *H = s.H + (size_t)c * s.n * s.p + j;
            double sum = 0.0;
            for (int i = 0; i < s.n; ++i) sum += (double)H[(size_t)i * s.p] * x[i];
            const double z = normal(s.sweep[c], (word32)j, coefficients, 0, s.seed, s.chain[c]);
            s.beta[at] = sqrt(s.tau2[at]) * (sqrt(s.sigma2[c]) * z + sum);
        }
    }
}

// alpha, tau2 and lambda2, the kept draw, and the number of the next sweep: a block a chain.
__global__ void __launch_bounds__(LASSO_THREADS) draw_scales(Lasso s, Ring ring, word32 intercept, word32 local, word32 global) {
    __shared__ double sums[LASSO_THREADS];
    const int c = (int)blockIdx.x;
    const word32 sweep = s.sweep[c], chain = s.chain[c];
    const double sigma = sqrt(s.sigma2[c]), lambda2 = s.lambda2[c];
    double *beta = s.beta + (size_t)c * s.p, *tau2 = s.tau2 + (size_t)c * s.p, *slot = find_slot(ring, sweep);
    PHASE {
        double sum = 0.0;
        for (int j = (int)threadIdx.x; j < s.p; j += (int)blockDim.x) {
            const double size = magnitude(beta[j]), mean = sqrt(lambda2) * sigma / (size < SMALLEST_COEFFICIENT ? SMALLEST_COEFFICIENT : size);
            tau2[j] = 1.0 / inverse_gaussian(mean, lambda2, sweep, (word32)j, local, 0, s.seed, chain);
            sum += tau2[j];
            if (slot) slot[s.places[0] + (size_t)c * s.p + j] = beta[j];
        }
        sums[threadIdx.x] = sum;
    }
    BARRIER
    block_sum(sums);
    PHASE {
        if (threadIdx.x == 0) {
            s.alpha[c] = s.mean + sigma / sqrt(s.n_records) * normal(sweep, 0, intercept, 0, s.seed, chain);
            if (s.is_penalty_sampled)
                s.lambda2[c] = gamma(s.penalty_shape, sweep, 0, global, 0, s.seed, chain) / (s.penalty_rate + 0.5 * sums[0]);
            if (slot) {
                slot[s.places[1] + c] = s.sigma2[c];
                slot[s.places[2] + c] = s.lambda2[c];
                slot[s.places[3] + c] = s.alpha[c];
            }
            s.sweep[c] = sweep + 1;
        }
    }
}

}  // namespace mmgibbs
