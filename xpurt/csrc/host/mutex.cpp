#include "host/mutex.h"

#include <Python.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

namespace xpurt {

std::atomic<bool> locks_are_checked{false};
namespace {

// The locks that a thread holds, in the order in which it took them. A plain array, so
// that it outlives the thread's other variables.
struct HeldLocks {
  static constexpr size_t kMost = 16;
  std::array<Rank, kMost> ranks;
  size_t count;
};
thread_local HeldLocks held;

std::atomic<size_t> out_of_order{0};

// In the order of the enumeration.
constexpr std::array<std::string_view, static_cast<size_t>(Rank::packed_weights) + 1>
    kNames{"lazy_core",
           "emptying_cache",
           "kernel_build",
           "decomposition",
           "gil",
           "foreign_kernels",
           "lazy_ops",
           "cpu_kernels",
           "captured_draws",
           "lazy_copies",
           "onednn_devices",
           "onednn_plans",
           "meta_results",
           "op_records",
           "refusals",
           "refusal_warnings",
           "scheduler",
           "device_costs",
           "cost_table",
           "forced_split",
           "explanations",
           "placements",
           "autograd_threads",
           "memories",
           "replica_table",
           "host_writes",
           "transfers",
           "memory",
           "segments",
           "memory_history",
           "pinned_memory",
           "known_storages",
           "borrowed_memory",
           "all_streams",
           "ordinal_streams",
           "stream",
           "stream_error",
           "captured_faults",
           "stream_ends",
           "capture",
           "capture_waits",
           "captured_storages",
           "recorder",
           "onednn_device",
           "draw_starts",
           "philox_state",
           "kernel_tables",
           "kernels",
           "build_queue",
           "gone_ops",
           "worker",
           "launches",
           "coalescing",
           "peer_launch",
           "lazy_compiler",
           "cpu_choices",
           "prototype_generators",
           "prototype_calls",
           "prototype_memory",
           "lazy_graphs",
           "packed_weights"};
static_assert(!kNames.back().empty());

[[noreturn]] void fail(Rank taken, Rank before) {
  ++out_of_order;
  const std::string text =
      c10::str("the lock `", name_of(taken), "` is taken under the lock `",
               name_of(before), "`: see Note [Order of locks] in host/mutex.h");
  // The caller may catch the error, or may not throw at all.
  std::fprintf(stderr, "xpurt: %s\n", text.c_str());
  TORCH_CHECK(false, text);
}

bool has_gil() noexcept {
  return Py_IsInitialized() && PyGILState_Check();
}

}  // namespace

const char* name_of(Rank rank) noexcept {
  return kNames[static_cast<size_t>(rank)].data();
}

Rank rank_named(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  TORCH_CHECK_VALUE(found != kNames.end(), "no lock has the rank ", name);
  return static_cast<Rank>(found - kNames.begin());
}

void check_locks(bool on) {
  locks_are_checked = on;
}

size_t locks_out_of_order() noexcept {
  return out_of_order.load();
}

void enter_lock(Rank rank) {
  for (size_t i = 0; i < held.count; ++i) {
    if (held.ranks[i] >= rank) fail(rank, held.ranks[i]);
  }
  if (rank < Rank::gil && has_gil()) fail(rank, Rank::gil);
  if (held.count < HeldLocks::kMost) held.ranks[held.count++] = rank;
}

// A lock that was taken before the check began is not among them.
void leave_lock(Rank rank) noexcept {
  for (size_t i = held.count; i-- > 0;) {
    if (held.ranks[i] != rank) continue;
    for (--held.count; i < held.count; ++i) held.ranks[i] = held.ranks[i + 1];
    return;
  }
}

void check_gil_order() {
  if (C10_LIKELY(!locks_are_checked.load(std::memory_order_relaxed))) return;
  for (size_t i = 0; i < held.count; ++i) {
    if (held.ranks[i] > Rank::gil) fail(Rank::gil, held.ranks[i]);
  }
}

}  // namespace xpurt
