// Where the ops of this thread have to run, whatever would be decided for them.
#pragma once

namespace xpurt {

// Note [Device overrides]
// ~~~~~~~~~~~~~~~~~~~~~~~
// The decision for an op is an argument: it goes with the RowRun from the dispatch to
// the launch. Two things cannot go that way. A row that computes its shard on one
// device, or that is repeated at home, also calls ops of PyTorch: contiguous(), copy_()
// and, for a decomposed row, all of its parts. These come back through PyTorch's
// dispatcher, whose signatures have no room for an argument of ours, and they have to
// run where the row runs. So these two, and nothing else, are kept for the thread.

// While one lives, ops of this thread run at that position of the ordinal, and their
// operands stand for the bytes that they span, not for their whole storages: what is
// written elsewhere in them stays where it is. See Note [Shards].
class OnShard {
 public:
  explicit OnShard(int position);
  ~OnShard();
  OnShard(const OnShard&) = delete;
  OnShard& operator=(const OnShard&) = delete;

 private:
  const int before_;
};

// The position that an OnShard asks for; -1 where there is none.
int shard_position() noexcept;

inline bool is_on_shard() noexcept {
  return shard_position() >= 0;
}

// While one lives, this thread's ops run on home devices: what to do when another
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

bool is_home_only() noexcept;

}  // namespace xpurt
