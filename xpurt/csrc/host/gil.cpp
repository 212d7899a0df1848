#include "host/gil.h"

#include <cxxabi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <exception>

namespace xpurt {
namespace {

[[noreturn]] void stay() noexcept {
  for (;;) pause();
}

// `take` requests the lock. See Note [Python ends first].
template <typename Take>
void take_or_stay(Take take) noexcept {
  try {
    take();
  } catch (abi::__forced_unwind&) {
    stay();  // never returns, so the unwinding ends here
  }
}

std::terminate_handler terminate_before = nullptr;

bool is_main_thread() noexcept {
  return syscall(SYS_gettid) == getpid();
}

// An unwinding without an exception is Python's end of a thread.
[[noreturn]] void stay_or_terminate() noexcept {
  const bool unwinding_thread = std::current_exception() == nullptr;
  if (unwinding_thread && python_ends() && !is_main_thread()) stay();
  if (terminate_before != nullptr) terminate_before();
  std::abort();
}

}  // namespace

void let_python_end() noexcept {
  static const bool once = [] {
    terminate_before = std::set_terminate(&stay_or_terminate);
    return true;
  }();
  (void)once;
}

bool python_ends() noexcept {
  if (!Py_IsInitialized()) return true;
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing();
#else
  return _Py_IsFinalizing();
#endif
}

WithoutGil::~WithoutGil() {
  if (state_ == nullptr) return;
  // The finalizing thread runs no code of xpurt, so this is another thread.
  if (python_ends()) stay();
  take_or_stay([this] { PyEval_RestoreThread(state_); });
}

WithGil::WithGil() {
  if (!PyGILState_Check()) check_gil_order();
  if (python_ends() && !PyGILState_Check()) stay();
  take_or_stay([this] { state_ = PyGILState_Ensure(); });
}

}  // namespace xpurt
