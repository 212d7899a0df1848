// Reports events of memory, streams and events to Python's callbacks: those of
// torch.xpu._gpu_trace, after torch._C._activate_gpu_trace() was called.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/impl/GPUTrace.h>

#include <cstdint>

namespace xpurt {

using Tracer = c10::impl::PyInterpreterVTable;

// notify_tracer(&Tracer::trace_gpu_memory_allocation, address). Takes the GIL if there
// is a tracer, so the caller must hold no lock.
template <typename Method, typename... Args>
void notify_tracer(Method method, Args... args) {
  const c10::impl::PyInterpreter* python = c10::impl::GPUTrace::get_trace();
  if (C10_LIKELY(python == nullptr)) return;
  ((**python).*method)(c10::DeviceType::XPU, args...);
}

inline bool has_tracer() {
  return c10::impl::GPUTrace::get_trace() != nullptr;
}

inline uintptr_t address_of(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

}  // namespace xpurt
