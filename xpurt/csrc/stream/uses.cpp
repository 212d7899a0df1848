#include "stream/uses.h"

#include <algorithm>

#include "stream/stream.h"

namespace xpurt {

void Uses::add(const Use& use) {
  for (Use& known : uses_) {
    if (known.stream != use.stream || known.ticket.lane != use.ticket.lane) continue;
    if (known.ticket.number < use.ticket.number) known = use;
    return;
  }
  uses_.push_back(use);
}

void Uses::add(const Uses& others) {
  for (const Use& use : others) add(use);
}

void Uses::drop_finished() {
  uses_.erase(
      std::remove_if(uses_.begin(), uses_.end(),
                     [](const Use& use) { return use.stream->has_seen(use.ticket); }),
      uses_.end());
}

}  // namespace xpurt
