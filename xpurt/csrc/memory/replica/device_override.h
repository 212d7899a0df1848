// The devices on which this thread's ops must run, regardless of the scheduler.
#pragma once

#include <cstddef>
#include <optional>

namespace xpurt {

// Note [Device overrides]
// ~~~~~~~~~~~~~~~~~~~~~~~
// The decision for an op is an argument: it is passed with the RowRun from the dispatch
// to the launch. In two cases an argument is not enough. A row that computes its shard
// on one device, or that is repeated at home, also calls ops of PyTorch: contiguous(),
// copy_() and, for a decomposed row, all of its parts. These calls go through PyTorch's
// dispatcher, whose signatures have no room for xpurt's argument. They have to run
// where the row runs. So these overrides, and nothing else, are thread-local.
//
// The same holds for a row that computes the whole call by other ops, on the device
// that was chosen for the call: a convolution by matrix products, a recurrent layer by
// cells. If each of these ops had a decision of its own, the time of the call would
// tell nothing about the chosen device. A convolution was expected to take 38 ms on a
// GPU without a primitive for it, ran its products at home, took 500 ms, and went on so
// for the rest of the program, because no sample showed how slow that GPU is.
//
// A part of a shard is run by xpurt's kernel, without a decision of its own. PyTorch's
// kernel would compute the shard of another device at home, and would block the host
// before the next shard is submitted: a convolution in two shards, by primitives at
// home and by products on the other device, ran its products at home and took 1.8
// times as long as undivided.

// While one lives, ops of this thread run on the device at that position of the
// ordinal. Their operands stand for the bytes that they span, not for their whole
// storages: other bytes of these storages stay valid on the other devices. See Note
// [Shards].
class OnShard {
 public:
  explicit OnShard(int position);
  ~OnShard();
  OnShard(const OnShard&) = delete;
  OnShard& operator=(const OnShard&) = delete;

 private:
  const int before_;
};

// The position that an OnShard sets; -1 without one.
int shard_position() noexcept;

inline bool is_on_shard() noexcept {
  return shard_position() >= 0;
}

// While one lives, this thread's ops run on home devices. It is used when another
// device has no room. An OnShard has precedence.
class HomeOnlyScope {
 public:
  HomeOnlyScope();
  ~HomeOnlyScope();
  HomeOnlyScope(const HomeOnlyScope&) = delete;
  HomeOnlyScope& operator=(const HomeOnlyScope&) = delete;

 private:
  const bool before_;
};

// While one lives, the ops by which a row computes a call run on the device that was
// chosen for the call.
class OnChosenDevice {
 public:
  OnChosenDevice(size_t position, size_t home) {
    if (position == home) {
      at_home_.emplace();
    } else {
      elsewhere_.emplace(static_cast<int>(position));
    }
  }

 private:
  std::optional<HomeOnlyScope> at_home_;
  std::optional<OnShard> elsewhere_;
};

// True also inside of a host kernel that writes: see Note [Host writes].
bool is_home_only() noexcept;

}  // namespace xpurt
