// The blocks of autocast with a layout that a thread is in.
#pragma once

#include <c10/core/Device.h>

namespace xpurt {

// layout, int8: what the innermost block asks of ops on devices of a type.
struct OpsOfBlock {
  bool layout = false;
  bool int8 = false;
};

struct LayoutBlock {
  int depth = 0;  // how many are open
  OpsOfBlock cpu;
  OpsOfBlock xpu;

  const OpsOfBlock& of(c10::DeviceType type) const {
    return type == c10::DeviceType::XPU ? xpu : cpu;
  }
};

// Of this thread.
LayoutBlock& layout_block();

// The outermost block includes the keys in this thread, and its end excludes them, as
// they were, and forgets the temporary layouts, the ready calls, the trained weights
// and the watched weights of the thread.
void begin_layout_block();
void end_layout_block();

// True under torch.func, in fake tensors, and while a program is traced: tensors are
// not what they seem.
bool tensors_are_transformed();

}  // namespace xpurt
