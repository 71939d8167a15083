// All steps of recurrent layers over packed sentences in one call: what the forward scan and the
// backward scan have in common.
//
// Layers are divided among the threads first, then sentences, which are independent of each other.
// If there are more threads than sentences, several threads share the panels of a sentence and wait
// for each other after each product.

#pragma once

#if defined(_OPENMP)
#include <omp.h>
#else
inline int omp_get_max_threads() { return 1; }
inline int omp_get_num_threads() { return 1; }
inline int omp_get_thread_num() { return 0; }
#endif

#include "cells.h"
#include "products.h"
#include "sharing.h"

namespace {

// Multiplications below which another thread costs more than it saves.
constexpr int64_t min_work = 1 << 15;

// Python fills such structures; every field has 8 bytes.
struct Scan {
    int64_t num_steps;
    const int64_t* batch_sizes;
    int64_t hidden_dim, output_dim;
    // 1 if there is a state to begin with.
    int64_t has_state;
    double cell_clip, projection_clip;
    const float* dropout_mask;
};

inline float setting(const Scan& scan, float) { return static_cast<float>(scan.cell_clip); }
inline const float* setting(const Scan& scan, const float*) { return scan.dropout_mask; }

// Scans of the same numbers of steps and sentences; the sentences of a thread may be shared.
template <class Cell, class Direction>
void run_all(const Direction* scans, int64_t num_scans, bool can_share) {
    const Scan& one = scans[0];
    if (!one.num_steps || !one.batch_sizes[0]) return;
    const int64_t num_rows = one.batch_sizes[0];
    const int64_t work = one.hidden_dim * one.output_dim * Cell::recurrent_gates;
    int64_t max_threads = can_share ? num_scans * num_rows * ceil_div(work, min_work)
                                    : num_scans * num_rows;
    if (omp_get_max_threads() < max_threads) max_threads = omp_get_max_threads();
    if (num_scans * num_rows * work < min_work) max_threads = 1;
    int64_t num_parts = ceil_div(max_threads, num_scans);
    if (num_parts > num_rows) num_parts = num_rows;
    const std::vector<int64_t> firsts = parts(one.batch_sizes, one.num_steps, num_parts);
    const int64_t num_units = num_scans * num_parts;
    std::vector<Barrier> barriers(num_units);
#pragma omp parallel num_threads(max_threads)
    {
        const int64_t num_threads = omp_get_num_threads(), thread = omp_get_thread_num();
        const int64_t shared = can_share ? num_threads / num_units : 1;
        const int64_t num_members = shared > 1 ? shared : 1;
        for (int64_t place = thread; place < num_units * num_members; place += num_threads) {
            const int64_t unit = place / num_members, part = unit % num_parts;
            const Unit share{firsts[part], firsts[part + 1], place % num_members, num_members,
                             &barriers[unit]};
            scans[unit / num_parts].template run<Cell>(share);
        }
    }
}

}  // namespace
