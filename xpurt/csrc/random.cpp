#include "random.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <map>

#include "allocator.h"
#include "capture.h"
#include "captured_draws.h"
#include "device_scope.h"
#include "generator.h"
#include "random_forms.h"

namespace xpurt {

std::atomic<CapturedDraws*> captured_draws{nullptr};

namespace {

// In memory of the graph. at::empty might fill them, at each replay.
at::Tensor two_integers(c10::Device device) {
  const DeviceScope scope(device.index());
  return at::detail::empty_generic({2}, &device_allocator(),
                                   c10::DispatchKeySet(c10::DispatchKey::XPU),
                                   at::kLong, std::nullopt);
}

std::shared_ptr<PhiloxState> source_of(const std::optional<at::Generator>& generator,
                                       c10::DeviceIndex index) {
  const bool given = generator.has_value() && generator->defined();
  return state_of(given ? *generator : default_generator(index));
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

}  // namespace

// Starts are found as long as a graph holds them.
std::shared_ptr<CapturedDraws::Start> CapturedDraws::start_numbered(uint64_t number) {
  static auto* const mutex = new std::mutex;
  static auto* const starts = new std::map<uint64_t, std::weak_ptr<Start>>;
  static uint64_t last = 0;
  std::lock_guard<std::mutex> lock(*mutex);
  if (number != 0) {
    const auto found = starts->find(number);
    return found == starts->end() ? nullptr : found->second.lock();
  }
  std::erase_if(*starts, [](const auto& each) { return each.second.expired(); });
  auto made = std::make_shared<Start>();
  made->number = ++last;
  starts->emplace(made->number, made);
  return made;
}

CapturedDraws::Drawing& CapturedDraws::drawing_of(
    const std::shared_ptr<PhiloxState>& state) {
  for (Drawing& each : drawings_) {
    if (each.state == state) return each;
  }
  Drawing& made = drawings_.emplace_back();
  made.state = state;
  made.start = made.source = start_numbered(0);
  return made;
}

Draw CapturedDraws::take(const std::shared_ptr<PhiloxState>& state, uint64_t growth,
                         c10::Device device) {
  std::lock_guard<std::mutex> lock(mutex_);
  Drawing& drawing = drawing_of(state);
  const auto offset = static_cast<int64_t>(drawing.offset);
  drawing.offset += growth;
  if (drawing.source == drawing.start) {
    if (!drawing.start->memory.defined()) drawing.start->memory = two_integers(device);
    drawing.taken = std::max(drawing.taken, drawing.offset);
  }
  return {0, offset, drawing.source->memory};
}

PhiloxPlace CapturedDraws::token(const std::shared_ptr<PhiloxState>& state) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Drawing& drawing = drawing_of(state);
  return {drawing.source->number, drawing.offset | kMark};
}

void CapturedDraws::go_to(const std::shared_ptr<PhiloxState>& state,
                          PhiloxPlace token) {
  if (!is_token(token)) {
    refuse_in_capture("set_state() of an xpu generator",
                      "the state was not taken in a capture, and each replay would "
                      "repeat the same numbers.");
  }
  const std::shared_ptr<Start> source = start_numbered(token.seed);
  std::lock_guard<std::mutex> lock(mutex_);
  Drawing& drawing = drawing_of(state);
  const bool own = source == drawing.start;
  if (source == nullptr || (!own && !source->memory.defined())) {
    refuse_in_capture("set_state() of an xpu generator",
                      "the state was taken in the capture of a graph that is gone, or "
                      "that draws no random numbers.");
  }
  drawing.source = source;
  drawing.offset = token.offset - kMark;
  if (!own) drawing.borrowed.push_back(source);
}

void CapturedDraws::begin_replay(Stream& stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Drawing& each : drawings_) {
    if (each.taken == 0) continue;
    const PhiloxPlace now = each.state->take(each.taken);
    auto* const memory = each.start->memory.mutable_data_ptr<int64_t>();
    stream.home_queue()->fill(memory, static_cast<int64_t>(now.seed), 1);
    stream.home_queue()->fill(memory + 1, static_cast<int64_t>(now.offset), 1);
  }
}

void CapturedDraws::clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  drawings_.clear();
}

void CapturedDraws::leak() {
  std::lock_guard<std::mutex> lock(mutex_);
  new std::vector<Drawing>(std::move(drawings_));
}

Draw take_draw(const std::optional<at::Generator>& generator, c10::Device device) {
  // Its generator alone brings an op of other tensors here.
  TORCH_CHECK(device.is_xpu(), "Expected a '", device.type(),
              "' device type for generator but found 'xpu'");
  const auto state = source_of(generator, device.index());
  if (C10_UNLIKELY(is_capturing(device.index()))) {
    return captured_draws.load()->take(state, kOffsetPerOp, device);
  }
  const PhiloxPlace place = state->take(kOffsetPerOp);
  return {static_cast<int64_t>(place.seed), static_cast<int64_t>(place.offset),
          std::nullopt};
}

at::Generator draw_generator(const std::optional<at::Generator>& generator,
                             c10::DeviceIndex index) {
  const auto [seed, offset] = source_of(generator, index)->take(kOffsetPerOp);
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
