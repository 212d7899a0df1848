// The interpreter lock: given up while C++ waits, and taken where C++ calls Python.
#pragma once

#include <Python.h>

namespace xpurt {

// Note [Python ends first]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// Up to version 3.13, Python ends a thread that asks for its lock while the
// interpreter finalizes by unwinding the thread's stack, and the first function that
// must not throw, such as a destructor, then aborts the process. Such a thread stays
// where it is instead, as in later versions, until the process is gone. So no mutex
// may be held where the lock is taken: it would never be unlocked.
// PyTorch gives the lock up itself around most waits for a device, and takes it back
// in such a destructor: let_python_end() keeps those threads, too.

// From now on a thread that Python unwinds at its end stays instead of aborting the
// process: where std::terminate finds one, it does not terminate.
void let_python_end() noexcept;

// True once the interpreter finalizes: no other thread gets its lock any more.
bool python_ends() noexcept;

// Releases the lock, if this thread holds it, for as long as it lives.
class WithoutGil {
 public:
  WithoutGil() {
    if (Py_IsInitialized() && PyGILState_Check()) state_ = PyEval_SaveThread();
  }
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_ = nullptr;
};

// Holds the lock for as long as it lives.
class WithGil {
 public:
  WithGil();
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace xpurt
