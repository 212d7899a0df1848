// The interpreter lock: released while C++ waits, and taken where C++ calls Python.
#pragma once

#include <Python.h>

#include "host/api.h"
#include "host/mutex.h"

namespace xpurt {

// Note [Python ends first]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// A thread may request Python's lock while the interpreter finalizes. Up to version
// 3.13 Python then ends the thread: it unwinds the thread's stack. The first function
// that must not throw, such as a destructor, aborts the process. Here such a thread
// stays where it is, as in later versions, until the process has ended. So no mutex may
// be held where the lock is taken: it would never be unlocked. See also Note [Order of
// locks].
// PyTorch itself releases the lock around most waits for a device, and takes it back in
// such a destructor. let_python_end() keeps those threads, too.

// From now on, a thread that Python unwinds at its end stays, instead of aborting the
// process: std::terminate does not end the process for such a thread.
void let_python_end() noexcept;

// True once the interpreter finalizes: from then on no other thread gets its lock.
XPURT_API bool python_ends() noexcept;

// Releases the lock, if this thread holds it, for the object's lifetime.
class XPURT_API WithoutGil {
 public:
  WithoutGil() {
    if (!Py_IsInitialized() || !PyGILState_Check()) return;
    check_gil_order();
    state_ = PyEval_SaveThread();
  }
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_ = nullptr;
};

// Holds the lock for the object's lifetime.
class XPURT_API WithGil {
 public:
  WithGil();
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace xpurt
