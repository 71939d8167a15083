// One step of a recurrent layer between its matrix products, in one pass over memory. Inputs and
// results of the products are bfloat16, everything else is float32. All arrays are dense, with a
// sentence per row; a row of gates holds one gate after the other, in the order of the attribute
// `gates` of the Python class. If `gates` is null, nothing is kept for the backward pass.

#include "cells.h"

namespace {

template <class Cell, bool keeps>
void forward(int64_t rows, int64_t dim, typename Cell::Setting setting, const Bfloat16* inputs,
             const Bfloat16* recurrent, const float* previous, float* gates, float* cell_state,
             Bfloat16* output) {
    constexpr int first_input = Cell::gates - Cell::input_gates;
#pragma omp parallel for if (rows * dim > 16384)
    for (int64_t row = 0; row < rows; ++row) {
        const Bfloat16* in = inputs + row * Cell::input_gates * dim;
        const Bfloat16* re = recurrent + row * Cell::recurrent_gates * dim;
        float* kept = keeps ? gates + row * Cell::gates * dim : nullptr;
        const float* before = previous + row * dim;
        const typename Cell::Setting row_setting = of_row(setting, row, dim);
        float* now = cell_state + row * dim;
        Bfloat16* given = output + row * dim;
#pragma GCC ivdep
        for (int64_t j = 0; j < dim; ++j) {
            float z[Cell::gates], c, y;
            for (int g = 0; g < Cell::gates; ++g) {
                z[g] = g < first_input ? 0.0f : load(in[(g - first_input) * dim + j]);
                if (g < Cell::recurrent_gates) z[g] += load(re[g * dim + j]);
            }
            Cell::forward(z, before[j], of_unit(row_setting, j), c, y);
            if (keeps)
                for (int g = 0; g < Cell::gates; ++g) kept[g * dim + j] = z[g];
            now[j] = c;
            store(given + j, y);
        }
    }
}

template <class Cell>
void backward(int64_t rows, int64_t dim, typename Cell::Setting setting, const float* gates,
              const float* previous, const float* cell_state, const float* d_output,
              float* d_cell_state, Bfloat16* d_gates) {
#pragma omp parallel for if (rows * dim > 16384)
    for (int64_t row = 0; row < rows; ++row)
        cell_backward<Cell>(dim, of_row(setting, row, dim), gates + row * Cell::gates * dim,
                            previous + row * dim, cell_state + row * dim, d_output + row * dim,
                            d_cell_state + row * dim, d_gates + row * Cell::gates * dim);
}

}  // namespace

extern "C" {

#define CELL(name, Cell)                                                                           \
    void name##_forward(int64_t rows, int64_t dim, Cell::Setting setting, const Bfloat16* inputs,  \
                        const Bfloat16* recurrent, const float* previous, float* gates,            \
                        float* state, Bfloat16* output) {                                          \
        (gates ? forward<Cell, true> : forward<Cell, false>)(                                      \
            rows, dim, setting, inputs, recurrent, previous, gates, state, output);                \
    }                                                                                              \
    void name##_backward(int64_t rows, int64_t dim, Cell::Setting setting, const float* gates,     \
                         const float* previous, const float* state, const float* d_output,         \
                         float* d_state, Bfloat16* d_gates) {                                      \
        backward<Cell>(rows, dim, setting, gates, previous, state, d_output, d_state, d_gates);    \
    }

CELL(lstm, Lstm)
CELL(highway_lstm, HighwayLstm)
CELL(gru, Gru)

}  // extern "C"
