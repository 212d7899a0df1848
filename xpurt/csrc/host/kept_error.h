// C++ errors that pass a Python function.
#pragma once

#include <exception>
#include <utility>

namespace xpurt {

// Python makes a Python error of a C++ exception, so its type is lost to the C++ caller
// of a Python function. The place that throws keeps the exception, and the caller
// throws it again.
inline thread_local std::exception_ptr kept_error;

// In a catch block: keeps the current exception.
inline void keep_error() {
  kept_error = std::current_exception();
}

// Calls a function that runs Python code. Throws the error that was kept meanwhile, if
// the call fails.
template <typename Function>
void with_kept_error(const Function& function) {
  kept_error = nullptr;
  try {
    function();
  } catch (...) {
    if (auto kept = std::exchange(kept_error, nullptr)) std::rethrow_exception(kept);
    throw;
  }
}

}  // namespace xpurt
