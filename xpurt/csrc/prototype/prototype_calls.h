// How often each op of a prototype ran, and who computed.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "prototype/prototype_device.h"

namespace xpurt {

enum class ComputedBy : uint8_t { device_behind, vendor };

struct OpCalls {
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> ns{0};
  std::atomic<uint64_t> bytes_copied{0};
};

// Lives as long as the process.
OpCalls& op_calls(const PrototypeDevice& device, const std::string& op, ComputedBy by);

struct OpCallsRow {
  std::string op;
  ComputedBy by;
  uint64_t calls;
  uint64_t bytes_copied;  // from and to memory that the host can't read
  double seconds;         // of the host; with the ops that the op called
};
// Of ops that were called.
std::vector<OpCallsRow> op_calls_report(const PrototypeDevice& device);
void reset_op_calls(const PrototypeDevice& device);

// Counts one call, for as long as it lives.
class CountedCall {
 public:
  explicit CountedCall(OpCalls& calls)
      : calls_(calls), begin_(std::chrono::steady_clock::now()) {}
  ~CountedCall() {
    const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - begin_;
    calls_.calls.fetch_add(1, std::memory_order_relaxed);
    calls_.ns.fetch_add(taken.count(), std::memory_order_relaxed);
  }
  CountedCall(const CountedCall&) = delete;
  CountedCall& operator=(const CountedCall&) = delete;

 private:
  OpCalls& calls_;
  const std::chrono::steady_clock::time_point begin_;
};

// Whether the op has a kernel at the key that is neither PyTorch's nor xpurt's.
bool has_vendor_kernel(const c10::OperatorHandle& op, c10::DispatchKey key);

// From now on calls of the vendor's kernels are counted: of those that are registered
// at this moment. Each gets a kernel in front of it that counts, and calls it.
void count_vendor_kernels(const PrototypeDevice& device);

}  // namespace xpurt
