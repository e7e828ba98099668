// Population and covariance given the coefficients of all groups: the twin of population.py, operation by operation.
namespace mmgibbs {

const int POPULATION_THREADS = 256, MAX_SHARED_COEFFICIENTS = 32;

__device__ __forceinline__ int find_first_item(int element, unsigned long long first, int n_elements) {
    const int place = element - (int)(first % n_elements);
    return place < 0 ? place + n_elements : place;
}

// Sums of `terms.of(i, e)` over the groups i for each element e < n_elements, into `totals`: pieces of GROUPS_OF_A_PIECE
// groups by a thread each, then over the pieces in their order. sums: shared, one for each thread.
template <class Terms>
__device__ __forceinline__ void sum_over_groups(const Terms &terms, word32 n_groups, int n_elements, double *sums, double *totals) {
    const unsigned long long n_items = (unsigned long long)((n_groups + GROUPS_OF_A_PIECE - 1) / GROUPS_OF_A_PIECE) * n_elements;
    PHASE { for (int e = (int)threadIdx.x; e < n_elements; e += (int)blockDim.x) totals[e] = 0.0; }
    BARRIER
    for (unsigned long long first = 0; first < n_items; first += blockDim.x) {
        PHASE {
            const unsigned long long item = first + threadIdx.x;
            if (item < n_items) {
                const word32 begin = (word32)(item / n_elements) * GROUPS_OF_A_PIECE;
                const word32 end = begin + GROUPS_OF_A_PIECE < n_groups ? begin + GROUPS_OF_A_PIECE : n_groups;
                double total = 0.0;
                for (word32 i = begin; i < end; ++i) total += terms.of(i, (int)(item % n_elements));
                sums[threadIdx.x] = total;
            }
        }
        BARRIER
        PHASE {
            for (int e = (int)threadIdx.x; e < n_elements; e += (int)blockDim.x)
                for (int k = find_first_item(e, first, n_elements); k < (int)blockDim.x && first + k < n_items; k += n_elements)
                    totals[e] += sums[k];
        }
        BARRIER
    }
}

struct WeightedCoefficients {  // W_k B
    const double *weights, *beta;
    int d;
    __device__ __forceinline__ double of(word32 i, int e) const { return weights[i] * beta[(size_t)i * d + e]; }
};

struct Products {  // lower triangle of away'away
    const double *away;
    int d;
    __device__ __forceinline__ double of(word32 i, int e) const {
        int row = (int)((sqrt(8.0 * e + 1.0) - 1.0) * 0.5);
        while (row * (row + 1) / 2 > e) --row;
        while ((row + 1) * (row + 2) / 2 <= e) ++row;
        const double *group_row = away + (size_t)i * d;
        return group_row[row] * group_row[e - row * (row + 1) / 2];
    }
};

__device__ __forceinline__ double *matrices(const Chains &chains, word32 chain, int q, int number, double *shared) {
    const size_t size = (size_t)3 * (chains.d + 1) * chains.d;
    return chains.work ? chains.work + ((size_t)chain * (q + 1) + number) * size : shared;
}

// Row k of R: a block for each chain and row. Normals: levels k d ... of the stream.
__global__ void __launch_bounds__(POPULATION_THREADS) draw_rows(Groups g, Hyperprior prior, Chains chains, word32 stream) {
    __shared__ double sums[POPULATION_THREADS], totals[MAX_COEFFICIENTS];
    __shared__ double shared_matrices[(MAX_SHARED_COEFFICIENTS + 1) * MAX_SHARED_COEFFICIENTS];
    const word32 c = blockIdx.x / (word32)prior.q;
    const int k = (int)(blockIdx.x % (word32)prior.q), d = chains.d;
    double *P = matrices(chains, c, prior.q, k, shared_matrices), *rhs = P + (size_t)d * d;
    const double *Q = chains.Q + (size_t)c * d * d;
    const WeightedCoefficients terms = {prior.W + (size_t)k * g.n_groups, chains.beta + (size_t)c * g.n_groups * d, d};
    sum_over_groups(terms, g.n_groups, d, sums, totals);
    PHASE {
        for (int at = (int)threadIdx.x; at < (d + 1) * d; at += (int)blockDim.x) {
            const int i = at / d, j = at % d;
            if (i == d) {
                double total = 0.0;
                for (int b = 0; b < d; ++b) total += Q[j * d + b] * totals[b];
                rhs[j] = total;
            } else if (j < i) {
                P[at] = prior.eigenvalues[k] * Q[at];
            } else if (j == i) {
                P[at] = prior.eigenvalues[k] * Q[at] + prior.ridge;
            }
        }
    }
    BARRIER
    block_cholesky(P, d, d + 1);
    PHASE {
        for (int a = (int)threadIdx.x; a < d; a += (int)blockDim.x)
            rhs[a] += normal(chains.sweep[c], (word32)(k * d + a), stream, 0, chains.seed, chains.chain[c]);
    }
    BARRIER
    block_solve_transposed(P, rhs, d);
    PHASE { for (int a = (int)threadIdx.x; a < d; a += (int)blockDim.x) chains.rows[((size_t)c * prior.q + k) * d + a] = rhs[a]; }
}

// Delta = U R, V and Q of a chain, the kept draw, and the number of the next sweep: a block for each chain.
__global__ void __launch_bounds__(POPULATION_THREADS) draw_hyperparameters(Groups g, Hyperprior prior, Chains chains, Ring ring,
                                                                          word32 stream) {
    __shared__ double sums[POPULATION_THREADS], shared_matrices[3 * (MAX_SHARED_COEFFICIENTS + 1) * MAX_SHARED_COEFFICIENTS];
    const word32 c = blockIdx.x, sweep = chains.sweep[c];
    const int d = chains.d, q = prior.q;
    double *S = matrices(chains, c, q, q, shared_matrices), *T = S + (size_t)(d + 1) * d, *A = T + (size_t)(d + 1) * d;
    double *population = chains.population + (size_t)c * q * d, *V = chains.covariance + (size_t)c * d * d;
    double *Q = chains.Q + (size_t)c * d * d, *away = chains.away + (size_t)c * g.n_groups * d;
    const double *rows = chains.rows + (size_t)c * q * d, *beta = chains.beta + (size_t)c * g.n_groups * d;
    PHASE {
        for (int at = (int)threadIdx.x; at < q * d; at += (int)blockDim.x) {
            double total = 0.0;
            for (int k = 0; k < q; ++k) total += prior.U[at / d * q + k] * rows[k * d + at % d];
            population[at] = total;
        }
    }
    BARRIER
    PHASE {
        for (size_t at = threadIdx.x; at < (size_t)g.n_groups * d; at += blockDim.x) {
            double mean = 0.0;
            for (int k = 0; k < q; ++k) mean += prior.Z[at / d * q + k] * population[k * d + (int)(at % d)];
            away[at] = beta[at] - mean;
        }
    }
    BARRIER
    const Products terms = {away, d};
    sum_over_groups(terms, g.n_groups, d * (d + 1) / 2, sums, A);
    PHASE {
        for (int at = (int)threadIdx.x; at < d * d; at += (int)blockDim.x) {
            const int i = at / d, j = at % d;
            if (j <= i) S[at] = j == i ? prior.scale + A[i * (i + 1) / 2 + j] : A[i * (i + 1) / 2 + j];
        }
    }
    BARRIER
    block_inverse_wishart(prior.nu, S, 0, T, V, d, sweep, 0, 0, stream, chains.seed, chains.chain[c]);
    PHASE { for (int at = (int)threadIdx.x; at < d * d; at += (int)blockDim.x) S[at] = V[at]; }
    BARRIER
    block_invert(S, T, Q, d);
    double *slot = find_slot(ring, sweep);
    PHASE {
        if (slot) {
            for (int at = (int)threadIdx.x; at < q * d; at += (int)blockDim.x) slot[(size_t)c * q * d + at] = population[at];
            for (int at = (int)threadIdx.x; at < d * d; at += (int)blockDim.x) slot[chains.covariance_place + (size_t)c * d * d + at] = V[at];
        }
        if (threadIdx.x == 0) chains.sweep[c] = sweep + 1;
    }
}

// Q of every chain, before the first sweep.
__global__ void __launch_bounds__(POPULATION_THREADS) invert_covariances(Chains chains, int q) {
    __shared__ double shared_matrices[2 * (MAX_SHARED_COEFFICIENTS + 1) * MAX_SHARED_COEFFICIENTS];
    const word32 c = blockIdx.x;
    const int d = chains.d;
    double *S = matrices(chains, c, q, q, shared_matrices), *M = S + (size_t)(d + 1) * d;
    PHASE { for (int at = (int)threadIdx.x; at < d * d; at += (int)blockDim.x) S[at] = chains.covariance[(size_t)c * d * d + at]; }
    BARRIER
    block_invert(S, M, chains.Q + (size_t)c * d * d, d);
}

}  // namespace mmgibbs
