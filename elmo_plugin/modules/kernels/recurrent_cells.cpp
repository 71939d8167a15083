// The steps of the recurrent cells, one pass over memory each: the formulas in `cells/*.py` and
// their gradients, for float32 on a CPU. All arrays are dense, one sentence per row; gates lie side
// by side, in the order of each cell's `gates`. Inputs and results of matrix products may be
// bfloat16; all arithmetic is float32. Without `gates`, nothing is kept for the backward pass.

#include "arithmetic.h"

namespace {

inline float slope(float gate) { return gate - gate * gate; }

template <class T, bool keeps>
void lstm_forward(int64_t rows, int64_t dim, float clip, const T* inputs, const T* recurrent,
                       const float* previous, float* gates, float* cell_state,
                       T* output) {
#pragma omp parallel for if (rows * dim > 16384)
    for (int64_t row = 0; row < rows; ++row) {
        const T* in = inputs + row * 4 * dim;
        const T* re = recurrent + row * 4 * dim;
        float* out = keeps ? gates + row * 4 * dim : nullptr;
        const float* before = previous + row * dim;
        float* now = cell_state + row * dim;
        T* given = output + row * dim;
#pragma GCC ivdep
        for (int64_t j = 0; j < dim; ++j) {
            const float i = sigmoid(load(in[j]) + load(re[j]));
            const float f = sigmoid(load(in[dim + j]) + load(re[dim + j]));
            const float g = tangent(load(in[2 * dim + j]) + load(re[2 * dim + j]));
            const float o = sigmoid(load(in[3 * dim + j]) + load(re[3 * dim + j]));
            const float c = clipped(f * before[j] + i * g, clip);
            if (keeps) {
                store(out + j, i);
                store(out + dim + j, f);
                store(out + 2 * dim + j, g);
                store(out + 3 * dim + j, o);
            }
            now[j] = c;
            store(given + j, o * tangent(c));
        }
    }
}

template <class T>
void lstm_backward(int64_t rows, int64_t dim, float clip, const float* gates,
                        const float* previous, const float* cell_state, const float* d_output,
                        float* d_cell_state, T* d_gates) {
#pragma omp parallel for if (rows * dim > 16384)
    for (int64_t row = 0; row < rows; ++row) {
        const float* gate = gates + row * 4 * dim;
        T* out = d_gates + row * 4 * dim;
        const float* before = previous + row * dim;
        const float* now = cell_state + row * dim;
        const float* d_given = d_output + row * dim;
        float* d_now = d_cell_state + row * dim;
#pragma GCC ivdep
        for (int64_t j = 0; j < dim; ++j) {
            const float i = gate[j], f = gate[dim + j], g = gate[2 * dim + j];
            const float o = gate[3 * dim + j], c = now[j], d = d_given[j];
            const float t = tangent(c);
            float d_c = d_now[j] + d * o * (1.0f - t * t);
            d_c = c >= clip || c <= -clip ? 0.0f : d_c;
            store(out + j, d_c * g * slope(i));
            store(out + dim + j, d_c * before[j] * slope(f));
            store(out + 2 * dim + j, d_c * i * (1.0f - g * g));
            store(out + 3 * dim + j, d * t * slope(o));
            d_now[j] = d_c * f;
        }
    }
}

template <class T, bool keeps>
void highway_lstm_forward(int64_t rows, int64_t dim, const float* dropout, const T* inputs,
                     const T* recurrent, const float* previous, float* gates, float* cell_state,
                     T* output) {
#pragma omp parallel for if (rows * dim > 16384)
    for (int64_t row = 0; row < rows; ++row) {
        const T* in = inputs + row * 6 * dim;
        const T* re = recurrent + row * 5 * dim;
        float* out = keeps ? gates + row * 6 * dim : nullptr;
        const float* before = previous + row * dim;
        const float* mask = dropout + row * dim;
        float* now = cell_state + row * dim;
        T* given = output + row * dim;
#pragma GCC ivdep
        for (int64_t j = 0; j < dim; ++j) {
            const float i = sigmoid(load(in[j]) + load(re[j]));
            const float f = sigmoid(load(in[dim + j]) + load(re[dim + j]));
            const float g = tangent(load(in[2 * dim + j]) + load(re[2 * dim + j]));
            const float o = sigmoid(load(in[3 * dim + j]) + load(re[3 * dim + j]));
            const float r = sigmoid(load(in[4 * dim + j]) + load(re[4 * dim + j]));
            const float carry = load(in[5 * dim + j]);
            const float c = f * before[j] + i * g;
            if (keeps) {
                store(out + j, i);
                store(out + dim + j, f);
                store(out + 2 * dim + j, g);
                store(out + 3 * dim + j, o);
                store(out + 4 * dim + j, r);
                store(out + 5 * dim + j, carry);
            }
            now[j] = c;
            store(given + j, mask[j] * (carry + r * (o * tangent(c) - carry)));
        }
    }
}

template <class T>
void highway_lstm_backward(int64_t rows, int64_t dim, const float* dropout, const float* gates,
                      const float* previous, const float* cell_state, const float* d_output,
                      float* d_cell_state, T* d_gates) {
#pragma omp parallel for if (rows * dim > 16384)
    for (int64_t row = 0; row < rows; ++row) {
        const float* gate = gates + row * 6 * dim;
        T* out = d_gates + row * 6 * dim;
        const float* before = previous + row * dim;
        const float* now = cell_state + row * dim;
        const float* mask = dropout + row * dim;
        const float* d_given = d_output + row * dim;
        float* d_now = d_cell_state + row * dim;
#pragma GCC ivdep
        for (int64_t j = 0; j < dim; ++j) {
            const float i = gate[j], f = gate[dim + j], g = gate[2 * dim + j];
            const float o = gate[3 * dim + j], r = gate[4 * dim + j], carry = gate[5 * dim + j];
            const float d = d_given[j] * mask[j];
            const float t = tangent(now[j]);
            const float d_activated = d * r;
            const float d_c = d_now[j] + d_activated * o * (1.0f - t * t);
            store(out + j, d_c * g * slope(i));
            store(out + dim + j, d_c * before[j] * slope(f));
            store(out + 2 * dim + j, d_c * i * (1.0f - g * g));
            store(out + 3 * dim + j, d_activated * t * slope(o));
            store(out + 4 * dim + j, d * (o * t - carry) * slope(r));
            store(out + 5 * dim + j, d - d_activated);
            d_now[j] = d_c * f;
        }
    }
}

template <class T, bool keeps>
void gru_forward(int64_t rows, int64_t dim, float, const T* inputs, const T* recurrent,
                 const float* previous, float* gates, float* cell_state, T* output) {
#pragma omp parallel for if (rows * dim > 16384)
    for (int64_t row = 0; row < rows; ++row) {
        const T* in = inputs + row * 3 * dim;
        const T* re = recurrent + row * 3 * dim;
        float* out = keeps ? gates + row * 4 * dim : nullptr;
        const float* before = previous + row * dim;
        float* now = cell_state + row * dim;
        T* given = output + row * dim;
#pragma GCC ivdep
        for (int64_t j = 0; j < dim; ++j) {
            const float h = load(re[j]);
            const float r = sigmoid(load(in[j]) + load(re[dim + j]));
            const float z = sigmoid(load(in[dim + j]) + load(re[2 * dim + j]));
            const float g = tangent(load(in[2 * dim + j]) + r * h);
            const float c = g + z * (before[j] - g);
            if (keeps) {
                store(out + j, h);
                store(out + dim + j, r);
                store(out + 2 * dim + j, z);
                store(out + 3 * dim + j, g);
            }
            now[j] = c;
            store(given + j, c);
        }
    }
}

template <class T>
void gru_backward(int64_t rows, int64_t dim, float, const float* gates, const float* previous,
                  const float*, const float* d_output, float* d_cell_state, T* d_gates) {
#pragma omp parallel for if (rows * dim > 16384)
    for (int64_t row = 0; row < rows; ++row) {
        const float* gate = gates + row * 4 * dim;
        T* out = d_gates + row * 4 * dim;
        const float* before = previous + row * dim;
        const float* d_given = d_output + row * dim;
        float* d_now = d_cell_state + row * dim;
#pragma GCC ivdep
        for (int64_t j = 0; j < dim; ++j) {
            const float h = gate[j], r = gate[dim + j], z = gate[2 * dim + j];
            const float g = gate[3 * dim + j], d = d_given[j] + d_now[j];
            const float d_g = (d - d * z) * (1.0f - g * g);
            store(out + j, d_g * r);
            store(out + dim + j, d_g * h * slope(r));
            store(out + 2 * dim + j, d * (before[j] - g) * slope(z));
            store(out + 3 * dim + j, d_g);
            d_now[j] = d * z;
        }
    }
}

}  // namespace

extern "C" {

// All steps of one direction of a GRU over a few packed sentences, without gradients. `gates` is
// the product with the inputs: reset gate, update gate and candidate. `weights`, dim rows of
// 3 * dim, is the transposed recurrent weight. `state` starts as zeros; `buffer` holds 3 * dim
// numbers.
void gru_loop(int64_t steps, const int64_t* sizes, int64_t dim, int64_t is_backward,
              const float* gates, const float* weights, const float* bias, float* state,
              float* buffer, float* output, int64_t output_width) {
    int64_t start = 0;
    for (int64_t step = 0; is_backward && step < steps; ++step) start += sizes[step];
    for (int64_t number = 0; number < steps; ++number) {
        const int64_t step = is_backward ? steps - 1 - number : number;
        if (is_backward) start -= sizes[step];
        for (int64_t row = 0; row < sizes[step]; ++row) {
            const float* in = gates + (start + row) * 3 * dim;
            float* now = state + row * dim;
            float* given = output + (start + row) * output_width;
            std::memcpy(buffer, bias, 3 * dim * sizeof(float));
            for (int64_t k = 0; k < dim; ++k) {
                const float h = now[k];
                const float* weight = weights + k * 3 * dim;
#pragma GCC ivdep
                for (int64_t j = 0; j < 3 * dim; ++j) buffer[j] += h * weight[j];
            }
#pragma GCC ivdep
            for (int64_t j = 0; j < dim; ++j) {
                const float r = sigmoid(in[j] + buffer[j]);
                const float z = sigmoid(in[dim + j] + buffer[dim + j]);
                const float g = tangent(in[2 * dim + j] + r * buffer[2 * dim + j]);
                now[j] = given[j] = g + z * (now[j] - g);
            }
        }
        if (!is_backward) start += sizes[step];
    }
}

#define CELL(name, setting, type, suffix)                                                          \
    void name##_forward_##suffix(int64_t rows, int64_t dim, setting with, const type* inputs,      \
                                 const type* recurrent, const float* previous, float* gates,       \
                                 float* state, type* output) {                                     \
        (gates ? name##_forward<type, true> : name##_forward<type, false>)(                        \
            rows, dim, with, inputs, recurrent, previous, gates, state, output);                   \
    }                                                                                              \
    void name##_backward_##suffix(int64_t rows, int64_t dim, setting with, const float* gates,     \
                                  const float* previous, const float* state,                       \
                                  const float* d_output, float* d_state, type* d_gates) {          \
        name##_backward<type>(rows, dim, with, gates, previous, state, d_output, d_state,          \
                              d_gates);                                                            \
    }

CELL(lstm, float, float, float32)
CELL(lstm, float, Bfloat16, bfloat16)
CELL(highway_lstm, const float*, float, float32)
CELL(highway_lstm, const float*, Bfloat16, bfloat16)
CELL(gru, float, float, float32)
CELL(gru, float, Bfloat16, bfloat16)

}  // extern "C"
