// The recurrent cells for one hidden unit: the formulas in `recurrent/cells/*.py` and their
// gradients, in float32.
//
// `z` holds a number per gate, in the order of the attribute `gates` of the Python class. The first
// `recurrent_gates` have a product with the previous hidden state, the last `input_gates` one with
// the input. `before` and `now` are the previous and the new cell state. `forward` replaces the
// sums of the products in `z` by what `backward` needs, mostly the activations. `backward` gives
// the gradients of these sums in `d_z`, and turns `d_now` from the gradient of the new cell state
// into that of the previous one. Both take the setting of the cell: a bound, or the
// dropout mask, which has a number for each hidden unit.

#pragma once

#include "arithmetic.h"

namespace {

inline float slope(float gate) { return gate - gate * gate; }

struct Lstm {
    static constexpr int gates = 4, recurrent_gates = 4, input_gates = 4;
    // The bound on the cell state.
    using Setting = float;

    static inline void forward(float (&z)[gates], float before, float clip, float& now,
                               float& output) {
        z[0] = sigmoid(z[0]);
        z[1] = sigmoid(z[1]);
        z[2] = hyperbolic_tangent(z[2]);
        z[3] = sigmoid(z[3]);
        now = clipped(z[1] * before + z[0] * z[2], clip);
        output = z[3] * hyperbolic_tangent(now);
    }

    static inline void backward(const float (&z)[gates], float before, float now, float d_output,
                                float clip, float& d_now, float (&d_z)[gates]) {
        const float t = hyperbolic_tangent(now);
        float d_c = d_now + d_output * z[3] * (1.0f - t * t);
        d_c = now >= clip || now <= -clip ? 0.0f : d_c;
        d_z[0] = d_c * z[2] * slope(z[0]);
        d_z[1] = d_c * before * slope(z[1]);
        d_z[2] = d_c * z[0] * (1.0f - z[2] * z[2]);
        d_z[3] = d_output * t * slope(z[3]);
        d_now = d_c * z[1];
    }
};

struct HighwayLstm {
    static constexpr int gates = 6, recurrent_gates = 5, input_gates = 6;
    // The dropout mask.
    using Setting = const float*;

    static inline void forward(float (&z)[gates], float before, float mask, float& now,
                               float& output) {
        z[0] = sigmoid(z[0]);
        z[1] = sigmoid(z[1]);
        z[2] = hyperbolic_tangent(z[2]);
        z[3] = sigmoid(z[3]);
        z[4] = sigmoid(z[4]);
        now = z[1] * before + z[0] * z[2];
        output = mask * (z[5] + z[4] * (z[3] * hyperbolic_tangent(now) - z[5]));
    }

    static inline void backward(const float (&z)[gates], float before, float now, float d_output,
                                float mask, float& d_now, float (&d_z)[gates]) {
        const float d = d_output * mask;
        const float t = hyperbolic_tangent(now);
        const float d_activated = d * z[4];
        const float d_c = d_now + d_activated * z[3] * (1.0f - t * t);
        d_z[0] = d_c * z[2] * slope(z[0]);
        d_z[1] = d_c * before * slope(z[1]);
        d_z[2] = d_c * z[0] * (1.0f - z[2] * z[2]);
        d_z[3] = d_activated * t * slope(z[3]);
        d_z[4] = d * (z[3] * t - z[5]) * slope(z[4]);
        d_z[5] = d - d_activated;
        d_now = d_c * z[1];
    }
};

struct Gru {
    static constexpr int gates = 4, recurrent_gates = 3, input_gates = 3;
    using Setting = float;

    static inline void forward(float (&z)[gates], float before, float, float& now, float& output) {
        z[1] = sigmoid(z[1]);
        z[2] = sigmoid(z[2]);
        z[3] = hyperbolic_tangent(z[3] + z[1] * z[0]);
        now = output = z[3] + z[2] * (before - z[3]);
    }

    static inline void backward(const float (&z)[gates], float before, float, float d_output, float,
                                float& d_now, float (&d_z)[gates]) {
        const float d = d_output + d_now;
        const float d_g = (d - d * z[2]) * (1.0f - z[3] * z[3]);
        d_z[0] = d_g * z[1];
        d_z[1] = d_g * z[0] * slope(z[1]);
        d_z[2] = d * (before - z[3]) * slope(z[2]);
        d_z[3] = d_g;
        d_now = d * z[2];
    }
};

// The setting of one sentence, and of one of its hidden units.
inline float of_row(float setting, int64_t, int64_t) { return setting; }
inline const float* of_row(const float* setting, int64_t row, int64_t dim) {
    return setting + row * dim;
}
inline float of_unit(float setting, int64_t) { return setting; }
inline float of_unit(const float* setting, int64_t unit) { return setting[unit]; }

// The backward pass of one sentence at one step.
template <class Cell, class T>
inline void cell_backward(int64_t dim, typename Cell::Setting setting, const float* gates,
                          const float* previous, const float* cell_state, const float* d_output,
                          float* d_cell_state, T* d_gates) {
#pragma GCC ivdep
    for (int64_t j = 0; j < dim; ++j) {
        float z[Cell::gates], d_z[Cell::gates];
        for (int g = 0; g < Cell::gates; ++g) z[g] = gates[g * dim + j];
        float d_now = d_cell_state[j];
        Cell::backward(z, previous[j], cell_state[j], d_output[j], of_unit(setting, j), d_now, d_z);
        for (int g = 0; g < Cell::gates; ++g) store(d_gates + g * dim + j, d_z[g]);
        d_cell_state[j] = d_now;
    }
}

}  // namespace
