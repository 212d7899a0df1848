// PyTorch events as SYCL events.
#pragma once

#include "stream.h"

#include <chrono>
#include <optional>

namespace xpurt {

class Event {
 public:
  explicit Event(bool timed) : timed_(timed) {}

  void record(Stream& stream);
  void block(Stream& stream) const;  // later work of `stream` waits for the record
  bool query() const;
  void synchronize() const;  // releases the GIL
  bool timed() const { return timed_; }
  bool recorded() const { return event_.has_value(); }
  const sycl::event* sycl_event() const { return event_ ? &*event_ : nullptr; }

  // Milliseconds between the completion of two recorded, timed events.
  double elapsed_ms(const Event& end) const;

 private:
  bool timed_;
  std::optional<sycl::event> event_;
};

}  // namespace xpurt
