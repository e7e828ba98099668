// Standard normals by Box and Muller: the twin of normal.py.
#pragma once
#include "philox.cuh"

namespace mmgibbs {

__device__ __forceinline__ void box_muller(double u, double v, double &z0, double &z1) {
    double radius = sqrt(-2.0 * log(u));
    double c, s;
    cos_sin_turns(v, c, s);
    z0 = radius * c;
    z1 = radius * s;
}

__device__ __forceinline__ void normal_pair(word32 c0, word32 c1, word32 c2, word32 draw, word32 k0, word32 k1,
                                            double &z0, double &z1) {
    double u, v;
    uniform_pair(c0, c1, c2, draw_word(draw, 0), k0, k1, u, v);
    box_muller(u, v, z0, z1);
}

__device__ inline double normal(word32 c0, word32 c1, word32 c2, word32 j, word32 k0, word32 k1) {
    double u, v, z0, z1;
    uniform_pair(c0, c1, c2, draw_word(j >> 1 & 255, j >> 9), k0, k1, u, v);
    box_muller(u, v, z0, z1);
    return (j & 1) ? z1 : z0;
}

}  // namespace mmgibbs
