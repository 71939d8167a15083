// The backward pass of recurrent layers in float32, up to the gradients of the gates: those of the
// weights and inputs are products over all steps at once.

#include "scan.h"

namespace {

struct BackwardScan : Scan {
    const float* gates;
    const float* cell_states;
    // (batch_size, hidden_dim)
    const float* first_cell_state;
    const float* hidden_states;
    // (num_packed, output_dim)
    const float* d_outputs;
    // Transposed and in panels; `projection` may be null.
    const float* recurrent;
    const float* projection;
    // Of the final state, then of the first one.
    float* d_hidden;
    float* d_cell_state;
    // (num_packed, gates * hidden_dim) and, with a projection, (num_packed, output_dim)
    float* d_gates;
    float* d_projected;

    template <class Cell>
    void run(const Unit& unit) const;
};

template <class Cell>
void BackwardScan::run(const Unit& unit) const {
    const int64_t dim = hidden_dim;
    const int64_t num_gates = Cell::gates * dim;
    // Rounded as the values that it has clipped.
    const float bound = static_cast<float>(projection_clip);
    std::vector<float> d_cell_outputs(projection ? (unit.end - unit.first) * dim : 0);
    int64_t start = 0;
    for (int64_t step = 0; step < num_steps; ++step) start += batch_sizes[step];
    for (int64_t step = num_steps - 1; step >= 0; --step) {
        const int64_t size = batch_sizes[step];
        start -= size;
        const int64_t rows = unit.rows(size);
        if (rows <= 0) continue;
        const int64_t token = start + unit.first;
        float* d_hidden_now = d_hidden + unit.first * output_dim;
        for (int64_t j = 0; j < rows * output_dim; ++j)
            d_hidden_now[j] += d_outputs[token * output_dim + j];
        const float* d_output = d_hidden_now;
        if (projection) {
            const float* after_clip = hidden_states + token * output_dim;
            float* before_clip = d_projected + token * output_dim;
            for (int64_t j = 0; j < rows * output_dim; ++j) {
                const float value = after_clip[j] < 0.0f ? -after_clip[j] : after_clip[j];
                before_clip[j] = value >= bound ? 0.0f : d_hidden_now[j];
            }
            Product<float> product{before_clip, output_dim, output_dim, projection, dim,
                                   d_cell_outputs.data(), no_clip, 0};
            product.run(rows, 0, 1);
            d_output = d_cell_outputs.data();
        }
        const float* before = first_cell_state + unit.first * dim;
        if (step)
            before = cell_states + (start - batch_sizes[step - 1] + unit.first) * dim;
        for (int64_t row = 0; row < rows; ++row)
            cell_backward<Cell>(
                dim, of_row(setting(*this, typename Cell::Setting()), unit.first + row, dim),
                gates + (token + row) * num_gates, before + row * dim,
                cell_states + (token + row) * dim, d_output + row * dim,
                d_cell_state + (unit.first + row) * dim, d_gates + (token + row) * num_gates);
        if (step || has_state) {
            Product<float> product{d_gates + token * num_gates, num_gates,
                                   Cell::recurrent_gates * dim, recurrent, output_dim,
                                   d_hidden_now, no_clip, 0};
            product.run(rows, 0, 1);
        }
    }
}

}  // namespace

extern "C" {

#define BACKWARD_SCAN(name, Cell)                                                                  \
    void name##_backward_scan(const BackwardScan* scans, int64_t num_scans) {                      \
        run_all<Cell>(scans, num_scans, false);                                                    \
    }

BACKWARD_SCAN(lstm, Lstm)
BACKWARD_SCAN(highway_lstm, HighwayLstm)
BACKWARD_SCAN(gru, Gru)

}  // extern "C"
