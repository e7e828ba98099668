// All levels of a term moved at once: theta_l += change_l, and e_r -= W_r change of every record.
//
// Two passes, over records first, each of which finds what its levels will move by, then over levels, which move. So
// both are streams: no list of visits is read, long or short. `levels` (n, effects): the level that each record meets.
// D (K, K), and behind it 0 where nothing moves.

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
__device__ __forceinline__ double change_of_component(const REAL *theta, int a, const double *row, const double *deviation) {
    double moved = 0.0;
    for (int b = 0; b <= a; ++b) moved += row[b] * (deviation ? deviation[b] : (double)theta[b]);
    return (double)(REAL)((double)theta[a] + moved) - (double)theta[a];
}

// A term whose levels move by D deviation; its records follow.
template <int K>
struct MovedTerm {
    Term<K> term;
    const word32 *levels;     // (n, effects)
    const double *D;          // (K, K) and a flag, or null
    const double *deviation;  // (q, K), or null
    int effects;

    template <int T>
    __device__ __forceinline__ void move(const Records &records, word32 r) const {
        if (D && D[K * K] == 0.0) return;
        REAL *row = records.e + (size_t)r * T;
        REAL e[T];
        double change[K];
        for (int t = 0; t < T; ++t) e[t] = row[t];
        for (int effect = 0; effect < effects; ++effect) {
            const word32 level = levels[(size_t)r * effects + effect];
            if (level == UNKNOWN) continue;
            const REAL *theta = term.theta + (size_t)level * K;
            for (int a = 0; a < K; ++a)
                change[a] = D ? change_of_component(theta, a, D + a * K, deviation ? deviation + (size_t)level * K : 0)
                              : (double)theta[a];
            follow<K, T>(term, r, effect, change, e);
        }
        for (int t = 0; t < T; ++t) row[t] = e[t];
    }
};

// e_r -= W_r change.
template <int K, int T>
__global__ void __launch_bounds__(THREADS) move_records(MovedTerm<K> moved, Records records) {
    PHASE {
        const word32 r = blockIdx.x * blockDim.x + threadIdx.x;
        if (r < records.n) moved.template move<T>(records, r);
    }
}

// Levels that move by D: of any term.
struct MovedLevels {
    REAL *theta;              // (n, k)
    const double *D;          // (k, k) and a flag
    const double *deviation;  // (n, k), or null
    word32 n;
    int k;
};

// theta_l += change, for the levels of some terms: from the last component, as those before are still needed.
__global__ void __launch_bounds__(THREADS) move_levels(const MovedLevels *terms, int n_terms) {
    PHASE {
        word32 level = blockIdx.x * blockDim.x + threadIdx.x;
        int i = 0;
        while (i < n_terms && level >= terms[i].n) level -= terms[i++].n;
        if (i < n_terms && terms[i].D[terms[i].k * terms[i].k] != 0.0) {
            const MovedLevels &of = terms[i];
            REAL *theta = of.theta + (size_t)level * of.k;
            const double *deviation = of.deviation ? of.deviation + (size_t)level * of.k : 0;
            for (int a = of.k - 1; a >= 0; --a)
                theta[a] = (REAL)((double)theta[a] + change_of_component(theta, a, of.D + a * of.k, deviation));
        }
    }
}

}  // namespace mmgibbs
