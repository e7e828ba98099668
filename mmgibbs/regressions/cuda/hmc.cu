// Hamiltonian Monte Carlo of the multinomial logit (regressions/multinomial/hamiltonian.py), all chains in lockstep. A
// trajectory of L steps:
//
//     draw_momentum     normals; with a diagonal mass matrix the first half kick and drift
//     start_momentum    the momentum and its half kick, with M = S (x) A; then `drift`
//     softmax_rows      (softmax_rows.cu) and
//     kick              L times: gradient, momentum, with a diagonal mass matrix the position
//     drift             behind each kick with M = S (x) A: velocity and position
//     weigh             M times where a trajectory begins and ends, while lengths are learnt with M = S (x) A
//     accept            energies, decision, the kept draw: a block a chain
//     learn             step size, length, running means and variances
//
// A chain whose trajectory is done stands still while others go on. The number of the step that is worked on changes in
// kernels that do not read it: `kick` and `drift` read what softmax_rows wrote, and this what `kick` wrote.
namespace mmgibbs {

const int COLUMNS = 32, SUMMANDS = HMC_THREADS / COLUMNS;  // of a block of `kick` and of products: columns, parts of a sum
const int CLASSES = 4;  // that a thread of a product adds at once

// Where in (0, 1) trajectory `sweep` ends: its bits in reverse.
__device__ inline double jitter(word32 sweep) {
    double value = 0.0;
    for (double weight = 0.5; sweep; sweep >>= 1, weight *= 0.5) value += sweep & 1 ? weight : 0.0;
    return value;
}

__device__ __forceinline__ bool is_learning(const Trajectory &s, word32 sweep) {
    return !s.temperature && sweep <= s.burn_in;
}

// Step size and number of steps of trajectory `sweep`.
__device__ inline void plan_steps(const Trajectory &s, int c, word32 sweep) {
    double steps = s.most_steps;
    s.step_size[c] = s.first_step;
    if (!s.temperature) {
        const double log_step = (is_learning(s, sweep) ? s.log_step : s.mean_log_step)[c];
        const double log_length = (is_learning(s, sweep) ? s.log_length : s.mean_log_length)[c];
        s.step_size[c] = exp(log_step);
        s.ratio[c] = exp(log_length - log_step < 20.0 ? log_length - log_step : 20.0);
        steps = ceil(jitter(sweep) * s.ratio[c]);
    }
    s.planned[c] = !(steps > 1.0) ? 1.0 : steps < s.most_steps ? steps : s.most_steps;
}

__global__ void __launch_bounds__(HMC_THREADS) plan(Trajectory s) {
    PHASE {
        for (int c = (int)threadIdx.x; c < s.n_chains; c += (int)blockDim.x) plan_steps(s, c, s.sweep[c]);
    }
}

// out = S (x - origin) A for COLUMNS columns, matrices of one chain; origin null: 0.
__device__ inline void multiply_tile(const Trajectory &s, const double *S, const double *A, const double *x,
                                     const double *origin, int first, double *work, double *out) {
    __shared__ double parts[SUMMANDS][CLASSES][COLUMNS];
    const int K1 = s.n_categories;
    for (int k0 = 0; k0 < K1; k0 += CLASSES) {
        PHASE {
            const int lane = (int)threadIdx.x % COLUMNS, part = (int)threadIdx.x / COLUMNS, a = first + lane;
            double totals[CLASSES] = {0.0, 0.0, 0.0, 0.0};
            if (a < s.d)
                for (int b = part; b < s.d; b += SUMMANDS) {
                    const double weight = A[(size_t)b * s.d + a];
                    for (int u = 0; u < CLASSES; ++u)
                        if (k0 + u < K1) {
                            const size_t at = (size_t)(k0 + u) * s.d + b;
                            totals[u] += (origin ? x[at] - origin[at] : x[at]) * weight;
                        }
                }
            for (int u = 0; u < CLASSES; ++u) parts[part][u][lane] = totals[u];
        }
        BARRIER
        PHASE {
            const int lane = (int)threadIdx.x % COLUMNS, u = (int)threadIdx.x / COLUMNS, a = first + lane;
            if (u < CLASSES && k0 + u < K1 && a < s.d) {
                double total = 0.0;
                for (int part = 0; part < SUMMANDS; ++part) total += parts[part][u][lane];
                work[(size_t)(k0 + u) * s.d + a] = total;
            }
        }
        BARRIER
    }
    PHASE {
        const int a = first + (int)threadIdx.x % COLUMNS;
        for (int k = (int)threadIdx.x / COLUMNS; k < K1 && a < s.d; k += SUMMANDS) {
            double total = 0.0;
            for (int j = 0; j < K1; ++j) total += S[k * K1 + j] * work[(size_t)j * s.d + a];
            out[(size_t)k * s.d + a] = total;
        }
    }
    BARRIER
}

// A block of products: its chain, and the first of its columns.
struct Tile {
    int chain, first;
    size_t begin;  // of the chain's coefficients
    const double *S, *A;
};

__device__ inline Tile find_tile(const Trajectory &s, int number, const double *S, const double *A) {
    const int tiles = (s.d + COLUMNS - 1) / COLUMNS, c = number / tiles, mass = s.n_masses > 1 ? c : 0;
    return {c, number % tiles * COLUMNS, (size_t)c * s.n_categories * s.d,
            S + (size_t)mass * s.n_categories * s.n_categories, A + (size_t)mass * s.d * s.d};
}

__device__ __forceinline__ void move(const Trajectory &s, size_t at, double change) {
    const int a = (int)(at % s.d);
    s.tried[at] += change;
    s.slopes[at] = (REAL)(a < s.p ? s.tried[at] / s.column_scale[a] : s.tried[at]);
}

__global__ void __launch_bounds__(HMC_THREADS) draw_momentum(Trajectory s) {
    PHASE {
        const size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x, size = (size_t)s.n_categories * s.d;
        if (at == 0) s.turns[0] = s.turns[1] = 0;
        if (at < size * s.n_chains) {
            const int c = (int)(at / size);
            s.z[at] = normal(s.sweep[c], (word32)(at % size), s.momenta, 0, s.seed, s.chain[c]);
            s.tried[at] = s.position[at];
            if (s.inverse) {
                s.momentum[at] = s.z[at] / sqrt(s.inverse[at]) + s.step_size[c] / 2 * s.gradient[at];
                move(s, at, s.step_size[c] * (s.momentum[at] * s.inverse[at]));
            }
        }
    }
}

__global__ void __launch_bounds__(HMC_THREADS) start_momentum(Trajectory s) {
    const Tile tile = find_tile(s, (int)blockIdx.x, s.root_S, s.root_A);
    multiply_tile(s, tile.S, tile.A, s.z + tile.begin, 0, tile.first, s.work + tile.begin, s.momentum + tile.begin);
    PHASE {
        const int a = tile.first + (int)threadIdx.x % COLUMNS;
        for (int k = (int)threadIdx.x / COLUMNS; k < s.n_categories && a < s.d; k += SUMMANDS) {
            const size_t at = tile.begin + (size_t)k * s.d + a;
            s.momentum[at] += s.step_size[tile.chain] / 2 * s.gradient[at];
        }
    }
}

// The gradient from the sums of the pieces, then the kick.
__global__ void __launch_bounds__(HMC_THREADS) kick(Trajectory s) {
    __shared__ double parts[SUMMANDS][COLUMNS];
    const size_t size = (size_t)s.n_categories * s.d, n_elements = size * s.n_chains;
    const size_t first = (size_t)blockIdx.x * COLUMNS;
    const word32 number = s.turns[0];
    PHASE {
        const int lane = (int)threadIdx.x % COLUMNS, part = (int)threadIdx.x / COLUMNS;
        double total = 0.0;
        if (first + lane < n_elements)
            for (int piece = part; piece < s.n_pieces; piece += SUMMANDS)
                total += s.sums[(size_t)piece * n_elements + first + lane];
        parts[part][lane] = total;
    }
    BARRIER
    PHASE {
        const size_t at = first + threadIdx.x;
        if (at == 0) s.turns[1] = number;
        if (threadIdx.x < COLUMNS && at < n_elements) {
            const int c = (int)(at / size), a = (int)(at % s.d);
            double expected = 0.0;
            for (int part = 0; part < SUMMANDS; ++part) expected += parts[part][threadIdx.x];
            if (a < s.p) expected /= s.column_scale[a];
            const double beta = s.tried[at], square = s.prior_scale[a] * s.prior_scale[a];
            const double shrinkage = s.is_cauchy ? 2.0 * beta / (square + beta * beta) : beta / square;
            s.tried_gradient[at] = s.totals[at % size] - expected - shrinkage;
            const double step = s.step_size[c], steps = s.planned[c];
            if (number <= steps) s.momentum[at] += (number < steps ? step : step / 2) * s.tried_gradient[at];
            if (s.inverse && number < steps) move(s, at, step * (s.momentum[at] * s.inverse[at]));
        }
    }
}

__global__ void __launch_bounds__(HMC_THREADS) drift(Trajectory s) {
    const Tile tile = find_tile(s, (int)blockIdx.x, s.inverse_S, s.inverse_A);
    multiply_tile(s, tile.S, tile.A, s.momentum + tile.begin, 0, tile.first, s.work + tile.begin, s.velocity + tile.begin);
    if (!(s.turns[0] < s.planned[tile.chain])) return;
    PHASE {
        const int a = tile.first + (int)threadIdx.x % COLUMNS;
        for (int k = (int)threadIdx.x / COLUMNS; k < s.n_categories && a < s.d; k += SUMMANDS) {
            const size_t at = tile.begin + (size_t)k * s.d + a;
            move(s, at, s.step_size[tile.chain] * s.velocity[at]);
        }
    }
}

__global__ void __launch_bounds__(HMC_THREADS) weigh(Trajectory s) {
    const int n_tiles = (int)gridDim.x / 2, is_start = (int)blockIdx.x / n_tiles;
    const Tile tile = find_tile(s, (int)blockIdx.x % n_tiles, s.S, s.A);
    const size_t shift = is_start ? (size_t)s.n_chains * s.n_categories * s.d : 0;
    const double *x = (is_start ? s.position : s.tried) + tile.begin;
    multiply_tile(s, tile.S, tile.A, x, s.centre + tile.begin, tile.first, s.work + shift + tile.begin,
                  s.weighed + shift + tile.begin);
}

enum { KINETIC, SQUARE, DENSITY, GAIN, ALONG, N_SUMS };

// What a thread adds to the sums over the coefficients of a chain.
__device__ inline void add_element(const Trajectory &s, size_t at, size_t size, bool learns, double *sums) {
    const double momentum = s.momentum[at], beta = s.tried[at];
    const double scaled = beta / s.prior_scale[at % s.d];
    sums[KINETIC] += momentum * (s.inverse ? momentum * s.inverse[at] : s.velocity[at]);
    sums[SQUARE] += s.z[at] * s.z[at];
    sums[DENSITY] += beta * s.totals[at % size] - (s.is_cauchy ? log(1.0 + scaled * scaled) : scaled * scaled / 2);
    if (!learns) return;
    const double after = beta - s.centre[at], before = s.position[at] - s.centre[at];
    const double weighed_after = s.inverse ? after / s.inverse[at] : s.weighed[at];
    const double weighed_before = s.inverse ? before / s.inverse[at] : s.weighed[size * s.n_chains + at];
    sums[GAIN] += after * weighed_after - before * weighed_before;
    sums[ALONG] += after * momentum;
}

// By thread 0 of a chain, after the sums: the decision and all that is one number of a chain. Returns whether it moved.
__device__ inline bool decide(const Trajectory &s, int c, word32 sweep, double kinetic, double square, double density,
                              double gain, double along) {
    double error = kinetic / 2 - density - (square / 2 - s.log_density[c]), u, unused;
    if (!(magnitude(error) < infinity())) error = infinity();
    const double acceptance = exp(error > 0.0 ? -error : 0.0), temperature = s.temperature ? s.temperature[c] : 1.0;
    const bool is_annealed = s.temperature && sweep <= s.burn_in;
    uniform_pair(sweep, 0, s.decisions, draw_word(0, 0), s.seed, s.chain[c], u, unused);
    const bool has_moved = log(u) < -error / (is_annealed ? temperature : 1.0);
    if (has_moved) s.log_density[c] = density;
    if (is_annealed) s.temperature[c] = 0.9 * temperature > 1.0 ? 0.9 * temperature : 1.0;
    const double slope = jitter(sweep) * gain * along;
    s.slope[c] = magnitude(slope) < infinity() && acceptance > 0.0 ? acceptance * slope : 0.0;
    s.acceptance[c] = acceptance;
    s.steps[c] = s.planned[c];
    s.sweep[c] = sweep + 1;
    if (!is_learning(s, sweep)) plan_steps(s, c, sweep + 1);
    return has_moved;
}

__global__ void __launch_bounds__(HMC_THREADS) accept(Trajectory s, Ring ring) {
    __shared__ double sums[N_SUMS][HMC_THREADS];
    __shared__ bool has_moved;
    const int c = (int)blockIdx.x;
    const word32 sweep = s.sweep[c];
    const size_t size = (size_t)s.n_categories * s.d, begin = c * size;
    double *slot = find_slot(ring, sweep);
    PHASE {
        double totals[N_SUMS] = {0.0, 0.0, 0.0, 0.0, 0.0};
        for (size_t at = begin + threadIdx.x; at < begin + size; at += blockDim.x)
            add_element(s, at, size, is_learning(s, sweep), totals);
        for (int piece = (int)threadIdx.x; piece < s.n_pieces; piece += (int)blockDim.x)
            totals[DENSITY] -= s.partitions[(size_t)piece * s.n_chains + c];
        for (int m = 0; m < N_SUMS; ++m) sums[m][threadIdx.x] = totals[m];
    }
    BARRIER
    for (int m = 0; m < N_SUMS; ++m) block_sum(sums[m]);
    PHASE {
        if (threadIdx.x == 0) {
            has_moved = decide(s, c, sweep, sums[KINETIC][0], sums[SQUARE][0], sums[DENSITY][0], sums[GAIN][0], sums[ALONG][0]);
            if (slot) {
                const double *facts[5] = {s.log_density, s.acceptance, s.steps, s.mean_log_step, s.mean_log_length};
                for (int k = 0; k < 5; ++k)
                    if (facts[k]) slot[s.places[k + 1] + c] = facts[k][c];
            }
        }
    }
    BARRIER
    PHASE {
        for (size_t at = begin + threadIdx.x; at < begin + size; at += blockDim.x) {
            if (has_moved) {
                s.position[at] = s.tried[at];
                s.gradient[at] = s.tried_gradient[at];
            }
            if (slot) slot[s.places[0] + at] = s.position[at];
        }
    }
}

// Mean over the chains that learn together with chain c.
__device__ inline double pool(const Trajectory &s, const double *values, int c) {
    if (!s.is_pooled) return values[c];
    double total = 0.0;
    for (int chain = 0; chain < s.n_chains; ++chain) total += values[chain];
    return total / s.n_chains;
}

// Step size and length of chain c after trajectory t: hamiltonian.py, Adaptation.
__device__ inline void learn_lengths(const Trajectory &s, int c, word32 t) {
    const double root = sqrt((double)t), forgetting = 1.0 / (root * sqrt(root));  // t^-3/4
    const double acceptance = pool(s, s.acceptance, c), least = s.mean_log_step[c];
    const double most = least + log((double)s.most_steps);
    s.shortfall[c] += (WANTED_ACCEPTANCE - acceptance - s.shortfall[c]) / (t + 10.0);
    s.log_step[c] = log(10.0 * s.first_step) - root / 0.05 * s.shortfall[c];
    s.mean_log_step[c] += forgetting * (s.log_step[c] - s.mean_log_step[c]);
    const double slope = pool(s, s.slope, c) / (acceptance + 1e-12);
    s.square_slope[c] = 0.95 * s.square_slope[c] + 0.05 * (slope * slope);
    const double rise = slope / sqrt(s.square_slope[c] / (1.0 - exp(t * log(0.95))) + 1e-300);
    const double log_length = s.log_length[c] + LEARNING_RATE * rise;
    s.log_length[c] = log_length < least ? least : log_length > most ? most : log_length;
    s.mean_log_length[c] += forgetting * (s.log_length[c] - s.mean_log_length[c]);
    plan_steps(s, c, t + 1);
}

// A thread a coefficient, for all chains; the first block also the chains' step sizes and lengths.
__global__ void __launch_bounds__(HMC_THREADS) learn(Trajectory s) {
    PHASE {
        const word32 t = s.sweep[0] - 1;
        const size_t size = (size_t)s.n_categories * s.d, at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
        const double weight = 3.0 / (t + 6.0);
        if (blockIdx.x == 0)
            for (int c = (int)threadIdx.x; c < s.n_chains; c += (int)blockDim.x) learn_lengths(s, c, t);
        if (at < size) {
            double mean = 0.0, mean_square = 0.0;
            for (int c = 0; s.is_pooled && c < s.n_chains; ++c) mean += s.position[c * size + at] / s.n_chains;
            for (int c = 0; c < s.n_chains; ++c) {
                const size_t element = c * size + at;
                const double now = s.position[element], old = s.centre[element];
                s.centre[element] = old + weight * ((s.is_pooled ? mean : now) - old);
                if (!s.variance) continue;
                const double square = (now - old) * (now - s.centre[element]);
                if (s.is_pooled) mean_square += square / s.n_chains;
                else s.variance[element] += weight * (square - s.variance[element]);
            }
            for (int c = 0; s.variance && s.is_pooled && c < s.n_chains; ++c)
                s.variance[c * size + at] += weight * (mean_square - s.variance[c * size + at]);
        }
    }
}

}  // namespace mmgibbs
