#include "random/generator.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <c10/core/GeneratorImpl.h>

#include <array>
#include <cstring>

#include "device/device.h"
#include "host/torch_version.h"
#include "random/captured_draws.h"
#include "random/random.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

// How long a generator is valid. The default generator of an ordinal stays valid under
// the next mapping. A user's generator for a device of the mapping does not.
enum class Lifetime { kProcess, kMapping };

class PhiloxGenerator final : public c10::GeneratorImpl {
 public:
  PhiloxGenerator(c10::DeviceIndex index, Lifetime lifetime,
                  std::shared_ptr<PhiloxState> state = std::make_shared<PhiloxState>())
      : c10::GeneratorImpl(c10::Device(c10::DeviceType::XPU, index),
                           c10::DispatchKeySet(c10::DispatchKey::XPU)),
        lifetime_(lifetime),
        epoch_(placement_epoch()),
        state_(std::move(state)) {}

  void set_current_seed(uint64_t seed) override {
    check_mapping();
    refuse_if_captured("a seed");
    state_->set_position({seed, 0});
  }
  void set_offset(uint64_t offset) override {
    check_mapping();
    refuse_if_captured("set_offset()");
    check_offset(offset);
    state_->set_position({state_->position().seed, offset});
  }
  uint64_t get_offset() const override {
    check_mapping();
    refuse_if_captured("get_offset()");
    return state_->position().offset;
  }
  uint64_t current_seed() const override {
    check_mapping();
    return state_->position().seed;
  }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return current_seed();
  }

  // Sixteen bytes: seed, then offset, little-endian. In a capture, a token of
  // Note [Random numbers in a capture].
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    check_mapping();
    const PhiloxPosition position =
        is_captured() ? captured_draws.load()->token(state_) : state_->position();
    // Not by the dispatcher: a compiler's fake tensor would have no bytes.
    const at::TensorBase bytes = at::detail::empty_cpu({kStateBytes}, at::kByte);
    std::memcpy(bytes.mutable_data_ptr(), &position, kStateBytes);
    return bytes.getIntrusivePtr();
  }
  void set_state(const c10::TensorImpl& state) override {
    check_mapping();
    at::detail::check_rng_state(state);
    TORCH_CHECK_VALUE(state.numel() == kStateBytes, "an xpu RNG state has ",
                      kStateBytes, " bytes (seed, offset); found ", state.numel());
    PhiloxPosition found;
    std::memcpy(&found, state.data(), kStateBytes);
    if (is_captured()) return captured_draws.load()->go_to(state_, found);
    TORCH_CHECK(
        !CapturedDraws::is_token(found),
        "this RNG state was taken while an XPU graph was captured, and is a "
        "position in that graph. Set it in the same capture, or in one of a later "
        "graph.");
    check_offset(found.offset);
    state_->set_position(found);
  }

  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override {
    check_mapping();
    return c10::make_intrusive<PhiloxGenerator>(device().index(), Lifetime::kMapping,
                                                state_);
  }
  void graphsafe_set_state(
      const c10::intrusive_ptr<c10::GeneratorImpl>& from) override {
    check_mapping();
    const auto* other = dynamic_cast<const PhiloxGenerator*>(from.get());
    TORCH_CHECK_TYPE(other != nullptr,
                     "an xpu generator takes the state of an xpu generator; found one "
                     "of ",
                     from ? from->device().str() : "nothing");
    state_ = other->state_;
  }

#if XPURT_TORCH_AT_LEAST(2, 14)
  // Takes numbers for a kernel of the caller. In a capture seed and offset are memory
  // that each replay writes; see Note [Random numbers in a capture].
  void philox_state(uint64_t increment, at::Tensor& seed, at::Tensor& offset,
                    at::Tensor& offset_in_graph) override {
    check_mapping();
    const auto on_cpu = [](uint64_t number) {
      at::Tensor made = at::detail::empty_cpu({1}, at::kLong);
      *made.mutable_data_ptr<int64_t>() = static_cast<int64_t>(number);
      return made;
    };
    const bool rest = increment % kOffsetPerOp != 0;
    const uint64_t growth = (increment / kOffsetPerOp + rest) * kOffsetPerOp;
    if (is_captured()) {
      const Draw draw = captured_draws.load()->take(state_, growth, device());
      seed = draw.from->narrow(0, 0, 1);
      offset = draw.from->narrow(0, 1, 1);
      offset_in_graph = on_cpu(draw.offset);
      return;
    }
    const PhiloxPosition position = state_->take(growth);
    seed = on_cpu(position.seed);
    offset = on_cpu(position.offset);
    offset_in_graph = on_cpu(0);
  }
#endif

  const std::shared_ptr<PhiloxState>& state() const {
    check_mapping();
    return state_;
  }

 private:
  static constexpr int64_t kStateBytes = sizeof(PhiloxPosition);
  static_assert(kStateBytes == 16);

  PhiloxGenerator* clone_impl() const override {
    refuse_if_captured("a copy of its state");
    return new PhiloxGenerator(device().index(), Lifetime::kMapping,
                               std::make_shared<PhiloxState>(state_->position()));
  }

  static void check_offset(uint64_t offset) {
    TORCH_CHECK(offset % kOffsetPerOp == 0, "offset must be a multiple of ",
                kOffsetPerOp, "; found ", offset);
  }

  bool is_captured() const { return is_capturing(device().index()); }

  void refuse_if_captured(const char* what) const {
    if (C10_LIKELY(!is_captured())) return;
    refuse_in_capture(c10::str(what, " of the generator on ", device()),
                      "its numbers are drawn at each replay, from where it is then.");
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
  std::shared_ptr<PhiloxState> state_;
};

}  // namespace

std::shared_ptr<PhiloxState> state_of(const at::Generator& generator) {
  const auto* found =
      dynamic_cast<const PhiloxGenerator*>(generator.unsafeGetGeneratorImpl());
  TORCH_CHECK(found != nullptr,
              "Expected a 'xpu' device type for generator but found '",
              generator.device().type(), "'");
  return found->state();
}

std::shared_ptr<PhiloxState> state_of(const std::optional<at::Generator>& generator,
                                      c10::DeviceIndex index) {
  if (!generator.has_value() || !generator->defined()) {
    return state_of(default_generator(index));
  }
  auto state = state_of(*generator);
  const c10::DeviceIndex found = generator->device().index();
  TORCH_CHECK(found == index, "Expected a '", c10::Device(c10::DeviceType::XPU, index),
              "' generator device but found '", generator->device(), "'");
  return state;
}

at::Generator make_generator(c10::DeviceIndex index) {
  if (index == -1) index = current_device();
  // xpu:0 exists if any device does: no driver is loaded for the check.
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
