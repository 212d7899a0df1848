// Backward in the thread that calls it: see Note [Backward in the calling thread].
#pragma once

#include <optional>

namespace xpurt {

// As long as it lives, a backward that the calling thread begins runs in this thread,
// if that changes nothing else.
class BackwardScope {
 public:
  BackwardScope() noexcept;
  ~BackwardScope();
  BackwardScope(const BackwardScope&) = delete;
  BackwardScope& operator=(const BackwardScope&) = delete;

 private:
  const bool applies_;
  const std::optional<bool> shown_before_;
};

// Whether a backward may run in the calling thread at all. On by default.
void set_backward_in_calling_thread(bool on) noexcept;

// What torch.autograd.is_multithreading_enabled() returns to a program.
bool shown_multithreading() noexcept;
// Sets it within a BackwardScope that applies, and returns true. Elsewhere it is the
// engine's flag, and this returns false.
bool show_multithreading(bool enabled) noexcept;

}  // namespace xpurt
