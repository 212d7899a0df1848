// Silences PyTorch's warnings within a block.
#pragma once

#include <c10/util/Exception.h>

namespace xpurt {

// PyTorch warns of a kernel that takes the place of another one.
class NoWarnings {
 private:
  struct Handler final : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  };
  Handler handler_;
  const c10::WarningUtils::WarningHandlerGuard guard_{&handler_};
};

}  // namespace xpurt
