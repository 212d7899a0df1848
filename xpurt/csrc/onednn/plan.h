// A primitive of oneDNN, and the reorders from and to the layouts that the caller's
// tensors have. Only for the .cpp files of onednn/.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/Exception.h>
#include <dnnl.hpp>

#include <optional>
#include <vector>

#include "memory/replica/replica.h"

namespace xpurt {

class OnednnDevice;

using Layout = dnnl::memory::desc;

struct OnednnPlan {
  // Primitives take their scratchpads from us: one is used by several threads.
  struct Piece {
    dnnl::primitive primitive;
    Layout scratchpad;
  };
  struct Argument {
    int role;       // DNNL_ARG_*
    Layout layout;  // of the caller's tensor
    Access access;
    Layout wanted = {};  // by the primitive
    std::optional<Piece> reorder = std::nullopt;
  };

  // Whether oneDNN has the primitive; a plan of none can't be run.
  bool possible = false;
  const char* name = nullptr;  // static
  Piece main;
  std::vector<Argument> arguments;
};

// Strides of dense images (N, C, ...) in a memory format.
dnnl::memory::dims dense_strides(const dnnl::memory::dims& sizes, bool channels_last);
at::MemoryFormat channels_last_of(int64_t dims);
bool has_channels_last(const at::Tensor& tensor);

// Whether there is a primitive, and one that is better than oneDNN's reference.
bool is_of_use(const dnnl::primitive_desc_base& descriptor);

// Attributes that all primitives of ours have.
dnnl::primitive_attr onednn_attributes();

// A plan for the primitive; impossible if the descriptor is empty. Throws dnnl::error.
OnednnPlan make_plan(const dnnl::engine& engine, const char* name,
                     const dnnl::primitive_desc& descriptor,
                     std::vector<OnednnPlan::Argument> arguments);

// What inputs look like in the layouts that primitives want, for primitives that are
// run one after the other on the same inputs.
struct ReorderedInput {
  at::Tensor original;
  Layout layout;
  at::Tensor reordered;
};

// Submits the plan. `tensors` are those of its arguments, in order. Throws dnnl::error.
void run_plan(const OnednnPlan& plan, OnednnDevice& device, Stream& stream,
              size_t position, at::ArrayRef<at::Tensor> tensors,
              std::vector<ReorderedInput>* reordered = nullptr);

// What body() returns. What oneDNN throws becomes an error that says what it was to do.
template <typename Body, typename... Parts>
auto onednn_checked(const Body& body, const Parts&... task) {
  try {
    return body();
  } catch (const dnnl::error& error) {
    TORCH_CHECK(false, "oneDNN could not ", task..., ": ", error.what());
  }
}

}  // namespace xpurt
