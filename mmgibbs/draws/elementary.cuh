// log, exp, sin and cos from + - * / and bit patterns alone: the twin of elementary.py, operation by operation.
// Compile without fused multiply-add (nvrtc --fmad=false, g++ -ffp-contract=off), or the last bits differ from Numba's.
#pragma once

namespace mmgibbs {

typedef unsigned long long bits64;
typedef unsigned int word32;

__device__ __forceinline__ bits64 bits(double x) { return (bits64)__double_as_longlong(x); }

__device__ __forceinline__ double from_bits(bits64 n) { return __longlong_as_double((long long)n); }

__device__ __forceinline__ double not_a_number() { return from_bits(0x7FF8000000000000ULL); }

__device__ __forceinline__ double infinity() { return from_bits(0x7FF0000000000000ULL); }

__device__ __forceinline__ double magnitude(double x) { return from_bits(bits(x) & 0x7FFFFFFFFFFFFFFFULL); }

__device__ __forceinline__ double log(double x) {
    bits64 n = bits(x) + 0x00095F619980C433ULL;
    double e = from_bits((n >> 52) | 0x4330000000000000ULL) - 4503599627371519.0;
    double f = from_bits((n & 0x000FFFFFFFFFFFFFULL) + 0x3FE6A09E667F3BCDULL) - 1.0;
    double s = f / (2.0 + f);
    double y = s * s;
    double yy = y * y;
    double low = (0.6666666666666734 + 0.3999999999941468 * y) + (0.28571428742386984 + 0.22222198573224355 * y) * yy;
    double high = (0.1818356432504865 + 0.15314050560061773 * y) + 0.14795949773624684 * yy;
    double p = low + high * (yy * yy);
    return e * 0.6931471803691238 - ((s * (f - y * p) - e * 1.9082149292705877e-10) - f);
}

__device__ __forceinline__ void cos_sin_turns(double u, double &cosine, double &sine) {
    double t = 4.0 * u;
    double shifted = t + 6755399441055744.0;
    bits64 quadrant = bits(shifted);
    double r = t - (shifted - 6755399441055744.0);
    double y = r * r;
    double yy = y * y;
    double s_low = (-0.645964097506245 + 0.07969262624606273 * y) +
                   (-0.004681754132616265 + 0.00016044115259847345 * y) * yy;
    double s_high = -3.598649340545879e-06 + 5.634675063967814e-08 * y;
    double s = 1.5707963267948966 * r + (s_low + s_high * (yy * yy)) * (y * r);
    double c_low = (-1.2337005501361697 + 0.2536695079010469 * y) +
                   (-0.020863480763315442 + 0.000919260274225032 * y) * yy;
    double c_high = (-2.5202036991529394e-05 + 4.7106156575238903e-07 * y) + -6.321892429764327e-09 * yy;
    double c = 1.0 + (c_low + c_high * (yy * yy)) * y;
    bool odd = (quadrant & 1) != 0;
    double a = odd ? s : c;
    double b = odd ? c : s;
    cosine = from_bits(bits(a) ^ (((quadrant + 1) & 2) << 62));
    sine = from_bits(bits(b) ^ ((quadrant & 2) << 62));
}

__device__ __forceinline__ double exp(double x) {
    if (!(x > -745.2)) return x != x ? x : 0.0;
    if (x > 709.79) return infinity();
    double n = (x * 1.4426950408889634 + 6755399441055744.0) - 6755399441055744.0;
    double r = (x - n * 0.6931471803691238) - n * 1.9082149292705877e-10;
    double rr = r * r;
    double q_low = (0.5 + 0.16666666666666685 * r) + (0.04166666666666674 + 0.008333333333316671 * r) * rr;
    double q_middle = (0.0013888888888851619 + 0.00019841269897228147 * r) +
                      (2.4801587387078096e-05 + 2.7557234065366756e-06 * r) * rr;
    double q_high = (2.7557221840821903e-07 + 2.51123003753367e-08 * r) + 2.0930577965003344e-09 * rr;
    double q = q_low + (q_middle + q_high * (rr * rr)) * (rr * rr);
    double value = 1.0 + (r + rr * q);
    long long whole = (long long)n;
    long long half = whole >> 1;
    double first = from_bits((bits64)(half + 1023) << 52);
    double second = from_bits((bits64)(whole - half + 1023) << 52);
    return value * first * second;
}

}  // namespace mmgibbs
