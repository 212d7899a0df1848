#include "stream/capture_waits.h"

#include <set>

namespace xpurt {
namespace {

struct CaptureWaits {
  Mutex mutex{Rank::capture_waits};
  std::atomic<bool> any{false};
  std::set<const Stream*> streams;
};

CaptureWaits& capture_waits() {
  static auto* const leaked = new CaptureWaits;
  return *leaked;
}

}  // namespace

void wait_for_captured(const Stream& stream) {
  CaptureWaits& waits = capture_waits();
  std::lock_guard<Mutex> lock(waits.mutex);
  waits.streams.insert(&stream);
  waits.any = true;
}

bool waits_for_captured(const Stream& stream) {
  CaptureWaits& waits = capture_waits();
  if (C10_LIKELY(!waits.any.load(std::memory_order_relaxed))) return false;
  std::lock_guard<Mutex> lock(waits.mutex);
  return waits.streams.count(&stream) != 0;
}

void forget_captured_waits() {
  CaptureWaits& waits = capture_waits();
  std::lock_guard<Mutex> lock(waits.mutex);
  waits.any = false;
  waits.streams.clear();
}

}  // namespace xpurt
