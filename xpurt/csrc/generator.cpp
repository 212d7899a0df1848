#include "generator.h"

#include <ATen/Functions.h>
#include <c10/core/GeneratorImpl.h>

#include <array>
#include <cstring>

#include "device.h"

namespace xpurt {
namespace {

// Whether a generator goes on under the next mapping. The default one of an ordinal
// does; one that a user made for a device of the mapping does not.
enum class Lifetime { kProcess, kMapping };

class PhiloxGenerator final : public c10::GeneratorImpl {
 public:
  PhiloxGenerator(c10::DeviceIndex index, Lifetime lifetime)
      : c10::GeneratorImpl(c10::Device(c10::DeviceType::XPU, index),
                           c10::DispatchKeySet(c10::DispatchKey::XPU)),
        lifetime_(lifetime),
        epoch_(placement_epoch()) {}

  void set_current_seed(uint64_t seed) override {
    check_mapping();
    seed_ = seed;
    offset_ = 0;
  }
  void set_offset(uint64_t offset) override {
    check_mapping();
    offset_ = offset;
  }
  uint64_t get_offset() const override {
    check_mapping();
    return offset_;
  }
  uint64_t current_seed() const override {
    check_mapping();
    return seed_;
  }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return seed_;
  }

  // Sixteen bytes: seed, then offset, little-endian.
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    check_mapping();
    at::Tensor state = at::empty({kStateBytes}, at::dtype(at::kByte).device(at::kCPU));
    std::memcpy(state.mutable_data_ptr(), &seed_, sizeof(seed_));
    std::memcpy(static_cast<char*>(state.mutable_data_ptr()) + sizeof(seed_), &offset_,
                sizeof(offset_));
    return state.getIntrusivePtr();
  }
  void set_state(const c10::TensorImpl& state) override {
    check_mapping();
    TORCH_CHECK_TYPE(state.dtype() == at::kByte && state.device().is_cpu(),
                     "RNG state must be a torch.ByteTensor on the CPU");
    TORCH_CHECK_VALUE(state.numel() == kStateBytes, "an xpu RNG state has ",
                      kStateBytes, " bytes (seed, offset); found ", state.numel());
    const char* bytes = static_cast<const char*>(state.data());
    std::memcpy(&seed_, bytes, sizeof(seed_));
    std::memcpy(&offset_, bytes + sizeof(seed_), sizeof(offset_));
  }

 private:
  static constexpr int64_t kStateBytes = 16;

  PhiloxGenerator* clone_impl() const override {
    auto* copy = new PhiloxGenerator(device().index(), Lifetime::kMapping);
    copy->seed_ = seed_;
    copy->offset_ = offset_;
    return copy;
  }

  void check_mapping() const {
    if (lifetime_ == Lifetime::kProcess) return;
    const uint64_t now = placement_epoch();
    if (epoch_ == 0) epoch_ = now;  // made before the first mapping was installed
    TORCH_CHECK(epoch_ == now, "the generator on ", device(),
                " belongs to an xpu mapping that has been replaced. Make a new one.");
  }

  Lifetime lifetime_;
  mutable uint64_t epoch_;
  uint64_t seed_ = c10::default_rng_seed_val;
  uint64_t offset_ = 0;
};

}  // namespace

at::Generator make_generator(c10::DeviceIndex index) {
  if (index == -1) index = current_device();
  // xpu:0 is there if anything is: no driver is loaded for it.
  if (index != 0) ordinal(index);
  return at::make_generator<PhiloxGenerator>(index, Lifetime::kMapping);
}

const at::Generator& default_generator(c10::DeviceIndex index) {
  static auto* const generators = [] {
    auto* made = new std::array<at::Generator, kMaxDevices>;
    for (int i = 0; i < kMaxDevices; ++i) {
      (*made)[i] = at::make_generator<PhiloxGenerator>(i, Lifetime::kProcess);
    }
    return made;
  }();
  if (index == -1) index = current_device();
  if (index != 0) ordinal(index);
  return (*generators)[index];
}

}  // namespace xpurt
