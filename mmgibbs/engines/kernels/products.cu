// What leaves the device after a sweep: sums over all levels or records, moments of the locations, chosen rows.
//
// A sum is made in two stages. A strand adds every strands-th element (scaling_strands: chunk of records) and leaves its
// sums in scratch[m][s]; of quadratic forms and residuals a block adds those of its threads at once, in their order.
// Then fold_strands, or the draw that needs the sums, adds what is left as a tree. The number of strands depends on the
// model alone, and so does the order of the sum.

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

// sums[m][block] = the sum of the strands of this block, scratch[m][first], ...
__device__ inline void add_strands_of_block(const double *scratch, word32 strands, int n, double *sums) {
    PHASE {
        const word32 first = blockIdx.x * blockDim.x, last = first + blockDim.x < strands ? first + blockDim.x : strands;
        for (int m = (int)threadIdx.x; m < n; m += (int)blockDim.x) {
            double sum = 0.0;
            for (word32 s = first; s < last; ++s) sum += scratch[(size_t)m * strands + s];
            sums[(size_t)m * gridDim.x + blockIdx.x] = sum;
        }
    }
}

// Theta' K^-1 Theta, lower triangle; dense: what K^-1 has beside its lists.
template <int K, class Kin>
__global__ void __launch_bounds__(THREADS)
    quadratic_strands(Term<K> term, Kin kin, DenseRows dense, word32 n, word32 strands, double *scratch, double *sums) {
    PHASE {
        const word32 s = blockIdx.x * blockDim.x + threadIdx.x;
        if (s < strands) {
            double sum[K * (K + 1) / 2], left[K], right[K];
            for (int m = 0; m < K * (K + 1) / 2; ++m) sum[m] = 0.0;
            for (word32 level = s; level < n; level += strands) {
                quadratic_rows<K>(kin, level, term.theta, left, right);
                for (int a = 0; a < K; ++a)
                    for (int b = 0; b <= a; ++b) sum[a * (a + 1) / 2 + b] += left[a] * right[b];
                if (dense.rows && level - dense.first < dense.n) {
                    const double *row = dense.rows + (size_t)(level - dense.first) * K;
                    load_row<K>(term.theta, level, right);
                    for (int a = 0; a < K; ++a)
                        for (int b = 0; b <= a; ++b) sum[a * (a + 1) / 2 + b] += row[a] * right[b];
                }
            }
            for (int m = 0; m < K * (K + 1) / 2; ++m) scratch[(size_t)m * strands + s] = sum[m];
        }
    }
    BARRIER
    add_strands_of_block(scratch, strands, K * (K + 1) / 2, sums);
}

// What a record's missing residuals are drawn from, e = fill e_observed + noise z / sqrt(w), and which class it is in.
struct Augmentation {
    const double *fill;             // (patterns, T, T)
    const double *noise;            // (patterns, T, T)
    const unsigned char *complete;  // (patterns)
    const int *class_of_pattern;    // (patterns)
    int n_classes;
    word32 stream;
};

// sum += w_r e_r e_r' of one record, its missing residuals augmented; lower triangle.
template <int T>
__device__ __forceinline__ void add_residual(const Records &records, const Augmentation &augmentation, word32 r,
                                             const double (&e)[T], const word32 *counter,
                                             double (&sum)[T * (T + 1) / 2]) {
    const word32 p = records.pattern[r];
    const double w = records.weight ? (double)records.weight[r] : 1.0;
    double f[T];
    if (augmentation.complete[p]) {
        for (int t = 0; t < T; ++t) f[t] = e[t];
    } else {
        double z[T + 1];
        for (int t = 0; t < T; t += 2)
            normal_pair(counter[0], records.record[r], augmentation.stream, t >> 1, counter[1], counter[2], z[t], z[t + 1]);
        for (int t = 0; t < T; ++t) {
            double drawn = 0.0, expected = 0.0;
            for (int u = 0; u < T; ++u) {
                drawn += augmentation.noise[((size_t)p * T + t) * T + u] * z[u];
                expected += augmentation.fill[((size_t)p * T + t) * T + u] * e[u];
            }
            f[t] = expected + drawn / sqrt(w);
        }
    }
    for (int t = 0; t < T; ++t)
        for (int u = 0; u <= t; ++u) sum[t * (t + 1) / 2 + u] += w * f[t] * f[u];
}

// What a record does before its residuals are summed: nothing, or it follows a term that moves (moves.cu).
struct StandStill {
    template <int T>
    __device__ __forceinline__ void move(const Records &, word32) const {}
};

// sum_r w_r e_r e_r' of each class; moved: what moves each record first.
template <int T, class Moved>
__device__ __forceinline__ void sum_residuals(const Moved &moved, const Records &records, const Augmentation &augmentation,
                                              const word32 *counter, word32 strands, double *scratch, double *sums) {
    const int size = T * (T + 1) / 2;
    PHASE {
        const word32 s = blockIdx.x * blockDim.x + threadIdx.x;
        for (int c = 0; s < strands && c < augmentation.n_classes; ++c) {
            double sum[T * (T + 1) / 2], e[T];
            for (int m = 0; m < size; ++m) sum[m] = 0.0;
            for (word32 r = s; r < records.n; r += strands) {
                if (augmentation.n_classes > 1 && augmentation.class_of_pattern[records.pattern[r]] != c) continue;
                moved.template move<T>(records, r);
                load_row<T>(records.e, r, e);
                add_residual<T>(records, augmentation, r, e, counter, sum);
            }
            for (int m = 0; m < size; ++m) scratch[((size_t)c * size + m) * strands + s] = sum[m];
        }
    }
    BARRIER
    add_strands_of_block(scratch, strands, size * augmentation.n_classes, sums);
}

template <int T>
__global__ void __launch_bounds__(THREADS) residual_strands(Records records, Augmentation augmentation, const word32 *counter,
                                                            word32 strands, double *scratch, double *sums) {
    sum_residuals<T>(StandStill(), records, augmentation, counter, strands, scratch, sums);
}

// The same behind the move of a term's levels by D, which move_levels makes afterwards: e is read once.
template <int K, int T>
__global__ void __launch_bounds__(THREADS)
    moved_residual_strands(MovedTerm<K> moved, Records records, Augmentation augmentation, const word32 *counter,
                           word32 strands, double *scratch, double *sums) {
    sum_residuals<T>(moved, records, augmentation, counter, strands, scratch, sums);
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

// Records that a block looks at together: as many as so many numbers of each have room for.
__device__ constexpr int records_at_once(int elements) {
    int records = THREADS;
    while (records > 1 && elements * (records + 1) * 8 > 32768) records /= 2;
    return records;
}

// Normal equations of the elements: H_ij = sum_r w_r Rinv_t(i),t(j) x_i x_j for j <= i, row by row, then s_i = sum_r
// w_r x_i (Rinv e_r)_t(i). A block finds the x of some records, then each thread adds up one sum over them; where there
// are more threads than sums, groups of threads share the records out. Blocks take the sums THREADS at a time: block b
// those of turn b mod turns, for strand b div turns. `levels` (n, effects): the level that each record meets.
template <int K, int T>
__global__ void __launch_bounds__(THREADS)
    scaling_strands(Term<K> term, Records records, const word32 *levels, int effects, const double *deviation,
                    Elements elements, word32 strands, double *scratch) {
    constexpr int MOST = K * (K + 1) / 2, AT_ONCE = records_at_once(MOST + T);
    __shared__ double x[MOST][AT_ONCE + 1], u[T][AT_ONCE], w[AT_ONCE], total[THREADS];  // + 1: each row in other banks
    __shared__ word32 pattern[AT_ONCE];
    const int p = elements.p, pairs = p * (p + 1) / 2, sums = pairs + p, turns = (sums + THREADS - 1) / THREADS;
    const int first_sum = (int)(blockIdx.x % turns) * THREADS;
    const int mine = sums - first_sum < THREADS ? sums - first_sum : THREADS, groups = THREADS / mine;
    const word32 strand = blockIdx.x / turns;
    PHASE {
        total[threadIdx.x] = 0.0;
    }
    for (word32 turn = strand; turn <= (records.n - 1) / AT_ONCE; turn += strands) {
        const word32 first = turn * AT_ONCE, left = records.n - first;
        const int n = left < AT_ONCE ? (int)left : AT_ONCE;
        BARRIER
        PHASE {
            const int r = threadIdx.x;
            if (r < n) {
                const size_t record = first + r;
                for (int effect = 0; effect < effects; ++effect) {
                    const word32 level = levels[record * effects + effect];
                    for (int i = 0; i < p; ++i)
                        if (elements.effect[i] == effect) {
                            const size_t at = (size_t)level * K + elements.component[i];
                            double seen = 0.0;
                            if (level != UNKNOWN) {
                                seen = deviation ? deviation[at] : (double)term.theta[at];
                                if (term.covariates)
                                    seen *= (double)term.covariates[record * term.regressors + elements.regressor[i]];
                            }
                            x[i][r] = seen;
                        }
                }
                double e[T];
                load_row<T>(records.e, first + r, e);
                pattern[r] = records.pattern[first + r];
                w[r] = records.weight ? (double)records.weight[first + r] : 1.0;
                const double *Rinv = records.Rinv + (size_t)pattern[r] * (T * T);
                for (int t = 0; t < T; ++t) {
                    u[t][r] = 0.0;
                    for (int s = 0; s < T; ++s) u[t][r] += Rinv[t * T + s] * e[s];
                }
            }
        }
        BARRIER
        PHASE {
            const int m = first_sum + (int)threadIdx.x % mine, group = (int)threadIdx.x / mine;
            if (group < groups) {
                double sum = total[threadIdx.x];
                if (m < pairs) {
                    int i = (int)((sqrt(8.0 * m + 1.0) - 1.0) / 2.0);
                    if ((i + 1) * (i + 2) / 2 <= m) ++i;
                    const int j = m - i * (i + 1) / 2, of = elements.trait[i] * T + elements.trait[j];
                    for (int r = group; r < n; r += groups)
                        sum += records.Rinv[(size_t)pattern[r] * (T * T) + of] * (w[r] * x[i][r] * x[j][r]);
                } else {
                    const int i = m - pairs, t = elements.trait[i];
                    for (int r = group; r < n; r += groups) sum += w[r] * x[i][r] * u[t][r];
                }
                total[threadIdx.x] = sum;
            }
        }
    }
    BARRIER
    PHASE {
        if ((int)threadIdx.x < mine) {
            double sum = 0.0;
            for (int group = 0; group < groups; ++group) sum += total[threadIdx.x + group * mine];
            scratch[(size_t)(first_sum + (int)threadIdx.x) * strands + strand] = sum;
        }
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
