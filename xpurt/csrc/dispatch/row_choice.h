// Whether an op's row runs a call, and the timing of calls that are learned from.
#pragma once

#include <ATen/core/stack.h>

#include <optional>

#include "op/op_record.h"
#include "op/row_call.h"
#include "schedule/decision.h"
#include "schedule/tier_choice.h"
#include "stream/stream.h"

namespace xpurt {

// How a call is to be run.
struct RowChoice {
  const RowKernel* row = nullptr;  // none: the native kernel
  RowCall* call = nullptr;         // of the row, if there is one; lives in `memory`
  RowCallStorage memory;
  TierPlan plan;  // of a call that is to be timed
  CallSignature signature;
  int64_t elements = 0;
  std::optional<Decision> decision;  // what the scheduler said, on several devices
};

// What is known of a call before its arguments are put on a stack.
struct InspectedCall {
  CallSignature signature;
  // What was decided for such calls; native only if that is all there is to decide.
  // None: it was not asked, and choose_row() has to.
  std::optional<QuickChoice> quick;
};

// `inspected`: nullptr if nothing is known.
void choose_row(OpRecord& record, c10::DeviceIndex index,
                const torch::jit::Stack& stack, const InspectedCall* inspected,
                RowChoice* choice);

// How an op with such operands, the largest of which decides, is to be run on an
// ordinal of one device, as far as that is cheap to find out. Native: PyTorch's CPU
// kernel, on memory that the host reads. Counts nothing: see QuickChoice::take().
std::optional<QuickChoice> quick_choice(const OpRecord& record, c10::DeviceIndex index,
                                        const CallSignature& signature);

// Whether it is sure to be native; then the call is counted.
bool goes_native(const OpRecord& record, c10::DeviceIndex index,
                 const CallSignature& signature);

// The same on an ordinal of several devices, for operands that are all valid at home.
// None: it was not asked.
std::optional<bool> goes_native_at_home(const OpRecord& record, c10::DeviceIndex index,
                                        const CallSignature& signature);

// Times a call that a learner takes as a sample, on the current stream: from now until
// done(). Not of calls within such a call.
class SampleTimer {
 public:
  SampleTimer(OpRecord& record, c10::DeviceIndex index, const RowChoice& choice);
  ~SampleTimer();
  SampleTimer(const SampleTimer&) = delete;
  SampleTimer& operator=(const SampleTimer&) = delete;

  // Waits for what the call submitted.
  void done();

 private:
  OpRecord& record_;
  const RowChoice& choice_;
  Stream& stream_;
  const int device_id_;
  double waited_us_ = 0;
  double begin_us_ = 0;
};

// The same for a call that the scheduler wants the time of.
class DecisionTimer {
 public:
  DecisionTimer(c10::DeviceIndex index, const RowRun& run);
  ~DecisionTimer();
  DecisionTimer(const DecisionTimer&) = delete;
  DecisionTimer& operator=(const DecisionTimer&) = delete;

  // Waits for what the call submitted.
  void done();

 private:
  const RowRun& run_;
  Stream& stream_;
  uint64_t pages_ = 0;
  double begin_us_ = 0;
};

}  // namespace xpurt
