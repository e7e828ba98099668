// Inverse Gaussian draws after Michael, Schucany and Haas (1976): the twin of inverse_gaussian.py.
#pragma once
#include "philox.cuh"

namespace mmgibbs {

__device__ __forceinline__ double small_root(double mean, double half_chi_square, double &g) {
    double a = mean * half_chi_square;
    if (a > 1e17) {
        g = infinity();
        return 0.5 / half_chi_square;
    }
    g = 1.0 + (a + sqrt(a * (a + 2.0)));
    return mean / g;
}

__device__ __forceinline__ double half_chi_square_1(word32 w0, word32 w1, word32 w2) {
    double cosine, sine;
    cos_sin_turns(0.25 * short_uniform(w2), cosine, sine);
    return -log(uniform(w0, w1)) * (cosine * cosine);
}

__device__ inline double inverse_gaussian_attempt(double mean, double shape, word32 c0, word32 c1, word32 c2,
                                                  word32 draw, word32 attempt, word32 k0, word32 k1) {
    word32 w0, w1, w2, w3;
    philox(c0, c1, c2, draw_word(draw, attempt), k0, k1, w0, w1, w2, w3);
    double u = uniform(w3, w1 << 20);
    double g;
    double x = small_root(mean / shape, half_chi_square_1(w0, w1, w2), g);
    if (u * (1.0 + g) > g) x = x * g * g;
    return shape * x;
}

__device__ inline double inverse_gaussian(double mean, double shape, word32 c0, word32 c1, word32 c2, word32 draw,
                                          word32 k0, word32 k1) {
    if (!(mean > 0.0 && shape > 0.0 && shape < infinity())) return not_a_number();
    return inverse_gaussian_attempt(mean, shape, c0, c1, c2, draw, 0, k0, k1);
}

}  // namespace mmgibbs
