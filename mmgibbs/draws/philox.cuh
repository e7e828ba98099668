// Philox4x32-10, and uniforms from its words: the twin of philox.py (words are 32 bits here, which changes no value).
#pragma once
#include "elementary.cuh"

namespace mmgibbs {

const word32 MAX_ATTEMPTS = 4096;

__device__ __forceinline__ void philox(word32 c0, word32 c1, word32 c2, word32 c3, word32 k0, word32 k1,
                                       word32 &w0, word32 &w1, word32 &w2, word32 &w3) {
    for (int round = 0; round < 10; ++round) {
        bits64 p0 = (bits64)0xD2511F53U * c0;
        bits64 p1 = (bits64)0xCD9E8D57U * c2;
        c0 = (word32)(p1 >> 32) ^ c1 ^ k0;
        c1 = (word32)p1;
        c2 = (word32)(p0 >> 32) ^ c3 ^ k1;
        c3 = (word32)p0;
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    w0 = c0;
    w1 = c1;
    w2 = c2;
    w3 = c3;
}

__device__ __forceinline__ word32 draw_word(word32 draw, word32 attempt) { return (draw << 24) | attempt; }

__device__ __forceinline__ double uniform(word32 high, word32 low) {
    bits64 n = ((bits64)high << 20) | (low >> 12);
    return from_bits(n | 0x3FF0000000000000ULL) - 0.99999999999999988897769753748;
}

__device__ __forceinline__ double short_uniform(word32 word) {
    return from_bits(((bits64)word << 20) | 0x3FF0000000000000ULL) - 0.99999999988358467817306518555;
}

__device__ __forceinline__ void uniform_pair(word32 c0, word32 c1, word32 c2, word32 c3, word32 k0, word32 k1,
                                             double &u, double &v) {
    word32 w0, w1, w2, w3;
    philox(c0, c1, c2, c3, k0, k1, w0, w1, w2, w3);
    u = uniform(w0, w1);
    v = uniform(w2, w3);
}

__device__ __forceinline__ bool exhausted(word32 attempt, double u) { return attempt >= MAX_ATTEMPTS && u < 1.0; }

}  // namespace mmgibbs
