// One visit of a level, for one thread: what structured.cu and products.cu are made of.
//
// The arithmetic of level.py, relationships.py and records.py, operation by operation: compiled without fused
// multiply-add it gives their doubles bit for bit. Before this text stand the draws and `typedef ... REAL` (stored
// values) and `typedef ... PATTERN` (number of a missing pattern).
//
// Kernels are written in PHASEs (draws/phases.cuh).

namespace mmgibbs {

const word32 UNKNOWN = 0xFFFFFFFFU;
const int THREADS = 128;  // per block; sums over the threads of a block need a power of two

template <int K>
struct Term {
    const word32 *visit_ptr;            // (q + 1)
    const word32 *visit_record;         // (v)
    const unsigned char *visit_effect;  // (v); null where there is one effect
    const word32 *cell_ptr;             // (q + 1), or (classes + 1)
    const word32 *cell_pattern;         // (cells)
    const REAL *cell_sums;              // (cells, regressors, regressors)
    const REAL *covariates;             // (n, regressors); null where each is the constant 1
    const unsigned char *active;        // (q, K); null where every component is in force
    const word32 *code;                 // (q) level in model order
    const word32 *classes;              // (q) class of the level's data part of P; null where there are no classes
    double *parts;                      // (classes, K (K + 1) / 2) lower triangles
    const double *Ginv;                 // (K, K)
    REAL *theta;                        // (q, K), in sweep order
    word32 stream;                      // third word of the counter of its draws
    word32 number;                      // of the term, for messages
    int regressors;
    int trait[K];
    int regressor[K];
    int effect[K];
};

struct Records {
    const REAL *y;           // (n, T)
    REAL *e;                 // (n, T)
    const PATTERN *pattern;  // (n)
    const REAL *weight;      // (n); null where every weight is 1
    const word32 *record;    // (n) record in model order
    const double *Rinv;      // (patterns, T, T)
    word32 n;
};

struct Identity {
    word32 n_levels;
};

// K^-1 is a dense block alone.
struct NoLists {
    word32 n_levels;
};

struct Pedigree {
    const word32 *sire;         // (q)
    const word32 *dam;          // (q)
    const REAL *own;            // (q)
    const REAL *diagonal;       // (q)
    const word32 *progeny_ptr;  // (q + 1)
    const word32 *progeny;      // (m)
    const word32 *mate;         // (m)
    const REAL *progeny_own;    // (m)
};

struct Sparse {
    const word32 *indptr;   // (q + 1)
    const word32 *indices;  // (nonzeros)
    const REAL *values;     // (nonzeros)
    const REAL *diagonal;   // (q)
};

// A list that is cut up: entries first ... last - 1 of long level `number` of its colour.
struct Piece {
    word32 number;
    word32 first;
    word32 last;
};

// The long levels of a colour: pieces of visits and pieces of relatives, in the order of the levels, and what is summed
// over them.
struct Long {
    const word32 *levels;              // (m)
    const Piece *pieces;               // (visit pieces, then relative pieces)
    const word32 *visit_piece_ptr;     // (m + 1)
    const word32 *relative_piece_ptr;  // (m + 1), counted from the first piece of all
    double *sums;                      // (pieces, K)
    double *changes;                   // (m, K)
    word32 n_visit_pieces;
    word32 longest_visits;  // longer lists than these are cut into pieces
    word32 longest_relatives;
};

// A row of N values as doubles; rows of two and four values are read in one go.
template <int N>
__device__ __forceinline__ void load_row(const REAL *rows, word32 row, double (&out)[N]) {
    const REAL *from = rows + (size_t)row * N;
    for (int i = 0; i < N; ++i) out[i] = (double)from[i];
}

#ifdef __CUDACC__
template <>
__device__ __forceinline__ void load_row<4>(const REAL *rows, word32 row, double (&out)[4]) {
    if (sizeof(REAL) == 4) {
        const float4 from = ((const float4 *)rows)[row];
        out[0] = from.x, out[1] = from.y, out[2] = from.z, out[3] = from.w;
    } else {
        const double2 first = ((const double2 *)rows)[2 * (size_t)row],
                      second = ((const double2 *)rows)[2 * (size_t)row + 1];
        out[0] = first.x, out[1] = first.y, out[2] = second.x, out[3] = second.y;
    }
}

template <>
__device__ __forceinline__ void load_row<2>(const REAL *rows, word32 row, double (&out)[2]) {
    if (sizeof(REAL) == 4) {
        const float2 from = ((const float2 *)rows)[row];
        out[0] = from.x, out[1] = from.y;
    } else {
        const double2 from = ((const double2 *)rows)[row];
        out[0] = from.x, out[1] = from.y;
    }
}
#endif

__device__ __forceinline__ double weight(const Identity &, word32) {
    return 1.0;
}
__device__ __forceinline__ double weight(const NoLists &, word32) {
    return 0.0;
}
__device__ __forceinline__ double weight(const Pedigree &K, word32 level) {
    return (double)K.diagonal[level];
}
__device__ __forceinline__ double weight(const Sparse &K, word32 level) {
    return (double)K.diagonal[level];
}

__device__ __forceinline__ void relatives(const Identity &, word32, word32 &first, word32 &last) {
    first = last = 0;
}
__device__ __forceinline__ void relatives(const NoLists &, word32, word32 &first, word32 &last) {
    first = last = 0;
}
__device__ __forceinline__ void relatives(const Pedigree &K, word32 level, word32 &first, word32 &last) {
    first = K.progeny_ptr[level], last = K.progeny_ptr[level + 1];
}
__device__ __forceinline__ void relatives(const Sparse &K, word32 level, word32 &first, word32 &last) {
    first = K.indptr[level], last = K.indptr[level + 1];
}

// row = the part of sum_m kappa_lm theta_m that is not in the list of relatives.
template <int K>
__device__ __forceinline__ void own_row(const Identity &, word32 level, const REAL *theta, double (&row)[K]) {
    load_row<K>(theta, level, row);
}

template <int K>
__device__ __forceinline__ void own_row(const Pedigree &kin, word32 level, const REAL *theta, double (&row)[K]) {
    const double own = (double)kin.own[level], diagonal = (double)kin.diagonal[level];
    const word32 parents[2] = {kin.sire[level], kin.dam[level]};
    load_row<K>(theta, level, row);
    for (int c = 0; c < K; ++c) row[c] = diagonal * row[c];
    for (int side = 0; side < 2; ++side)
        if (parents[side] != UNKNOWN) {
            double parent[K];
            load_row<K>(theta, parents[side], parent);
            for (int c = 0; c < K; ++c) row[c] -= 0.5 * own * parent[c];
        }
}

template <int K>
__device__ __forceinline__ void own_row(const NoLists &, word32, const REAL *, double (&row)[K]) {
    for (int c = 0; c < K; ++c) row[c] = 0.0;
}

template <int K>
__device__ __forceinline__ void own_row(const Sparse &, word32, const REAL *, double (&row)[K]) {
    for (int c = 0; c < K; ++c) row[c] = 0.0;
}

// row += the part of entry j of the list of relatives.
template <int K>
__device__ __forceinline__ void add_relative(const Identity &, word32, word32, const REAL *, double (&)[K]) {}

template <int K>
__device__ __forceinline__ void add_relative(const NoLists &, word32, word32, const REAL *, double (&)[K]) {}

template <int K>
__device__ __forceinline__ void add_relative(const Pedigree &kin, word32 level, word32 j, const REAL *theta,
                                             double (&row)[K]) {
    const double a = (double)kin.progeny_own[j];
    const word32 mate = kin.mate[j];
    double value[K];
    load_row<K>(theta, kin.progeny[j], value);
    for (int c = 0; c < K; ++c) row[c] -= 0.5 * a * value[c];
    // A group that stands for both parents is its own mate: that part is in the diagonal already.
    if (mate != UNKNOWN && mate != level) {
        load_row<K>(theta, mate, value);
        for (int c = 0; c < K; ++c) row[c] += 0.25 * a * value[c];
    }
}

template <int K>
__device__ __forceinline__ void add_relative(const Sparse &kin, word32, word32 j, const REAL *theta, double (&row)[K]) {
    const double kappa = (double)kin.values[j];
    double value[K];
    load_row<K>(theta, kin.indices[j], value);
    for (int c = 0; c < K; ++c) row[c] += kappa * value[c];
}

// row = sum_m kappa_lm theta_m, m = l included.
template <int K, class Kin>
__device__ __forceinline__ void whole_row(const Kin &kin, word32 level, const REAL *theta, double (&row)[K]) {
    word32 first, last;
    relatives(kin, level, first, last);
    own_row<K>(kin, level, theta, row);
    for (word32 j = first; j < last; ++j) add_relative<K>(kin, level, j, theta, row);
}

// rhs += W_r' R_r^-1 e_r of visit v.
template <int K, int T>
__device__ __forceinline__ void add_visit(const Term<K> &term, const Records &records, word32 v, double (&rhs)[K]) {
    const word32 r = term.visit_record[v];
    const int effect = term.visit_effect ? term.visit_effect[v] : 0;
    const double w = records.weight ? (double)records.weight[r] : 1.0;
    const double *Rinv = records.Rinv + (size_t)records.pattern[r] * (T * T);
    double e[T];
    load_row<T>(records.e, r, e);
    for (int c = 0; c < K; ++c)
        if (term.effect[c] == effect) {
            double s = 0.0;
            for (int t = 0; t < T; ++t) s += Rinv[term.trait[c] * T + t] * e[t];
            rhs[c] +=
                (term.covariates ? w * (double)term.covariates[(size_t)r * term.regressors + term.regressor[c]] : w) *
                s;
        }
}

// e -= W_r change, e the residuals of record r, which meets the level through an effect.
template <int K, int T>
__device__ __forceinline__ void follow(const Term<K> &term, word32 r, int effect, const double (&change)[K],
                                       REAL (&e)[T]) {
    for (int c = 0; c < K; ++c)
        if (term.effect[c] == effect) {
            const double z =
                term.covariates ? (double)term.covariates[(size_t)r * term.regressors + term.regressor[c]] : 1.0;
            for (int t = 0; t < T; ++t)
                if (term.trait[c] == t) e[t] = (REAL)((double)e[t] - change[c] * z);
        }
}

// The same in memory, for visit v. No other level of the colour meets record r, so its whole row may be written.
template <int K, int T>
__device__ __forceinline__ void move_visit(const Term<K> &term, const Records &records, word32 v,
                                           const double (&change)[K]) {
    const word32 r = term.visit_record[v];
    REAL *row = records.e + (size_t)r * T;
    REAL e[T];
    for (int t = 0; t < T; ++t) e[t] = row[t];
    follow<K, T>(term, r, term.visit_effect ? term.visit_effect[v] : 0, change, e);
    for (int t = 0; t < T; ++t) row[t] = e[t];
}

// P = sum_{r in l} W_r' R_r^-1 W_r from the cells of the level; the lower triangle.
template <int K, int T>
__device__ __forceinline__ void level_precisions(const Term<K> &term, const Records &records, word32 level,
                                                 double (&P)[K][K]) {
    for (int a = 0; a < K; ++a)
        for (int b = 0; b <= a; ++b) P[a][b] = 0.0;
    for (word32 cell = term.cell_ptr[level]; cell < term.cell_ptr[level + 1]; ++cell) {
        const double *Rinv = records.Rinv + (size_t)term.cell_pattern[cell] * (T * T);
        const REAL *sums = term.cell_sums + (size_t)cell * term.regressors * term.regressors;
        for (int a = 0; a < K; ++a)
            for (int b = 0; b <= a; ++b)
                P[a][b] += (double)sums[term.regressor[a] * term.regressors + term.regressor[b]] *
                           Rinv[term.trait[a] * T + term.trait[b]];
    }
}

template <int K, int T>
__device__ __forceinline__ void data_part(const Term<K> &term, const Records &records, word32 level,
                                          double (&P)[K][K]) {
    if (!term.classes) return level_precisions<K, T>(term, records, level, P);
    const double *part = term.parts + (size_t)term.classes[level] * (K * (K + 1) / 2);
    for (int a = 0; a < K; ++a)
        for (int b = 0; b <= a; ++b) P[a][b] = part[a * (a + 1) / 2 + b];
}

template <int K>
__device__ __forceinline__ void draw_normals(const Term<K> &term, word32 level, const word32 *counter, double (&z)[K]) {
    const word32 code = term.code[level];
    for (int j = 0; j < K; j += 2) {
        double first, second;
        normal_pair(counter[0], code, term.stream, j >> 1, counter[1], counter[2], first, second);
        z[j] = first;
        if (j + 1 < K) z[j + 1] = second;
    }
}

constexpr double TOWARDS_MEAN = 1.0 - OVER_RELAXED;

// change = L'^-1 (f L^-1 rhs + n z), N(P^-1 rhs, P^-1) over-relaxed (draws/over_relaxation.py); P becomes its factor with 1 / l_jj on the diagonal.
template <int K>
__device__ __forceinline__ bool draw_level(double (&P)[K][K], const double (&rhs)[K], const double (&z)[K],
                                           double (&change)[K]) {
    for (int j = 0; j < K; ++j) {
        double d = P[j][j];
        for (int m = 0; m < j; ++m) d -= P[j][m] * P[j][m];
        if (!(d > 1e-12 * P[j][j])) return false;  // relative: an exactly singular block leaves rounding here, not 0
        P[j][j] = 1.0 / sqrt(d);
        for (int i = j + 1; i < K; ++i) {
            double s = P[i][j];
            for (int m = 0; m < j; ++m) s -= P[i][m] * P[j][m];
            P[i][j] = s * P[j][j];
        }
    }
    for (int i = 0; i < K; ++i) {
        double s = rhs[i];
        for (int m = 0; m < i; ++m) s -= P[i][m] * change[m];
        change[i] = s * P[i][i];
    }
    for (int i = K - 1; i >= 0; --i) {
        double s = TOWARDS_MEAN * change[i] + NOISE * z[i];
        for (int m = i + 1; m < K; ++m) s -= P[m][i] * change[m];
        change[i] = s * P[i][i];
    }
    return true;
}

// change_c ~ N((rhs_c - sum_b P_cb change_b) / P_cc, 1 / P_cc), one component after another: plain draws.
template <int K>
__device__ __forceinline__ bool draw_sites(const double (&P)[K][K], const double (&rhs)[K], const double (&z)[K],
                                           double (&change)[K]) {
    for (int c = 0; c < K; ++c) change[c] = 0.0;
    for (int c = 0; c < K; ++c) {
        if (!(P[c][c] > 0.0)) return false;
        double s = rhs[c];
        for (int b = 0; b < K; ++b) s -= (b < c ? P[c][b] : P[b][c]) * change[b];  // change_c itself is still 0
        change[c] = s / P[c][c] + z[c] / sqrt(P[c][c]);
    }
    return true;
}

// rhs = -G^-1 row and P = data part + kappa_ll G^-1, from row = sum_m kappa_lm theta_m.
template <int K, int T, class Kin>
__device__ __forceinline__ void start_system(const Term<K> &term, const Kin &kin, const Records &records, word32 level,
                                             const double (&row)[K], double (&P)[K][K], double (&rhs)[K]) {
    const double kappa = weight(kin, level);
    data_part<K, T>(term, records, level, P);
    for (int a = 0; a < K; ++a) {
        rhs[a] = 0.0;
        for (int b = 0; b < K; ++b) rhs[a] -= term.Ginv[a * K + b] * row[b];
        for (int b = 0; b <= a; ++b) P[a][b] += kappa * term.Ginv[a * K + b];
    }
}

// Components held at 0 leave the system: their change is exactly 0.
template <int K>
__device__ __forceinline__ void hold_inactive(const unsigned char *active, double (&P)[K][K], double (&rhs)[K],
                                              double (&z)[K]) {
    for (int a = 0; a < K; ++a)
        if (!active[a]) {
            rhs[a] = z[a] = 0.0;
            for (int b = 0; b < a; ++b) P[a][b] = 0.0;
            for (int b = a + 1; b < K; ++b) P[b][a] = 0.0;
            P[a][a] = 1.0;
        }
}

// Draw the change of a level. Where P is not positive definite the change is 0, and the first such level (term,
// position) is kept.
template <int K>
__device__ __forceinline__ void draw_change(const Term<K> &term, word32 level, const word32 *counter, int joint,
                                            double (&P)[K][K], double (&rhs)[K], double (&change)[K], bits64 *failed) {
    double z[K];
    draw_normals<K>(term, level, counter, z);
    if (term.active) hold_inactive<K>(term.active + (size_t)level * K, P, rhs, z);
    if (joint ? draw_level<K>(P, rhs, z, change) : draw_sites<K>(P, rhs, z, change)) return;
    for (int c = 0; c < K; ++c) change[c] = 0.0;
    atomicMin(failed, (bits64)term.number << 32 | level);
}

// theta_l += change, which becomes what the stored precision could hold of it.
template <int K>
__device__ __forceinline__ void shift(REAL *theta, word32 level, double (&change)[K]) {
    REAL *row = theta + (size_t)level * K;
    for (int c = 0; c < K; ++c) {
        const REAL old = row[c];
        row[c] = (REAL)((double)old + change[c]);
        change[c] = (double)row[c] - (double)old;
    }
}

}  // namespace mmgibbs
