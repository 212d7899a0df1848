#include "capture_keeps.h"

#include <mutex>
#include <utility>

namespace xpurt {
namespace {

struct CaptureKeeps {
  std::mutex mutex;
  std::vector<c10::Storage> storages;
};

CaptureKeeps& capture_keeps() {
  static auto* const leaked = new CaptureKeeps;
  return *leaked;
}

}  // namespace

void keep_for_capture(const c10::Storage& storage) {
  std::lock_guard<std::mutex> lock(capture_keeps().mutex);
  capture_keeps().storages.push_back(storage);
}

std::vector<c10::Storage> kept_by_capture() {
  std::lock_guard<std::mutex> lock(capture_keeps().mutex);
  return std::exchange(capture_keeps().storages, {});
}

}  // namespace xpurt
