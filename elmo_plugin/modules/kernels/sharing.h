// How threads share the sentences of a layer.

#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace {

inline int64_t ceil_div(int64_t all, int64_t part) { return (all + part - 1) / part; }

// The panels of one of the threads that share them.
struct Share {
    int64_t first, end;

    Share(int64_t num_panels, int64_t member, int64_t num_members)
        : first(num_panels * member / num_members), end(num_panels * (member + 1) / num_members) {}
};

// Where the threads of one unit wait for each other.
class Barrier {
  public:
    void wait(int64_t num_members) {
        if (num_members == 1) return;
        const int64_t now = phase_.load(std::memory_order_acquire);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == num_members) {
            arrived_.store(0, std::memory_order_relaxed);
            phase_.store(now + 1, std::memory_order_release);
            return;
        }
        for (int64_t spins = 0; phase_.load(std::memory_order_acquire) == now; ++spins)
            if (spins > 1000) sched_yield();
    }

  private:
    std::atomic<int64_t> arrived_{0}, phase_{0};
    char padding_[48];
};

// Sentences `first` to `end` of a layer, for one of the threads that share them.
struct Unit {
    int64_t first, end, member, num_members;
    Barrier* barrier;

    // How many of them a step has.
    int64_t rows(int64_t batch_size) const { return (batch_size < end ? batch_size : end) - first; }
};

// The first sentences of parts with nearly equal numbers of tokens.
std::vector<int64_t> parts(const int64_t* batch_sizes, int64_t num_steps, int64_t num_parts) {
    int64_t num_tokens = 0, done = 0, sentence = 0, length = num_steps;
    for (int64_t step = 0; step < num_steps; ++step) num_tokens += batch_sizes[step];
    std::vector<int64_t> firsts(1, 0);
    for (int64_t part = 1; part <= num_parts; ++part) {
        while (sentence < batch_sizes[0] && done * num_parts < num_tokens * part) {
            while (batch_sizes[length - 1] <= sentence) --length;
            done += length;
            ++sentence;
        }
        firsts.push_back(sentence);
    }
    return firsts;
}

}  // namespace
