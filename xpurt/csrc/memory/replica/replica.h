// Copies of a storage on the devices of one ordinal. See Note [Home and replicas].
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/util/SmallVector.h>

#include <cstddef>
#include <mutex>
#include <vector>

#include "host/intervals.h"
#include "stream/stream.h"
#include "stream/work_recording.h"

namespace xpurt {

namespace replicas {
struct Copies;
}

enum class Access { read, write, read_write };

// What one piece of work reads and writes, and where the device at `position` of the
// stream's ordinal finds it:
//
//   Operands operands(stream, position);
//   operands.add(out, Access::write);
//   operands.add(in, Access::read);
//   operands.resolve();
//   operands.submitted(operands.queue()->memcpy(operands[0], operands[1], n),
//                      DeviceWork::copy(n));
//
// The work waits for what was submitted for these operands, and for no more: see
// Note [Order by data]. Nothing is taken for written before submitted(): work that
// fails on its way there leaves every copy as it was. Where an ordinal has several
// devices, other threads' operands wait from resolve() to submitted().
class Operands {
 public:
  Operands(Stream& stream, size_t position) : stream_(stream), position_(position) {}
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  // Before resolve(). Returns the operand's number.
  size_t add(const at::TensorBase& tensor, Access access);

  // Submits to the stream whatever copies are needed. Throws c10::OutOfMemoryError
  // if the device has no room for them.
  void resolve();

  // The address of the tensor's first element.
  void* operator[](size_t number) const { return operands_[number].pointer; }

  // To submit the work to, once.
  Submission queue();

  // While the submission lives.
  void submitted(const sycl::event& done, const DeviceWork& work);

  // The submitted work, to wait for on the host: Stream::wait_for().
  const Uses& uses() const { return uses_; }

 private:
  struct Operand {
    at::TensorBase tensor;
    Access access;
    void* pointer;  // at home; on the device once resolved
    replicas::Copies* copies = nullptr;
    Interval range;      // bytes of the storage that it stands for
    bool whole = false;  // all of them are overwritten
  };

  void look_up(bool at_home);
  void find_range(Operand& operand) const;
  void fetch_all();

  Stream& stream_;
  size_t position_;
  c10::SmallVector<Operand, 4> operands_;
  std::unique_lock<std::mutex> lock_;
  bool by_data_ = false;  // the table knows all operands
  Uses before_;
  Ticket ticket_;
  Uses uses_;
};

// The callback runs before work is submitted to a device that is not the home device,
// without any lock held.
void before_leaving_home(void (*callback)());

// Makes the home copy valid: for the next work of the current stream, if that keeps
// total order, and for the host after a wait for that stream. A write makes it the only
// valid copy.
void bring_home(const c10::StorageImpl& storage, Access access);

// The same for the host alone, which then waits for `pending`: Stream::wait_for().
void bring_home(const c10::StorageImpl& storage, Access access, Uses* pending);

// Waits until the host can write to memory that was allocated just now, on the stream
// that is current.
void wait_for_new_memory(const void* memory, size_t bytes, Stream& stream);

// The same for a reader who knows only the pointer. Waits until the copy is valid.
void bring_home_now(const void* home);

// Makes all home copies valid, and waits for them; for callers that hold a lock.
void bring_all_home();

// Called when a raw pointer to the home copy is given to other code: the storage stays
// at home from then on. Waits until the home copy is valid.
void escape(const c10::StorageImpl& storage);

// False for storages that escaped, or whose memory is not of our allocator.
bool may_leave_home(const c10::StorageImpl& storage);

// How much of a storage would have to be copied to the device at `position`.
size_t bytes_missing_on(const c10::StorageImpl& storage, size_t position);

// Whether the device at `position` holds a valid copy.
bool is_valid_on(const c10::StorageImpl& storage, size_t position);

// Bytes that replicas occupy on the device at `position` of xpu:index.
size_t replica_bytes(c10::DeviceIndex index, size_t position);

// Called when the block at `base` is given back.
void forget_replicas(void* base) noexcept;

// Gives memory that replicas no longer use back to the drivers.
void release_replicas();

}  // namespace xpurt
