// The part of the machine's memory that this process can use.
#pragma once

#include <cstdint>
#include <string>

#include "host/api.h"

namespace xpurt {

struct HostMemory {
  uint64_t total = 0;  // bytes: installed memory, or the cgroup's limit
  uint64_t free = 0;   // bytes available without swapping
  uint64_t swap = 0;   // bytes of free swap; 0 under a cgroup's limit
};

// Reads /proc and the limits of the process's cgroup and its parents (both versions of
// cgroups). `root` is put before every path, for tests. Returns zeros for what it
// cannot read.
XPURT_API HostMemory host_memory(const std::string& root = "");

// The number of pages that this process has got at their first access so far.
uint64_t pages_given();

}  // namespace xpurt
