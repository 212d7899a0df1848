#include "gil.h"

#include <cxxabi.h>
#include <unistd.h>

namespace xpurt {
namespace {

[[noreturn]] void stay() noexcept {
  for (;;) pause();
}

// `take` asks for the lock. See Note [Python ends first].
template <typename Take>
void take_or_stay(Take take) noexcept {
  try {
    take();
  } catch (abi::__forced_unwind&) {
    stay();  // the unwinding ends here, as nothing returns
  }
}

}  // namespace

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
  // The thread that finalizes is not inside of our code: it is another one.
  if (python_ends()) stay();
  take_or_stay([this] { PyEval_RestoreThread(state_); });
}

WithGil::WithGil() {
  if (python_ends() && !PyGILState_Check()) stay();
  take_or_stay([this] { state_ = PyGILState_Ensure(); });
}

void stay_if_python_ends() noexcept {
  // Threads that Python does not know do not return to it.
  if (!Py_IsInitialized()) {
    return;
  }
  if (PyGILState_GetThisThreadState() == nullptr || PyGILState_Check()) return;
  const WithGil asked;
}

}  // namespace xpurt
