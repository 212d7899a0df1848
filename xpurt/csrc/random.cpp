#include "random.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>

#include <mutex>

#include "allocator.h"
#include "capture.h"
#include "device_scope.h"
#include "generator.h"
#include "random_draw.h"
#include "random_forms.h"

namespace xpurt {

std::atomic<CapturedDraws*> captured_draws{nullptr};

namespace {

at::Generator source_of(const std::optional<at::Generator>& generator,
                        c10::DeviceIndex index) {
  const bool given = generator.has_value() && generator->defined();
  at::Generator source = given ? *generator : default_generator(index);
  TORCH_CHECK(source.device().is_xpu(),
              "Expected a 'xpu' device type for generator but found '",
              source.device().type(), "'");
  return source;
}

at::mt19937 twister(uint64_t seed, uint64_t offset) {
  at::mt19937_data_pod data{};
  data.seed_ = seed;
  data.left_ = 1;  // the first draw makes the first numbers from the state
  data.next_ = 0;
  data.seeded_ = true;
  constexpr uint32_t kBlocks = at::MERSENNE_STATE_N / 4;
  for (uint32_t block = 0; block < kBlocks; ++block) {
    const Single::Words words = Single::words_of(seed, offset, block, 0);
    std::copy_n(words.word, 4, data.state_.begin() + block * 4);
  }
  at::mt19937 engine;
  engine.set_data(data);
  return engine;
}

// In memory of the graph. at::empty might fill them, at each replay.
at::Tensor two_integers(c10::Device device) {
  const DeviceScope scope(device.index());
  return at::detail::empty_generic({2}, &device_allocator(),
                                   c10::DispatchKeySet(c10::DispatchKey::XPU),
                                   at::kLong, std::nullopt);
}

}  // namespace

Draw take_numbers(at::Generator generator, uint64_t growth) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  const uint64_t seed = generator.current_seed();
  const uint64_t offset = generator.get_offset();
  generator.set_offset(offset + growth);
  return {static_cast<int64_t>(seed), static_cast<int64_t>(offset), std::nullopt};
}

Draw take_draw(const std::optional<at::Generator>& generator, c10::Device device,
               const char* op) {
  // Its generator alone brings an op of other tensors here.
  TORCH_CHECK(device.is_xpu(), "Expected a '", device.type(),
              "' device type for generator but found 'xpu'");
  at::Generator source = source_of(generator, device.index());
  if (C10_UNLIKELY(is_capturing(device.index()))) {
    if (source != default_generator(device.index())) {
      refuse_in_capture(op, "its generator is not the default one of " + device.str() +
                                ", with which each replay moves on.");
    }
    CapturedDraws& draws = *captured_draws.load();
    if (!draws.from.defined()) draws.from = two_integers(device);
    draws.taken += kOffsetPerOp;
    return {0, static_cast<int64_t>(draws.taken - kOffsetPerOp), draws.from};
  }
  return take_numbers(std::move(source), kOffsetPerOp);
}

at::Generator draw_generator(const std::optional<at::Generator>& generator,
                             c10::DeviceIndex index) {
  const auto [seed, offset, from] =
      take_numbers(source_of(generator, index), kOffsetPerOp);
  at::Generator made = at::make_generator<at::CPUGeneratorImpl>(seed);
  at::check_generator<at::CPUGeneratorImpl>(made)->set_engine(twister(seed, offset));
  return made;
}

RandomDraw::RandomDraw(const OpRecord& record, c10::DeviceIndex index,
                       torch::jit::Stack* stack) {
  if (C10_LIKELY(record.generator < 0)) return;
  const size_t first = stack->size() - record.arguments;
  c10::IValue& value = (*stack)[first + record.generator];
  value = draw_generator(value.toOptional<at::Generator>(), index);
}

}  // namespace xpurt
