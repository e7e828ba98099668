// Gamma and chi-square draws by Marsaglia and Tsang: the twin of gamma.py.
#pragma once
#include "normal.cuh"
#include "over_relaxation.cuh"

namespace mmgibbs {

const double SMALLEST = 2.2250738585072014e-308;
const word32 BOOST_ATTEMPT = 0xFFFFFF;

__device__ __forceinline__ double log_acceptance(double w, double d) {
    if (magnitude(w) < 0.03125) {
        double tail = 0.16666666666666666 + w * (-0.14285714285714285 + w * (0.125 - 0.1111111111111111 * w));
        tail = 0.25 + w * (-0.2 + w * tail);
        return -3.0 * d * (w * w) * (w * w) * tail;
    }
    return 3.0 * d * (log(1.0 + w) - w + w * w * (0.5 - 0.3333333333333333 * w));
}

__device__ inline double gamma_large_shape(double shape, word32 c0, word32 c1, word32 c2, word32 draw, word32 first,
                                        word32 k0, word32 k1) {
    if (!(shape >= 1.0 && shape < infinity())) return not_a_number();
    double d = shape - 0.3333333333333333;
    double scale = 1.0 / (3.0 * sqrt(d));
    word32 attempt = 0;
    while (true) {
        word32 w0, w1, w2, w3;
        philox(c0, c1, c2, draw_word(draw, first + attempt), k0, k1, w0, w1, w2, w3);
        double x, unused;
        box_muller(uniform(w0, w1), short_uniform(w2), x, unused);
        double u = short_uniform(w3);
        double w = x * scale;
        if (w > -1.0 && (u < 1.0 - 0.0331 * (x * x) * (x * x) || log(u) < log_acceptance(w, d)))
            return d * ((1.0 + w) * (1.0 + w) * (1.0 + w));
        attempt += 1;
        if (exhausted(attempt, u)) return not_a_number();
    }
}

__device__ inline double log_boost(double shape, word32 c0, word32 c1, word32 c2, word32 draw, word32 k0, word32 k1) {
    word32 w0, w1, w2, w3;
    philox(c0, c1, c2, draw_word(draw, BOOST_ATTEMPT), k0, k1, w0, w1, w2, w3);
    return log(uniform(w0, w1)) / shape;
}

__device__ inline double gamma(double shape, word32 c0, word32 c1, word32 c2, word32 draw, word32 k0, word32 k1) {
    if (!(shape > 0.0)) return not_a_number();
    double value = gamma_large_shape(shape >= 1.0 ? shape : shape + 1.0, c0, c1, c2, draw, 0, k0, k1);
    if (shape < 1.0) value = value * exp(log_boost(shape, c0, c1, c2, draw, k0, k1));
    if (value < SMALLEST) return SMALLEST;
    return value;
}

__device__ inline double log_gamma_draw(double shape, word32 c0, word32 c1, word32 c2, word32 draw, word32 k0,
                                        word32 k1) {
    if (!(shape > 0.0)) return not_a_number();
    double value = gamma_large_shape(shape >= 1.0 ? shape : shape + 1.0, c0, c1, c2, draw, 0, k0, k1);
    if (!(value > 0.0)) return not_a_number();
    return shape >= 1.0 ? log(value) : log(value) + log_boost(shape, c0, c1, c2, draw, k0, k1);
}

__device__ inline double chi_square(double df, word32 c0, word32 c1, word32 c2, word32 draw, word32 k0, word32 k1) {
    return 2.0 * gamma(0.5 * df, c0, c1, c2, draw, k0, k1);
}

__device__ inline double over_relaxed_chi_square(double df, double now, word32 c0, word32 c1, word32 c2, word32 draw,
                                                 word32 k0, word32 k1) {
    const double shape = 0.5 * df;
    if (!(shape >= 1.0 && shape < infinity())) return chi_square(df, c0, c1, c2, draw, k0, k1);
    const double d = shape - 0.3333333333333333, scale = 1.0 / (3.0 * sqrt(d));
    const double w_now = exp(0.3333333333333333 * log(0.5 * now / d)) - 1.0;
    word32 w0, w1, w2, w3;
    philox(c0, c1, c2, draw_word(draw, 0), k0, k1, w0, w1, w2, w3);
    double z, unused;
    box_muller(uniform(w0, w1), short_uniform(w2), z, unused);
    const double w = OVER_RELAXED * w_now + NOISE * z * scale;
    if (w > -1.0 && log(short_uniform(w3)) < log_acceptance(w, d) - log_acceptance(w_now, d))
        return 2.0 * d * ((1.0 + w) * (1.0 + w) * (1.0 + w));
    return now;
}

}  // namespace mmgibbs
