#include "onednn_device.h"

#include <deque>

#include "onednn_plans.h"

namespace xpurt {

using c10::ScalarType;

OnednnDevice::OnednnDevice(const PhysicalDevice& device)
    : device_(device), plans_(kMostOnednnPlans) {
  // Of other devices it says on the standard output that it does not know them.
  constexpr uint32_t kIntel = 0x8086;
  using sycl::info::device::vendor_id;
  if (!device.is_cpu && device.device.get_info<vendor_id>() != kIntel) return;
  try {
    engine_ = dnnl::sycl_interop::make_engine(device.device, device.context);
    known_ = true;
  } catch (const std::exception&) {
    // A device that oneDNN does not know: others will do its work.
  }
}

OnednnDevice& OnednnDevice::of(const PhysicalDevice& device) {
  static std::mutex* const mutex = new std::mutex;
  static auto* const all = new std::deque<OnednnDevice>;
  static thread_local OnednnDevice* last = nullptr;
  if (last != nullptr && &last->device_ == &device) return *last;
  std::lock_guard<std::mutex> lock(*mutex);
  for (OnednnDevice& each : *all) {
    if (&each.device_ == &device) return *(last = &each);
  }
  return *(last = &all->emplace_back(device));
}

dnnl::stream& OnednnDevice::stream_on(sycl::queue& queue) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = streams_.find(&queue);
  if (found != streams_.end()) return found->second;
  return streams_.emplace(&queue, dnnl::sycl_interop::make_stream(engine_, queue))
      .first->second;
}

bool OnednnDevice::multiplies(ScalarType type) {
  const auto data_type = onednn_type(type);
  if (!known_ || data_type == dnnl::memory::data_type::undef) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto known = multiplied_.find(type);
  if (known != multiplied_.end()) return known->second;
  const dnnl::memory::desc square({16, 16}, data_type, dnnl::memory::format_tag::ab);
  const auto made = type == ScalarType::Char ? dnnl::memory::data_type::s32 : data_type;
  const dnnl::memory::desc result({16, 16}, made, dnnl::memory::format_tag::ab);
  const dnnl::matmul::primitive_desc asked(engine_, square, square, result, {},
                                           /*allow_empty=*/true);
  const bool can = asked.get(/*allow_empty=*/true) != nullptr;
  multiplied_.emplace(type, can);
  return can;
}

dnnl::memory::data_type onednn_type(ScalarType type) {
  switch (type) {
    case ScalarType::Float:
      return dnnl::memory::data_type::f32;
    case ScalarType::Half:
      return dnnl::memory::data_type::f16;
    case ScalarType::BFloat16:
      return dnnl::memory::data_type::bf16;
    case ScalarType::Char:
      return dnnl::memory::data_type::s8;
    case ScalarType::Int:
      return dnnl::memory::data_type::s32;
    default:
      return dnnl::memory::data_type::undef;
  }
}

size_t onednn_plans_kept(const PhysicalDevice& device) {
  return OnednnDevice::of(device).plans_kept();
}

}  // namespace xpurt
