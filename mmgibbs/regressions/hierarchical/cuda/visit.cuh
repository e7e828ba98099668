// What a block works on in a visit: a group of a chain.
namespace mmgibbs {

const int MAX_VISIT_THREADS = 128;

__device__ __forceinline__ double predictor(const Groups &g, const VALUE *X, int n, int j, int r) {
    return ((double)X[(size_t)j * n + r] - g.centre[j]) * g.factor[j];
}

// The linear predictor of class k of observation r.
__device__ __forceinline__ double linear_predictor(const Groups &g, const VALUE *X, int n, int r, const double *b) {
    double eta = 0.0;
    for (int j = 0; j < g.n_columns; ++j) eta += predictor(g, X, n, j, r) * b[j];
    return eta;
}

// log sum over classes other than k, the one without coefficients among them, of exp(eta); 0 where that is the only one.
__device__ __forceinline__ double log_sum_except(const Groups &g, const VALUE *X, int n, int r, const double *beta, int k) {
    double largest = 0.0, total = 1.0;
    for (int m = 0; m < g.n_classes; ++m) {
        if (m == k) continue;
        const double eta = linear_predictor(g, X, n, r, beta + m * g.n_columns);
        if (eta > largest) {
            total = total * exp(largest - eta) + 1.0;
            largest = eta;
        } else {
            total += exp(eta - largest);
        }
    }
    return largest + log(total);
}

// What a block works on: a group of a chain.
struct Visit {
    const VALUE *X;  // (D, n) as stored
    double *beta;    // (d)
    const double *Q; // (d, d)
    size_t first;    // number of the group's first observation
    int n;
    word32 group, chain;
};

__device__ __forceinline__ Visit find_visit(const Groups &g, const Chains &chains, word32 number) {
    Visit v;
    v.group = number % g.n_groups, v.chain = number / g.n_groups;
    v.first = (size_t)g.ptr[v.group], v.n = (int)(g.ptr[v.group + 1] - g.ptr[v.group]);
    v.X = g.columns + (size_t)g.n_columns * v.first;
    v.beta = chains.beta + (size_t)number * chains.d;
    v.Q = chains.Q + (size_t)v.chain * chains.d * chains.d;
    return v;
}

// means = the prior's mean of the coefficients of a group, Delta'z.
__device__ __forceinline__ void compute_group_mean(const Hyperprior &prior, const Chains &chains, const Visit &v, double *means) {
    PHASE {
        for (int a = (int)threadIdx.x; a < chains.d; a += (int)blockDim.x) {
            double total = 0.0;
            for (int k = 0; k < prior.q; ++k)
                total += prior.Z[(size_t)v.group * prior.q + k] * chains.population[((size_t)v.chain * prior.q + k) * chains.d + a];
            means[a] = total;
        }
    }
    BARRIER
}

__device__ __forceinline__ void keep_group(const Ring &ring, const Groups &g, const Chains &chains, const Visit &v, word32 sweep) {
    double *slot = chains.beta_place ? find_slot(ring, sweep) : 0;
    if (!slot) return;
    PHASE {
        for (int a = (int)threadIdx.x; a < chains.d; a += (int)blockDim.x)
            slot[chains.beta_place + ((size_t)v.chain * g.n_groups + v.group) * chains.d + a] = v.beta[a];
    }
    BARRIER
}

}  // namespace mmgibbs
