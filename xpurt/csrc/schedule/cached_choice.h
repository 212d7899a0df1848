// Choices that are reused without a lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "schedule/device_statistics.h"

namespace xpurt {

// Note [Cached choices]
// ~~~~~~~~~~~~~~~~~~~~~
// On an idle stream a choice depends only on the costs and on which devices hold the
// operands. On an ordinal of one device it never depends on more. So such a choice is
// kept in its bucket, in one word: the version of everything that it is based on, the
// devices that hold all operands, and the candidate. Each learning mode has a word of
// its own, since a program may switch the mode for a part of its ops. The word is
// reused without a lock, until the version changes or the bucket's next timed sample is
// due. While work is pending on several devices, every call is decided anew, since the
// clocks have moved.
//
// Measured by tests/bench/bench_choice.py: 31 to 39 ns for a choice on an AMD Zen 4, of
// which the inspection of two operands is 13 to 17 ns.

// Changes with the placement and the costs: what was learned by others is void.
uint64_t costs_version() noexcept;

// Changes with these, with the devices that are excluded, and with everything else that
// makes cached choices void: see change_choices().
uint64_t choice_version() noexcept;
void change_choices() noexcept;

// The word of a choice. `holders`: one bit for each device that holds all operands.
constexpr int kHolderBits = 16, kCandidateBits = 8;
inline uint64_t choice_word(uint64_t version, uint64_t holders, size_t candidate) {
  return version << (kHolderBits + kCandidateBits) | holders << kCandidateBits |
         (candidate + 1);
}
// The candidate in a word; -1 for no choice.
inline int chosen_in(uint64_t word) {
  return static_cast<int>(word & ((1 << kCandidateBits) - 1)) - 1;
}

enum class QuickTier { native, kernel, undecided };

// The cached choice for a call. Reading it counts nothing, since a call may read it
// twice. The call that follows it calls take() once.
struct QuickChoice {
  QuickTier tier = QuickTier::undecided;
  std::atomic<uint32_t>* calls_left =
      nullptr;  // calls to the next timed sample, if there will be one

  void take() const {
    if (calls_left == nullptr) return;
    // Not atomic as a whole: a count that is lost between threads does no harm.
    const uint32_t left = calls_left->load(std::memory_order_relaxed);
    if (left > 0) calls_left->store(left - 1, std::memory_order_relaxed);
  }
};

// The choice for a call whose operands are held by `holders`. Takes well under 100 ns:
// no lock, no map.
struct CachedChoice {
  int candidate = -1;  // the position of a kernel's device, the number of devices for
                       // the native kernel; -1: undecided
  std::atomic<uint32_t>* calls_left = nullptr;
};
CachedChoice cached_choice(const OpRecord& record, c10::DeviceIndex index,
                           size_t devices, const CallSignature& signature,
                           int64_t elements, uint64_t holders);

// The same on an ordinal of one device.
QuickChoice quick_choice_on_one(const OpRecord& record, c10::DeviceIndex index,
                                const CallSignature& signature, int64_t elements);

// Whether the choice for calls whose operands are all valid at home is PyTorch's CPU
// kernel. If so, counts the call. The caller checks that the stream is idle.
bool is_cached_native(const OpRecord& record, c10::DeviceIndex index, size_t devices,
                      const CallSignature& signature);

// Makes a choice that is known reusable for a while, though its timed sample is due:
// this call cannot be one.
void postpone_sample(const OpRecord& record, c10::DeviceIndex index,
                     const CallSignature& signature, int64_t elements);

}  // namespace xpurt
