// Passes over the records for traits that are not normal (engines/liabilities.py): a thread a record at a time. Draws are
// those of the CPU bit for bit; sums run by strands, as in products.cu.

namespace mmgibbs {

const double TINY = 1e-150, FAR = 1e100;  // as in liabilities.py

// Mean and standard deviation of the residual of a record given its others, and eta = y - e; whether it has the trait.
__device__ __forceinline__ bool condition_residual(const Response &of, const Records &records, word32 r, double &mean, double &sd,
                                                   double &eta) {
    const word32 p = records.pattern[r];
    const REAL *e = records.e + (size_t)r * of.T;
    mean = 0.0;
    for (int o = 0; o < of.T; ++o) mean += of.B[(size_t)p * of.T + o] * (double)e[o];
    sd = records.weight ? of.s[p] / sqrt((double)records.weight[r]) : of.s[p];
    eta = (double)of.y[(size_t)r * of.T + of.trait] - (double)e[of.trait];
    return sd > 0.0;
}

// A residual given the others, its liability between the ends that the record leaves it, or behind a count.
__device__ __forceinline__ double draw_residual(const Response &of, word32 r, word32 record, double mean, double sd, double eta,
                                                const word32 *counter) {
    if (of.category) {
        const int c = of.category[r];
        return scaled_truncated_normal(mean, sd, of.cuts[c] - eta, of.cuts[c + 1] - eta, counter[0], record, of.stream, 0,
                                       counter[1], counter[2]);
    }
    if (of.lower) {
        const double low = of.lower[r] - eta, high = of.upper[r] - eta;
        return sd * truncated_normal(mean / sd, low / sd, high / sd, counter[0], record, of.stream, 0, counter[1], counter[2]);
    }
    return poisson_log_normal(of.count[r], of.exposure[r], eta + mean, sd * sd, counter[0], record, of.stream, 0, counter[1],
                              counter[2]);
}

// Liabilities given theta and the other residuals. Of categories the sums a and b of a scale g of the liabilities, whose log
// density is -a g^2 / 2 - b g.
__global__ void __launch_bounds__(THREADS)
    draw_liabilities(Response of, Records records, const word32 *counter, word32 strands, double *scratch, double *sums) {
    PHASE {
        const word32 s = blockIdx.x * blockDim.x + threadIdx.x;
        if (s < strands) {
            double a = 0.0, b = 0.0, mean, sd, eta;
            for (word32 r = s; r < records.n; r += strands) {
                if (of.lower && of.lower[r] == of.upper[r]) continue;
                if (!condition_residual(of, records, r, mean, sd, eta)) continue;
                const double drawn = draw_residual(of, r, records.record[r], mean, sd, eta, counter);
                const double liability = of.count ? drawn : eta + drawn, residual = of.count ? drawn - eta : drawn;
                of.y[(size_t)r * of.T + of.trait] = (REAL)liability;
                records.e[(size_t)r * of.T + of.trait] = (REAL)residual;
                const double x = residual / (sd * sd);
                a += x * residual;
                b -= x * mean;
            }
            scratch[s] = a;
            scratch[(size_t)strands + s] = b;
        }
    }
    BARRIER
    add_strands_of_block(scratch, strands, 2, sums);
}

// log p(categories | proposed) - log p(categories | cuts), liabilities integrated out.
__global__ void __launch_bounds__(THREADS)
    compare_cuts(Response of, Records records, word32 strands, double *scratch, double *sums) {
    PHASE {
        const word32 strand = blockIdx.x * blockDim.x + threadIdx.x;
        if (strand < strands) {
            double total = 0.0, product = 1.0, mean, sd, eta;
            for (word32 r = strand; r < records.n; r += strands) {
                const int c = of.category[r];
                if (c < 0 || (of.cuts[c] == of.proposed[c] && of.cuts[c + 1] == of.proposed[c + 1])) continue;
                if (!condition_residual(of, records, r, mean, sd, eta)) continue;
                const double mu = eta + mean, scale = 1.0 / sd;
                const double low = (of.cuts[c] - mu) * scale, high = (of.cuts[c + 1] - mu) * scale;
                const double new_low = (of.proposed[c] - mu) * scale, new_high = (of.proposed[c + 1] - mu) * scale;
                const double tail_low = tail(low), tail_high = tail(high);
                const double now = interval_given_tails(low, high, tail_low, tail_high);
                const double then = interval_given_tails(new_low, new_high, new_low == low ? tail_low : tail(new_low),
                                                         new_high == high ? tail_high : tail(new_high));
                if (now > TINY && then > TINY) product *= then / now;
                else total += log_normal_interval(new_low, new_high) - log_normal_interval(low, high);
                if (!(FAR > product && product > 1.0 / FAR)) {
                    total += log(product);
                    product = 1.0;
                }
            }
            scratch[strand] = total + log(product);
        }
    }
    BARRIER
    add_strands_of_block(scratch, strands, 1, sums);
}

// log p(categories of the records of one class | x times their residual standard deviation) - log p(... | 1).
__global__ void __launch_bounds__(THREADS) compare_residual_scales(Response of, Records records, const int *class_of_pattern, int c,
                                                                   const double *x, word32 strands, double *scratch, double *sums) {
    PHASE {
        const word32 strand = blockIdx.x * blockDim.x + threadIdx.x;
        if (strand < strands) {
            double total = 0.0, mean, sd, eta;
            for (word32 r = strand; r < records.n; r += strands) {
                const int category = of.category[r];
                if (category < 0 || class_of_pattern[records.pattern[r]] != c) continue;
                if (!condition_residual(of, records, r, mean, sd, eta)) continue;
                const double low = of.cuts[category] - eta, high = of.cuts[category + 1] - eta;
                total += log_normal_interval((low - *x * mean) / (*x * sd), (high - *x * mean) / (*x * sd));
                total -= log_normal_interval((low - mean) / sd, (high - mean) / sd);
            }
            scratch[strand] = total;
        }
    }
    BARRIER
    add_strands_of_block(scratch, strands, 1, sums);
}

// A column of rows (n, k) that a scale of a trait multiplies.
struct ScaledColumn {
    REAL *rows;
    word32 n;
    int k;
    int column;
};

// All columns of a trait times *g: y, e and the effects.
__global__ void __launch_bounds__(THREADS) scale_columns(const ScaledColumn *columns, int n_columns, const double *g) {
    PHASE {
        word32 row = blockIdx.x * blockDim.x + threadIdx.x;
        int i = 0;
        while (i < n_columns && row >= columns[i].n) row -= columns[i++].n;
        if (i < n_columns) columns[i].rows[(size_t)row * columns[i].k + columns[i].column] *= (REAL)*g;
    }
}

// A term with a prior, in the density of the scale of a trait: its matrix moves along, or stays.
struct PriorTerm {
    const Matrix *matrix;            // of one that moves along, else null
    const Auxiliaries *auxiliaries;  // of one that moves along under a scale prior, else null
    const double *precision;         // (k, k) of one that stays
    const double *strands;           // (k (k + 1) / 2, n_strands): its sums of squares and products
    const unsigned char *is_of_trait;  // (k)
    word32 n_strands;
    int k;
};

// Thresholds and scale of a trait in categories: sampler/liabilities.py.
struct Trait {
    Response of;
    double *log_step;       // of the walk of the thresholds
    double *has_moved;      // whether they moved
    double *walk;           // sum of the moves of the logarithms of their gaps
    double *g;
    double *work;           // (largest k (k + 1) / 2, at least 2)
    const double *steps;    // (gaps): of the walk at a log_step of 0
    const double *sums;     // of a pass over the records, n_sums each
    const PriorTerm *terms;
    double power;           // what M is whatever the draws are
    double wanted;          // acceptance
    word32 n_sums;
    word32 threshold_stream;
    word32 scale_stream;
    word32 burn_in;
    int n_gaps;
    int n_terms;
};

const word32 DECISION = 200;  // draw number

// Proposed cuts: a random walk on the logarithms of the gaps.
__global__ void __launch_bounds__(THREADS) propose_cuts(Trait t, const word32 *counter) {
    PHASE {
        if (threadIdx.x == 0) {
            double *cuts = t.of.cuts, *proposed = t.of.proposed, total = 0.0;
            *t.walk = 0.0;
            for (int j = 0; j < t.n_gaps; ++j) {
                const double z = normal(counter[0], (word32)t.of.trait, t.threshold_stream, (word32)j, counter[1], counter[2]);
                const double moved = exp(*t.log_step) * t.steps[j] * z;
                *t.walk += moved;
                total += (cuts[j + 2] - cuts[j + 1]) * exp(moved);
                proposed[j + 2] = total;
            }
            proposed[0] = cuts[0], proposed[1] = cuts[1], proposed[t.n_gaps + 2] = cuts[t.n_gaps + 2];
        }
    }
}

__global__ void __launch_bounds__(THREADS) decide_cuts(Trait t, const word32 *counter) {
    fold_rows(t.sums, t.n_sums, 1, t.work);
    PHASE {
        if (threadIdx.x == 0) {
            const double log_ratio = t.work[0] + *t.walk;
            double u, unused;
            uniform_pair(counter[0], (word32)t.of.trait, t.threshold_stream, draw_word(DECISION, 0), counter[1], counter[2], u,
                         unused);
            if (counter[0] <= t.burn_in)
                *t.log_step += (exp(log_ratio < 0.0 ? log_ratio : 0.0) - t.wanted) / sqrt((double)counter[0]);
            *t.has_moved = log(u) < log_ratio ? 1.0 : 0.0;
            for (int j = 0; *t.has_moved != 0.0 && j < t.n_gaps; ++j) t.of.cuts[j + 2] = t.of.proposed[j + 2];
        }
    }
}

// The residual standard deviation of a trait in one class of records: sampler/residual_scales.py.
struct ResidualScale {
    Response of;
    const Matrix *matrix;             // R of the class
    const unsigned char *is_in_block;  // (T): traits in a block with this one
    double *log_step;                 // of the walk
    double *has_moved;
    double *log_s;                    // of the proposal
    double *s;
    double *work;                     // (1)
    const double *sums;               // of a pass over the records, n_sums
    double step;                      // at a log_step of 0
    double wanted;                    // acceptance
    double nu;                        // degrees of freedom of the prior of the block
    word32 n_sums;
    word32 stream;
    word32 burn_in;
    int of_class;
};

__global__ void __launch_bounds__(THREADS) propose_residual_scale(ResidualScale t, const word32 *counter) {
    PHASE {
        if (threadIdx.x == 0) {
            *t.log_s = exp(*t.log_step) * t.step * normal(counter[0], (word32)t.of_class, t.stream, 0, counter[1], counter[2]);
            *t.s = exp(*t.log_s);
        }
    }
}

// Log prior of R of the class, the trait's standard deviation times s, less that of R as it is.
__device__ inline double log_prior_ratio(const ResidualScale &t) {
    const int T = t.matrix->k, u = t.of.trait;
    double trace = 0.0;
    for (int at = 0; at < T * T; ++at) {
        const int i = at / T, j = at % T, n_scaled = (i == u) + (j == u);
        const double factor = n_scaled == 2 ? 1.0 / (*t.s * *t.s) : 1.0 / *t.s;
        if (n_scaled && t.is_in_block[i] && t.is_in_block[j]) trace += t.matrix->scale[at] * t.matrix->inverse[at] * (factor - 1.0);
    }
    return -t.nu * *t.log_s - 0.5 * trace;
}

__global__ void __launch_bounds__(THREADS)
    decide_residual_scale(ResidualScale t, const Matrix *residuals, Patterns q, const word32 *counter, bits64 *lost) {
    __shared__ bool has_moved;
    fold_rows(t.sums, t.n_sums, 1, t.work);
    PHASE {
        if (threadIdx.x == 0) {
            const double log_ratio = t.work[0] + log_prior_ratio(t);
            double u, unused;
            uniform_pair(counter[0], (word32)t.of_class, t.stream, draw_word(DECISION, 0), counter[1], counter[2], u, unused);
            if (counter[0] <= t.burn_in)
                *t.log_step += (exp(log_ratio < 0.0 ? log_ratio : 0.0) - t.wanted) / sqrt((double)counter[0]);
            has_moved = log(u) < log_ratio;
            *t.has_moved = has_moved ? 1.0 : 0.0;
            double *R = t.matrix->now;
            const int T = t.matrix->k;
            for (int j = 0; has_moved && j < T; ++j) R[t.of.trait * T + j] *= *t.s;
            for (int j = 0; has_moved && j < T; ++j) R[j * T + t.of.trait] *= *t.s;
        }
    }
    BARRIER
    if (!has_moved) return;
    invert_matrix(*t.matrix, counter[0], lost);
    renew_patterns(residuals, q);
}

// g with density ~ g^(M - 1) exp(-a g^2 / 2 - b g): exactly where b is 0, else a Metropolis step from 1.
__device__ inline double draw_scale(double M, double a, double b, word32 trait, word32 stream, const word32 *counter) {
    if (b == 0.0) return sqrt(2.0 * gamma(0.5 * M, counter[0], trait, stream, 0, counter[1], counter[2]) / a);
    const double mode = (-b + sqrt(b * b + 4.0 * a * M)) / (2.0 * a), sd = 1.0 / sqrt(2.0 * a * (mode * mode) + b * mode);
    const double centre = log(mode), x = centre + sd * normal(counter[0], trait, stream, 0, counter[1], counter[2]);
    const double away = (x - centre) / sd, back = centre / sd;
    const double then = M * x - 0.5 * a * exp(2.0 * x) - b * exp(x) + 0.5 * (away * away);
    const double now = -0.5 * a - b + 0.5 * (back * back);
    double u, unused;
    uniform_pair(counter[0], trait, stream, draw_word(DECISION, 0), counter[1], counter[2], u, unused);
    return log(u) < then - now ? exp(x) : 1.0;
}

// What a term that stays adds to a and b, by one thread; S: lower triangle of its sums.
__device__ inline void add_prior(const PriorTerm &term, const double *S, double &a, double &b) {
    for (int i = 0; i < term.k; ++i)
        for (int j = 0; term.is_of_trait[i] && j < term.k; ++j) {
            const double product = term.precision[i * term.k + j] * S[i > j ? i * (i + 1) / 2 + j : j * (j + 1) / 2 + i];
            if (term.is_of_trait[j]) a += product;
            else b += product;
        }
}

// What a matrix that moves along under a scale prior adds to a.
__device__ inline double moving_square(const PriorTerm &term) {
    double square = 0.0;
    for (int i = 0; term.auxiliaries && i < term.k; ++i)
        if (term.is_of_trait[i]) {
            const double value = term.auxiliaries->values[i], twice = 2.0 * term.auxiliaries->precisions[i];
            square += term.auxiliaries->is_inverse ? twice / value : twice * value;
        }
    return square;
}

// Rows and columns of the trait in a matrix that moves along, and the auxiliary variables of its prior.
__device__ inline void scale_matrix(const PriorTerm &term, double g) {
    for (int i = 0; i < term.k; ++i) {
        if (!term.is_of_trait[i]) continue;
        for (int j = 0; j < term.k; ++j) term.matrix->now[i * term.k + j] *= g;
        for (int j = 0; j < term.k; ++j) term.matrix->now[j * term.k + i] *= g;
        if (!term.auxiliaries) continue;
        term.auxiliaries->values[i] *= term.auxiliaries->is_inverse ? 1.0 / (g * g) : g * g;
        set_scale(*term.auxiliaries, i);
    }
}

// The scale of the liabilities, their thresholds and the matrices that move along.
__global__ void __launch_bounds__(THREADS) decide_scale(Trait t, const word32 *counter, bits64 *lost) {
    __shared__ double density[2];
    fold_rows(t.sums, t.n_sums, 2, t.work);
    PHASE { if (threadIdx.x == 0) density[0] = t.work[0], density[1] = t.work[1]; }
    BARRIER
    for (int m = 0; m < t.n_terms; ++m) {
        const PriorTerm &term = t.terms[m];
        if (!term.matrix) fold_rows(term.strands, term.n_strands, term.k * (term.k + 1) / 2, t.work);
        PHASE {
            if (threadIdx.x == 0) {
                if (term.matrix) density[0] += moving_square(term);
                else add_prior(term, t.work, density[0], density[1]);
            }
        }
        BARRIER
    }
    PHASE {
        if (threadIdx.x == 0) {
            const double g = draw_scale(t.power, density[0], density[1], (word32)t.of.trait, t.scale_stream, counter);
            for (int j = 0; j < t.n_gaps; ++j) t.of.cuts[j + 2] *= g;
            for (int m = 0; m < t.n_terms; ++m)
                if (t.terms[m].matrix) scale_matrix(t.terms[m], g);
            *t.g = g;
        }
    }
    BARRIER
    for (int m = 0; m < t.n_terms; ++m)
        if (t.terms[m].matrix) invert_matrix(*t.terms[m].matrix, counter[0], lost);
}

}  // namespace mmgibbs
