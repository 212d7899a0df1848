// What happens when an op has to copy its operands to the host.
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

// Warns or throws as the mode says; called before an op copies.
void about_to_copy(OpRecord& record, c10::DeviceIndex index);

}  // namespace xpurt
