// The bytes of home memory that kernels of the host write now. See Note [Host writes].
#pragma once

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <cstddef>
#include <memory>

namespace xpurt {

// The writes of one run of a host kernel. They end when this is destroyed, in the
// thread that began them.
class HostWrites {
 public:
  // `may_block`: the kernel may wait for other threads, so they do not wait for it.
  explicit HostWrites(bool may_block = false) : may_block_(may_block) {}
  ~HostWrites() {
    if (C10_UNLIKELY(begun_)) end();
  }
  HostWrites(const HostWrites&) = delete;
  HostWrites& operator=(const HostWrites&) = delete;

  // Called before the bytes are brought home, and after a copy-on-write storage got
  // bytes of its own. Does nothing if the ordinal has one device. May wait for a copy
  // of the bytes that another thread is about to submit: no lock may be held.
  void begin(const c10::TensorImpl& tensor);  // from its first element to its last
  void begin(const c10::StorageImpl& storage);

 private:
  void begin(const c10::StorageImpl& storage, size_t first, size_t last);
  void end() noexcept;

  const bool may_block_;
  bool begun_ = false;
};

// The writes of other code that go on after the call that began them, in threads of its
// own. They may end in any thread. Nothing waits for them: see Note [Host writes].
class LastingHostWrites {
 public:
  LastingHostWrites() = default;
  ~LastingHostWrites();
  LastingHostWrites(const LastingHostWrites&) = delete;
  LastingHostWrites& operator=(const LastingHostWrites&) = delete;

  // As HostWrites::begin(), but never waits.
  void begin(const c10::TensorImpl& tensor);

 private:
  bool begun_ = false;
};

// Whether this thread runs a host kernel whose writes others wait for.
bool is_writing_on_host() noexcept;

// Whether kernels of other threads' hosts write to some of these bytes.
bool others_write(const void* begin, size_t bytes);

// Waits until no other thread's kernel writes to these bytes, except for kernels that
// may block. Until it is destroyed, no other begins to. Waits without the interpreter
// lock: no lock may be held.
class NoHostWrites {
 public:
  NoHostWrites(const void* begin, size_t bytes);
  ~NoHostWrites();
  NoHostWrites(const NoHostWrites&) = delete;
  NoHostWrites& operator=(const NoHostWrites&) = delete;

 private:
  const char* begin_;
  const char* end_;
};

// Whether a NoHostWrites would wait.
bool must_wait_for_host(const void* begin, size_t bytes);

}  // namespace xpurt
