// Work on parts of tensors, which other devices do the rest of.
#pragma once

namespace xpurt {

// While one lives, the operands of this thread's work stand for the bytes that they
// span, not for their whole storages: what is written elsewhere in them stays where it
// is. See Note [Pieces].
class Pieces {
 public:
  Pieces();
  ~Pieces();
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

 private:
  bool before_;
};

bool works_on_pieces();

}  // namespace xpurt
