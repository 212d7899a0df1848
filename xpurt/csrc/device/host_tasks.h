// Threads for host tasks.
#pragma once

namespace xpurt {

// Note [Threads for host tasks]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// oneDNN runs in host tasks on a CPU. The SYCL runtime runs host tasks in one thread as
// a rule, and that thread waits in three places: for the events that a host task
// depends on, for the host task itself, and for a command that is held back behind
// another host task. Such an event may be completed only after another host task (see
// Note [Events of another context]), which would need the same thread. So there are
// more threads. Each in-order queue has at most one host task that is waiting or
// running. So as many threads as there are queues are enough.
//
// With one thread two runs of the tests hung under AUTO, and streams of products that
// wait for each other by events of another context hang at once (libsycl 9). A value of
// SYCL_QUEUE_THREAD_POOL_SIZE in the environment is left as it is.
//
// Called once, before the first host task.
void provide_host_task_threads();

}  // namespace xpurt
