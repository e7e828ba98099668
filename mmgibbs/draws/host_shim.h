// Lets g++ compile the .cuh headers of this folder (with -ffp-contract=off), so that a test
// can hold them to Numba bit for bit.
#pragma once
#include <math.h>
#include <string.h>
#define __device__
#define __forceinline__ inline
static inline double __longlong_as_double(long long n) { double x; memcpy(&x, &n, 8); return x; }
static inline long long __double_as_longlong(double x) { long long n; memcpy(&n, &x, 8); return n; }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
