// Whether work is recorded into an XPU graph instead of being run.
#pragma once

#include <atomic>
#include <string>

#include "stream/stream.h"

namespace xpurt {

// Note [Capture]
// ~~~~~~~~~~~~~~
// A capture records what is submitted to one stream, by whichever thread, into a SYCL
// command graph; nothing of it runs. So
// - an op of that stream has to be kernels on its queue: the policy is `sycl` whatever
//   is set, and an op without a row for its operands is refused, since what the host
//   computes now would be missing at each replay. Products go to the kernel of ours:
//   oneDNN frees the arguments of a primitive on a CPU after its first run, so that a
//   second replay reads freed memory (seen with oneDNN 3.13);
// - nobody may wait for that stream, nor order another stream after it: its events
//   never come to pass;
// - its memory comes from a private pool, which lives as long as the graph.
// A refusal spoils the capture: what was recorded is dropped at its end, and the graph
// says at replay() what spoilt it. There is one capture at a time in a process.

extern std::atomic<const Stream*> captured_stream;  // set by the graph alone

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

// The number of the capture that is underway or was last, from 1.
uint64_t capture_number();

// Throws "<what> cannot be captured ...", and spoils the capture.
[[noreturn]] void refuse_in_capture(const std::string& what, const std::string& why);

// Throws if the stream is captured: nobody can wait for it.
void refuse_to_wait_in_capture(const Stream& stream);

// The same for an op that has no kernel of ours for its operands.
[[noreturn]] void refuse_op_in_capture(const std::string& op, bool draws);

// For graphs. The first takes the place of the process's only capture, the second
// gives it back and returns what has spoilt the capture, or "".
void claim_capture();
std::string finish_capture();

}  // namespace xpurt
