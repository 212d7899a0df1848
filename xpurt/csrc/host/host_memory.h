// How much of the machine's memory this process can have.
#pragma once

#include <cstdint>
#include <string>

namespace xpurt {

struct HostMemory {
  uint64_t total = 0;  // bytes: what is installed, or the cgroup's limit
  uint64_t free = 0;   // bytes that can be had without swapping
  uint64_t swap = 0;   // bytes of swap still free, usable if no cgroup limits us
};

// Reads /proc and the limits of the process's cgroup and its parents (both
// versions of cgroups). `root` is put before every path, for tests. Answers zeros
// for what it cannot read.
HostMemory host_memory(const std::string& root = "");

// How often the system gave this process a page as it was touched, up to now.
uint64_t pages_given();

}  // namespace xpurt
