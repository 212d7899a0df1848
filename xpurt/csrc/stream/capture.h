// Capture: work is recorded into an XPU graph and not run.
#pragma once

#include <atomic>
#include <string>

#include "stream/stream.h"

namespace xpurt {

// Note [Capture]
// ~~~~~~~~~~~~~~
// A capture records the work that is submitted to one stream, by any thread, into a
// SYCL command graph. None of that work runs. The consequences:
// - An op of that stream has to be kernels on its queue. The policy is `sycl`, whatever
//   is set. An op without a row for its operands is refused: the result of a host
//   computation would be missing at each replay. Matrix products use xpurt's kernel:
//   oneDNN frees the arguments of a primitive on a CPU after its first run, so that a
//   second replay reads freed memory (seen with oneDNN 3.13).
// - No thread may wait for that stream, and no other stream may be ordered after it:
//   its events never complete.
// - Its memory comes from a private pool, which lives as long as the graph.
// A refusal invalidates the capture: the recorded work is dropped at the end of the
// capture, and replay() throws the reason. A process has one capture at a time.

extern std::atomic<const Stream*> captured_stream;  // set by the graph only

inline bool capture_is_underway() {
  return captured_stream.load(std::memory_order_relaxed) != nullptr;
}
inline bool is_capturing(const Stream& stream) {
  return captured_stream.load(std::memory_order_relaxed) == &stream;
}
// Whether the current stream of the device is captured.
inline bool is_capturing(c10::DeviceIndex index) {
  return capture_is_underway() && is_capturing(current_stream(index));
}

// The number of the current or last capture, from 1.
uint64_t capture_number();

// Throws "<what> cannot be captured ...", and invalidates the capture.
[[noreturn]] void refuse_in_capture(const std::string& what, const std::string& why);

// Throws if the stream is captured: its work never completes.
void refuse_to_wait_in_capture(const Stream& stream);

// Throws for an op without an xpurt kernel for its operands. `draws`: the op draws
// random numbers.
[[noreturn]] void refuse_op_in_capture(const std::string& op, bool draws);

// For graphs. claim_capture() begins the process's only capture, and throws if one is
// underway. finish_capture() ends it, and returns what invalidated it, or "".
void claim_capture();
std::string finish_capture();

}  // namespace xpurt
