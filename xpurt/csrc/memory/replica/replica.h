// Copies of a storage on the devices of one ordinal. See Note [Home and replicas].
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/util/SmallVector.h>

#include <cstddef>
#include <vector>

#include "device/memory_amounts.h"
#include "host/intervals.h"
#include "stream/stream.h"
#include "stream/work_recording.h"

namespace xpurt {

namespace replicas {
struct Copies;
}

enum class Access { read, write, read_write };

// What one submission reads and writes, and the addresses of this memory on the device
// at `position` of the stream's ordinal:
//
//   Operands operands(stream, position);
//   operands.add(out, Access::write);
//   operands.add(in, Access::read);
//   operands.resolve();
//   operands.submitted(operands.queue()->memcpy(operands[0], operands[1], n),
//                      DeviceWork::copy(n));
//
// The work waits only for earlier work on these operands: see Note [Order by data]. No
// operand counts as written before submitted(). If the submission fails, every copy
// stays as it was. On an ordinal with several devices, operands of other threads wait
// from resolve() to submitted().
class Operands {
 public:
  Operands(Stream& stream, size_t position) : stream_(stream), position_(position) {}
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  // Before resolve(). Returns the operand's number.
  size_t add(const at::TensorBase& tensor, Access access);

  // Submits the copies that are needed to the stream. Throws c10::OutOfMemoryError if
  // the device has no room for them.
  void resolve();

  // The address of the tensor's first element.
  void* operator[](size_t number) const { return operands_[number].pointer; }

  // The queue to submit the work to. Called once.
  Submission queue();

  // Records the submitted work. Called while the submission lives.
  void submitted(const sycl::event& done, const DeviceWork& work);

  // The submitted work, for a wait on the host: Stream::wait_for().
  const Uses& uses() const { return uses_; }

 private:
  struct Operand {
    at::TensorBase tensor;
    Access access;
    void* pointer;  // at home; on the device after resolve()
    replicas::Copies* copies = nullptr;
    size_t offset = 0;   // of the storage in its allocation
    Interval range;      // the bytes of the allocation that the operand stands for
    bool whole = false;  // all of these bytes are overwritten
  };

  void lock_and_look_up(bool at_home);
  void look_up(bool at_home);
  void find_range(Operand& operand, bool at_home) const;
  const Operand* written_by_host() const;
  void fetch_all();

  Stream& stream_;
  size_t position_;
  c10::SmallVector<Operand, 4> operands_;
  std::unique_lock<Mutex> lock_;
  bool by_data_ = false;  // the table has all operands
  Uses before_;
  Ticket ticket_;
  Uses uses_;
};

// Sets a callback. It runs before work is submitted to a device other than the home
// device, with no lock held.
void before_leaving_home(void (*callback)());

// Makes the home copy valid. The next work of the current stream may use it if that
// work keeps total order. The host may use it after a wait for that stream. A write
// makes the home copy the only valid one.
void bring_home(const c10::StorageImpl& storage, Access access);

// The same for the host only, which then waits for `pending`: Stream::wait_for().
void bring_home(const c10::StorageImpl& storage, Access access, Uses* pending);

// Waits until the host can write to memory that was just allocated on `stream`, the
// current stream.
void wait_for_new_memory(const void* memory, size_t bytes, Stream& stream);

// The same for a reader that has only an address in the memory. Waits until the copy is
// valid.
void bring_home_now(const void* home);

// Makes all home copies valid, and waits for them. For callers that hold a lock.
void bring_all_home();

// Called when other code gets a raw pointer to the home copy. From then on the storage
// stays at home. Waits until the home copy is valid.
void escape(const c10::StorageImpl& storage);

// The bytes of a storage that would have to be copied to the device at `position`.
size_t bytes_missing_on(const c10::StorageImpl& storage, size_t position);

// Whether the device at `position` holds a valid copy.
bool is_valid_on(const c10::StorageImpl& storage, size_t position);

// Bytes that replicas occupy on the device at `position` of xpu:index.
size_t replica_bytes(c10::DeviceIndex index, size_t position);

// The memory of the device that an ordinal works on, if it overflows.
MemoryAmounts working_memory(const Ordinal& on);

// Called when the block at `base` is freed.
void forget_replicas(void* base) noexcept;

// Gives the drivers the memory that replicas no longer use.
void release_replicas();

}  // namespace xpurt
