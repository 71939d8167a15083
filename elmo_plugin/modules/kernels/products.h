// Matrix products of a few rows, with the sums in registers.
//
// A weight is stored in panels, so that a product reads it from front to back. A panel has the
// columns that fit into registers: a vector of hidden units for each gate, or `plain` vectors of
// other columns. It holds its columns for one input after the other; in bfloat16, those for two
// inputs lie side by side, as the processor's dot product takes them. Several rows are multiplied
// with a panel at once; each sum adds its products in the order of the inputs, in float32, so that
// it does not depend on the other rows.

#pragma once

#include "arithmetic.h"
#include "sharing.h"

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

namespace {

// `width` is the number of floats in a vector register, `sums` the number of registers that hold
// sums of products, of 32 registers with AVX-512 and on ARM, else of 16. Products with a panel of n
// vectors take `sums / n` rows at once.
#if defined(__AVX512F__)
constexpr int64_t width = 16;
constexpr int sums = 25;
#elif defined(__aarch64__)
constexpr int64_t width = 4;
constexpr int sums = 24;
#else
constexpr int64_t width = 8;
constexpr int sums = 10;
#endif
typedef float Vector __attribute__((vector_size(4 * width), aligned(4)));
constexpr int plain = 4;
constexpr float no_clip = __builtin_inff();

inline Vector load_part(const float* from, int64_t size) {
    Vector values = {};
    if (size == width) return *reinterpret_cast<const Vector*>(from);
    std::memcpy(&values, from, size * sizeof(float));
    return values;
}

inline void store_part(float* to, const float* from, int64_t size) {
    std::memcpy(to, from, (size < width ? size : width) * sizeof(float));
}

inline void store_part(Bfloat16* to, const float* from, int64_t size) {
    for (int64_t j = 0; j < (size < width ? size : width); ++j) store(to + j, from[j]);
}

inline Vector& vector(float* at) { return *reinterpret_cast<Vector*>(at); }

// Adds the products of a few sentences' inputs with a panel. `inputs` points to each of them.
template <int rows, int vectors>
inline void add_products(Vector (&sum)[rows][vectors], const float* const* all_inputs,
                         int64_t num_inputs, const float* panel) {
    const float* inputs[rows];
    for (int row = 0; row < rows; ++row) inputs[row] = all_inputs[row];
    for (int64_t k = 0; k < num_inputs; ++k, panel += vectors * width) {
        Vector weight[vectors];
        for (int v = 0; v < vectors; ++v)
            weight[v] = *reinterpret_cast<const Vector*>(panel + v * width);
        for (int row = 0; row < rows; ++row)
            for (int v = 0; v < vectors; ++v) sum[row][v] += inputs[row][k] * weight[v];
    }
}

#if defined(__AVX512BF16__)
typedef __m512bh Pairs __attribute__((aligned(4)));
inline Vector plus_products(Vector sum, uint32_t inputs, Pairs weights) {
    return (Vector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32(inputs), weights);
}
#else
typedef uint32_t Pairs __attribute__((vector_size(4 * width), aligned(4)));
inline Vector plus_products(Vector sum, uint32_t inputs, Pairs weights) {
    const Bfloat16 first{static_cast<uint16_t>(inputs)};
    const Bfloat16 second{static_cast<uint16_t>(inputs >> 16)};
    sum += load(first) * (Vector)(weights << 16);
    return sum + load(second) * (Vector)(weights & 0xffff0000u);
}
#endif

template <int rows, int vectors, int inputs_left>
inline void add_pairs(Vector (&sum)[rows][vectors], const Bfloat16* const* inputs, int64_t k,
                      const Bfloat16* panel) {
    Pairs weight[vectors];
    for (int v = 0; v < vectors; ++v)
        weight[v] = *reinterpret_cast<const Pairs*>(panel + (k * vectors + 2 * v) * width);
    for (int row = 0; row < rows; ++row) {
        uint32_t pair = 0;
        std::memcpy(&pair, inputs[row] + k, inputs_left * sizeof(Bfloat16));
        for (int v = 0; v < vectors; ++v)
            sum[row][v] = plus_products(sum[row][v], pair, weight[v]);
    }
}

template <int rows, int vectors>
inline void add_products(Vector (&sum)[rows][vectors], const Bfloat16* const* all_inputs,
                         int64_t num_inputs, const Bfloat16* panel) {
    const Bfloat16* inputs[rows];
    for (int row = 0; row < rows; ++row) inputs[row] = all_inputs[row];
    const int64_t num_paired = num_inputs - num_inputs % 2;
    for (int64_t k = 0; k < num_paired; k += 2) add_pairs<rows, vectors, 2>(sum, inputs, k, panel);
    if (num_inputs % 2) add_pairs<rows, vectors, 1>(sum, inputs, num_paired, panel);
}

// The numbers of a panel for each of its columns: bfloat16 is padded to pairs.
inline int64_t depth(int64_t num_inputs, const float*) { return num_inputs; }
inline int64_t depth(int64_t num_inputs, const Bfloat16*) { return num_inputs + num_inputs % 2; }

// `add_products` for rows of a matrix.
template <int rows, int vectors, class T>
inline void add_products(Vector (&sum)[rows][vectors], const T* inputs, int64_t stride,
                         int64_t num_inputs, const T* panel) {
    const T* of_rows[rows];
    for (int row = 0; row < rows; ++row) of_rows[row] = inputs + row * stride;
    add_products<rows, vectors>(sum, of_rows, num_inputs, panel);
}

// Calls `body.call<rows>(first)` for all sentences, in blocks of nearly equal size.
template <int max_rows, class Body>
inline void in_blocks(int64_t num_rows, const Body& body) {
    const int64_t num_blocks = ceil_div(num_rows, max_rows);
    for (int64_t block = 0; block < num_blocks; ++block) {
        const int64_t first = num_rows * block / num_blocks;
        const int64_t rows = num_rows * (block + 1) / num_blocks - first;
        switch (rows) {
            case 1: body.template call<1>(first); break;
            case 2: body.template call<2>(first); break;
            case 3: body.template call<max_rows < 3 ? max_rows : 3>(first); break;
            case 4: body.template call<max_rows < 4 ? max_rows : 4>(first); break;
            case 5: body.template call<max_rows < 5 ? max_rows : 5>(first); break;
            case 6: body.template call<max_rows < 6 ? max_rows : 6>(first); break;
            case 7: body.template call<max_rows < 7 ? max_rows : 7>(first); break;
            default: body.template call<max_rows < 8 ? max_rows : 8>(first);
        }
    }
}

// `outputs = clip(inputs * weight)` for the panels of one thread.
template <class T>
struct Product {
    const T* inputs;
    int64_t input_stride, num_inputs;
    const T* panels;
    int64_t num_columns;
    T* outputs;
    float clip;
    int64_t panel;

    template <int rows>
    void call(int64_t first) const {
        Vector sum[rows][plain] = {};
        add_products<rows, plain>(sum, inputs + first * input_stride, input_stride, num_inputs,
                                  panels + panel * depth(num_inputs, panels) * plain * width);
        for (int row = 0; row < rows; ++row)
            for (int v = 0; v < plain; ++v) {
                const int64_t column = (panel * plain + v) * width;
                if (column >= num_columns) break;
                float values[width];
                for (int64_t j = 0; j < width; ++j) values[j] = clipped(sum[row][v][j], clip);
                store_part(outputs + (first + row) * num_columns + column, values,
                           num_columns - column);
            }
    }

    void run(int64_t num_rows, int64_t member, int64_t num_members) {
        const Share share(ceil_div(num_columns, plain * width), member, num_members);
        for (panel = share.first; panel < share.end; ++panel)
            in_blocks<sums / plain>(num_rows, *this);
    }
};

}  // namespace
