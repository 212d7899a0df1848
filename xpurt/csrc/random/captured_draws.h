// The random numbers of a capture.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "random/draw.h"
#include "random/generator.h"
#include "stream/stream.h"

namespace xpurt {

// Note [Random numbers in a capture]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The numbers of a captured op follow from seed and offset of its generator at the time
// of a replay. The graph keeps these two on the device, its *start*; a kernel knows its
// own distance from the start, and a replay writes the start and moves the generator on
// by what the graph takes. Each generator that draws in a capture has a start there.
//
// What get_state() gives in a capture is therefore not a seed and an offset, which are
// not known yet, but a token: the number of the start and the distance from it, marked
// by an offset that no generator has. set_state() takes a token in a capture, and
// nothing else. So activation checkpointing, which sets the state of its forward for
// what it computes again, draws the same numbers at each replay. The token may be of
// another graph: `make_graphed_callables` captures forward and backward apart, and the
// backward then reads the start of the forward's last replay.
class CapturedDraws {
 public:
  // The next numbers of a generator, for one op.
  Draw take(const std::shared_ptr<PhiloxState>& state, uint64_t growth,
            c10::Device device);

  PhiloxPosition token(const std::shared_ptr<PhiloxState>& state);
  // Sets where the next numbers come from. Throws if that is no token, or the token of
  // a graph that was destroyed.
  void go_to(const std::shared_ptr<PhiloxState>& state, PhiloxPosition token);
  static bool is_token(PhiloxPosition position) { return position.offset % 4 == kMark; }

  // Writes the starts of a replay on `stream`, and moves the generators on.
  void begin_replay(Stream& stream);

  void clear();
  void leak();  // at exit

 private:
  static constexpr uint64_t kMark = 1;

  // Seed and offset, of int64, on the device. Without memory until something draws.
  struct Start {
    uint64_t number = 0;
    at::Tensor memory;
  };
  struct Drawing {
    std::shared_ptr<PhiloxState> state;
    std::shared_ptr<Start> start;
    uint64_t taken = 0;             // what a replay moves the generator on by
    std::shared_ptr<Start> source;  // of the next numbers: `start`, or another graph's
    uint64_t offset = 0;            // of the next numbers, from the source
    std::vector<std::shared_ptr<Start>> borrowed;
  };

  static std::shared_ptr<Start> start_numbered(uint64_t number);
  Drawing& drawing_of(const std::shared_ptr<PhiloxState>& state);

  std::mutex mutex_;
  std::vector<Drawing> drawings_;
};

extern std::atomic<CapturedDraws*> captured_draws;  // set by the graph alone

}  // namespace xpurt
