#include "onednn/plan.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>

#include <string_view>

#include "device/device_failure.h"
#include "onednn/device.h"
#include "schedule/decision.h"

namespace xpurt {
namespace {

using at::Tensor;

// A tensor as an argument of a primitive, with its layout in oneDNN.
struct ArgumentUse {
  int role;
  const Layout& layout;
  const Tensor& tensor;
  Access access;
};

Tensor room_for(const Layout& layout, const Tensor& like) {
  return at::empty({static_cast<int64_t>(layout.get_size())},
                   like.options().dtype(at::kByte));
}

void submit(const OnednnPlan::Piece& piece, const char* name,
            at::ArrayRef<ArgumentUse> arguments, OnednnDevice& device, Stream& stream,
            size_t position) {
  c10::SmallVector<ArgumentUse, 6> uses(arguments.begin(), arguments.end());
  Tensor scratchpad;
  if (piece.scratchpad.get_size() > 0) {
    scratchpad = room_for(piece.scratchpad, uses[0].tensor);
    uses.push_back({DNNL_ARG_SCRATCHPAD, piece.scratchpad, scratchpad, Access::write});
  }
  Operands operands(stream, position);
  for (const ArgumentUse& each : uses) operands.add(each.tensor, each.access);
  operands.resolve();
  std::unordered_map<int, dnnl::memory> memories;
  for (size_t i = 0; i < uses.size(); ++i) {
    memories.emplace(uses[i].role,
                     dnnl::sycl_interop::make_memory(
                         uses[i].layout, device.engine(),
                         dnnl::sycl_interop::memory_kind::usm, operands[i]));
  }
  sycl::event done;
  {
    const Submission submission = operands.queue();
    dnnl::stream& on = device.stream_on(*submission);
    done = dnnl::sycl_interop::execute(piece.primitive, on, memories);
    operands.submitted(done, DeviceWork::named(name));
  }
  // The scheduler's lock is not taken under the stream's: see Note [Order of locks].
  record_submission(stream, position, done);
}

const Tensor* find_reordered(const std::vector<ReorderedInput>& reordered,
                             const Tensor& original, const Layout& layout) {
  for (const ReorderedInput& each : reordered) {
    if (each.original.is_same(original) && each.layout == layout) {
      return &each.reordered;
    }
  }
  return nullptr;
}

OnednnPlan::Piece make_reorder(const dnnl::engine& engine, const Layout& from,
                               const Layout& to) {
  const dnnl::reorder::primitive_desc made(engine, from, engine, to,
                                           onednn_attributes());
  return {dnnl::reorder(made), made.scratchpad_desc()};
}

void reorder(const OnednnPlan::Argument& argument, const Tensor& from, const Tensor& to,
             OnednnDevice& device, Stream& stream, size_t position) {
  const bool reads = argument.access == Access::read;
  const Layout& before = reads ? argument.layout : argument.wanted;
  const Layout& after = reads ? argument.wanted : argument.layout;
  submit(*argument.reorder, "onednn_reorder",
         {ArgumentUse{DNNL_ARG_FROM, before, from, Access::read},
          ArgumentUse{DNNL_ARG_TO, after, to, Access::write}},
         device, stream, position);
}

}  // namespace

dnnl::memory::dims dense_strides(const dnnl::memory::dims& sizes, bool channels_last) {
  dnnl::memory::dims strides(sizes.size());
  int64_t step = 1;
  if (channels_last) {
    strides[1] = 1;
    step = sizes[1];
  }
  for (size_t d = sizes.size(); d-- > 0;) {
    if (channels_last && d == 1) continue;
    strides[d] = step;
    step *= sizes[d];
  }
  return strides;
}

at::MemoryFormat channels_last_of(int64_t dims) {
  return dims == 5 ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast;
}

bool has_channels_last(const Tensor& tensor) {
  return (tensor.dim() == 4 || tensor.dim() == 5) && !tensor.is_contiguous() &&
         tensor.is_contiguous(channels_last_of(tensor.dim()));
}

bool is_of_use(const dnnl::primitive_desc_base& descriptor) {
  if (descriptor.get(/*allow_empty=*/true) == nullptr) return false;
  // The reference implementation is slower than any other kernel.
  return std::string_view(descriptor.impl_info_str()).find("ref") ==
         std::string_view::npos;
}

dnnl::primitive_attr onednn_attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (at::globalContext().deterministicAlgorithms()) {
    attributes.set_deterministic(true);
  }
  return attributes;
}

OnednnPlan make_plan(const dnnl::engine& engine, const char* name,
                     const dnnl::primitive_desc& descriptor,
                     std::vector<OnednnPlan::Argument> arguments) {
  OnednnPlan plan;
  plan.name = name;
  if (descriptor.get(/*allow_empty=*/true) == nullptr) return plan;
  for (OnednnPlan::Argument& each : arguments) {
    each.wanted = descriptor.query_md(dnnl::query::exec_arg_md, each.role);
    if (each.wanted == each.layout) continue;
    // Only matmul has such an argument, and it names the layout itself.
    TORCH_INTERNAL_ASSERT(
        each.access != Access::read_write, name,
        ": what is read and written needs a reorder before and after");
    each.reorder = each.access == Access::read
                       ? make_reorder(engine, each.layout, each.wanted)
                       : make_reorder(engine, each.wanted, each.layout);
  }
  plan.arguments = std::move(arguments);
  plan.main = {dnnl::primitive(descriptor), descriptor.scratchpad_desc()};
  plan.possible = true;
  return plan;
}

void run_plan(const OnednnPlan& plan, OnednnDevice& device, Stream& stream,
              size_t position, at::ArrayRef<Tensor> tensors,
              std::vector<ReorderedInput>* reordered) {
  c10::SmallVector<Tensor, 4> operands(tensors.begin(), tensors.end());
  c10::SmallVector<ArgumentUse, 4> uses;
  for (size_t i = 0; i < operands.size(); ++i) {
    const OnednnPlan::Argument& argument = plan.arguments[i];
    if (argument.reorder.has_value()) {
      const Tensor* known =
          reordered == nullptr
              ? nullptr
              : find_reordered(*reordered, tensors[i], argument.wanted);
      operands[i] = known != nullptr ? *known : room_for(argument.wanted, tensors[i]);
      if (known == nullptr && argument.access == Access::read) {
        reorder(argument, tensors[i], operands[i], device, stream, position);
        if (reordered != nullptr) {
          reordered->push_back({tensors[i], argument.wanted, operands[i]});
        }
      }
    }
    uses.push_back({argument.role, argument.wanted, operands[i], argument.access});
  }
  submit(plan.main, plan.name, uses, device, stream, position);
  for (size_t i = 0; i < operands.size(); ++i) {
    const OnednnPlan::Argument& argument = plan.arguments[i];
    if (!argument.reorder.has_value() || argument.access == Access::read) continue;
    reorder(argument, operands[i], tensors[i], device, stream, position);
  }
}

Tensor reordered_argument(const OnednnPlan& plan, size_t index, const Tensor& tensor,
                          OnednnDevice& device, Stream& stream, size_t position) {
  const OnednnPlan::Argument& argument = plan.arguments[index];
  if (!argument.reorder.has_value()) return {};
  Tensor made = room_for(argument.wanted, tensor);
  reorder(argument, tensor, made, device, stream, position);
  return made;
}

}  // namespace xpurt
