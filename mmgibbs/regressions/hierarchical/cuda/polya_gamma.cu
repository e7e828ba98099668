namespace mmgibbs {

// All coefficients of a class at once given Polya-Gamma variables (polya_gamma.py). omega of class k: site (sweep, number
// of the observation, latent + k); coefficients: site (sweep, group, stream + k). Equal to the host's up to rounding.
__global__ void __launch_bounds__(MAX_VISIT_THREADS) polya_gamma_groups(Groups g, Hyperprior prior, Chains chains, Ring ring,
                                                                        word32 n_visits, word32 latent, word32 stream) {
    __shared__ double means[MAX_COEFFICIENTS];
    double *omega = g.scratch + blockIdx.x * g.scratch_values, *pull = omega + g.longest, *P = pull + g.longest;
    for (word32 number = blockIdx.x; number < n_visits; number += gridDim.x) {
        const Visit v = find_visit(g, chains, number);
        const int D = g.n_columns, d = chains.d, n = v.n;
        const word32 sweep = chains.sweep[v.chain], key = chains.chain[v.chain];
        double *rhs = P + (size_t)D * D;  // the row below P
        if (v.Q[0] != v.Q[0]) continue;
        compute_group_mean(prior, chains, v, means);
        for (int k = 0; k < g.n_classes; ++k) {
            PHASE {
                for (int r = (int)threadIdx.x; r < n; r += (int)blockDim.x) {
                    const double t = g.trials ? g.trials[v.first + r] : 1.0;
                    const double log_sum = g.n_classes > 1 ? log_sum_except(g, v.X, n, r, v.beta, k) : 0.0;
                    const double psi = linear_predictor(g, v.X, n, r, v.beta + k * D) - log_sum;
                    omega[r] = polya_gamma((long long)t, psi, sweep, (word32)(v.first + r), latent + (word32)k, 0, chains.seed, key);
                    pull[r] = omega[r] * log_sum - 0.5 * t;
                }
            }
            BARRIER
            PHASE {
                for (int at = (int)threadIdx.x; at < (D + 1) * D; at += (int)blockDim.x) {
                    const int i = at / D, j = at % D;
                    if (i == D) {
                        double total = g.cross[(size_t)v.group * d + k * D + j];
                        for (int m = 0; m < d; ++m)
                            total -= v.Q[(k * D + j) * d + m] * ((m / D == k ? 0.0 : v.beta[m]) - means[m]);
                        for (int r = 0; r < n; ++r) total += predictor(g, v.X, n, j, r) * pull[r];
                        rhs[j] = total;
                    } else if (j <= i) {
                        double total = 0.0;
                        for (int r = 0; r < n; ++r)
                            total += predictor(g, v.X, n, j, r) * omega[r] * predictor(g, v.X, n, i, r);
                        P[at] = v.Q[(k * D + i) * d + k * D + j] + total;
                    }
                }
            }
            BARRIER
            block_cholesky(P, D, D + 1);
            PHASE {
                for (int j = (int)threadIdx.x; j < D; j += (int)blockDim.x)
                    rhs[j] += normal(sweep, v.group, stream + (word32)k, (word32)j, chains.seed, key);
            }
            BARRIER
            block_solve_transposed(P, rhs, D);
            PHASE { for (int j = (int)threadIdx.x; j < D; j += (int)blockDim.x) v.beta[k * D + j] = rhs[j]; }
            BARRIER
        }
        keep_group(ring, g, chains, v, sweep);
    }
}

}  // namespace mmgibbs
