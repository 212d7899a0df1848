// Storages that a capture keeps alive for its graph.
#pragma once

#include <c10/core/Storage.h>

#include <vector>

namespace xpurt {

// Memory of the host that captured work reads or writes at each replay.
void keep_for_capture(const c10::Storage& storage);

// Returns all of them, and forgets them.
std::vector<c10::Storage> kept_by_capture();

}  // namespace xpurt
