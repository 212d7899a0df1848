// Chooses whether an op's row runs a call, and times the calls that are timed samples.
#pragma once

#include <ATen/core/stack.h>

#include <optional>

#include "op/op_record.h"
#include "op/row_call.h"
#include "schedule/cached_choice.h"
#include "schedule/decision.h"
#include "stream/stream.h"

namespace xpurt {

// How a call is to be run.
struct RowChoice {
  const RowKernel* row = nullptr;  // nullptr: the native kernel
  RowCall* call = nullptr;         // the row's parsed call; stored in `memory`
  RowCallStorage memory;
  CallSignature signature;
  std::optional<Decision> decision;  // of the scheduler; none if a cached one was found
};

// What an unboxed op found out about a call before its arguments are put on a stack.
struct InspectedCall {
  CallSignature signature;
  // The cached decision for such calls; `native` only if nothing else is left to
  // decide. nullopt: choose_row() has to look it up.
  std::optional<QuickChoice> quick;
};

// Fills in `choice`. `inspected`: nullptr if the call was not inspected.
void choose_row(OpRecord& record, c10::DeviceIndex index,
                const torch::jit::Stack& stack, const InspectedCall* inspected,
                RowChoice* choice);

// Whether deterministic mode leaves the call to PyTorch's kernels, which keep the order
// of writes to one place, or raise.
bool keeps_order_of_writes(const OpRecord& record, const torch::jit::Stack& stack);

// The tier of an op with such operands on an ordinal of one device, if it can be found
// cheaply; the largest operand decides. Native: PyTorch's CPU kernel, on memory that
// the host reads. Does not count the call: see QuickChoice::take().
std::optional<QuickChoice> quick_choice(const OpRecord& record, const Ordinal& on,
                                        c10::DeviceIndex index,
                                        const CallSignature& signature);

// Whether the tier is certainly native. If so, counts the call.
bool goes_native(const OpRecord& record, c10::DeviceIndex index,
                 const CallSignature& signature);

// The same on an ordinal of several devices, for operands that are all valid at home.
// nullopt: other properties of the call have to be checked.
std::optional<bool> goes_native_at_home(const OpRecord& record, c10::DeviceIndex index,
                                        const CallSignature& signature);

// Times a call on the current stream, from construction until done(). Calls within the
// timed call are no samples.
class SampleTimer {
 public:
  SampleTimer(c10::DeviceIndex index, const RowRun& run);
  ~SampleTimer();
  SampleTimer(const SampleTimer&) = delete;
  SampleTimer& operator=(const SampleTimer&) = delete;

  // Waits for the work of the call, and records its time.
  void done();

 private:
  const RowRun& run_;
  Stream& stream_;
  uint64_t pages_ = 0;
  double waited_us_ = 0;
  double begin_us_ = 0;
};

}  // namespace xpurt
