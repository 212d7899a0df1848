// The launches of one process group, in the order of its calls.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "host/mutex.h"

namespace xpurt {

// Note [Order of launches]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// All ranks call the collectives of a group in one order, and the inner backend matches
// them by it. A collective whose tensors are still computed can't be launched yet, and
// the caller must not wait. So it is put into the group's queue. A thread waits for the
// tensors and launches it, and all later ones after it. If the queue is empty and the
// tensors are ready, the calling thread launches: it costs no change of threads.
//
// Each group has a queue of its own. With one queue for all groups, a launch would wait
// for the tensors of another group, which may depend on a collective whose launch on
// another rank waits in turn. The thread ends when it has had nothing to do for a
// while: a program may make many groups.
class LaunchQueue {
 public:
  // `launch` must not throw. Its argument is whether it runs in this call, which
  // returns the same.
  bool submit(bool ready, std::function<void(bool)> launch);

 private:
  struct State {
    Mutex mutex{Rank::launches};
    Condition changed;
    std::deque<std::function<void(bool)>> pending;
    bool is_launching = false;
    bool has_thread = false;
  };

  static void work(const std::shared_ptr<State>& state);
  static void finish(State& state);

  // Shared with the thread, which may outlive the group.
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace xpurt
