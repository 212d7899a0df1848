#include "random/random.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>

#include "random/forms.h"
#include "random/generator.h"
#include "random/given_draws.h"

namespace xpurt {

namespace {

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

}  // namespace

at::Generator draw_generator(const std::optional<at::Generator>& generator,
                             c10::DeviceIndex index) {
  const auto [seed, offset] = position_of_draw(*state_of(generator, index));
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
