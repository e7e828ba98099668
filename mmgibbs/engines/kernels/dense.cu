// Levels that a dense block S of K^-1 joins, in tiles of THREADS levels: engines/dense.py.
//
//     rhs_l = -G^-1 (sum_m kappa_lm theta_m + sum_j S_lj theta_j) + sum_{r in l} W_r' R_r^-1 e_r
//
// Before a tile the sums over j of all its levels are made at once, a block of threads each (dense_rows). Then one block
// takes the tile: each thread makes the equations of its level; the levels are drawn one after another, and each draw is
// followed by what the later levels of the tile have of it, a thread each.

namespace mmgibbs {

template <class S>
struct Dense {
    const S *values;  // (n, n)
    double *rows;     // (n, K) S theta
    word32 n;
    word32 first;  // sweep position of its first level
};

// S theta of the levels of a dense block, if a term has one.
struct DenseRows {
    const double *rows;  // (n, K); null where there is none
    word32 n;
    word32 first;
};

// The equations of a level of a tile: P change = rhs - G^-1 moved.
template <int K>
struct DenseSystem {
    double P[K][K];
    double rhs[K];
    double z[K];
    double moved[K];  // sum of S_lj times the change of level j, over the levels of the tile that were drawn
    double change[K];
};

// rows = S theta of the rows first_row + blockIdx.x.
template <int K, class S>
__global__ void __launch_bounds__(THREADS) dense_rows(Dense<S> dense, const REAL *theta, word32 first_row) {
    __shared__ double part[K][THREADS];
    const word32 row = first_row + blockIdx.x;
    PHASE {
        double sum[K], x[K];
        for (int c = 0; c < K; ++c) sum[c] = 0.0;
        for (word32 j = threadIdx.x; j < dense.n; j += blockDim.x) {
            const double s = (double)dense.values[(size_t)row * dense.n + j];
            load_row<K>(theta, dense.first + j, x);
            for (int c = 0; c < K; ++c) sum[c] += s * x[c];
        }
        for (int c = 0; c < K; ++c) part[c][threadIdx.x] = sum[c];
    }
    BARRIER
    sum_over_threads<K>(part);
    PHASE {
        for (word32 c = threadIdx.x; c < K; c += blockDim.x) dense.rows[(size_t)row * K + c] = part[c][0];
    }
}

// rhs of a level as theta and e are now, but for what the tile has moved in S theta.
template <int K, int T, class Kin, class S>
__device__ __forceinline__ void start_rhs(const Term<K> &term, const Kin &kin, const Records &records,
                                          const Dense<S> &dense, word32 level, double (&rhs)[K]) {
    double row[K];
    whole_row<K>(kin, level, term.theta, row);
    for (int c = 0; c < K; ++c) row[c] += dense.rows[(size_t)(level - dense.first) * K + c];
    for (int a = 0; a < K; ++a) {
        rhs[a] = 0.0;
        for (int b = 0; b < K; ++b) rhs[a] -= term.Ginv[a * K + b] * row[b];
    }
    for (word32 v = term.visit_ptr[level]; v < term.visit_ptr[level + 1]; ++v) add_visit<K, T>(term, records, v, rhs);
}

// The levels first_row ... first_row + n - 1 of S, at most as many as threads; coupled[l]: level l of S meets records or lists of other levels of
// its tile, so that its equations are made again when it is drawn; null where no level of the tile does.
template <int K, int T, class Kin, class S>
__global__ void __launch_bounds__(THREADS)
    draw_tile(Term<K> term, Kin kin, Records records, Dense<S> dense, word32 first_row, word32 n,
              const unsigned char *coupled, DenseSystem<K> *systems, int joint, const word32 *counter,
              bits64 *failed) {
    const S *tile = dense.values + (size_t)first_row * dense.n + first_row;
    PHASE {
        if (threadIdx.x < n) {
            DenseSystem<K> &system = systems[threadIdx.x];
            const word32 level = dense.first + first_row + threadIdx.x;
            const double kappa = weight(kin, level) + (double)tile[(size_t)threadIdx.x * (dense.n + 1)];
            data_part<K, T>(term, records, level, system.P);
            for (int a = 0; a < K; ++a)
                for (int b = 0; b <= a; ++b) system.P[a][b] += kappa * term.Ginv[a * K + b];
            start_rhs<K, T>(term, kin, records, dense, level, system.rhs);
            draw_normals<K>(term, level, counter, system.z);
            for (int c = 0; c < K; ++c) system.moved[c] = 0.0;
        }
    }
    BARRIER
    for (word32 i = 0; i < n; ++i) {
        PHASE {
            if (threadIdx.x == i) {
                DenseSystem<K> &system = systems[i];
                const word32 level = dense.first + first_row + i;
                if (coupled && coupled[first_row + i]) start_rhs<K, T>(term, kin, records, dense, level, system.rhs);
                for (int a = 0; a < K; ++a)
                    for (int b = 0; b < K; ++b) system.rhs[a] -= term.Ginv[a * K + b] * system.moved[b];
                if (term.active) hold_inactive<K>(term.active + (size_t)level * K, system.P, system.rhs, system.z);
                const bool is_drawn = joint ? draw_level<K>(system.P, system.rhs, system.z, system.change)
                                            : draw_sites<K>(system.P, system.rhs, system.z, system.change);
                if (!is_drawn) {
                    for (int c = 0; c < K; ++c) system.change[c] = 0.0;
                    atomicMin(failed, (bits64)term.number << 32 | level);
                }
                shift<K>(term.theta, level, system.change);
                for (word32 v = term.visit_ptr[level]; coupled && v < term.visit_ptr[level + 1]; ++v)
                    move_visit<K, T>(term, records, v, system.change);
            }
        }
        BARRIER
        PHASE {
            if (threadIdx.x > i && threadIdx.x < n) {
                const double s = (double)tile[(size_t)i * dense.n + threadIdx.x];
                for (int c = 0; c < K; ++c) systems[threadIdx.x].moved[c] += s * systems[i].change[c];
            }
        }  // no barrier: the next level is drawn by the thread that has just moved it
    }
    PHASE {
        const word32 level = dense.first + first_row + threadIdx.x;
        if (!coupled && threadIdx.x < n)
            for (word32 v = term.visit_ptr[level]; v < term.visit_ptr[level + 1]; ++v)
                move_visit<K, T>(term, records, v, systems[threadIdx.x].change);
    }
}

}  // namespace mmgibbs
