// Standard exponentials by inversion: the twin of exponential.py.
#pragma once
#include "philox.cuh"

namespace mmgibbs {

__device__ inline void exponential_pair(word32 c0, word32 c1, word32 c2, word32 draw, word32 k0, word32 k1,
                                        double &e0, double &e1) {
    double u, v;
    uniform_pair(c0, c1, c2, draw_word(draw, 0), k0, k1, u, v);
    e0 = -log(u);
    e1 = -log(v);
}

__device__ inline double exponential(word32 c0, word32 c1, word32 c2, word32 draw, word32 k0, word32 k1) {
    double e0, e1;
    exponential_pair(c0, c1, c2, draw, k0, k1, e0, e1);
    return e0;
}

}  // namespace mmgibbs
