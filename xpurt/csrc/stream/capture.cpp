#include "stream/capture.h"

#include <c10/util/Exception.h>

#include "stream/capture_waits.h"
#include "stream/captured_now.h"

namespace xpurt {
namespace {

Mutex capture_mutex{Rank::capture};
bool claimed = false;
std::string* invalidated_by() {
  static auto* const leaked = new std::string;
  return leaked;
}
std::atomic<uint64_t> captures{0};

void invalidate_capture(const std::string& reason) {
  std::lock_guard<Mutex> lock(capture_mutex);
  if (claimed && invalidated_by()->empty()) *invalidated_by() = reason;
}

}  // namespace

std::atomic<const Stream*> captured_stream{nullptr};

bool current_stream_is_captured() {
  return is_capturing(c10::DeviceIndex(-1));
}

uint64_t capture_number() {
  return captures.load();
}

void claim_capture() {
  std::lock_guard<Mutex> lock(capture_mutex);
  TORCH_CHECK(!claimed,
              "an XPU graph is being captured already, and a process captures one at a "
              "time. End that capture first.");
  claimed = true;
  invalidated_by()->clear();
  ++captures;
}

std::string finish_capture() {
  std::lock_guard<Mutex> lock(capture_mutex);
  claimed = false;
  forget_captured_waits();
  return std::exchange(*invalidated_by(), {});
}

void refuse_in_capture(const std::string& what, const std::string& why) {
  const std::string reason =
      what + " cannot be captured into an XPU graph: " + why +
      " Do it before or after the capture, or run this part eagerly.";
  invalidate_capture(reason);
  TORCH_CHECK(false, reason);
}

void refuse_to_wait_in_capture(const Stream& stream) {
  if (C10_UNLIKELY(waits_for_captured(stream))) {
    refuse_in_capture("work of " + c10::str(stream.id()),
                      "it waits for the captured stream, and a graph holds the work of "
                      "one stream.");
  }
  if (C10_LIKELY(!is_capturing(stream))) return;
  refuse_in_capture("waiting for " + c10::str(stream.id()),
                    "its work is recorded, not run.");
}

void refuse_op_in_capture(const std::string& op, bool draws) {
  refuse_in_capture(op, draws
                            ? "random numbers are drawn on the host, and each replay "
                              "would repeat them."
                            : "it has no SYCL kernel for these operands, and what the "
                              "host computes is not part of a graph.");
}

}  // namespace xpurt
