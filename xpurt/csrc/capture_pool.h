// The memory of a capture.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Stream.h>

namespace xpurt {

class OrdinalMemory;

// A capture's hold on a private pool: what is allocated on `stream` comes from there
// until end(), and the pool is kept as long as this lives.
class CapturePool {
 public:
  CapturePool(c10::MempoolId_t id, c10::Stream stream);
  ~CapturePool();
  CapturePool(const CapturePool&) = delete;
  CapturePool& operator=(const CapturePool&) = delete;

  c10::MempoolId_t id() const { return id_; }
  void end();

 private:
  OrdinalMemory& memory_;
  const c10::MempoolId_t id_;
  bool open_ = true;
};

}  // namespace xpurt
