// Where the ops of this thread have to run, whatever would be decided for them.
#pragma once

namespace xpurt {

// Note [Device overrides]
// ~~~~~~~~~~~~~~~~~~~~~~~
// The decision for an op is an argument: it goes with the RowRun from the dispatch to
// the launch. Two things cannot go that way. A row that computes its piece on one
// device, or that is repeated at home, also calls ops of PyTorch: contiguous(), copy_()
// and, for a decomposed row, all of its parts. These come back through PyTorch's
// dispatcher, whose signatures have no room for an argument of ours, and they have to
// run where the row runs. So these two, and nothing else, are kept for the thread.

// While one lives, ops of this thread run at that position of the ordinal, and their
// operands stand for the bytes that they span, not for their whole storages: what is
// written elsewhere in them stays where it is. See Note [Pieces].
class OnPiece {
 public:
  explicit OnPiece(int position);
  ~OnPiece();
  OnPiece(const OnPiece&) = delete;
  OnPiece& operator=(const OnPiece&) = delete;

 private:
  const int before_;
};

// The position that an OnPiece asks for; -1 where there is none.
int piece_position() noexcept;

inline bool works_on_pieces() noexcept {
  return piece_position() >= 0;
}

// While one lives, this thread's ops run on home devices: what to do when another
// device has no room. An OnPiece has precedence.
class StayHome {
 public:
  StayHome();
  ~StayHome();
  StayHome(const StayHome&) = delete;
  StayHome& operator=(const StayHome&) = delete;

 private:
  const bool before_;
};

bool is_staying_home() noexcept;

}  // namespace xpurt
