// One call of a collective, as data.
#pragma once

#include <functional>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "distributed/host_forms.h"
#include "distributed/reduction.h"

namespace xpurt {

using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;
using BackendPointer = c10::intrusive_ptr<c10d::Backend>;

struct Collective {
  c10d::OpType type;
  Tensors read;
  Tensors written;
  // Calls the inner backend with the host forms of the tensors.
  std::function<WorkPointer(c10d::Backend& inner, const HostForms& host)> start;
  // Of a collective that computes; without one it copies elements of any type.
  std::optional<Reduction> reduction;
  // A last step on the host, after the inner backend's.
  std::function<void(const HostForms& host)> finish;
};

// The name of a collective in torch.distributed: "all_reduce".
const char* name_of(c10d::OpType type);

}  // namespace xpurt
