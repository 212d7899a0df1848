#include "random/given_draws.h"

#include <utility>

#include "random/random.h"

namespace xpurt {
namespace {

thread_local GivenDraws* given = nullptr;

}  // namespace

GivenDraws::GivenDraws(PhiloxPosition position)
    : next_(position), before_(std::exchange(given, this)) {}

GivenDraws::~GivenDraws() {
  given = before_;
}

PhiloxPosition position_of_draw(PhiloxState& state) {
  if (given == nullptr) return state.take(kOffsetPerOp);
  const PhiloxPosition found = given->next_;
  given->next_.offset += kOffsetPerOp;
  return found;
}

}  // namespace xpurt
