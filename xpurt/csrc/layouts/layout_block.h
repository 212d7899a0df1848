// The blocks of autocast with a layout that a thread is in.
#pragma once

#include <c10/core/Device.h>

#include <optional>

namespace xpurt {

// layout, int8: what a block asks of ops on devices of a type.
struct OpsOfBlock {
  bool layout = false;
  bool int8 = false;

  bool operator==(const OpsOfBlock&) const = default;
};

struct LayoutBlock {
  OpsOfBlock cpu;
  OpsOfBlock xpu;

  const OpsOfBlock& of(c10::DeviceType type) const {
    return type == c10::DeviceType::XPU ? xpu : cpu;
  }
};

// The innermost block of this thread; nullptr outside of all.
const LayoutBlock* layout_block();
size_t open_layout_blocks();

// A block asks this of ops on devices of the type, nullopt is both types, and leaves
// the other type as it is. The outermost block includes the keys in this thread, and
// its end excludes them, as they were, and forgets the temporary layouts and the
// trained weights of the thread.
void begin_layout_block(std::optional<c10::DeviceType> type, OpsOfBlock asked);
void end_layout_block();

// True under torch.func, in fake tensors, and while a program is traced: tensors are
// not what they seem.
bool tensors_are_transformed();

}  // namespace xpurt
