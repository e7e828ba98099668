// Polya-Gamma draws: the twin of polya_gamma.py, where the method is derived.
#pragma once
#include "gamma.cuh"
#include "inverse_gaussian.cuh"

namespace mmgibbs {

const double PI = 3.141592653589793;
const double PI_SQUARED = 9.869604401089358;
const double CUT = 0.64;
const double CUT_ROOT = 1.25;
const double SWITCH = 1.4;
const double CENTRE = 0.5542476415070755;
const double LEFT_MASS = 0.4721575136019979;
const double SURE = 0.994;
const int EXACT_UP_TO = 16;
const int SERIES_TERMS = 8;

__device__ inline bool series_accepts(double rho, double v) {
    double total = 1.0, power = 1.0, step = rho;
    double n = 1.0;
    while (true) {
        power = power * step;
        step = step * rho;
        total -= (2.0 * n + 1.0) * power;
        if (v < total) return true;
        power = power * step;
        step = step * rho;
        total += (2.0 * n + 3.0) * power;
        if (!(v < total)) return false;
        n += 2.0;
    }
}

__device__ inline double polya_gamma_1_attempts(double z, word32 c0, word32 c1, word32 c2, word32 draw, word32 first,
                                                word32 k0, word32 k1) {
    double c = 0.5 * magnitude(z);
    if (!(c < infinity())) return c != c ? not_a_number() : 0.0;
    double k = 0.125 * PI_SQUARED + 0.5 * c * c;
    bool near_zero = c < SWITCH;
    double odds = 0.5 * PI / k * (near_zero ? exp(-CUT * k) / LEFT_MASS : 0.5 * exp(c - CUT * k));
    double right_share = odds / (1.0 + odds);
    word32 attempt = 0;
    while (true) {
        word32 w0, w1, w2, w3;
        philox(c0, c1, c2, draw_word(draw, first + attempt), k0, k1, w0, w1, w2, w3);
        double u = uniform(w0, w1);
        double v = uniform(w3, w1 << 20);
        double x;
        bool accepted;
        if (v < right_share) {
            v = v / right_share;
            x = CUT - log(u) / k;
            accepted = v < SURE || series_accepts(exp(-PI_SQUARED * x), v);
        } else {
            v = (v - right_share) / (1.0 - right_share);
            if (near_zero) {
                double excess = -log(u) * CENTRE;
                double n = CUT_ROOT + excess;
                x = 1.0 / (n * n);
                double off = excess - CENTRE;
                accepted = short_uniform(w2) < exp(-0.5 * (off * off + c * c * x));
            } else {
                double g;
                x = small_root(1.0 / c, half_chi_square_1(w0, w1, w2), g);
                double small = g / (1.0 + g);
                if (v < small) {
                    v = v / small;
                } else {
                    v = (v - small) / (1.0 - small);
                    x = x * g * g;
                }
                accepted = x <= CUT;
            }
            accepted = accepted && (v < SURE || series_accepts(exp(-4.0 / x), v));
        }
        if (accepted) return 0.25 * x;
        attempt += 1;
        if (exhausted(attempt, u)) return not_a_number();
    }
}

__device__ inline double polya_gamma_1(double z, word32 c0, word32 c1, word32 c2, word32 draw, word32 k0, word32 k1) {
    return polya_gamma_1_attempts(z, c0, c1, c2, draw, 0, k0, k1);
}

__device__ inline double polya_gamma_mean(double h, double z) {
    if (magnitude(z) < 0.5) {
        double y = 0.25 * z * z;
        double s = -0.0014558343870513183 + 0.00059002744094558598 * y;
        s = 0.0035921280365724810 + s * y;
        s = -0.0088632355299021966 + s * y;
        s = 0.021869488536155203 + s * y;
        s = -0.053968253968253968 + s * y;
        s = 0.13333333333333333 + s * y;
        s = -0.33333333333333333 + s * y;
        return 0.25 * h * (1.0 + s * y);
    }
    double e = exp(-magnitude(z));
    return h * ((1.0 - e) / (1.0 + e)) / (2.0 * magnitude(z));
}

__device__ inline double polya_gamma_variance(double h, double z) {
    if (magnitude(z) < 0.5) {
        double y = 0.25 * z * z;
        double s = -7.0 * 0.0014558343870513183 + 8.0 * 0.00059002744094558598 * y;
        s = 6.0 * 0.0035921280365724810 + s * y;
        s = -5.0 * 0.0088632355299021966 + s * y;
        s = 4.0 * 0.021869488536155203 + s * y;
        s = -3.0 * 0.053968253968253968 + s * y;
        s = 2.0 * 0.13333333333333333 + s * y;
        return -0.125 * h * (-0.33333333333333333 + s * y);
    }
    double size = magnitude(z);
    double e = exp(-size);
    double t = (1.0 - e) / (1.0 + e);
    return h * (2.0 * t - size * (1.0 - t * t)) / (4.0 * size * size * size);
}

__device__ inline double polya_gamma(long long h, double z, word32 c0, word32 c1, word32 c2, word32 draw, word32 k0,
                                     word32 k1) {
    if (h < 0 || z != z) return not_a_number();
    if (h == 0 || magnitude(z) == infinity()) return 0.0;
    double total = 0.0;
    if (h <= EXACT_UP_TO) {
        for (word32 i = 0; i < (word32)h; ++i) total += polya_gamma_1_attempts(z, c0, c1, c2, draw, i << 12, k0, k1);
        return total;
    }
    double shape = (double)h;
    double mean = polya_gamma_mean(shape, z), variance = polya_gamma_variance(shape, z);
    if (magnitude(z) > 1e40) return mean;
    for (word32 i = 0; i < SERIES_TERMS; ++i) {
        double half = (double)i + 0.5;
        double weight = 1.0 / (2.0 * PI_SQUARED * (half * half) + 0.5 * z * z);
        mean -= shape * weight;
        variance -= shape * weight * weight;
        total += weight * gamma_large_shape(shape, c0, c1, c2, draw, i << 12, k0, k1);
    }
    double rest = mean * mean * mean / variance;
    return total + inverse_gaussian_attempt(mean, rest, c0, c1, c2, draw, (word32)SERIES_TERMS << 12, k0, k1);
}

}  // namespace mmgibbs
