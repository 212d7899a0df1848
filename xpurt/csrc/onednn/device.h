// oneDNN on one device. Only for the .cpp files of onednn/: PyTorch ships another
// version of oneDNN's headers.
#pragma once

#include <ATen/Context.h>
#include <c10/core/ScalarType.h>
#include <dnnl.hpp>
#include <dnnl_sycl.hpp>

#include <unordered_map>

#include "host/mutex.h"
#include "host/recently_used.h"
#include "onednn/plan.h"
#include "stream/stream.h"

namespace xpurt {

// Appends a value that distinguishes plans to a key.
template <typename T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
void add_to_key(std::string* key, T value) {
  key->append(reinterpret_cast<const char*>(&value), sizeof(T));
}
inline void add_to_key(std::string* key, at::IntArrayRef values) {
  add_to_key(key, values.size());
  key->append(reinterpret_cast<const char*>(values.data()),
              values.size() * sizeof(int64_t));
}

class OnednnDevice {
 public:
  // Made at the first call and leaked: see Note [Leaked on purpose].
  static OnednnDevice& of(const PhysicalDevice& device);

  explicit OnednnDevice(const PhysicalDevice& device);

  // Whether oneDNN supports the device. If not, no other function may be called.
  bool is_known() const { return known_; }
  const dnnl::engine& engine() const { return engine_; }
  dnnl::stream& stream_on(sycl::queue& queue);

  // The plan of the key, made by make() if it is not among the kept, recently used
  // ones.
  template <typename Make>
  std::shared_ptr<const OnednnPlan> plan(std::string key, const Make& make) {
    add_to_key(&key, at::globalContext().deterministicAlgorithms());
    return plans_.find(std::move(key), make);
  }
  size_t plans_kept() const { return plans_.size(); }

  // Whether oneDNN multiplies matrices of the type on this device.
  bool multiplies(c10::ScalarType type);

 private:
  const PhysicalDevice& device_;
  dnnl::engine engine_;
  bool known_ = false;
  RecentlyUsed<OnednnPlan> plans_;
  Mutex mutex_{Rank::onednn_device};
  std::unordered_map<c10::ScalarType, bool> multiplied_;
  std::unordered_map<sycl::queue*, dnnl::stream> streams_;
};

// undef for types that oneDNN does not support.
dnnl::memory::data_type onednn_type(c10::ScalarType type);

}  // namespace xpurt
