#include "host/host_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace xpurt {
namespace {

// The number after `key` in a file of "key number" lines.
uint64_t field(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string word;
    uint64_t value = 0;
    if (words >> word >> value && word == key) return value;
  }
  return 0;
}

// Reads a file of one number. False for other files: a limit may also be "max".
bool number(const std::string& path, uint64_t& value) {
  std::ifstream file(path);
  return static_cast<bool>(file >> value);
}

struct Names {
  std::string limit;
  std::string used;
  std::string reclaimable;  // the key in memory.stat
};
const Names kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes",
                      "total_inactive_file"};
const Names kVersion2{"memory.max", "memory.current", "inactive_file"};

// Lowers `memory` to the limits of the group in `directory` and its parents. In a
// container the path of the group may not exist beneath the mount. The mount then shows
// the group itself.
void apply_group(HostMemory& memory, const std::string& mount, std::string group,
                 const Names& names) {
  const uint64_t installed = memory.total;
  for (;;) {
    const std::string directory = mount + group + "/";
    uint64_t limit = 0;
    uint64_t used = 0;
    // In version 1 a number larger than any memory means "no limit".
    if (number(directory + names.limit, limit) && limit < installed) {
      memory.total = std::min(memory.total, limit);
      memory.swap = 0;
      if (number(directory + names.used, used)) {
        // Page cache counts as used, but the system reclaims it when memory is needed.
        used -= std::min(used, field(directory + "memory.stat", names.reclaimable));
        memory.free = std::min(memory.free, limit - std::min(limit, used));
      }
    }
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos) return;
    group.resize(slash);
  }
}

}  // namespace

HostMemory host_memory(const std::string& root) {
  const std::string info = root + "/proc/meminfo";
  HostMemory memory{field(info, "MemTotal:") * 1024,
                    field(info, "MemAvailable:") * 1024,
                    field(info, "SwapFree:") * 1024};
  std::ifstream groups(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    // hierarchy:controllers:path
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers =
        "," + line.substr(first + 1, second - first - 1) + ",";
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers == ",,") {
      apply_group(memory, root + "/sys/fs/cgroup", path, kVersion2);
    } else if (controllers.find(",memory,") != std::string::npos) {
      apply_group(memory, root + "/sys/fs/cgroup/memory", path, kVersion1);
    }
  }
  return memory;
}

uint64_t pages_given() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<uint64_t>(used.ru_minflt);
}

}  // namespace xpurt
