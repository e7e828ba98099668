// All levels of a term moved at once: theta_l += change_l, and e_r -= W_r change of every record.
//
// Two passes, over records first, each of which finds what its levels will move by, then over levels, which move. So
// both are streams: no list of visits is read, long or short. `levels` (n, effects): the level that each record meets.

namespace mmgibbs {

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

// What a level moves by: theta itself where D is null (e = y - W theta from scratch), else what the stored precision
// can hold of D deviation_l, of D theta_l where deviation is null.
template <int K>
__device__ __forceinline__ void change_of_level(const Term<K> &term, word32 level, const double *D,
                                                const double *deviation, double (&change)[K]) {
    double theta[K];
    load_row<K>(term.theta, level, theta);
    for (int a = 0; a < K; ++a) {
        if (!D) {
            change[a] = theta[a];
            continue;
        }
        double moved = 0.0;
        for (int b = 0; b <= a; ++b)
            moved += D[a * K + b] * (deviation ? deviation[(size_t)level * K + b] : theta[b]);
        change[a] = (double)(REAL)(theta[a] + moved) - theta[a];
    }
}

// e_r -= W_r change.
template <int K, int T>
__global__ void __launch_bounds__(THREADS) move_records(Term<K> term, Records records, const word32 *levels,
                                                        int effects, const double *D, const double *deviation) {
    PHASE {
        const word32 r = blockIdx.x * blockDim.x + threadIdx.x;
        if (r < records.n) {
            REAL *row = records.e + (size_t)r * T;
            REAL e[T];
            double change[K];
            for (int t = 0; t < T; ++t) e[t] = row[t];
            for (int effect = 0; effect < effects; ++effect) {
                const word32 level = levels[(size_t)r * effects + effect];
                if (level == UNKNOWN) continue;
                change_of_level<K>(term, level, D, deviation, change);
                follow<K, T>(term, r, effect, change, e);
            }
            for (int t = 0; t < T; ++t) row[t] = e[t];
        }
    }
}

// theta_l += change.
template <int K>
__global__ void __launch_bounds__(THREADS)
    move_levels(Term<K> term, word32 n, const double *D, const double *deviation) {
    PHASE {
        const word32 level = blockIdx.x * blockDim.x + threadIdx.x;
        if (level < n) {
            double change[K];
            change_of_level<K>(term, level, D, deviation, change);
            shift<K>(term.theta, level, change);
        }
    }
}

}  // namespace mmgibbs
