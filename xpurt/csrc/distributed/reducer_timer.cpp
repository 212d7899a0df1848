// The times that DDP logs of its passes, by events of the current stream.
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include <map>

#include "device/device_scope.h"
#include "stream/capture.h"
#include "stream/event.h"

namespace xpurt {
namespace {

using c10d::RegistererTimerRegistry;
using c10d::TimerRegistry;

class ReducerTimer final : public c10d::Timer {
 public:
  explicit ReducerTimer(c10::Device device) : device_(device) {}

  void record(Event event) override {
    Timer::record(event);
    const DeviceScope scope(device_.index());
    Stream& stream = current_stream(device_.index());
    if (is_capturing(stream)) return;  // a replay passes no timer
    marks_.try_emplace(event, /*timed=*/true).first->second.record(stream);
  }

  // nullopt if a pass had no such event: one without a backward, or in no_sync().
  std::optional<int64_t> measureDifference(Event start, Event end) override {
    const auto from = marks_.find(start), to = marks_.find(end);
    if (from == marks_.end() || to == marks_.end()) return std::nullopt;
    constexpr double kNanosecondsPerMillisecond = 1e6;
    const double ms = from->second.elapsed_ms(to->second);
    if (ms < 0) return std::nullopt;  // the end is that of an earlier pass
    return static_cast<int64_t>(ms * kNanosecondsPerMillisecond);
  }

 private:
  c10::Device device_;
  std::map<Event, xpurt::Event> marks_;
};

C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::kXPU, ReducerTimer);

}  // namespace
}  // namespace xpurt
