// The reaction to an op that has to copy its operands to the host.
#pragma once

#include "op/op_record.h"

namespace xpurt {

enum class FallbackMode {
  warn,    // once per op
  silent,  // counted only
  error,   // refused
};
void set_fallback_mode(FallbackMode mode);
FallbackMode fallback_mode();

// Why the device has no kernel for a call.
enum class MissingFor {
  operands,     // such ones
  determinism,  // its kernel writes in any order, and deterministic mode is on
};

// Called with the name of each op that copies, as "aten::add.Tensor"; null: nobody is.
using CopyListener = void (*)(const std::string& op);
XPURT_API void set_copy_listener(CopyListener listener);

// Warns or throws, by the mode. Called before an op copies.
void about_to_copy(OpRecord& record, c10::DeviceIndex index, MissingFor reason);

}  // namespace xpurt
