// PyTorch events as SYCL events.
#pragma once

#include <optional>

#include "stream/stream.h"

namespace xpurt {

class Event {
 public:
  explicit Event(bool timed) : timed_(timed) {}

  void record(Stream& stream);
  void block(Stream& stream) const;  // later work of `stream` waits for the record
  bool query() const;
  void synchronize() const;  // releases the GIL

  // Milliseconds between the completion of two timed events, both complete.
  double elapsed_ms(const Event& end) const;

 private:
  void check_mapping() const;
  void check_is_run() const;  // throws if it belongs to a capture

  // First, so that the address of a recorded event is that of its sycl::event: it
  // is what PyTorch hands out as `event_id`.
  sycl::event event_;
  std::optional<sycl::event> stamp_;  // see Note [Timed events]
  uint64_t epoch_ = 0;                // of the placement it was recorded under
  uint64_t capture_ = 0;              // number of the capture it belongs to, or 0
  bool timed_;
};

}  // namespace xpurt
