// The allocator of pinned memory: host memory that the device copies from directly.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

namespace xpurt {

c10::Allocator& pinned_allocator();

// If `data` is pinned memory: at its free, the memory stays in use until the work that
// is then queued on `stream` is complete. For copies that return before they are done.
// False if `data` is not pinned memory.
bool record_pinned_use(const c10::DataPtr& data, c10::Stream stream);

// Whether `pointer` is inside memory that the pinned allocator got from SYCL.
bool is_pinned(const void* pointer) noexcept;

// Releases cached pinned blocks. Blocks in use stay.
void release_pinned_memory();

}  // namespace xpurt
