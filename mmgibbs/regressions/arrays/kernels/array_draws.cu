// Draws for the levels 0 ... n - 1 of several chains: the CUDA twin of regressions/arrays/draws.py, one thread for each chain and level.
//
//     chains (C)   second word of the key of each chain           out, parameters (C, n[, k])   float64, C order
//
// Thread i serves level i mod n of chain i div n, i < total = C n.
typedef unsigned int u32;
typedef unsigned long long u64;

#define LEVEL_OF_A_CHAIN                                             \
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;        \
    if (i >= total) return;                                          \
    const u32 level = (u32)(i % n), chain = chains[i / n];

extern "C" __global__ void uniforms(u64 total, u64 n, u64 k, u64 sweep, u64 stream, u64 seed, const u32 *chains, double *out) {
    LEVEL_OF_A_CHAIN
    for (u64 j = 0; j < k; j += 2) {
        double u, v;
        mmgibbs::uniform_pair((u32)sweep, level, (u32)stream, mmgibbs::draw_word((u32)(j >> 1), 0), (u32)seed, chain, u, v);
        out[i * k + j] = u;
        if (j + 1 < k) out[i * k + j + 1] = v;
    }
}

extern "C" __global__ void normals(u64 total, u64 n, u64 k, u64 sweep, u64 stream, u64 seed, const u32 *chains, double *out) {
    LEVEL_OF_A_CHAIN
    for (u64 j = 0; j < k; j += 2) {
        double a, b;
        mmgibbs::normal_pair((u32)sweep, level, (u32)stream, (u32)(j >> 1), (u32)seed, chain, a, b);
        out[i * k + j] = a;
        if (j + 1 < k) out[i * k + j + 1] = b;
    }
}

extern "C" __global__ void exponentials(u64 total, u64 n, u64 sweep, u64 stream, u64 seed, const u32 *chains, double *out) {
    LEVEL_OF_A_CHAIN
    out[i] = mmgibbs::exponential((u32)sweep, level, (u32)stream, 0, (u32)seed, chain);
}

extern "C" __global__ void gammas(u64 total, u64 n, const double *shape, u64 sweep, u64 stream, u64 seed, const u32 *chains, double *out) {
    LEVEL_OF_A_CHAIN
    out[i] = mmgibbs::gamma(shape[i], (u32)sweep, level, (u32)stream, 0, (u32)seed, chain);
}

extern "C" __global__ void inverse_gaussians(u64 total, u64 n, const double *mean, const double *shape, u64 sweep, u64 stream, u64 seed,
                                             const u32 *chains, double *out) {
    LEVEL_OF_A_CHAIN
    out[i] = mmgibbs::inverse_gaussian(mean[i], shape[i], (u32)sweep, level, (u32)stream, 0, (u32)seed, chain);
}

// positive (n): the same for every chain.
extern "C" __global__ void truncated_normals(u64 total, u64 n, const double *mean, const unsigned char *positive, u64 sweep, u64 stream,
                                             u64 seed, const u32 *chains, double *out) {
    LEVEL_OF_A_CHAIN
    const double sign = positive[level] ? 1.0 : -1.0;
    out[i] = sign * mmgibbs::truncated_normal_positive(sign * mean[i], (u32)sweep, level, (u32)stream, 0, (u32)seed, chain);
}

extern "C" __global__ void polya_gammas(u64 total, u64 n, const long long *h, const double *z, u64 sweep, u64 stream, u64 seed,
                                        const u32 *chains, double *out) {
    LEVEL_OF_A_CHAIN
    out[i] = mmgibbs::polya_gamma(h[i], z[i], (u32)sweep, level, (u32)stream, 0, (u32)seed, chain);
}
