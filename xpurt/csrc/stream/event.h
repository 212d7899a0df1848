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

  // Milliseconds between the completion of two timed events. Waits for both.
  double elapsed_ms(const Event& end) const;

 private:
  void check_mapping() const;
  void check_is_run() const;  // throws if the event belongs to a capture

  // The first member, so that the address of a recorded event is that of its
  // sycl::event: PyTorch returns this address as `event_id`.
  sycl::event event_;
  std::optional<sycl::event> stamp_;  // see Note [Timed events]
  uint64_t epoch_ = 0;                // of the placement at the record
  uint64_t capture_ = 0;              // number of the event's capture, or 0
  bool timed_;
};

}  // namespace xpurt
