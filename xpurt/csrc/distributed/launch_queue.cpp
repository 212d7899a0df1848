#include "distributed/launch_queue.h"

#include <c10/util/Exception.h>

#include <chrono>

#include "host/worker.h"

namespace xpurt {
namespace {

constexpr std::chrono::seconds kIdle{1};

}  // namespace

bool LaunchQueue::submit(bool ready, std::function<void(bool)> launch) {
  std::unique_lock<Mutex> lock(state_->mutex);
  if (ready && !state_->is_launching && state_->pending.empty()) {
    state_->is_launching = true;
    lock.unlock();
    launch(/*in_call=*/true);
    finish(*state_);
    return true;
  }
  if (!state_->has_thread) {
    TORCH_CHECK(
        start_thread("xpurt-launch", [state = state_] { work(state); }),
        "the system can start no more threads, and a collective of tensors that "
        "are still computed needs one. Call torch.xpu.synchronize() before it.");
    state_->has_thread = true;
  }
  state_->pending.push_back(std::move(launch));
  state_->changed.notify_one();
  return false;
}

void LaunchQueue::finish(State& state) {
  std::lock_guard<Mutex> lock(state.mutex);
  state.is_launching = false;
  if (!state.pending.empty()) state.changed.notify_one();
}

void LaunchQueue::work(const std::shared_ptr<State>& state) {
  for (;;) {
    std::unique_lock<Mutex> lock(state->mutex);
    const auto has_work = [&] {
      return !state->pending.empty() && !state->is_launching;
    };
    if (!state->changed.wait_for(lock, kIdle, has_work)) {
      if (!state->pending.empty()) continue;
      state->has_thread = false;
      return;
    }
    std::function<void(bool)> launch = std::move(state->pending.front());
    state->pending.pop_front();
    state->is_launching = true;
    lock.unlock();
    launch(/*in_call=*/false);
    launch = nullptr;  // what it holds is released before the next launch
    finish(*state);
  }
}

}  // namespace xpurt
