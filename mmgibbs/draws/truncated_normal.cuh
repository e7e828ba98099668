// Truncated normals after Robert (1995): the twin of truncated_normal.py.
#pragma once
#include "normal.cuh"

namespace mmgibbs {

const double SQRT_TWO_PI = 2.5066282746310002;

__device__ inline double truncated_normal_positive(double mean, word32 c0, word32 c1, word32 c2, word32 draw, word32 k0,
                                                word32 k1) {
    if (!(magnitude(mean) < infinity())) return not_a_number();
    double rate = 0.5 * (sqrt(mean * mean + 4.0) - mean);
    double centre = 1.0 / rate;
    word32 attempt = 0;
    while (true) {
        double u, v;
        uniform_pair(c0, c1, c2, draw_word(draw, attempt), k0, k1, u, v);
        if (mean > 0.47) {
            double z0, z1;
            box_muller(u, v, z0, z1);
            if (mean + z0 > 0.0) return mean + z0;
            if (mean + z1 > 0.0) return mean + z1;
        } else {
            double excess = -log(u) * centre;
            if (v < exp(-0.5 * (excess - centre) * (excess - centre))) return excess;
        }
        attempt += 1;
        if (exhausted(attempt, u)) return not_a_number();
    }
}

__device__ inline double truncated_normal_negative(double mean, word32 c0, word32 c1, word32 c2, word32 draw, word32 k0,
                                                word32 k1) {
    return -truncated_normal_positive(-mean, c0, c1, c2, draw, k0, k1);
}

__device__ inline double retry_truncated_normal(word32 attempt, double mean, double lower, double upper, word32 c0, word32 c1,
                                                word32 c2, word32 draw, word32 k0, word32 k1) {
    if (!(lower <= upper && magnitude(mean) < infinity())) return not_a_number();
    if (lower == upper) return lower;
    double width = upper - lower;
    double alpha = lower - mean, beta = upper - mean;
    bool right = alpha > 0.0;
    bool inside = alpha <= 0.0 && beta >= 0.0;
    double near = right ? alpha : -beta, far = right ? beta : -alpha;
    double rate = 0.5 * (near + sqrt(near * near + 4.0));
    double centre = 1.0 / rate;
    while (true) {
        double u, v;
        uniform_pair(c0, c1, c2, draw_word(draw, attempt), k0, k1, u, v);
        double excess = width * u, accept = 0.0;
        if (inside && width > SQRT_TWO_PI) {
            double z0, z1;
            box_muller(u, v, z0, z1);
            if (alpha <= z0 && z0 <= beta) return mean + z0;
            if (alpha <= z1 && z1 <= beta) return mean + z1;
        } else if (inside) {
            double x = alpha + excess;
            accept = exp(-0.5 * x * x);
        } else if (width * (near + far) <= 2.0) {
            accept = exp(-excess * (near + 0.5 * excess));
        } else {
            excess = -log(u) * centre;
            if (excess <= width) accept = exp(-0.5 * (excess - centre) * (excess - centre));
        }
        if (v < accept) {
            if (inside || right) return lower + excess < upper ? lower + excess : upper;
            return upper - excess > lower ? upper - excess : lower;
        }
        attempt += 1;
        if (exhausted(attempt, u)) return not_a_number();
    }
}

__device__ inline double truncated_normal(double mean, double lower, double upper, word32 c0, word32 c1, word32 c2,
                                          word32 draw, word32 k0, word32 k1) {
    return retry_truncated_normal(0, mean, lower, upper, c0, c1, c2, draw, k0, k1);
}

// One attempt by an exponential or a uniform, as loops over levels make it: whether it is accepted.
__device__ inline bool attempt_without_normals(double mean, double lower, double upper, double u, double v, double &drawn) {
    const double width = upper - lower, alpha = lower - mean, beta = upper - mean;
    const bool right = alpha > 0.0, inside = alpha <= 0.0 && beta >= 0.0;
    const double near = right ? alpha : -beta, far = right ? beta : -alpha;
    const double rate = 0.5 * (near + sqrt(near * near + 4.0)), middle = 1.0 / rate;
    const bool by_uniform = inside || width * (near + far) <= 2.0;
    const double excess = by_uniform ? width * u : -log(u) * middle, x = alpha + excess, past = excess - middle;
    const double power = inside ? -0.5 * x * x : by_uniform ? -excess * (near + 0.5 * excess) : -0.5 * past * past;
    const double up = lower + excess < upper ? lower + excess : upper, down = upper - excess > lower ? upper - excess : lower;
    drawn = inside || right ? up : down;
    return v < exp(power) && (by_uniform || excess <= width) && lower <= upper && magnitude(mean) < infinity();
}

// sd > 0 times TN(mean, 1; lower, upper) of what is given divided by sd: the twin of fill_truncated.
__device__ inline double scaled_truncated_normal(double mean, double sd, double lower, double upper, word32 c0, word32 c1,
                                                 word32 c2, word32 draw, word32 k0, word32 k1) {
    double u, v, z0, z1;
    uniform_pair(c0, c1, c2, draw_word(draw, 0), k0, k1, u, v);
    if (lower <= mean && mean <= upper && upper - lower > SQRT_TWO_PI * sd) {
        box_muller(u, v, z0, z1);
        const double first = mean + sd * z0, second = mean + sd * z1;
        if (lower <= first && first <= upper) return first;
        if (lower <= second && second <= upper) return second;
    } else {
        double drawn;
        if (attempt_without_normals(mean / sd, lower / sd, upper / sd, u, v, drawn)) return sd * drawn;
    }
    return sd * retry_truncated_normal(1, mean / sd, lower / sd, upper / sd, c0, c1, c2, draw, k0, k1);
}

}  // namespace mmgibbs
