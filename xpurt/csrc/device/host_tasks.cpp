#include "device/host_tasks.h"

#include <cstdlib>

namespace xpurt {

void provide_host_task_threads() {
  // PyTorch has 32 streams per priority: more than programs use at once.
  setenv("SYCL_QUEUE_THREAD_POOL_SIZE", "64", /*overwrite=*/0);
}

}  // namespace xpurt
