// The forward pass of recurrent layers: matrix products, cells, projections and clips. What the
// products read may be bfloat16; everything else is float32. The inputs of several steps are
// multiplied together, hidden states and cells' outputs step by step.

#include "scan.h"

namespace {

// `InputSums` multiplies the inputs of several steps at once: as many tokens as have at most
// `max_sums` sums of products, but at least `min_tokens` tokens.
constexpr int64_t max_sums = 1 << 18, min_tokens = 24;

// Without gradients, or with what the backward scan needs (`gates`, `cell_states`).
template <class T>
struct ForwardScan : Scan {
    int64_t input_dim;
    // (num_packed, input_dim)
    const T* inputs;
    // (gates * hidden_dim)
    const float* bias;
    // In panels; `projection` may be null.
    const T* input;
    const T* recurrent;
    const T* projection;
    // (batch_size, output_dim) and (batch_size, hidden_dim): first state, then the final one.
    T* hidden;
    float* cell_state;
    // (num_packed, output_dim)
    T* outputs;
    // (num_packed, gates * hidden_dim) and (num_packed, hidden_dim), or null.
    float* gates;
    float* cell_states;
    // With a projection: one row per token if gates are kept, else one per sentence.
    T* cell_outputs;

    template <class Cell>
    void run(const Unit& unit) const;
};

// The products of some tokens' inputs, for one panel of a cell, with their part of the bias.
template <class Cell, class T>
struct InputProduct {
    const ForwardScan<T>& scan;
    const std::vector<const T*>& tokens;
    int64_t panel;
    // (num_tokens, input_gates, width)
    float* input_sums;

    template <int rows>
    void call(int64_t first) const {
        constexpr int first_input = Cell::gates - Cell::input_gates;
        const int64_t dim = scan.hidden_dim, unit = panel * width;
        const int64_t size = dim - unit < width ? dim - unit : width;
        Vector sum[rows][Cell::input_gates];
        for (int row = 0; row < rows; ++row)
            for (int g = 0; g < Cell::input_gates; ++g)
                sum[row][g] = load_part(scan.bias + (first_input + g) * dim + unit, size);
        add_products<rows, Cell::input_gates>(
            sum, tokens.data() + first, scan.input_dim,
            scan.input + panel * depth(scan.input_dim, scan.input) * Cell::input_gates * width);
        for (int row = 0; row < rows; ++row)
            for (int g = 0; g < Cell::input_gates; ++g)
                vector(input_sums + ((first + row) * Cell::input_gates + g) * width) = sum[row][g];
    }
};

// One panel of a step: the recurrent product of a few sentences, and the cell.
template <class Cell, class T>
struct Step {
    const ForwardScan<T>& scan;
    // Null before the first step if there is no state.
    const T* previous;
    // Of the unit's first sentence: in the packed tokens, and in the batch.
    int64_t token, sentence;
    int64_t panel;
    // Those of this panel, as `InputProduct` gives them.
    float* input_sums;

    template <int rows>
    void call(int64_t first) const {
        constexpr int first_input = Cell::gates - Cell::input_gates;
        const int64_t dim = scan.hidden_dim, unit = panel * width;
        const int64_t size = dim - unit < width ? dim - unit : width;
        Vector sum[rows][Cell::recurrent_gates];
        for (int row = 0; row < rows; ++row)
            for (int g = 0; g < Cell::recurrent_gates; ++g)
                sum[row][g] = g < first_input ? load_part(scan.bias + g * dim + unit, size)
                                              : vector(of_input(first + row, g - first_input));
        if (previous)
            add_products<rows, Cell::recurrent_gates>(
                sum, previous + first * scan.output_dim, scan.output_dim, scan.output_dim,
                scan.recurrent +
                    panel * depth(scan.output_dim, previous) * Cell::recurrent_gates * width);
        for (int row = 0; row < rows; ++row) {
            Vector gates[Cell::gates];
            for (int g = 0; g < Cell::gates; ++g)
                gates[g] = g < Cell::recurrent_gates
                               ? sum[row][g < Cell::recurrent_gates ? g : 0]
                               : vector(of_input(first + row, g - first_input));
            finish(first + row, unit, size, gates);
        }
    }

    float* of_input(int64_t row, int gate) const {
        return input_sums + (row * Cell::input_gates + gate) * width;
    }

    // Not inlined, so that the compiler translates it once and not for each number of rows; what it
    // calls is inlined, without which GCC does not vectorise it.
    __attribute__((noinline, flatten)) void finish(int64_t row, int64_t unit, int64_t size,
                                                   Vector (&gates)[Cell::gates]) const {
        const int64_t dim = scan.hidden_dim;
        const auto row_setting =
            of_row(setting(scan, typename Cell::Setting()), sentence + row, dim);
        float* cell = scan.cell_state + (sentence + row) * dim + unit;
        const Vector before = load_part(cell, size);
        float z[Cell::gates][width], now[width], output[width], settings[width];
        for (int j = 0; j < width; ++j)
            settings[j] = of_unit(row_setting, j < size ? unit + j : unit);
        for (int g = 0; g < Cell::gates; ++g) std::memcpy(z[g], &gates[g], sizeof z[g]);
#pragma GCC ivdep
        for (int j = 0; j < width; ++j) {
            float of_one[Cell::gates];
            for (int g = 0; g < Cell::gates; ++g) of_one[g] = z[g][j];
            Cell::forward(of_one, before[j], settings[j], now[j], output[j]);
            for (int g = 0; g < Cell::gates; ++g) z[g][j] = of_one[g];
        }
        store_part(cell, now, size);
        const int64_t kept = token + row;
        if (scan.gates) {
            for (int g = 0; g < Cell::gates; ++g)
                store_part(scan.gates + (kept * Cell::gates + g) * dim + unit, z[g], size);
            store_part(scan.cell_states + kept * dim + unit, now, size);
        }
        T* to = scan.outputs + kept * dim;
        if (scan.projection) to = scan.cell_outputs + (scan.gates ? kept : sentence + row) * dim;
        store_part(to + unit, output, size);
    }
};

// The sums of the inputs' products for the next steps of a unit.
template <class Cell, class T>
class InputSums {
  public:
    InputSums(const ForwardScan<T>& scan, const Unit& unit, const Share& share)
        : scan_(scan), unit_(unit), share_(share),
          max_tokens_(max_sums / ((share.end - share.first) * Cell::input_gates * width + 1)) {
        if (max_tokens_ < min_tokens) max_tokens_ = min_tokens;
    }

    // Computes them for this step, which begins at `start`, and as many others as there is room.
    void fill(int64_t step, int64_t start) {
        tokens_.clear();
        done_ = 0;
        for (; step < scan_.num_steps; start += scan_.batch_sizes[step++]) {
            const int64_t rows = unit_.rows(scan_.batch_sizes[step]);
            if (rows <= 0 || (!tokens_.empty() && count() + rows > max_tokens_)) break;
            for (int64_t row = 0; row < rows; ++row)
                tokens_.push_back(scan_.inputs + (start + unit_.first + row) * scan_.input_dim);
        }
        sums_.resize((share_.end - share_.first) * count() * Cell::input_gates * width);
        for (int64_t panel = share_.first; panel < share_.end; ++panel)
            in_blocks<sums / Cell::input_gates>(
                count(), InputProduct<Cell, T>{scan_, tokens_, panel, of(panel)});
    }

    bool is_empty() const { return done_ == count(); }
    // For the tokens that are not done.
    float* of(int64_t panel) {
        return sums_.data() +
               ((panel - share_.first) * count() + done_) * Cell::input_gates * width;
    }
    void next(int64_t rows) { done_ += rows; }

  private:
    int64_t count() const { return tokens_.size(); }

    const ForwardScan<T>& scan_;
    const Unit& unit_;
    const Share& share_;
    int64_t max_tokens_, done_ = 0;
    std::vector<const T*> tokens_;
    std::vector<float> sums_;
};

template <class T>
template <class Cell>
void ForwardScan<T>::run(const Unit& unit) const {
    const int64_t dim = hidden_dim;
    const Share share(ceil_div(dim, width), unit.member, unit.num_members);
    InputSums<Cell, T> input_sums(*this, unit, share);
    const T* previous = has_state ? hidden + unit.first * output_dim : nullptr;
    for (int64_t step = 0, start = 0; step < num_steps; start += batch_sizes[step++]) {
        const int64_t rows = unit.rows(batch_sizes[step]), end = unit.first + rows;
        if (rows <= 0) return;
        if (input_sums.is_empty()) input_sums.fill(step, start);
        for (int64_t panel = share.first; panel < share.end; ++panel)
            in_blocks<sums / Cell::recurrent_gates>(
                rows, Step<Cell, T>{*this, previous, start + unit.first, unit.first, panel,
                                    input_sums.of(panel)});
        input_sums.next(rows);
        unit.barrier->wait(unit.num_members);
        T* of_step = outputs + (start + unit.first) * output_dim;
        if (projection) {
            const int64_t kept = gates ? start + unit.first : unit.first;
            Product<T> product{cell_outputs + kept * dim, dim, dim, projection, output_dim, of_step,
                               static_cast<float>(projection_clip), 0};
            product.run(rows, unit.member, unit.num_members);
            unit.barrier->wait(unit.num_members);
        }
        previous = of_step;
        const int64_t next = step + 1 < num_steps ? batch_sizes[step + 1] : 0;
        for (int64_t row = next > unit.first ? next : unit.first; row < end; ++row)
            if (unit.member == 0)
                std::memcpy(hidden + row * output_dim, outputs + (start + row) * output_dim,
                            output_dim * sizeof(T));
    }
}

}  // namespace

extern "C" {

int64_t panel_width() { return width; }

#define FORWARD_SCANS(name, Cell)                                                                  \
    void name##_forward_scan_float32(const ForwardScan<float>* scans, int64_t num_scans) {         \
        run_all<Cell>(scans, num_scans, true);                                                     \
    }                                                                                              \
    void name##_forward_scan_bfloat16(const ForwardScan<Bfloat16>* scans, int64_t num_scans) {     \
        run_all<Cell>(scans, num_scans, true);                                                     \
    }

FORWARD_SCANS(lstm, Lstm)
FORWARD_SCANS(highway_lstm, HighwayLstm)
FORWARD_SCANS(gru, Gru)

}  // extern "C"
