// Attention by kernels that iterate over tiles of queries and keys.
#include <ATen/ops/empty_strided.h>

#include "op/element_type.h"
#include "program/program.h"
#include "rows/attention.h"

namespace xpurt {
namespace {

using at::Tensor;

constexpr int64_t kTile = 16;  // as in the template

Range tiles(const Attention& attention, int64_t length) {
  Range range;
  range.local = {kTile, kTile, 1};
  range.global = {static_cast<size_t>((length + kTile - 1) / kTile * kTile),
                  static_cast<size_t>(attention.batch() * attention.heads() * kTile),
                  1};
  return range;
}

void add_inputs(Launch* launch, const Attention& attention,
                std::initializer_list<const Tensor*> others = {}) {
  launch->tensor(attention.query, Access::read);
  launch->tensor(attention.key, Access::read);
  launch->tensor(attention.value, Access::read);
  for (const Tensor* each : others) launch->tensor(*each, Access::read);
  if (attention.mask.defined()) launch->tensor(attention.mask, Access::read);
  add_scalar(*launch, attention.scale, computed_in(attention.query.scalar_type()));
}

}  // namespace

std::array<int64_t, 4> four_strides(const Tensor& tensor) {
  return {tensor.stride(0), tensor.stride(1), tensor.stride(2), tensor.stride(3)};
}

std::array<int64_t, 3> three_strides(const Tensor& tensor) {
  return {tensor.stride(0), tensor.stride(1), tensor.stride(2)};
}

AttentionLayout::AttentionLayout(const Attention& attention)
    : batch(attention.batch()),
      heads(attention.heads()),
      queries(attention.queries()),
      keys(attention.keys()),
      query(four_strides(attention.query)),
      key(four_strides(attention.key)),
      value(four_strides(attention.value)) {
  if (attention.mask.defined()) mask = four_strides(attention.mask);
}

std::string attention_key(const Attention& attention, const char* template_name) {
  // "row;template;size;types;mask;causal"
  const auto type = attention.query.scalar_type();
  std::string key = std::to_string(attention.row);
  key += ';';
  key += template_name;
  key += ';';
  key += std::to_string(attention.size());
  key += ';';
  key += letter_of(type);
  key += letter_of(computed_in(type));
  key += ';';
  if (attention.mask.defined()) key += letter_of(attention.mask.scalar_type());
  key += attention.causal ? ";causal" : ";";
  return key;
}

bool attention_fits_tiles(const Attention& attention, const PhysicalDevice& device) {
  // The backward kernels need the most: four tiles of padded rows, and two of weights.
  const int64_t elements = kTile * (4 * (attention.size() + 1) + 2 * (kTile + 1));
  const size_t bytes =
      elements * c10::elementSize(computed_in(attention.query.scalar_type()));
  const DeviceTraits& has = traits(device);
  return bytes <= has.local_memory && has.max_work_group >= kTile * kTile;
}

void attend_by_tiles(const Attention& attention, const Attended& made,
                     size_t position) {
  AttentionLayout layout(attention);
  layout.out = four_strides(made.out);
  layout.sums = three_strides(made.sums);
  Launch launch(current_stream(made.out.device().index()), position);
  launch.tensor(made.out, Access::write);
  launch.tensor(made.sums, Access::write);
  add_inputs(&launch, attention);
  launch.structure(&layout, sizeof(layout));
  launch.submit(
      kernel_for(launch.device(), attention_key(attention, "attention_forward")),
      tiles(attention, attention.queries()));
}

void attend_backward_by_tiles(const Attention& attention,
                              const AttentionBackward& backward,
                              const AttentionGradients& made, size_t position) {
  Stream& stream = current_stream(backward.grad.device().index());
  AttentionLayout layout(attention);
  layout.grad = four_strides(backward.grad);
  layout.sums = three_strides(backward.sums);
  const auto& [of_query, of_key, of_value] = made;
  const auto compute = computed_in(attention.query.scalar_type());
  const at::Tensor inner = at::empty_strided(
      backward.sums.sizes(), backward.sums.strides(), backward.sums.options());
  inner.copy_(backward.grad.to(compute).mul(backward.out.to(compute)).sum(-1));
  {
    layout.out = four_strides(of_query);
    Launch launch(stream, position);
    launch.tensor(of_query, Access::write);
    launch.tensor(backward.sums, Access::read);
    launch.tensor(inner, Access::read);
    add_inputs(&launch, attention, {&backward.grad});
    launch.structure(&layout, sizeof(layout));
    launch.submit(
        kernel_for(launch.device(), attention_key(attention, "attention_queries")),
        tiles(attention, attention.queries()));
  }
  layout.out = four_strides(of_key);
  Launch launch(stream, position);
  launch.tensor(of_key, Access::write);
  launch.tensor(of_value, Access::write);
  launch.tensor(backward.sums, Access::read);
  launch.tensor(inner, Access::read);
  add_inputs(&launch, attention, {&backward.grad});
  launch.structure(&layout, sizeof(layout));
  launch.submit(kernel_for(launch.device(), attention_key(attention, "attention_keys")),
                tiles(attention, attention.keys()));
}

}  // namespace xpurt
