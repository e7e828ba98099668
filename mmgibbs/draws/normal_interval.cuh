// Phi(b) - Phi(a), and its logarithm wherever it lies: the twin of normal_interval.py up to the rounding of erfc and log1p.
#pragma once
#include "elementary.cuh"

namespace mmgibbs {

const double SQRT_HALF = 0.7071067811865476, LOG_SQRT_TWO_PI = 0.9189385332046727;

__device__ inline double log_phi(double x) {
    if (x < -1e160) return -infinity();
    if (x > -30.0) return x > 0.0 ? log1p(-0.5 * erfc(x * SQRT_HALF)) : log(0.5 * erfc(-x * SQRT_HALF));
    const double t = -x;
    double f = t;
    for (int n = 12; n > 0; --n) f = t + n / f;
    return -0.5 * t * t - LOG_SQRT_TWO_PI - log(f);
}

// 2 (1 - Phi(|x|)).
__device__ __forceinline__ double tail(double x) { return erfc(magnitude(x) * SQRT_HALF); }

// Phi(b) - Phi(a) for a <= b, tails as given by `tail`.
__device__ __forceinline__ double interval_given_tails(double a, double b, double tail_a, double tail_b) {
    if (a > 0.0) return 0.5 * (tail_a - tail_b);
    return b > 0.0 ? 1.0 - 0.5 * (tail_a + tail_b) : 0.5 * (tail_b - tail_a);
}

// log(Phi(b) - Phi(a)) for a < b.
__device__ inline double log_normal_interval(double a, double b) {
    if (a > 0.0) {
        const double c = a;
        a = -b, b = -c;
    }
    const double above = log_phi(b);
    if (a == -infinity()) return above;
    const double share = exp(log_phi(a) - above);
    return share < 1.0 ? above + log1p(-share) : -infinity();
}

}  // namespace mmgibbs
