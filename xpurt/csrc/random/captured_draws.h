// The random numbers of a capture.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "host/mutex.h"
#include "random/draw.h"
#include "random/generator.h"
#include "stream/stream.h"

namespace xpurt {

// Note [Random numbers in a capture]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The numbers of a captured op follow from seed and offset of its generator at the time
// of a replay. The graph keeps these two on the device, as its *start*. A kernel has
// its own distance from the start. A replay writes the start, and advances the
// generator by what the graph takes. Each generator that draws in a capture has a start
// there.
//
// In a capture, seed and offset are not known yet. So get_state() returns a token
// instead: the number of the start and the distance from it, marked by an offset that
// no generator has. In a capture, set_state() takes a token and nothing else.
// Activation checkpointing sets the state of its forward before it computes the forward
// again. So it draws the same numbers at each replay. The token may be of another
// graph: `make_graphed_callables` captures forward and backward separately, and the
// backward then reads the start of the forward's last replay.
class CapturedDraws {
 public:
  // Takes the next numbers of a generator, for one op.
  Draw take(const std::shared_ptr<PhiloxState>& state, uint64_t growth,
            c10::Device device);

  PhiloxPosition token(const std::shared_ptr<PhiloxState>& state);
  // Sets the position of the next numbers. Throws if `token` is not a token, or if its
  // graph was destroyed.
  void go_to(const std::shared_ptr<PhiloxState>& state, PhiloxPosition token);
  static bool is_token(PhiloxPosition position) { return position.offset % 4 == kMark; }

  // Writes the starts of a replay on `stream`, and advances the generators.
  void begin_replay(Stream& stream);

  void clear();
  void leak();  // at exit

 private:
  static constexpr uint64_t kMark = 1;

  // Seed and offset, as int64, on the device. Without memory until the first draw.
  struct Start {
    uint64_t number = 0;
    at::Tensor memory;
  };
  struct Drawing {
    std::shared_ptr<PhiloxState> state;
    std::shared_ptr<Start> start;
    uint64_t taken = 0;             // by which a replay advances the generator
    std::shared_ptr<Start> source;  // of the next numbers: `start`, or another graph's
    uint64_t offset = 0;            // of the next numbers, from the source
    std::vector<std::shared_ptr<Start>> borrowed;
  };

  static std::shared_ptr<Start> start_numbered(uint64_t number);
  Drawing& drawing_of(const std::shared_ptr<PhiloxState>& state);

  Mutex mutex_{Rank::captured_draws};
  std::vector<Drawing> drawings_;
};

extern std::atomic<CapturedDraws*> captured_draws;  // set by the graph only

}  // namespace xpurt
