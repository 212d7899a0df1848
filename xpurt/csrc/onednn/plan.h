// A primitive of oneDNN, and the reorders from and to the layouts of the caller's
// tensors. Only for the .cpp files of onednn/.
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
  // The caller provides the scratchpads, since several threads use one primitive.
  struct Piece {
    dnnl::primitive primitive;
    Layout scratchpad;
  };
  struct Argument {
    int role;       // DNNL_ARG_*
    Layout layout;  // of the caller's tensor
    Access access;
    Layout wanted = {};  // layout that the primitive requires
    std::optional<Piece> reorder = std::nullopt;
  };

  // Whether oneDNN has the primitive. If not, the plan cannot be run.
  bool possible = false;
  const char* name = nullptr;  // of static lifetime
  Piece main;
  std::vector<Argument> arguments;
};

// Strides of dense images (N, C, ...) in a memory format.
dnnl::memory::dims dense_strides(const dnnl::memory::dims& sizes, bool channels_last);
at::MemoryFormat channels_last_of(int64_t dims);
bool has_channels_last(const at::Tensor& tensor);

// Whether there is a primitive that is better than oneDNN's reference implementation.
bool is_of_use(const dnnl::primitive_desc_base& descriptor);

// The attributes that all primitives have in common.
dnnl::primitive_attr onednn_attributes();

// A plan for the primitive; impossible if the descriptor is empty. Throws dnnl::error.
OnednnPlan make_plan(const dnnl::engine& engine, const char* name,
                     const dnnl::primitive_desc& descriptor,
                     std::vector<OnednnPlan::Argument> arguments);

// An input in the layout that a primitive requires, kept for other primitives that run
// on the same input.
struct ReorderedInput {
  at::Tensor original;
  Layout layout;
  at::Tensor reordered;
};

// Submits the plan. `tensors`: the tensors of its arguments, in order. Throws
// dnnl::error.
void run_plan(const OnednnPlan& plan, OnednnDevice& device, Stream& stream,
              size_t position, at::ArrayRef<at::Tensor> tensors,
              std::vector<ReorderedInput>* reordered = nullptr);

// The tensor of the argument at `index` in the layout that the primitive requires, as
// bytes; undefined if it is in that layout already. Throws dnnl::error.
at::Tensor reordered_argument(const OnednnPlan& plan, size_t index,
                              const at::Tensor& tensor, OnednnDevice& device,
                              Stream& stream, size_t position);

// Returns the result of body(). An error of oneDNN becomes a RuntimeError that
// describes the task.
template <typename Body, typename... Parts>
auto onednn_checked(const Body& body, const Parts&... task) {
  try {
    return body();
  } catch (const dnnl::error& error) {
    TORCH_CHECK(false, "oneDNN could not ", task..., ": ", error.what());
  }
}

}  // namespace xpurt
