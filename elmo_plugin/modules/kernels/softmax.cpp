// The loss of a softmax, and its gradient, in one pass over the logits on a CPU. Logits are float32
// or bfloat16; all arithmetic is float32.

#include "arithmetic.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

// Words whose logits stay in the first-level cache.
constexpr int64_t BLOCK = 1024;

template <class T>
void softmax_losses(int64_t rows, int64_t words, const float* bias, const int64_t* targets,
                    const T* logits, float* losses) {
#pragma omp parallel for if (rows * words > 16384)
    for (int64_t row = 0; row < rows; ++row) {
        const T* of_row = logits + row * words;
        float x[BLOCK];
        float max_logit = -INFINITY;
        double sum = 0.0;
        for (int64_t first = 0; first < words; first += BLOCK) {
            const int64_t size = std::min(BLOCK, words - first);
            float max_of_block = max_logit;
#pragma omp simd reduction(max : max_of_block)
            for (int64_t j = 0; j < size; ++j) {
                x[j] = load(of_row[first + j]) + bias[first + j];
                max_of_block = x[j] > max_of_block ? x[j] : max_of_block;
            }
            // The sum is relative to the largest logit so far.
            sum *= std::exp(double(max_logit) - double(max_of_block));
            max_logit = max_of_block;
            float sum_of_block = 0.0f;
#pragma omp simd reduction(+ : sum_of_block)
            for (int64_t j = 0; j < size; ++j) sum_of_block += exponential(x[j] - max_logit);
            sum += sum_of_block;
        }
        const float of_target = load(of_row[targets[row]]) + bias[targets[row]];
        losses[row] = float(max_logit + std::log(sum)) - of_target;
    }
}

template <class T>
void softmax_gradient(int64_t rows, int64_t words, const float* bias, const int64_t* targets,
                      T* logits, float* losses) {
#pragma omp parallel if (rows * words > 16384)
    {
        std::vector<float> values(words);
        float* x = values.data();
#pragma omp for
        for (int64_t row = 0; row < rows; ++row) {
            T* of_row = logits + row * words;
            float max_logit = -INFINITY;
#pragma omp simd reduction(max : max_logit)
            for (int64_t j = 0; j < words; ++j) {
                x[j] = load(of_row[j]) + bias[j];
                max_logit = x[j] > max_logit ? x[j] : max_logit;
            }
            const float of_target = x[targets[row]];
            float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
            for (int64_t j = 0; j < words; ++j) {
                x[j] = exponential(x[j] - max_logit);
                sum += x[j];
            }
            const float scale = 1.0f / sum;
#pragma GCC ivdep
            for (int64_t j = 0; j < words; ++j) store(of_row + j, x[j] * scale);
            store(of_row + targets[row], x[targets[row]] * scale - 1.0f);
            losses[row] = max_logit + std::log(sum) - of_target;
        }
    }
}

}  // namespace

extern "C" {

// `softmax_losses_*` gives the loss of each row of logits, which are without `bias`.
// `softmax_gradient_*` also replaces the logits by the gradient of the loss: the probabilities,
// less 1 at the target.
#define SOFTMAX(function, type, T)                                                                 \
    void function##_##type(int64_t rows, int64_t words, const float* bias,                         \
                           const int64_t* targets, T* logits, float* losses) {                     \
        function(rows, words, bias, targets, logits, losses);                                      \
    }

SOFTMAX(softmax_losses, float32, float)
SOFTMAX(softmax_losses, bfloat16, Bfloat16)
SOFTMAX(softmax_gradient, float32, float)
SOFTMAX(softmax_gradient, bfloat16, Bfloat16)

}  // extern "C"
