// The maxima over positions of a convolution over the characters of words, from the products of
// each character's embedding with each position of each filter, and their gradients, for float32 on
// a CPU. Each thread computes words or filters of its own, in a fixed order.

#include <cmath>
#include <cstdint>

namespace {

// Filters whose maxima are in registers together.
constexpr int64_t block = 32;

// At most `block` filters, whose products start at `products`, on one word. `row` is the distance
// between the products of two characters, `filters` between those of two positions.
template <bool is_whole>
inline void maxima_of_block(int64_t windows, int64_t width, int64_t row, int64_t filters,
                            int64_t count, const int64_t* ids, const float* products, float* maxima,
                            int32_t* argmax) {
    const int64_t n = is_whole ? block : count;
    float best[block];
    int32_t at[block];
    for (int64_t j = 0; j < n; ++j) best[j] = -INFINITY, at[j] = 0;
    for (int64_t start = 0; start < windows; ++start) {
        float sum[block];
        const float* first = products + ids[start] * row;
#pragma GCC ivdep
        for (int64_t j = 0; j < n; ++j) sum[j] = first[j];
        for (int64_t k = 1; k < width; ++k) {
            const float* of_character = products + ids[start + k] * row + k * filters;
#pragma GCC ivdep
            for (int64_t j = 0; j < n; ++j) sum[j] += of_character[j];
        }
#pragma GCC ivdep
        for (int64_t j = 0; j < n; ++j) {
            // NaN is larger than all, as in PyTorch.
            const bool is_more = sum[j] > best[j] || sum[j] != sum[j];
            best[j] = is_more ? sum[j] : best[j];
            at[j] = is_more ? static_cast<int32_t>(start) : at[j];
        }
    }
    for (int64_t j = 0; j < n; ++j) maxima[j] = best[j], argmax[j] = at[j];
}

}  // namespace

extern "C" {

// ids: (words, longest). lengths: ids of each word before padding, which is at its end. products:
// (characters, width, filters). maxima, argmax: rows of `total` numbers; the maximum of each filter
// and its position.
void character_maxima(int64_t words, int64_t longest, const int64_t* ids, const int64_t* lengths,
                      int64_t width, int64_t filters, const float* products, int64_t total,
                      float* maxima, int32_t* argmax) {
#pragma omp parallel for if (words > 16)
    for (int64_t word = 0; word < words; ++word) {
        // Windows that contain only padding are the same: one is enough.
        const int64_t all = longest - width + 1;
        const int64_t windows = lengths[word] + 1 < all ? lengths[word] + 1 : all;
        for (int64_t first = 0; first < filters; first += block) {
            const int64_t count = filters - first < block ? filters - first : block;
            (count == block ? maxima_of_block<true> : maxima_of_block<false>)(
                windows, width, width * filters, filters, count, ids + word * longest,
                products + first, maxima + word * total + first, argmax + word * total + first);
        }
    }
}

// Adds to `d_products`.
void character_maxima_gradient(int64_t words, int64_t longest, const int64_t* ids, int64_t width,
                               int64_t filters, int64_t total, const int32_t* argmax,
                               const float* d_maxima, float* d_products) {
#pragma omp parallel for if (words > 16)
    for (int64_t first = 0; first < filters; first += block) {
        const int64_t last = filters - first < block ? filters : first + block;
        for (int64_t word = 0; word < words; ++word) {
            for (int64_t j = first; j < last; ++j) {
                const float d = d_maxima[word * total + j];
                // Half of them, behind a ReLU.
                if (d == 0.0f) continue;
                const int64_t* window = ids + word * longest + argmax[word * total + j];
                for (int64_t k = 0; k < width; ++k)
                    d_products[(window[k] * width + k) * filters + j] += d;
            }
        }
    }
}

}  // extern "C"
