// Memory that lazy copies share: see Note [Lazy copies].
#pragma once

#include <c10/core/StorageImpl.h>

#include <atomic>

#include "stream/stream.h"

namespace xpurt {

// Memory, and the number of storages that use it. The last drop deletes it.
class LazyMemory {
 public:
  // `index`: the ordinal whose work reads the memory.
  LazyMemory(c10::DataPtr memory, size_t bytes, c10::DeviceIndex index);

  // Adds a user of the memory: a storage on `device`.
  c10::DataPtr share(c10::Device device);

  // Moves the memory to the only storage that still uses it.
  c10::DataPtr take();

  void* data() const { return memory_.get(); }
  size_t bytes() const { return bytes_; }
  bool is_xpu() const { return memory_.device().is_xpu(); }
  bool has_one_user() const { return users_.load(std::memory_order_acquire) == 1; }

 private:
  ~LazyMemory() = default;

  static void drop_on_cpu(void* context);
  static void drop_on_xpu(void* context);
  friend bool is_lazy(const c10::DataPtr& data) noexcept;

  void drop() noexcept;
  template <typename F>
  void each_reader(const F& visit);
  void wait_for_readers() noexcept;
  void leave_to_readers() noexcept;

  c10::DataPtr memory_;
  const size_t bytes_;
  const c10::DeviceIndex index_;
  const uint64_t epoch_;
  std::atomic<size_t> users_{0};
};

// Whether the context of `data` is a LazyMemory.
bool is_lazy(const c10::DataPtr& data) noexcept;

// Whether the storage may share its memory now.
bool is_lazy(const c10::StorageImpl& storage) noexcept;

// The CPU memory that xpu storages borrow.
struct LazilyBorrowed {
  size_t storages = 0;
  size_t bytes = 0;
};
LazilyBorrowed lazily_borrowed() noexcept;

}  // namespace xpurt
