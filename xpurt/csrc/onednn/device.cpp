#include "onednn/device.h"

#include <algorithm>
#include <deque>

#include "onednn/plans.h"

namespace xpurt {
namespace {

using c10::ScalarType;
using dnnl::memory;

// Whether sums of int8 products are exact. On processors without instructions for int8
// products, oneDNN's kernels add pairs of products in 16 bits, which saturate.
bool adds_exactly(const dnnl::engine& engine, const dnnl::matmul::primitive_desc& of) {
  constexpr int8_t kLargest = 127;
  const memory left(of.src_desc(), engine), right(of.weights_desc(), engine);
  const memory result(of.dst_desc(), engine);
  for (const memory& operand : {left, right}) {
    auto* values = operand.map_data<int8_t>();
    std::fill_n(values, operand.get_desc().get_size(), kLargest);
    operand.unmap_data(values);
  }
  dnnl::stream stream(engine);
  dnnl::matmul(of).execute(
      stream,
      {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_DST, result}});
  stream.wait();
  const auto* sums = result.map_data<int32_t>();
  const bool exact = sums[0] == of.src_desc().get_dims()[1] * kLargest * kLargest;
  result.unmap_data(const_cast<int32_t*>(sums));
  return exact;
}

}  // namespace

OnednnDevice::OnednnDevice(const PhysicalDevice& device)
    : device_(device), plans_(kMaxOnednnPlans, Rank::onednn_plans) {
  // For other devices oneDNN prints on the standard output that it does not support
  // them.
  constexpr uint32_t kIntel = 0x8086;
  using sycl::info::device::vendor_id;
  if (device.is_accelerator) return;
  if (!device.is_cpu && device.device.get_info<vendor_id>() != kIntel) return;
  try {
    engine_ = dnnl::sycl_interop::make_engine(device.device, device.context);
    known_ = true;
  } catch (const std::exception&) {
    // oneDNN does not support the device; xpurt's kernels are used instead.
  }
}

OnednnDevice& OnednnDevice::of(const PhysicalDevice& device) {
  static auto* const mutex = new Mutex(Rank::onednn_devices);
  static auto* const all = new std::deque<OnednnDevice>;
  static thread_local OnednnDevice* last = nullptr;
  if (last != nullptr && &last->device_ == &device) return *last;
  std::lock_guard<Mutex> lock(*mutex);
  for (OnednnDevice& each : *all) {
    if (&each.device_ == &device) return *(last = &each);
  }
  return *(last = &all->emplace_back(device));
}

dnnl::stream& OnednnDevice::stream_on(sycl::queue& queue) {
  std::lock_guard<Mutex> lock(mutex_);
  const auto found = streams_.find(&queue);
  if (found != streams_.end()) return found->second;
  return streams_.emplace(&queue, dnnl::sycl_interop::make_stream(engine_, queue))
      .first->second;
}

bool OnednnDevice::multiplies(ScalarType type) {
  const auto data_type = onednn_type(type);
  if (!known_ || data_type == memory::data_type::undef) return false;
  std::lock_guard<Mutex> lock(mutex_);
  const auto known = multiplied_.find(type);
  if (known != multiplied_.end()) return known->second;
  const bool bytes = type == ScalarType::Char;
  const memory::desc square({16, 16}, data_type, memory::format_tag::ab);
  const auto made = bytes ? memory::data_type::s32 : data_type;
  const memory::desc result({16, 16}, made, memory::format_tag::ab);
  const dnnl::matmul::primitive_desc asked(engine_, square, square, result, {},
                                           /*allow_empty=*/true);
  const bool can = asked.get(/*allow_empty=*/true) != nullptr &&
                   (!bytes || adds_exactly(engine_, asked));
  multiplied_.emplace(type, can);
  return can;
}

memory::data_type onednn_type(ScalarType type) {
  switch (type) {
    case ScalarType::Float:
      return memory::data_type::f32;
    case ScalarType::Half:
      return memory::data_type::f16;
    case ScalarType::BFloat16:
      return memory::data_type::bf16;
    case ScalarType::Char:
      return memory::data_type::s8;
    case ScalarType::Int:
      return memory::data_type::s32;
    default:
      return memory::data_type::undef;
  }
}

size_t onednn_plans_kept(const PhysicalDevice& device) {
  return OnednnDevice::of(device).plans_kept();
}

}  // namespace xpurt
