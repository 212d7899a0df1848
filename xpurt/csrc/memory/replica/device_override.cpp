#include "memory/replica/device_override.h"

#include <utility>

#include "memory/replica/host_writes.h"

namespace xpurt {
namespace {

struct DeviceOverride {
  int shard = -1;  // position of the device that computes the shard
  bool home = false;
};
thread_local DeviceOverride override_here;

}  // namespace

OnShard::OnShard(int position)
    : before_(std::exchange(override_here.shard, position)) {}
OnShard::~OnShard() {
  override_here.shard = before_;
}

int shard_position() noexcept {
  return override_here.shard;
}

HomeOnlyScope::HomeOnlyScope() : before_(std::exchange(override_here.home, true)) {}
HomeOnlyScope::~HomeOnlyScope() {
  override_here.home = before_;
}

bool is_home_only() noexcept {
  return override_here.home || is_writing_on_host();
}

}  // namespace xpurt
