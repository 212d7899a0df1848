// XPURT_VIRTUAL_GPU_DELAY_US, and xpurt_virtual_gpu_delay(): a slow device.
// XPURT_VIRTUAL_GPU_LINK: a slow way to its memory.
//
// Note [The device's timeline]
// The delay passes on the timeline of the device. A kernel waits for a user event, and
// a thread of this layer completes the event when the kernel's turn has come. The host
// thread that submits does not sleep. Nor does a driver thread: there are only as many
// as cores, and the CPU device beside this one needs them. No core is kept busy by
// waiting. The device is busy with one delay at a time, whichever queue a kernel comes
// from: a second stream does not make a slow device faster. Fills are not delayed.
//
// A copy between the memory of the host and of the device waits in the same way for the
// time that the link takes for its bytes. The link has a timeline of its own, so copies
// pass beside kernels, and one after the other in either direction.
//
// A marker behind a kernel's dependencies has a callback. The callback sets the
// kernel's turn: the delay is added to the later of now and the end of the turn before
// it on the same timeline.
//
// In event profiling, a kernel starts where its delay starts, so that measured costs
// include the delay.

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "coarse.h"
#include "memory.h"

typedef struct {
  uint64_t busy_until_ns;
} Timeline;

typedef struct Turn {
  cl_event event;  // completed when the turn comes
  cl_command_queue queue;
  Timeline* on;
  uint64_t length_ns;
  uint64_t due_ns;
  struct Turn* next;
} Turn;

static atomic_uint_least64_t delay_ns;  // per kernel; 0: none

// For xpurt.testing. Applies to kernels that are submitted from now on.
__attribute__((visibility("default"))) void xpurt_virtual_gpu_delay(uint64_t us) {
  atomic_store(&delay_ns, 1000 * us);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static Turn* first;  // by due_ns
static Timeline of_kernels, of_link;
static size_t pending;  // turns that were taken and have not ended
static bool hurry;      // the process is about to end
static Turn* ended_at_exit;
static cl_command_queue newest_queue;  // of the last turn that ended before `hurry`

// At exit, the limit of the wait for work that never becomes ready.
static const int EXIT_PATIENCE_S = 5;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void end_turn(Turn* turn, cl_int status) {
  next.clSetUserEventStatus(turn->event, status);
  next.clReleaseEvent(turn->event);
  cl_command_queue unused = NULL;
  pthread_mutex_lock(&lock);
  pending--;
  if (hurry) {
    turn->next = ended_at_exit;
    ended_at_exit = turn;
  } else {
    unused = newest_queue;
    newest_queue = turn->queue;
    free(turn);
  }
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  if (unused != NULL) next.clReleaseCommandQueue(unused);
}

static void* serve(void* unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  for (;;) {
    if (first == NULL) {
      pthread_cond_wait(&changed, &lock);
    } else if (!hurry && now_ns() < first->due_ns) {
      const struct timespec due = {.tv_sec = (time_t)(first->due_ns / 1000000000u),
                                   .tv_nsec = (long)(first->due_ns % 1000000000u)};
      pthread_cond_timedwait(&changed, &lock, &due);
    } else {
      Turn* const turn = first;
      first = turn->next;
      // Completing the event may run callbacks, which may set further turns.
      pthread_mutex_unlock(&lock);
      end_turn(turn, CL_COMPLETE);
      pthread_mutex_lock(&lock);
    }
  }
  return NULL;
}

static void end_all_turns(void) {
  const struct timespec patience = {.tv_sec = (time_t)(now_ns() / 1000000000u) +
                                              EXIT_PATIENCE_S};
  pthread_mutex_lock(&lock);
  hurry = true;
  pthread_cond_broadcast(&changed);
  while (pending > 0 && pthread_cond_timedwait(&changed, &lock, &patience) == 0) {
  }
  const bool served = pending == 0;
  pthread_mutex_unlock(&lock);
  if (!served) return;
  if (newest_queue != NULL) next.clFinish(newest_queue);
  for (const Turn* turn = ended_at_exit; turn != NULL; turn = turn->next)
    next.clFinish(turn->queue);
}

static bool serving;

static void start_serving(void) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&changed, &attributes);
  pthread_condattr_destroy(&attributes);
  pthread_t thread;
  serving = pthread_create(&thread, NULL, serve, NULL) == 0;
  if (serving) pthread_detach(thread);
  // Handlers run in reverse order: the driver's, registered earlier, run after this
  // one.
  atexit(end_all_turns);
}

static void set_turn(Turn* turn) {
  pthread_mutex_lock(&lock);
  const uint64_t now = now_ns(), busy_until_ns = turn->on->busy_until_ns;
  turn->due_ns = (busy_until_ns > now ? busy_until_ns : now) + turn->length_ns;
  turn->on->busy_until_ns = turn->due_ns;
  Turn** at = &first;
  while (*at != NULL && (*at)->due_ns <= turn->due_ns) at = &(*at)->next;
  turn->next = *at;
  *at = turn;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

static void dependencies_done(cl_event marker, cl_int status, void* turn) {
  (void)marker;
  if (status < 0)
    end_turn(turn, status);
  else
    set_turn(turn);
}

static bool is_in_order(cl_command_queue queue) {
  cl_command_queue_properties properties = 0;
  next.clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties,
                             NULL);
  return (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
}

// Creates the event for which a command behind `waits` has to wait. It also stands for
// `waits`. The caller releases it.
static cl_int take_turn(Timeline* on, uint64_t length_ns, cl_command_queue queue,
                        cl_context context, cl_uint wait_count, const cl_event* waits,
                        cl_event* event) {
  static pthread_once_t started = PTHREAD_ONCE_INIT;
  pthread_once(&started, start_serving);
  Turn* const turn = serving ? calloc(1, sizeof *turn) : NULL;
  if (turn == NULL) return CL_OUT_OF_HOST_MEMORY;
  cl_int error = CL_SUCCESS;
  turn->event = next.clCreateUserEvent(context, &error);
  if (error != CL_SUCCESS) {
    free(turn);
    return error;
  }
  turn->queue = queue;
  turn->on = on;
  turn->length_ns = length_ns;
  next.clRetainCommandQueue(queue);
  pthread_mutex_lock(&lock);
  pending++;
  pthread_mutex_unlock(&lock);
  // Without dependencies the turn is set at once: a marker without a wait list would
  // wait for everything in an out-of-order queue.
  cl_event marker = NULL;
  if (wait_count > 0 || is_in_order(queue)) {
    error = next.clEnqueueMarkerWithWaitList(queue, wait_count, waits, &marker);
    if (error != CL_SUCCESS) {
      end_turn(turn, error);
      return error;
    }
  }
  *event = turn->event;
  next.clRetainEvent(*event);
  if (marker == NULL) {
    set_turn(turn);
    return CL_SUCCESS;
  }
  error = next.clSetEventCallback(marker, CL_COMPLETE, dependencies_done, turn);
  next.clReleaseEvent(marker);
  if (error == CL_SUCCESS) return CL_SUCCESS;
  next.clReleaseEvent(*event);
  end_turn(turn, error);
  return error;
}

static cl_int enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                             const size_t* offset, const size_t* global,
                             const size_t* local, cl_uint wait_count,
                             const cl_event* waits, cl_event* event) {
  const cl_context context = context_of_queue(queue);
  if (atomic_load(&delay_ns) == 0 || !is_gpu_context(context))
    return next.clEnqueueNDRangeKernel(queue, kernel, dims, offset, global, local,
                                       wait_count, waits, event);
  cl_event turn = NULL;
  cl_int error = take_turn(&of_kernels, atomic_load(&delay_ns), queue, context,
                           wait_count, waits, &turn);
  if (error != CL_SUCCESS) return error;
  error = next.clEnqueueNDRangeKernel(queue, kernel, dims, offset, global, local, 1,
                                      &turn, event);
  next.clReleaseEvent(turn);
  return error;
}

static cl_int enqueue_task(cl_command_queue queue, cl_kernel kernel, cl_uint wait_count,
                           const cl_event* waits, cl_event* event) {
  const size_t one = 1;
  return enqueue_kernel(queue, kernel, 1, NULL, &one, &one, wait_count, waits, event);
}

static bool is_of_device(const void* address) {
  Allocation in;
  return (settings.svm && is_coarse(address)) ||
         (find_allocation(address, &in) && in.kind == DEVICE_MEMORY);
}

cl_int take_link(cl_command_queue queue, const void* to, const void* from, size_t size,
                 cl_uint wait_count, const cl_event* waits, cl_event* event) {
  *event = NULL;
  if (settings.link_gb_per_s <= 0 || is_of_device(to) == is_of_device(from))
    return CL_SUCCESS;
  const cl_context context = context_of_queue(queue);
  if (!is_gpu_context(context)) return CL_SUCCESS;
  const double ns = (double)size / settings.link_gb_per_s;
  return take_turn(&of_link, (uint64_t)ns, queue, context, wait_count, waits, event);
}

static bool was_delayed(cl_event event) {
  cl_command_type type = 0;
  cl_context context = NULL;
  next.clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL);
  next.clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof context, &context, NULL);
  return type == CL_COMMAND_NDRANGE_KERNEL && is_gpu_context(context);
}

static cl_int get_profiling_info(cl_event event, cl_profiling_info param, size_t room,
                                 void* out, size_t* size_ret) {
  const cl_int error = next.clGetEventProfilingInfo(event, param, room, out, size_ret);
  if (error != CL_SUCCESS || param != CL_PROFILING_COMMAND_START || out == NULL ||
      !was_delayed(event))
    return error;
  cl_ulong* const start = out;
  cl_ulong submitted = 0;
  next.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_SUBMIT, sizeof submitted,
                               &submitted, NULL);
  const cl_ulong added = atomic_load(&delay_ns);
  const cl_ulong delay = added < *start ? added : *start;
  *start = *start - delay > submitted ? *start - delay : submitted;
  return CL_SUCCESS;
}

void hook_delay(cl_icd_dispatch* table) {
  atomic_store(&delay_ns, settings.delay_ns);
  table->clEnqueueNDRangeKernel = enqueue_kernel;
  table->clEnqueueTask = enqueue_task;
  table->clGetEventProfilingInfo = get_profiling_info;
}
