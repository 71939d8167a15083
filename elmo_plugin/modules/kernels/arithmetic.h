// Arithmetic of the kernels: float32, and its conversion from and to bfloat16.

#pragma once

#include <cstdint>
#include <cstring>

namespace {

struct Bfloat16 {
    uint16_t bits;
};

inline float load(float x) { return x; }

inline float load(Bfloat16 x) {
    const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline void store(float* to, float x) { *to = x; }

// Rounds to nearest, ties to even. NaN is written as such: rounding could turn it into zero.
inline void store(Bfloat16* to, float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    to->bits = static_cast<uint16_t>(x != x ? 0x7fc0 : rounded);
}

// Relative error below 3e-7. NaN stays NaN: both comparisons are false for it.
inline float exponential(float x) {
    x = x < -87.0f ? -87.0f : x;
    x = x > 87.0f ? 87.0f : x;
    // Adding and subtracting 1.5 * 2^23 rounds to the nearest integer.
    const float shifted = x * 1.44269504f + 12582912.0f;
    const float whole = shifted - 12582912.0f;
    // The logarithm of 2 in two parts, the first of which has few bits.
    const float rest = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
    float series = 1.0f / 720;
    series = series * rest + 1.0f / 120;
    series = series * rest + 1.0f / 24;
    series = series * rest + 1.0f / 6;
    series = series * rest + 0.5f;
    series = series * rest + 1.0f;
    series = series * rest + 1.0f;
    int32_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = static_cast<int32_t>((static_cast<uint32_t>(bits) + 127u) << 23);
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return series * power;
}

inline float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

// For small x, the subtraction from 1 would cancel most digits: use the Taylor series.
inline float hyperbolic_tangent(float x) {
    const float square = x * x;
    float series = 62.0f / 2835;
    series = series * square - 17.0f / 315;
    series = series * square + 2.0f / 15;
    series = series * square - 1.0f / 3;
    const float small = x + x * square * series;
    const float large = 2.0f * sigmoid(2.0f * x) - 1.0f;
    return square < 0.09f ? small : large;
}

inline float clipped(float x, float clip) {
    x = x > clip ? clip : x;
    return x < -clip ? -clip : x;
}

}  // namespace
