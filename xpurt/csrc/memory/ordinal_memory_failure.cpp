// The out-of-memory error of OrdinalMemory.
#include <c10/util/Exception.h>

#include <algorithm>
#include <sstream>

#include "memory/ordinal_memory.h"

namespace xpurt {

using c10::CachingAllocator::format_size;

void OrdinalMemory::fail(const Request& request) {
  const size_t bytes = request.bytes;
  const c10::Device here(c10::DeviceType::XPU, index_);
  const MemoryAmounts device = amounts();
  std::unique_lock<Mutex> lock(mutex_);
  memory_history().add(TraceEntry::OOM, index_, device.free, bytes,
                       request.stream.id().id(), pool_id_for(request.stream),
                       request.stack);
  statistics_.out_of_memory();
  const size_t allocated = statistics_.allocated_bytes();
  const size_t reserved = statistics_.reserved_bytes();
  const size_t tensors = statistics_.live_blocks();
  const double fraction = fraction_;
  const uint64_t limit = limit_;
  lock.unlock();
  c10::reportOutOfMemoryToProfiler(static_cast<int64_t>(bytes), allocated, reserved,
                                   here);
  const auto largest = home_.device.get_info<sycl::info::device::max_mem_alloc_size>();
  std::ostringstream reason;
  if (bytes > total_) {
    reason << " That is more than the device has in all, whatever is freed.";
  } else if (fraction < 1 && reserved + round_block(bytes) > limit) {
    reason << " The memory fraction " << fraction << " allows " << format_size(limit)
           << " (" << limit << " bytes): raise it with "
           << "torch.xpu.set_per_process_memory_fraction, or free tensors.";
  } else if (bytes > largest) {
    reason << " The driver gives at most " << format_size(largest)
           << " in one piece: split the tensor.";
  } else {
    reason << " Free tensors, make the batch smaller, or end other programs that use "
              "the device.";
  }
  TORCH_CHECK_WITH(OutOfMemoryError, false, "XPU out of memory. Tried to allocate ",
                   format_size(bytes), " (", bytes, " bytes) on ", here, ", ",
                   home_.name, ": ", format_size(device.free), " of ",
                   format_size(device.total), " are free (", device.free,
                   " bytes). This process holds ", format_size(reserved), " (",
                   reserved, " bytes), ", format_size(allocated), " (", allocated,
                   " bytes) of them in ", tensors, " live storages.", reason.str());
}

}  // namespace xpurt
