#include "stream/captured_storages.h"

#include <utility>

#include "host/mutex.h"

namespace xpurt {
namespace {

struct CaptureKeeps {
  Mutex mutex{Rank::captured_storages};
  std::vector<c10::Storage> storages;
};

CaptureKeeps& captured_storages() {
  static auto* const leaked = new CaptureKeeps;
  return *leaked;
}

}  // namespace

void keep_for_capture(const c10::Storage& storage) {
  std::lock_guard<Mutex> lock(captured_storages().mutex);
  captured_storages().storages.push_back(storage);
}

std::vector<c10::Storage> kept_by_capture() {
  std::lock_guard<Mutex> lock(captured_storages().mutex);
  return std::exchange(captured_storages().storages, {});
}

}  // namespace xpurt
