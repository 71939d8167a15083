// The loss of a softmax and its gradient in one pass over the logits, for float32 on a CPU. Logits
// may be bfloat16; all arithmetic is float32.

#include "arithmetic.h"

#include <cmath>
#include <vector>

namespace {

template <class T>
void softmax_loss(int64_t rows, int64_t words, const float* bias, const int64_t* targets,
                  T* logits, float* losses) {
#pragma omp parallel if (rows * words > 16384)
    {
        std::vector<float> values(words);
        float* x = values.data();
#pragma omp for
        for (int64_t row = 0; row < rows; ++row) {
            T* of_row = logits + row * words;
            float most = -INFINITY;
#pragma omp simd reduction(max : most)
            for (int64_t j = 0; j < words; ++j) {
                x[j] = load(of_row[j]) + bias[j];
                most = x[j] > most ? x[j] : most;
            }
            const float of_target = x[targets[row]];
            float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
            for (int64_t j = 0; j < words; ++j) {
                x[j] = exponential(x[j] - most);
                sum += x[j];
            }
            const float scale = 1.0f / sum;
#pragma GCC ivdep
            for (int64_t j = 0; j < words; ++j) store(of_row + j, x[j] * scale);
            store(of_row + targets[row], x[targets[row]] * scale - 1.0f);
            losses[row] = most + std::log(sum) - of_target;
        }
    }
}

}  // namespace

extern "C" {

// Replaces the logits, without `bias`, by the gradient of the loss of each row: the probabilities,
// less 1 at the target.
void softmax_loss_float32(int64_t rows, int64_t words, const float* bias, const int64_t* targets,
                          float* logits, float* losses) {
    softmax_loss(rows, words, bias, targets, logits, losses);
}

void softmax_loss_bfloat16(int64_t rows, int64_t words, const float* bias, const int64_t* targets,
                           Bfloat16* logits, float* losses) {
    softmax_loss(rows, words, bias, targets, logits, losses);
}

}  // extern "C"
