// Whether an op's row runs a call, and the timing of calls that are learned from.
#pragma once

#include <ATen/core/stack.h>

#include <optional>

#include "op_record.h"
#include "placing.h"
#include "row_call.h"
#include "stream.h"
#include "tier_choice.h"

namespace xpurt {

// How a call is to be run.
struct RowChoice {
  const RowKernel* row = nullptr;  // none: the native kernel
  RowCall* call = nullptr;         // of the row, if there is one; lives in `memory`
  RowCallStorage memory;
  TierPlan plan;  // of a call that is to be timed
  CallLook look;
  int64_t elements = 0;
  std::optional<Placing> placing;  // what the scheduler said, on several devices
};

// Fills in an empty choice.
void choose_row(OpRecord& record, c10::DeviceIndex index,
                const torch::jit::Stack& stack, RowChoice* choice);

// Whether an op with such operands, the largest of which decides, is sure to be run by
// PyTorch's CPU kernel, on memory that the host reads: cheap to find out.
bool goes_native(const OpRecord& record, c10::DeviceIndex index, const CallLook& look);

// The same on an ordinal of several devices, for operands that are all valid at home.
bool goes_native_at_home(const OpRecord& record, c10::DeviceIndex index,
                         const CallLook& look);

// Times a call that is the turn of a learner, on the current stream: from now until
// done(). Not of calls within such a call.
class TurnClock {
 public:
  TurnClock(OpRecord& record, c10::DeviceIndex index, const RowChoice& choice);
  ~TurnClock();
  TurnClock(const TurnClock&) = delete;
  TurnClock& operator=(const TurnClock&) = delete;

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
class PlacedClock {
 public:
  PlacedClock(c10::DeviceIndex index, const Placing& placing);
  ~PlacedClock();
  PlacedClock(const PlacedClock&) = delete;
  PlacedClock& operator=(const PlacedClock&) = delete;

  // Waits for what the call submitted.
  void done();

 private:
  const Placing& placing_;
  Stream& stream_;
  uint64_t pages_ = 0;
  double begin_us_ = 0;
};

}  // namespace xpurt
