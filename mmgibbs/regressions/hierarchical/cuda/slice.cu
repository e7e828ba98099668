// One block of threads draws all coefficients of one group of one chain. Slice steps of each coordinate are those of
// kernels.py: their decisions are bounded by Taylor's theorem, and h is evaluated only where the bound leaves them open.
namespace mmgibbs {

const int MAX_SHARED_ROWS = 512;

// What l(psi) of one trial is, and its derivatives.
template <bool POISSON>
struct Family;

template <>
struct Family<false> {
    static __device__ __forceinline__ void derivatives(double psi, double &l1, double &l2, double &l3, double &l4) {
        const double e = exp(-magnitude(psi)), p = psi > 0.0 ? 1.0 / (1.0 + e) : e / (1.0 + e), v = p * (1.0 - p);
        l1 = p, l2 = v, l3 = v * (1.0 - 2.0 * p), l4 = v * (1.0 - 6.0 * v);
    }
    static __device__ __forceinline__ double change(double psi, double moved) { return value(moved) - value(psi); }
    static __device__ __forceinline__ double value(double psi) {
        return (psi > 0.0 ? psi : 0.0) + log(1.0 + exp(-magnitude(psi)));
    }
};

template <>
struct Family<true> {
    static __device__ __forceinline__ double value(double psi) {
        return exp(psi < -700.0 ? -700.0 : psi > 700.0 ? 700.0 : psi);
    }
    static __device__ __forceinline__ void derivatives(double psi, double &l1, double &l2, double &l3, double &l4) {
        l1 = l2 = l3 = l4 = value(psi);
    }
    static __device__ __forceinline__ double change(double psi, double moved) { return value(moved) - value(psi); }
};

// A slice step that stops where a decision needs an evaluation, and goes on once it is there.
struct Slice {
    double h1, h2, h3, h4;  // derivatives of h at 0
    double bound, growth;   // of the fifth: 120 bound exp(growth |d|)
    double linear, curvature;
    double log_u, lower, upper, width, spare;
    double d, change;  // the point of the open decision, and how much the loss changes there
    int steps_down, steps_up, stage, candidate;  // stage: 0 lower end, 1 upper end, 2 candidates, 3 done
    bool asks;
};

struct Site {
    word32 sweep, level, stream, seed, chain;
};

// h(d) > log u where the bound decides it: 1 or 0, and -1 where it does not.
__device__ __forceinline__ int bound_decision(const Slice &s, double d) {
    const double size = magnitude(d);
    const double near = d * (s.h1 + d * (0.5 * s.h2 + d * (0.16666666666666666 * s.h3 + d * (0.041666666666666664 * s.h4))));
    double rest = s.bound * (size * size) * (size * size) * size;
    if (s.growth > 0.0) rest *= exp(s.growth * size);
    rest += ROUNDING;
    return near - rest > s.log_u ? 1 : near + rest < s.log_u ? 0 : -1;
}

__device__ __forceinline__ double draw_candidate(Slice &s, const Site &at) {
    double w = s.spare;
    if (s.candidate & 1)
        uniform_pair(at.sweep, at.level, at.stream, draw_word((word32)(s.candidate + 3) >> 1, 0), at.seed, at.chain, w, s.spare);
    return s.lower + w * (s.upper - s.lower);
}

__device__ __forceinline__ void begin(Slice &s, double width, int most_steps, const Site &at) {
    double u, place, share;
    uniform_pair(at.sweep, at.level, at.stream, draw_word(0, 0), at.seed, at.chain, u, place);
    uniform_pair(at.sweep, at.level, at.stream, draw_word(1, 0), at.seed, at.chain, share, s.spare);
    s.width = width, s.log_u = log(u), s.lower = -width * place, s.upper = s.lower + width;
    s.steps_down = (int)(most_steps * share), s.steps_up = most_steps - 1 - s.steps_down;
    s.stage = 0, s.candidate = 0;
}

// Take decisions until one asks for an evaluation at s.d, or the step is done. evaluated: s.change is that of s.d.
__device__ __forceinline__ void take_decisions(Slice &s, bool evaluated, const Site &at) {
    while (s.stage < 3) {
        if (s.stage == 0 && s.steps_down <= 0) {
            s.stage = 1;
            continue;
        }
        if (s.stage == 1 && s.steps_up <= 0) {
            s.stage = 2;
            continue;
        }
        if (!evaluated) s.d = s.stage == 0 ? s.lower : s.stage == 1 ? s.upper : draw_candidate(s, at);
        const int above = evaluated ? (int)(s.d * (s.linear - 0.5 * s.curvature * s.d) - s.change > s.log_u) : bound_decision(s, s.d);
        evaluated = false;
        if (above < 0) {
            s.asks = true;
            return;
        }
        if (s.stage == 0) {
            if (above) {
                s.lower -= s.width;
                --s.steps_down;
            } else {
                s.stage = 1;
            }
        } else if (s.stage == 1) {
            if (above) {
                s.upper += s.width;
                --s.steps_up;
            } else {
                s.stage = 2;
            }
        } else if (above) {
            s.stage = 3;
        } else {
            if (s.d < 0.0) s.lower = s.d;
            else s.upper = s.d;
            if (++s.candidate == MAX_CANDIDATES) {
                s.d = not_a_number();
                s.stage = 3;
            }
        }
    }
    s.asks = false;
}

template <int N>
__device__ __forceinline__ void sum_over_threads(double (*sums)[MAX_VISIT_THREADS]) {
    for (word32 half = blockDim.x / 2; half > 0; half /= 2) {
        PHASE {
            if (threadIdx.x < half)
                for (int m = 0; m < N; ++m) sums[m][threadIdx.x] += sums[m][threadIdx.x + half];
        }
        BARRIER
    }
}

// Coordinate after coordinate of each group by slice steps. Draws of coordinate a: site (sweep, group, stream + a).
template <bool POISSON>
__global__ void __launch_bounds__(MAX_VISIT_THREADS) slice_groups(Groups g, Hyperprior prior, Chains chains, Ring ring,
                                                                  word32 n_visits, word32 stream) {
    __shared__ double shared_psi[MAX_SHARED_ROWS], sums[4][MAX_VISIT_THREADS], means[MAX_COEFFICIENTS];
    __shared__ Slice s;
    double *psi = g.longest <= MAX_SHARED_ROWS ? shared_psi : g.scratch + blockIdx.x * g.scratch_values;
    for (word32 number = blockIdx.x; number < n_visits; number += gridDim.x) {
        const Visit v = find_visit(g, chains, number);
        const int D = g.n_columns, d = chains.d, n = v.n;
        const word32 sweep = chains.sweep[v.chain], key = chains.chain[v.chain];
        if (v.Q[0] != v.Q[0]) continue;  // the chain is lost: it stays where it was
        compute_group_mean(prior, chains, v, means);
        for (int k = 0; k < g.n_classes; ++k) {
            PHASE {
                for (int r = (int)threadIdx.x; r < n; r += (int)blockDim.x) {
                    psi[r] = linear_predictor(g, v.X, n, r, v.beta + k * D);
                    if (g.n_classes > 1) psi[r] -= log_sum_except(g, v.X, n, r, v.beta, k);
                }
            }
            BARRIER
            for (int j = 0; j < D; ++j) {
                const int c = k * D + j;
                PHASE {
                    double s1 = 0.0, s2 = 0.0, s3 = 0.0, s4 = 0.0;
                    for (int r = (int)threadIdx.x; r < n; r += (int)blockDim.x) {
                        if (j) psi[r] += predictor(g, v.X, n, j - 1, r) * s.d;
                        const double x = predictor(g, v.X, n, j, r), tx = g.trials ? g.trials[v.first + r] * x : x;
                        double l1, l2, l3, l4;
                        Family<POISSON>::derivatives(psi[r], l1, l2, l3, l4);
                        s1 += tx * l1, s2 += tx * x * l2, s3 += tx * x * x * l3, s4 += tx * x * x * x * l4;
                    }
                    sums[0][threadIdx.x] = s1, sums[1][threadIdx.x] = s2, sums[2][threadIdx.x] = s3, sums[3][threadIdx.x] = s4;
                }
                BARRIER
                sum_over_threads<4>(sums);
                const Site at = {sweep, v.group, stream + (word32)c, chains.seed, key};
                PHASE {
                    if (threadIdx.x == 0) {
                        const size_t group_column = (size_t)v.group * D + j, coefficient = (size_t)v.group * d + c;
                        double linear = g.cross[coefficient];
                        for (int a = 0; a < d; ++a) linear -= v.Q[c * d + a] * (v.beta[a] - means[a]);
                        s.linear = linear, s.curvature = v.Q[c * d + c];
                        s.h1 = linear - sums[0][0], s.h2 = -sums[1][0] - s.curvature, s.h3 = -sums[2][0], s.h4 = -sums[3][0];
                        s.bound = POISSON ? g.reach[group_column] * sums[3][0] / 120.0 : FIFTH / 120.0 * g.fifth[group_column];
                        s.growth = POISSON ? g.reach[group_column] : 0.0;
                        begin(s, g.width / sqrt(g.information[coefficient] + s.curvature), g.most_steps, at);
                        take_decisions(s, false, at);
                    }
                }
                BARRIER
                while (s.asks) {
                    PHASE {
                        double change = 0.0;
                        for (int r = (int)threadIdx.x; r < n; r += (int)blockDim.x) {
                            const double moved = psi[r] + predictor(g, v.X, n, j, r) * s.d;
                            const double change_of_row = Family<POISSON>::change(psi[r], moved);
                            change += g.trials ? g.trials[v.first + r] * change_of_row : change_of_row;
                        }
                        sums[0][threadIdx.x] = change;
                    }
                    BARRIER
                    sum_over_threads<1>(sums);
                    PHASE {
                        if (threadIdx.x == 0) {
                            s.change = sums[0][0];
                            take_decisions(s, true, at);
                        }
                    }
                    BARRIER
                }
                PHASE { if (threadIdx.x == 0) v.beta[c] += s.d; }
                BARRIER
            }
        }
        keep_group(ring, g, chains, v, sweep);
    }
}

}  // namespace mmgibbs
