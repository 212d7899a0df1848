// Random ops that draw from a position that is given, and not from a generator.
#pragma once

#include "host/api.h"
#include "random/generator.h"

namespace xpurt {

// Note [Positions of random numbers]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A program that traces its ops runs them later, in another order, or twice. The
// numbers have to be those of the call. So the position of the generator is taken when
// a random op is called, and given to the op when it runs.
//
// While one is alive, the random ops of this thread draw from its position on, and
// generators stay as they are.
class XPURT_API GivenDraws {
 public:
  explicit GivenDraws(PhiloxPosition position);
  ~GivenDraws();
  GivenDraws(const GivenDraws&) = delete;
  GivenDraws& operator=(const GivenDraws&) = delete;

  // The position after the ops that have drawn.
  PhiloxPosition next() const { return next_; }

 private:
  friend PhiloxPosition position_of_draw(PhiloxState& state);

  PhiloxPosition next_;
  GivenDraws* before_;
};

// Takes the position that one op draws from: a given one, or that of `state`.
XPURT_API PhiloxPosition position_of_draw(PhiloxState& state);

}  // namespace xpurt
