// Effects of SNPs: the sweeps of sampler/markers/sweep.py and the passes over records of
// engines/markers.py, operation by operation, so that effects, s and g have their bits.
//
// A sweep is a work in rounds (draws/rounds.cuh), three for each block of SNPs: r = X_b' s by all blocks of threads, the
// draws by one of them, s -= D X_b Delta and g += X_b Delta by all. Sums are in the order of genotypes/products.py.
// Before this text stand `typedef ... REAL` (s, d, e) and `typedef ... PATTERN`.

namespace mmgibbs {

const int BLOCK = 64;                           // SNPs, as in sweep.py
const int CHUNK = 128, LANES = 16, GROUP = 4;   // as in genotypes/products.py
const int GROUPS = 256;                         // whose sums lie in shared memory at once

__device__ __forceinline__ float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ double multiply_add(double a, double b, double c) { return __fma_rn(a, b, c); }

struct Values {  // of a SNP
    float x[4];
};

// The stores of genotypes/store.py: number of animal LANES step + lane of a chunk.
struct Packed {
    typedef word32 Word;
    static const int WIDTH = 8;
    static __device__ __forceinline__ float decode(const Word *chunk, Values values, int step, int lane) {
        const word32 code = chunk[lane & 7] >> (4 * step + 2 * (lane >> 3));
        const float low = code & 1U ? values.x[1] : values.x[0], high = code & 1U ? values.x[3] : values.x[2];
        return code & 2U ? high : low;
    }
};

struct Fixed {
    typedef unsigned char Word;
    static const int WIDTH = CHUNK;
    static __device__ __forceinline__ float decode(const Word *chunk, Values values, int step, int lane) {
        const Word code = chunk[LANES * step + lane];
        return code == 255 ? values.x[3] : multiply_add((float)code, values.x[0], values.x[1]);
    }
};

struct Real {
    typedef float Word;
    static const int WIDTH = CHUNK;
    static __device__ __forceinline__ float decode(const Word *chunk, Values values, int step, int lane) {
        const float dosage = chunk[LANES * step + lane];
        return dosage == dosage ? multiply_add(dosage, values.x[0], values.x[1]) : values.x[3];
    }
};

// A block of SNPs first ... first + size - 1.
struct SnpBlock {
    int number;
    int first;
    int size;
};

// X_b' W_P X_b of each block and each missing pattern P of the records.
struct Grams {
    const float *G;   // (patterns, blocks, BLOCK, BLOCK)
    const double *Q;  // (patterns, T, T): R^-1 of each
    int patterns;
    int blocks;

    __device__ __forceinline__ float at(int pattern, int block, int j, int l) const {
        return G[(((size_t)pattern * blocks + block) * BLOCK + j) * BLOCK + l];
    }
};

// A normal for each effect (no classes), or a mixture whose class 0 is an effect of 0.
struct Prior {
    const double *variance;   // (p), or (classes, n)
    const double *log_share;  // (classes)
    int classes;
    int n;  // p, or 1 where a class has one variance

    __device__ double variance_of(int k, int i) const { return variance[(size_t)k * n + (n > 1 ? i : 0)]; }

    // log P(class k) of SNP i, its effect integrated out, less the same for every class.
    __device__ double log_weight(double C, double q, int k, int i) const {
        const double v = variance_of(k, i);
        if (v == 0.0) return log_share[k];  // not where v is NaN: then so is the weight
        return log_share[k] + 0.5 * (q * q / (C + 1.0 / v) - log(1.0 + C * v));
    }
};

__device__ inline double largest_of(const double *x, int n) {
    double top = -infinity();
    for (int k = 0; k < n; ++k) top = x[k] > top ? x[k] : top;
    return top;
}

__device__ inline double sum_of(const double *x, int n) {
    double total = 0.0;
    for (int k = 0; k < n; ++k) total += x[k];
    return total;
}

const int NO_CLASS = -1;  // as in choose.py

// choose.py: a class by its weight and a uniform; NO_CLASS where no class has a probability.
__device__ inline int choose(const double *weight, double total, double u, int n) {
    if (!(total > 0.0 && total < infinity())) return NO_CLASS;
    double remaining = u * total;
    for (int k = 0; k < n - 1; ++k) {
        remaining -= weight[k];
        if (remaining < 0.0) return k;
    }
    return n - 1;
}

// Draws of the effects on one trait: every thread makes that of the SNP at hand, and moves its own right-hand sides.
struct OneTrait {
    Grams grams;
    Prior prior;
    Prior compared;       // no classes where there is none
    double *a;            // (p)
    signed char *of_class;  // (p)
    float *chances;       // (p, classes); null where they are not asked for
    const double *z;      // (p)
    const double *u;      // (p)
    double *log_ratio;    // of the sums of weights under two priors

    __device__ void draw(SnpBlock block, double *right, double *changes, bool is_backward, double *shared) const {
        const int K = prior.classes, b = block.size, n_weights = K + compared.classes;
        float *G = (float *)shared;
        double *r = shared + BLOCK * BLOCK / 2, *before = r + BLOCK, *log_weight = before + BLOCK;
        double *weight = log_weight + n_weights;
        const double precision = grams.patterns == 1 ? grams.Q[0] : 1.0;
        PHASE {
            for (int at = (int)threadIdx.x; at < BLOCK * BLOCK; at += (int)blockDim.x)
                G[at] = add_patterns(block.number, at / BLOCK, at % BLOCK);
            for (int j = (int)threadIdx.x; j < b; j += (int)blockDim.x) r[j] = right[j], before[j] = a[block.first + j];
        }
        BARRIER
        for (int turn = 0; turn < b; ++turn) {
            const int j = is_backward ? b - 1 - turn : turn, i = block.first + j;
            const double C = precision * (double)G[j * BLOCK + j], q = r[j] + C * before[j];
            int chosen = 0;
            double total = 0.0;
            if (K > 0) {
                PHASE {
                    for (int k = (int)threadIdx.x; k < n_weights; k += (int)blockDim.x)
                        log_weight[k] = k < K ? prior.log_weight(C, q, k, i) : compared.log_weight(C, q, k - K, i);
                }
                BARRIER
                PHASE {
                    for (int k = (int)threadIdx.x; k < n_weights; k += (int)blockDim.x)
                        weight[k] = exp(log_weight[k] - largest(log_weight, k < K));
                }
                BARRIER
                total = sum_of(weight, K);
                chosen = choose(weight, total, u[i], K);
            }
            const double v = prior.variance_of(chosen < 0 ? 0 : chosen, i), P = C + 1.0 / v;
            const double effect = v == 0.0 ? 0.0 : q / P + z[i] / sqrt(P), change = effect - before[j];
            const double step = precision * change;
            PHASE {
                for (int l = (int)threadIdx.x; l < b; l += (int)blockDim.x)
                    if (is_backward ? l < j : l > j) r[l] -= (double)G[j * BLOCK + l] * step;
                for (int k = (int)threadIdx.x; chances && k < K; k += (int)blockDim.x)
                    chances[(size_t)i * K + k] = (float)(weight[k] / total);
                if (threadIdx.x == 0) {
                    a[i] = effect, changes[j] = change;
                    if (K > 0) of_class[i] = (signed char)chosen;
                    if (compared.classes > 0) {
                        *log_ratio -= largest(log_weight, false) + log(sum_of(weight + K, compared.classes));
                        *log_ratio += largest(log_weight, true) + log(total);
                    }
                }
            }
            BARRIER
        }
    }

    // Of the logarithms of the weights under the prior, or under that with which it is compared.
    __device__ double largest(const double *log_weight, bool is_of_prior) const {
        return is_of_prior ? largest_of(log_weight, prior.classes)
                           : largest_of(log_weight + prior.classes, compared.classes);
    }

    // X_b' D X_b, over `precision` where there is one pattern.
    __device__ float add_patterns(int block, int j, int l) const {
        if (grams.patterns == 1) return grams.at(0, block, j, l);
        float total = 0.0f;
        for (int P = 0; P < grams.patterns; ++P) total += (float)grams.Q[P] * grams.at(P, block, j, l);
        return total;
    }
};

// What draws of the effects on T traits together share; K states.
struct SeveralTraits {
    Grams grams;
    double *a;           // (p, T)
    signed char *state;  // (p)
    float *chances;      // (p, K)
    const double *z;     // (p, T)
    double *C;           // (T, T) of the SNP at hand
    double *q;           // (T)
    double *drawn;       // (T) its effects
    int T;
    int K;

    __device__ void make_equations(SnpBlock block, int j, const double *right) const {
        const double *effects = a + (size_t)(block.first + j) * T;
        PHASE {
            for (int t = (int)threadIdx.x; t < T; t += (int)blockDim.x) {
                double of_trait = right[t * BLOCK + j];
                for (int o = 0; o < T; ++o) {
                    double c = 0.0;
                    for (int P = 0; P < grams.patterns; ++P)
                        c += (double)grams.at(P, block.number, j, j) * grams.Q[(P * T + t) * T + o];
                    C[t * T + o] = c;
                    of_trait += c * effects[o];
                }
                q[t] = of_trait;
            }
        }
        BARRIER
    }

    // The effects of SNP j are those drawn; the right-hand sides of the SNPs after it follow.
    __device__ void take_drawn(SnpBlock block, int j, double *right, double *changes) const {
        double *effects = a + (size_t)(block.first + j) * T;
        PHASE {
            for (int t = (int)threadIdx.x; t < T; t += (int)blockDim.x)
                changes[t * BLOCK + j] = drawn[t] - effects[t], effects[t] = drawn[t];
        }
        BARRIER
        PHASE {
            const int n = block.size - j - 1;
            for (int at = (int)threadIdx.x; at < T * n; at += (int)blockDim.x) {
                const int t = at / n, l = j + 1 + at % n;
                for (int P = 0; P < grams.patterns; ++P) {
                    double step = 0.0;
                    for (int o = 0; o < T; ++o) step += grams.Q[(P * T + t) * T + o] * changes[o * BLOCK + j];
                    right[t * BLOCK + l] -= (double)grams.at(P, block.number, j, l) * step;
                }
            }
        }
        BARRIER
    }
};

// All traits at once: a thread weighs a state.
struct StatesOfTraits {
    SeveralTraits of;
    const int *traits;         // (K, T), those of the state first
    const int *n_traits;       // (K)
    const double *precision;   // (K, T, T) B_k^-1
    const double *log_weight;  // (K)
    const double *u;           // (p)
    double *weight;            // (2, K) logarithms, then weights
    double *L;                 // (K, T, T)
    double *half;              // (K, T)

    __device__ void draw(SnpBlock block, double *right, double *changes, bool, double *) const {
        const int K = of.K;
        double *each = weight + K;
        for (int j = 0; j < block.size; ++j) {
            const size_t i = (size_t)(block.first + j);
            of.make_equations(block, j, right);
            PHASE {
                for (int k = (int)threadIdx.x; k < K; k += (int)blockDim.x)
                    weight[k] = log_weight[k] + log_evidence(k);
            }
            BARRIER
            PHASE {
                for (int k = (int)threadIdx.x; k < K; k += (int)blockDim.x)
                    each[k] = exp(weight[k] - largest_of(weight, K));
            }
            BARRIER
            PHASE {
                const double total = sum_of(each, K);
                for (int k = (int)threadIdx.x; k < K; k += (int)blockDim.x)
                    of.chances[i * K + k] = (float)(each[k] / total);
                if (threadIdx.x == 0) {
                    const int chosen = choose(each, total, u[i], K);
                    of.state[i] = (signed char)chosen;
                    draw_effects(chosen < 0 ? 0 : chosen, of.z + i * of.T);
                }
            }
            BARRIER
            of.take_drawn(block, j, right, changes);
        }
    }

    // -log|C + B^-1| / 2 + q' (C + B^-1)^-1 q / 2 of state k; L its Cholesky factor, half L^-1 q.
    __device__ double log_evidence(int k) const {
        const int T = of.T, n = n_traits[k], *own = traits + k * T;
        double *F = L + (size_t)k * T * T, *h = half + (size_t)k * T, total = 0.0;
        for (int t = 0; t < n; ++t)
            for (int o = 0; o <= t; ++o)
                F[t * T + o] = of.C[own[t] * T + own[o]] + precision[((size_t)k * T + t) * T + o];
        for (int j = 0; j < n; ++j) {
            for (int m = 0; m < j; ++m) F[j * T + j] -= F[j * T + m] * F[j * T + m];
            F[j * T + j] = sqrt(F[j * T + j]);
            for (int i = j + 1; i < n; ++i) {
                for (int m = 0; m < j; ++m) F[i * T + j] -= F[i * T + m] * F[j * T + m];
                F[i * T + j] /= F[j * T + j];
            }
        }
        for (int t = 0; t < n; ++t) {
            h[t] = of.q[own[t]];
            for (int o = 0; o < t; ++o) h[t] -= F[t * T + o] * h[o];
            h[t] /= F[t * T + t];
            total += 0.5 * h[t] * h[t] - log(F[t * T + t]);
        }
        return total;
    }

    // drawn = L'^-1 (half + z) on the traits of state k, 0 on the others.
    __device__ void draw_effects(int k, const double *z) const {
        const int T = of.T, n = n_traits[k], *own = traits + k * T;
        const double *F = L + (size_t)k * T * T, *h = half + (size_t)k * T;
        for (int t = 0; t < T; ++t) of.drawn[t] = 0.0;
        for (int t = n - 1; t >= 0; --t) {
            double x = h[t] + z[t];
            for (int o = t + 1; o < n; ++o) x -= F[o * T + t] * of.drawn[own[o]];
            of.drawn[own[t]] = x / F[t * T + t];
        }
    }
};

// One trait at a time, by one thread: bit t of a state is set where it acts on trait t.
struct SitesOfTraits {
    SeveralTraits of;
    const double *inverse;    // (T, T) G^-1
    const double *given;      // (K, T, T)
    const double *noise;      // (K, T, T)
    const double *log_pi;     // (K)
    const double *z_outside;  // (p, T)
    const double *u;          // (p, T)
    float *inside;            // (p, T)
    double *b;                // (T) effects of the SNP at hand, those that its state leaves out too

    __device__ void draw(SnpBlock block, double *right, double *changes, bool, double *) const {
        for (int j = 0; j < block.size; ++j) {
            of.make_equations(block, j, right);
            PHASE { if (threadIdx.x == 0) draw_traits((size_t)(block.first + j)); }
            BARRIER
            of.take_drawn(block, j, right, changes);
        }
    }

    __device__ void draw_traits(size_t i) const {
        const int T = of.T;
        const double *effects = of.a + i * T;
        float *chances = of.chances + i * of.K;
        int now = of.state[i];
        for (int t = 0; t < T; ++t) {
            b[t] = of.drawn[t] = effects[t];
            for (int o = 0; o < T; ++o) {
                const size_t at = ((size_t)now * T + t) * T + o;
                b[t] += given[at] * effects[o] + noise[at] * z_outside[i * T + o];
            }
        }
        for (int k = 0; k < of.K; ++k) chances[k] = 0.0f;
        bool is_known = true;
        for (int t = 0; t < T; ++t) {
            double r0 = 0.0, r1 = of.q[t];
            for (int o = 0; o < T; ++o) {
                if (o == t) continue;
                r0 -= inverse[t * T + o] * b[o];
                r1 -= of.C[t * T + o] * of.drawn[o];
            }
            r1 += r0;
            const double c0 = inverse[t * T + t], c1 = of.C[t * T + t] + inverse[t * T + t];
            const int out = now & ~(1 << t), within = out | 1 << t;
            const double odds = log_pi[within] - log_pi[out] + 0.5 * (log(c0 / c1) + r1 * r1 / c1 - r0 * r0 / c0);
            const double chance = 1.0 / (1.0 + exp(-odds)), z = of.z[i * T + t];
            is_known = is_known && chance >= 0.0;
            inside[i * T + t] = (float)chance;
            chances[within] = (float)((double)chances[within] + chance / T);
            chances[out] = (float)((double)chances[out] + (1.0 - chance) / T);
            const bool is_within = u[i * T + t] < chance;
            now = is_within ? within : out;
            b[t] = is_within ? r1 / c1 + z / sqrt(c1) : r0 / c0 + z / sqrt(c0);
            of.drawn[t] = is_within ? b[t] : 0.0;
        }
        of.state[i] = (signed char)(is_known ? now : NO_CLASS);
    }
};

template <class Genotypes, class Draws>
struct EffectSweep {
    static const int THREADS = 512;
    const typename Genotypes::Word *genotypes;  // (p, chunks, WIDTH)
    const Values *values;                       // (p)
    const REAL *d;                              // (T, T, n)
    REAL *s;                                    // (T, n)
    double *g;                                  // (T, n)
    double *right;                              // (T, BLOCK)
    double *changes;                            // (T, BLOCK)
    Draws draws;
    int p;
    int chunks;
    int T;
    int is_backward;

    __device__ int blocks() const { return (p + BLOCK - 1) / BLOCK; }
    __device__ int rounds() const { return 3 * blocks(); }

    __device__ void round(int r) const {
        __shared__ double shared[GROUPS * LANES];
        const int number = is_backward ? blocks() - 1 - r / 3 : r / 3, first = number * BLOCK;
        const SnpBlock block = {number, first, p - first < BLOCK ? p - first : BLOCK};
        if (r % 3 == 0) dot(block, shared);
        else if (r % 3 == 2) move(block);
        else if (blockIdx.x == 0) draws.draw(block, right, changes, is_backward != 0, shared);
    }

    // right = X_b' s: a SNP and a trait by a block of threads.
    __device__ void dot(SnpBlock block, double *sums) const {
        __shared__ double total[LANES];
        const int groups = (chunks + GROUP - 1) / GROUP;
        for (int work = (int)blockIdx.x; work < T * block.size; work += (int)gridDim.x) {
            const int t = work / block.size, j = work % block.size;
            const size_t row = (size_t)(block.first + j);
            for (int begin = 0; begin < groups; begin += GROUPS) {
                const int count = groups - begin < GROUPS ? groups - begin : GROUPS;
                PHASE {
                    const Values x = values[row];
                    for (int at = (int)threadIdx.x; at < count * LANES; at += (int)blockDim.x)
                        sums[at] = (double)sum_group(row, x, s + (size_t)t * chunks * CHUNK, begin + at / LANES, at % LANES);
                }
                BARRIER
                PHASE {
                    for (int lane = (int)threadIdx.x; lane < LANES; lane += (int)blockDim.x) {
                        double sum = begin == 0 ? 0.0 : total[lane];
                        for (int k = 0; k < count; ++k) sum += sums[k * LANES + lane];
                        total[lane] = sum;
                    }
                }
                BARRIER
            }
            PHASE {
                if (threadIdx.x == 0) {
                    for (int half = LANES / 2; half > 0; half /= 2)
                        for (int lane = 0; lane < half; ++lane) total[lane] += total[lane + half];
                    right[t * BLOCK + j] = 0.0 + total[0];
                }
            }
        }
    }

    __device__ REAL sum_group(size_t row, Values x, const REAL *v, int group, int lane) const {
        REAL sum = 0;
        for (int chunk = group * GROUP; chunk < chunks && chunk < (group + 1) * GROUP; ++chunk)
            for (int step = 0; step < CHUNK / LANES; ++step)
                sum = multiply_add((REAL)decode(row, x, chunk, step, lane), v[chunk * CHUNK + LANES * step + lane], sum);
        return sum;
    }

    __device__ __forceinline__ float decode(size_t row, Values x, int chunk, int step, int lane) const {
        return Genotypes::decode(genotypes + (row * chunks + chunk) * Genotypes::WIDTH, x, step, lane);
    }

    // s -= D X_b Delta, g += X_b Delta, SNPs in the order of their draws: an animal by a thread.
    __device__ void move(SnpBlock block) const {
        const int n = chunks * CHUNK;
        for (int begin = (int)(blockIdx.x * blockDim.x); begin < n; begin += (int)(gridDim.x * blockDim.x)) {
            PHASE {
                const int i = begin + (int)threadIdx.x;
                for (int t = 0; t < (i < n ? T : 0); ++t) {
                    const REAL moved = sum_changes(block, changes + t * BLOCK, i);
                    g[(size_t)t * n + i] += (double)moved;
                    for (int o = 0; o < T; ++o) s[(size_t)o * n + i] -= d[((size_t)o * T + t) * n + i] * moved;
                }
            }
        }
    }

    __device__ REAL sum_changes(SnpBlock block, const double *by, int i) const {
        REAL moved = 0;
        for (int turn = 0; turn < block.size; ++turn) {
            const int j = is_backward ? block.size - 1 - turn : turn;
            if (by[j] == 0.0) continue;
            const size_t row = (size_t)(block.first + j);
            const float x = decode(row, values[row], i / CHUNK, i % CHUNK / LANES, i % LANES);
            moved = multiply_add((REAL)x, (REAL)by[j], moved);
        }
        return moved;
    }
};

// The records of the animals of a term.
struct RecordsOfAnimals {
    REAL *e;                 // (n, T)
    const PATTERN *pattern;  // (n)
    const REAL *weight;      // (n); null where every weight is 1
    const double *Rinv;      // (patterns, T, T)
    const int *animal;       // (n), -1 where a record has none
    const word32 *ptr;       // (animals + 1) of the records of each animal, in their order
    const word32 *record;
    REAL *offset;            // (n) breeding value that e is less
    word32 n;
    word32 animals;
    int trait;
    int T;
};

// s_a = sum over the records of an animal of w_r (R^-1 e_r)_t.
__global__ void sum_by_animal(RecordsOfAnimals of, double *s) {
    PHASE {
        const word32 a = blockIdx.x * blockDim.x + threadIdx.x;
        double sum = 0.0;
        for (word32 at = a < of.animals ? of.ptr[a] : 0; a < of.animals && at < of.ptr[a + 1]; ++at) {
            const word32 r = of.record[at];
            const double *row = of.Rinv + ((size_t)of.pattern[r] * of.T + of.trait) * of.T;
            double total = 0.0;
            for (int o = 0; o < of.T; ++o) total += row[o] * (double)of.e[(size_t)r * of.T + o];
            sum += of.weight ? total * (double)of.weight[r] : total;
        }
        if (a < of.animals) s[a] = sum;
    }
}

// e less the breeding values g (animals), in the place of those before.
__global__ void move_records_of_animals(RecordsOfAnimals of, const double *g) {
    PHASE {
        const word32 r = blockIdx.x * blockDim.x + threadIdx.x;
        const int a = r < of.n ? of.animal[r] : -1;
        if (a >= 0) {
            const REAL old = of.offset[r];
            of.offset[r] = (REAL)g[a];
            of.e[(size_t)r * of.T + of.trait] -= of.offset[r] - old;
        }
    }
}

// e, made anew, less the breeding values.
__global__ void subtract_offsets(RecordsOfAnimals of) {
    PHASE {
        const word32 r = blockIdx.x * blockDim.x + threadIdx.x;
        if (r < of.n) of.e[(size_t)r * of.T + of.trait] -= of.offset[r];
    }
}

}  // namespace mmgibbs
