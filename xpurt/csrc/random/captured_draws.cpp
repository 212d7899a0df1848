#include "random/captured_draws.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <map>

#include "device/device_scope.h"
#include "memory/allocator.h"
#include "stream/capture.h"

namespace xpurt {

std::atomic<CapturedDraws*> captured_draws{nullptr};

namespace {

// In memory of the graph. Not by at::empty, which might fill them at each replay.
at::Tensor two_integers(c10::Device device) {
  const DeviceScope scope(device.index());
  return at::detail::empty_generic({2}, &device_allocator(),
                                   c10::DispatchKeySet(c10::DispatchKey::XPU),
                                   at::kLong, std::nullopt);
}

}  // namespace

// Returns a new start for number 0. A known start is found as long as a graph holds it.
std::shared_ptr<CapturedDraws::Start> CapturedDraws::start_numbered(uint64_t number) {
  static auto* const mutex = new Mutex(Rank::draw_starts);
  static auto* const starts = new std::map<uint64_t, std::weak_ptr<Start>>;
  static uint64_t last = 0;
  std::lock_guard<Mutex> lock(*mutex);
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
  std::lock_guard<Mutex> lock(mutex_);
  Drawing& drawing = drawing_of(state);
  const auto offset = static_cast<int64_t>(drawing.offset);
  drawing.offset += growth;
  if (drawing.source == drawing.start) {
    if (!drawing.start->memory.defined()) drawing.start->memory = two_integers(device);
    drawing.taken = std::max(drawing.taken, drawing.offset);
  }
  return {0, offset, drawing.source->memory};
}

PhiloxPosition CapturedDraws::token(const std::shared_ptr<PhiloxState>& state) {
  std::lock_guard<Mutex> lock(mutex_);
  const Drawing& drawing = drawing_of(state);
  return {drawing.source->number, drawing.offset | kMark};
}

void CapturedDraws::go_to(const std::shared_ptr<PhiloxState>& state,
                          PhiloxPosition token) {
  if (!is_token(token)) {
    refuse_in_capture("set_state() of an xpu generator",
                      "the state was not taken in a capture, and each replay would "
                      "repeat the same numbers.");
  }
  const std::shared_ptr<Start> source = start_numbered(token.seed);
  std::lock_guard<Mutex> lock(mutex_);
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
  std::lock_guard<Mutex> lock(mutex_);
  for (const Drawing& each : drawings_) {
    if (each.taken == 0) continue;
    const PhiloxPosition now = each.state->take(each.taken);
    auto* const memory = each.start->memory.mutable_data_ptr<int64_t>();
    stream.home_queue()->fill(memory, static_cast<int64_t>(now.seed), 1);
    stream.home_queue()->fill(memory + 1, static_cast<int64_t>(now.offset), 1);
  }
}

void CapturedDraws::clear() {
  std::lock_guard<Mutex> lock(mutex_);
  drawings_.clear();
}

void CapturedDraws::leak() {
  std::lock_guard<Mutex> lock(mutex_);
  new std::vector<Drawing>(std::move(drawings_));
}

}  // namespace xpurt
