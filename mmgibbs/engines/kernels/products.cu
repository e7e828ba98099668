// What leaves the device after a sweep: sums over all levels or records, moments of the locations, chosen rows.
//
// A sum is made in two stages. Strand s adds the elements s, s + strands, s + 2 strands, ... one after another and
// leaves its sums in scratch[m][s]; fold_strands adds the strands as a tree. The number of strands is fixed, so the
// order of the sum is.

namespace mmgibbs {

// Theta' K^-1 Theta = sum_l left right': left = own_l m_l, right = m_l for a pedigree; left = sum_m kappa_lm theta_m,
// right = theta_l else.
template <int K>
__device__ __forceinline__ void quadratic_rows(const Pedigree &kin, word32 level, const REAL *theta, double (&left)[K],
                                               double (&right)[K]) {
    const word32 parents[2] = {kin.sire[level], kin.dam[level]};
    load_row<K>(theta, level, right);
    for (int side = 0; side < 2; ++side)
        if (parents[side] != UNKNOWN) {
            double parent[K];
            load_row<K>(theta, parents[side], parent);
            for (int c = 0; c < K; ++c) right[c] -= 0.5 * parent[c];
        }
    const double own = (double)kin.own[level];
    for (int c = 0; c < K; ++c) left[c] = own * right[c];
}

template <int K, class Kin>
__device__ __forceinline__ void quadratic_rows(const Kin &kin, word32 level, const REAL *theta, double (&left)[K],
                                               double (&right)[K]) {
    whole_row<K>(kin, level, theta, left);
    load_row<K>(theta, level, right);
}

// Theta' K^-1 Theta, lower triangle.
template <int K, class Kin>
__global__ void __launch_bounds__(THREADS)
    quadratic_strands(Term<K> term, Kin kin, word32 n, word32 strands, double *scratch) {
    PHASE {
        const word32 s = blockIdx.x * blockDim.x + threadIdx.x;
        if (s < strands) {
            double sum[K * (K + 1) / 2], left[K], right[K];
            for (int m = 0; m < K * (K + 1) / 2; ++m) sum[m] = 0.0;
            for (word32 level = s; level < n; level += strands) {
                quadratic_rows<K>(kin, level, term.theta, left, right);
                for (int a = 0; a < K; ++a)
                    for (int b = 0; b <= a; ++b) sum[a * (a + 1) / 2 + b] += left[a] * right[b];
            }
            for (int m = 0; m < K * (K + 1) / 2; ++m) scratch[(size_t)m * strands + s] = sum[m];
        }
    }
}

// sum_r w_r e_r e_r' with the missing residuals of record r augmented, e = fill e_obs + noise z / sqrt(w); lower
// triangle.
template <int T>
__global__ void __launch_bounds__(THREADS)
    residual_strands(Records records, const double *fill, const double *noise, const unsigned char *complete,
                     word32 stream, const word32 *counter, word32 strands, double *scratch) {
    PHASE {
        const word32 s = blockIdx.x * blockDim.x + threadIdx.x;
        if (s < strands) {
            double sum[T * (T + 1) / 2], f[T], e[T];
            for (int m = 0; m < T * (T + 1) / 2; ++m) sum[m] = 0.0;
            for (word32 r = s; r < records.n; r += strands) {
                const word32 p = records.pattern[r];
                const double w = records.weight ? (double)records.weight[r] : 1.0;
                load_row<T>(records.e, r, e);
                if (complete[p]) {
                    for (int t = 0; t < T; ++t) f[t] = e[t];
                } else {
                    double z[T + 1];
                    for (int t = 0; t < T; t += 2)
                        normal_pair(counter[0], records.record[r], stream, t >> 1, counter[1], counter[2], z[t],
                                    z[t + 1]);
                    for (int t = 0; t < T; ++t) {
                        double drawn = 0.0, expected = 0.0;
                        for (int u = 0; u < T; ++u) {
                            drawn += noise[((size_t)p * T + t) * T + u] * z[u];
                            expected += fill[((size_t)p * T + t) * T + u] * e[u];
                        }
                        f[t] = expected + drawn / sqrt(w);
                    }
                }
                for (int t = 0; t < T; ++t)
                    for (int u = 0; u <= t; ++u) sum[t * (t + 1) / 2 + u] += w * f[t] * f[u];
            }
            for (int m = 0; m < T * (T + 1) / 2; ++m) scratch[(size_t)m * strands + s] = sum[m];
        }
    }
}

// Elements (c, j) of a linear change theta_l -> M theta_l (scaling.py): element i moves trait[i] by x_i =
// z_r,regressor[i] theta_l,component[i].
struct Elements {
    const int *effect;     // (p) of each element
    const int *regressor;  // (p)
    const int *component;  // (p)
    const int *trait;      // (p)
    int p;
};

template <int K>
__device__ __forceinline__ double seen(const Term<K> &term, const word32 *levels, int effects, const double *deviation,
                                       const Elements &elements, word32 r, int i) {
    const word32 level = levels[(size_t)r * effects + elements.effect[i]];
    if (level == UNKNOWN) return 0.0;
    const size_t at = (size_t)level * K + elements.component[i];
    const double x = deviation ? deviation[at] : (double)term.theta[at];
    return term.covariates ? x * (double)term.covariates[(size_t)r * term.regressors + elements.regressor[i]] : x;
}

// Row i of the normal equations of the elements: H_ij = sum_r w_r Rinv_t(i),t(j) x_i x_j for j <= i, then s_i = sum_r
// w_r x_i (Rinv e_r)_t(i). Blocks take the rows in turn: block b works at row b mod p of strands b div p. `levels` (n,
// effects): the level that each record meets.
template <int K, int T>
__global__ void __launch_bounds__(THREADS)
    scaling_strands(Term<K> term, Records records, const word32 *levels, int effects, const double *deviation,
                    Elements elements, word32 strands, double *scratch) {
    const int p = elements.p, i = blockIdx.x % p;
    PHASE {
        const word32 s = blockIdx.x / p * blockDim.x + threadIdx.x;
        if (s < strands) {
            double sum[K * (K + 1) / 2], right = 0.0;
            for (int j = 0; j <= i; ++j) sum[j] = 0.0;
            for (word32 r = s; r < records.n; r += strands) {
                const double x = seen<K>(term, levels, effects, deviation, elements, r, i);
                if (x == 0.0) continue;
                const double wx = (records.weight ? (double)records.weight[r] : 1.0) * x;
                const double *Rinv = records.Rinv + ((size_t)records.pattern[r] * T + elements.trait[i]) * T;
                for (int j = 0; j <= i; ++j)
                    sum[j] +=
                        Rinv[elements.trait[j]] * (wx * seen<K>(term, levels, effects, deviation, elements, r, j));
                double e[T], u = 0.0;
                load_row<T>(records.e, r, e);
                for (int t = 0; t < T; ++t) u += Rinv[t] * e[t];
                right += wx * u;
            }
            for (int j = 0; j <= i; ++j) scratch[((size_t)i * (i + 1) / 2 + j) * strands + s] = sum[j];
            scratch[((size_t)p * (p + 1) / 2 + i) * strands + s] = right;
        }
    }
}

// levels[r, effect] = the level that record r meets through an effect; UNKNOWN must be there before.
template <int K>
__global__ void __launch_bounds__(THREADS) record_levels(Term<K> term, word32 n, int effects, word32 *levels) {
    PHASE {
        const word32 level = blockIdx.x * blockDim.x + threadIdx.x;
        if (level < n)
            for (word32 v = term.visit_ptr[level]; v < term.visit_ptr[level + 1]; ++v)
                levels[(size_t)term.visit_record[v] * effects + (term.visit_effect ? term.visit_effect[v] : 0)] = level;
    }
}

// out[b] = sum of row b of scratch.
__global__ void __launch_bounds__(THREADS) fold_strands(const double *scratch, word32 strands, double *out) {
    __shared__ double part[1][THREADS];
    PHASE {
        double sum = 0.0;
        for (word32 s = threadIdx.x; s < strands; s += blockDim.x) sum += scratch[(size_t)blockIdx.x * strands + s];
        part[0][threadIdx.x] = sum;
    }
    BARRIER
    sum_over_threads<1>(part);
    PHASE {
        if (threadIdx.x == 0) out[blockIdx.x] = part[0][0];
    }
}

// Welford's update of the batch in progress; `inverse` is one over the draws in it, this one included
// (posterior/moments.py).
template <class Value>
__global__ void __launch_bounds__(THREADS)
    add_draw(const Value *x, bits64 n, double inverse, double *batch_mean, double *within) {
    PHASE {
        const bits64 i = (bits64)blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) {
            const double value = (double)x[i], deviation = value - batch_mean[i];
            const double updated = batch_mean[i] + deviation * inverse;
            within[i] += deviation * (value - updated);
            batch_mean[i] = updated;
        }
    }
}

// Welford's update of the batch means; the next batch starts at 0.
__global__ void __launch_bounds__(THREADS)
    close_batch(bits64 n, double inverse, double *batch_mean, double *between_mean, double *between) {
    PHASE {
        const bits64 i = (bits64)blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) {
            const double deviation = batch_mean[i] - between_mean[i];
            const double updated = between_mean[i] + deviation * inverse;
            between[i] += deviation * (batch_mean[i] - updated);
            between_mean[i] = updated;
            batch_mean[i] = 0.0;
        }
    }
}

// out[to[i]] = rows[i] (scatter) or out[i] = rows[to[i]] (gather), rows of k values.
template <class Value>
__global__ void __launch_bounds__(THREADS)
    move_rows(const Value *rows, const word32 *to, word32 n, int k, int scatter, Value *out) {
    PHASE {
        const bits64 i = (bits64)blockIdx.x * blockDim.x + threadIdx.x;
        if (i < (bits64)n * k) {
            const bits64 here = i, there = (bits64)to[i / k] * k + i % k;
            if (scatter)
                out[there] = rows[here];
            else
                out[here] = rows[there];
        }
    }
}

// On the way to the user's scale: doubles.
__global__ void __launch_bounds__(THREADS) widen(const REAL *theta, bits64 n, double *out) {
    PHASE {
        const bits64 i = (bits64)blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) out[i] = (double)theta[i];
    }
}

// Undo an orthonormalisation: out[l, columns] = theta[l, columns] matrix' (design.Rescale).
__global__ void __launch_bounds__(THREADS)
    rescale(const REAL *theta, word32 n, int k, const int *columns, int m, const double *matrix, double *out) {
    PHASE {
        const word32 level = blockIdx.x * blockDim.x + threadIdx.x;
        if (level < n)
            for (int i = 0; i < m; ++i) {
                double s = 0.0;
                for (int j = 0; j < m; ++j) s += (double)theta[(size_t)level * k + columns[j]] * matrix[i * m + j];
                out[(size_t)level * k + columns[i]] = s;
            }
    }
}

// A column of Theta (n, k) on its way to the user's scale: where it is in force.
struct Column {
    double *theta;
    const unsigned char *active;  // (n, k); null where every component is in force
    word32 n;
    int k;
    int component;
};

// Undo a centring (design.CentringShift): minus sum_j means[s(l), j] source[s(l), components[j]].
__global__ void __launch_bounds__(THREADS)
    recentre(Column out, const double *source, int source_k, const word32 *source_level, const int *components,
             const double *means, int m) {
    PHASE {
        const word32 level = blockIdx.x * blockDim.x + threadIdx.x;
        const size_t at = (size_t)level * out.k + out.component;
        if (level < out.n && (!out.active || out.active[at])) {
            const size_t s = source_level[level];
            double shift = 0.0;
            for (int j = 0; j < m; ++j) shift += means[s * m + j] * source[s * source_k + components[j]];
            out.theta[at] -= shift;
        }
    }
}

__global__ void __launch_bounds__(THREADS) add_offset(Column out, double value) {
    PHASE {
        const word32 level = blockIdx.x * blockDim.x + threadIdx.x;
        const size_t at = (size_t)level * out.k + out.component;
        if (level < out.n && (!out.active || out.active[at])) out.theta[at] += value;
    }
}

}  // namespace mmgibbs
