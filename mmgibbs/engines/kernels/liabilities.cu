// Passes over the records for traits that are not normal (engines/liabilities.py): a thread a record at a time. Draws are
// those of the CPU bit for bit; sums run by strands, as in products.cu.

namespace mmgibbs {

const double TINY = 1e-150, FAR = 1e100;  // as in liabilities.py

// How a trait is observed, one of categories, bounds or counts (the others are null), and what its liability depends on.
struct Response {
    const short *category;   // (n): -1 where not observed
    const double *lower;     // (n)
    const double *upper;     // (n)
    const double *count;     // (n)
    const double *exposure;  // (n)
    const double *cuts;      // (K + 1): -inf, t_1, ..., inf
    const double *proposed;  // (K + 1)
    const double *B;         // (patterns, T): the mean of the residual given the others is B e,
    const double *s;         // (patterns): its standard deviation at weight 1; 0 where the trait is missing
    REAL *y;                 // (n, T)
    word32 stream;
    int trait;
    int T;
};

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

// Column `column` of rows (n, k) times g.
__global__ void __launch_bounds__(THREADS) scale_column(REAL *rows, word32 n, int k, int column, double g) {
    PHASE {
        const word32 i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) rows[(size_t)i * k + column] *= (REAL)g;
    }
}

}  // namespace mmgibbs
