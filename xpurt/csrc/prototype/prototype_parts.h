// The parts of a prototype device; make_prototype_device() calls each once.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include "prototype/prototype_device.h"

namespace xpurt {

void register_guard(const PrototypeDevice& device);
void register_allocator(const PrototypeDevice& device);
// Kept for the process.
const c10::impl::DeviceGuardImplInterface* make_sycl_guard(
    const PrototypeDevice& device);

// The generators by which random ops and PyTorch's Python find their numbers. Not all
// types have hooks that PyTorch asks: those of ipu and maia have none.
void install_hooks(const PrototypeDevice& device);

// Every op that the device behind has a kernel for, and a fallback for ops that are
// defined later. A kernel of the vendor replaces one of these.
void register_ops(const PrototypeDevice& device);
void register_autocast(const PrototypeDevice& device);

void register_collectives(const PrototypeDevice& device);

constexpr c10::DispatchKey kTensorLayouts[] = {
    c10::DispatchKey::Dense, c10::DispatchKey::Sparse, c10::DispatchKey::SparseCsr,
    c10::DispatchKey::Quantized, c10::DispatchKey::NestedTensor};

// PyTorch warns of a kernel that takes the place of another one. Those that are put in
// front of it, and call it, change nothing.
class WithoutOverrideWarning {
  struct Silent final : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  };
  Silent silent_;
  c10::WarningUtils::WarningHandlerGuard guard_{&silent_};
};

const at::Generator& prototype_generator(c10::Device own);
at::Generator new_prototype_generator(c10::Device own);
// The generator of the device behind that `generator` draws from.
at::Generator generator_behind(const at::Generator& generator);

}  // namespace xpurt
