// The queues of each served context: clMemBlockingFreeINTEL waits for their work.
//
// A program may release a queue before its work is complete. The work is then known by
// a marker behind it.

#include <pthread.h>
#include <stdlib.h>

#include "layer.h"

typedef struct Queue {
  cl_command_queue queue;
  cl_context context;
  size_t references;  // of users
  cl_event last;      // of a queue that was released: the end of its work
  struct Queue* next;
} Queue;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static Queue* queues;

static Queue** place_of(cl_command_queue queue) {
  Queue** place = &queues;
  while (*place != NULL && ((*place)->queue != queue || (*place)->references == 0))
    place = &(*place)->next;
  return place;
}

static void made_queue(cl_context context, cl_command_queue queue) {
  if (queue == NULL || !facts_of(context).served) return;
  Queue* const made = malloc(sizeof *made);
  if (made == NULL) return;
  pthread_mutex_lock(&lock);
  *made = (Queue){queue, context, 1, NULL, queues};
  queues = made;
  pthread_mutex_unlock(&lock);
}

static void remove_queue(Queue* of) {
  Queue** place = &queues;
  while (*place != of) place = &(*place)->next;
  *place = of->next;
  free(of);
}

static void CL_CALLBACK work_ended(cl_event event, cl_int status, void* of) {
  (void)status;
  pthread_mutex_lock(&lock);
  remove_queue(of);
  pthread_cond_broadcast(&ended);
  pthread_mutex_unlock(&lock);
  next.clReleaseEvent(event);
}

static cl_int release_queue(cl_command_queue queue) {
  pthread_mutex_lock(&lock);
  Queue* const of = *place_of(queue);
  const bool last = of != NULL && --of->references == 0;
  pthread_mutex_unlock(&lock);
  if (last && (next.clEnqueueMarkerWithWaitList(queue, 0, NULL, &of->last) ||
               next.clSetEventCallback(of->last, CL_COMPLETE, work_ended, of))) {
    next.clFinish(queue);
    pthread_mutex_lock(&lock);
    remove_queue(of);
    pthread_mutex_unlock(&lock);
  }
  return next.clReleaseCommandQueue(queue);
}

static cl_int retain_queue(cl_command_queue queue) {
  pthread_mutex_lock(&lock);
  Queue* const of = *place_of(queue);
  if (of != NULL) of->references++;
  pthread_mutex_unlock(&lock);
  return next.clRetainCommandQueue(queue);
}

static bool has_released_work(cl_context context) {
  for (const Queue* each = queues; each != NULL; each = each->next)
    if (each->context == context && each->references == 0) return true;
  return false;
}

cl_int finish_queues(cl_context context) {
  pthread_mutex_lock(&lock);
  size_t count = 0;
  for (const Queue* each = queues; each != NULL; each = each->next) count++;
  cl_command_queue* const copies = malloc(count * sizeof *copies + 1);
  count = 0;
  for (const Queue* each = queues; copies != NULL && each != NULL; each = each->next) {
    if (each->context != context || each->references == 0) continue;
    next.clRetainCommandQueue(each->queue);
    copies[count++] = each->queue;
  }
  pthread_mutex_unlock(&lock);
  if (copies == NULL) return CL_OUT_OF_HOST_MEMORY;
  for (size_t i = 0; i < count; i++) {
    next.clFinish(copies[i]);
    next.clReleaseCommandQueue(copies[i]);
  }
  free(copies);
  pthread_mutex_lock(&lock);
  while (has_released_work(context)) pthread_cond_wait(&ended, &lock);
  pthread_mutex_unlock(&lock);
  return CL_SUCCESS;
}

static cl_command_queue create_queue(cl_context context, cl_device_id device,
                                     cl_command_queue_properties properties,
                                     cl_int* error) {
  const cl_command_queue made =
      next.clCreateCommandQueue(context, device, properties, error);
  made_queue(context, made);
  return made;
}

static cl_command_queue create_queue_with_properties(
    cl_context context, cl_device_id device, const cl_queue_properties* properties,
    cl_int* error) {
  const cl_command_queue made =
      next.clCreateCommandQueueWithProperties(context, device, properties, error);
  made_queue(context, made);
  return made;
}

void hook_queues(cl_icd_dispatch* table) {
  table->clCreateCommandQueue = create_queue;
  table->clCreateCommandQueueWithProperties = create_queue_with_properties;
  table->clRetainCommandQueue = retain_queue;
  table->clReleaseCommandQueue = release_queue;
}
