// The allocator of pinned memory: host memory that the device copies from directly.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

namespace xpurt {

c10::Allocator& pinned_allocator();

// If `data` is pinned memory, keeps it from being handed out again before the work
// that is queued on `stream` when it is freed is complete: for copies that return
// before they are done. False if it is not pinned memory.
bool record_pinned_use(const c10::DataPtr& data, c10::Stream stream);

// Whether `pointer` is inside memory that the pinned allocator got from SYCL.
bool is_pinned(const void* pointer) noexcept;

// Gives cached pinned blocks back; those in somebody's hands stay.
void release_pinned_memory();

}  // namespace xpurt
