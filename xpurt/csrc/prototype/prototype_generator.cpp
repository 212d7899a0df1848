// The random generators of a prototype: those of the device behind it, under its name.
#include <ATen/CPUGeneratorImpl.h>

#include "host/mutex.h"
#include "prototype/prototype_parts.h"
#include "random/generator.h"

namespace xpurt {
namespace {

at::Generator make_behind(c10::Device own) {
  const c10::Device behind = prototype_device(own.type())->behind(own);
  return behind.is_cpu() ? at::detail::createCPUGenerator()
                         : make_generator(behind.index());
}

class PrototypeGenerator final : public c10::GeneratorImpl {
 public:
  PrototypeGenerator(c10::Device own, at::Generator behind)
      : GeneratorImpl(
            own, c10::DispatchKeySet(
                     prototype_device(own.type())->own_key(c10::DispatchKey::Dense))),
        behind_(std::move(behind)) {}

  const at::Generator& behind() const { return behind_; }

  void set_current_seed(uint64_t seed) override { behind_.set_current_seed(seed); }
  void set_offset(uint64_t offset) override { behind_.set_offset(offset); }
  uint64_t get_offset() const override { return behind_.get_offset(); }
  uint64_t current_seed() const override { return behind_.current_seed(); }
  uint64_t seed() override { return behind_.seed(); }
  void set_state(const c10::TensorImpl& state) override {
    behind_.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return behind_.unsafeGetGeneratorImpl()->get_state();
  }

 private:
  GeneratorImpl* clone_impl() const override {
    return new PrototypeGenerator(device(), behind_.clone());
  }

  at::Generator behind_;
};

struct DefaultGenerators {
  Mutex mutex{Rank::prototype_generators};
  std::map<std::pair<c10::DeviceType, c10::DeviceIndex>, at::Generator> made;
};

DefaultGenerators& defaults() {
  static auto* const leaked = new DefaultGenerators;
  return *leaked;
}

}  // namespace

at::Generator new_prototype_generator(c10::Device own) {
  return at::make_generator<PrototypeGenerator>(own, make_behind(own));
}

const at::Generator& prototype_generator(c10::Device own) {
  const auto key = std::pair(own.type(), own.index());
  {
    const std::lock_guard<Mutex> lock(defaults().mutex);
    const auto found = defaults().made.find(key);
    if (found != defaults().made.end()) return found->second;
  }
  at::Generator made = new_prototype_generator(own);
  const std::lock_guard<Mutex> lock(defaults().mutex);
  return defaults().made.try_emplace(key, std::move(made)).first->second;
}

at::Generator generator_behind(const at::Generator& generator) {
  return generator.get<PrototypeGenerator>()->behind();
}

}  // namespace xpurt
