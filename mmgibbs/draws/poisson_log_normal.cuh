// The log rate of a Poisson count under a normal prior: the twin of poisson_log_normal.py.
#pragma once
#include "philox.cuh"

namespace mmgibbs {

__device__ inline double lambert_of_exp(double c) {
    if (c < -36.0) return exp(c > -700.0 ? c : -700.0);
    double w = c > 2.0 ? c - log(c) : c > -2.0 ? exp(0.5 * (c < 0.0 ? c : 0.0) - 0.4) : exp(c);
    for (int step = 0; step < 8; ++step) w = w * (1.0 + c - log(w)) / (1.0 + w);
    return w;
}

__device__ inline double poisson_log_normal(double count, double exposure, double mean, double variance, word32 c0,
                                            word32 c1, word32 c2, word32 draw, word32 k0, word32 k1) {
    if (!(0.0 <= count && count < infinity() && 0.0 < exposure && exposure < infinity() && 0.0 < variance &&
          variance < infinity() && magnitude(mean) < infinity()))
        return not_a_number();
    double a = mean + variance * count;
    double w = lambert_of_exp(log(variance * exposure) + a);
    double mode = a - w;
    double rate = w / variance;
    double reach = 1.2 / sqrt(1.0 / variance + rate);
    double low = rate * (1.0 - reach - exp(-reach)) - 0.5 * reach * reach / variance;
    double high = rate * (1.0 + reach - exp(reach)) - 0.5 * reach * reach / variance;
    double rise = rate * (1.0 - exp(-reach)) + reach / variance;
    double fall = rate * (exp(reach) - 1.0) + reach / variance;
    double left = -reach - low / rise;
    double right = reach + high / fall;
    double area_left = 1.0 / rise, area_right = 1.0 / fall;
    double area = area_left + (right - left) + area_right;
    word32 attempt = 0;
    while (true) {
        double u, v;
        uniform_pair(c0, c1, c2, draw_word(draw, attempt), k0, k1, u, v);
        double at = area * u, tangent = 0.0, x;
        if (at < area_left) {
            x = left + log(at * rise) / rise;
            tangent = rise * (x - left);
        } else if (at < area - area_right) {
            x = left + (at - area_left);
        } else {
            x = right - log((area - at) * fall) / fall;
            tangent = -fall * (x - right);
        }
        if (log(v) < rate * (1.0 + x - exp(x)) - 0.5 * x * x / variance - tangent) return mode + x;
        attempt += 1;
        if (exhausted(attempt, u)) return not_a_number();
    }
}

}  // namespace mmgibbs
