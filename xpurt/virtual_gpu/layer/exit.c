// The end of the process: it waits until the driver's threads are idle.
//
// At exit the driver destroys objects that its threads still use, if one of them runs a
// kernel at that time, or releases one that has just finished: "pure virtual function
// called". Neither the queues nor their events report when a thread has finished that,
// and a queue may be released before its work is complete. So the states of the threads
// themselves are read.

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "layer.h"

// There is a limit, as threads of the program itself may never be idle. It is one of
// processor time: beside other programs, the same work takes longer.
enum { PATIENCE_S = 5, SAMPLES_IN_A_ROW = 3 };

static char state_of(const char* thread) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", thread);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 'X';  // it ended
  const ssize_t bytes = read(file, text, sizeof text - 1);
  close(file);
  text[bytes > 0 ? bytes : 0] = '\0';
  // "number (name) state ...": the name may contain any character.
  const char* const name_end = strrchr(text, ')');
  return name_end != NULL && name_end[1] != '\0' ? name_end[2] : 'X';
}

static bool others_rest(void) {
  DIR* const threads = opendir("/proc/self/task");
  if (threads == NULL) return true;
  const long self = syscall(SYS_gettid);
  bool rest = true;
  for (const struct dirent* each; rest && (each = readdir(threads)) != NULL;) {
    if (each->d_name[0] == '.' || atol(each->d_name) == self) continue;
    const char state = state_of(each->d_name);
    rest = state != 'R' && state != 'D';
  }
  closedir(threads);
  return rest;
}

static double processor_seconds(void) {
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

static void wait_for_threads(void) {
  const double limit = processor_seconds() + PATIENCE_S;
  int samples = 0;
  while (samples < SAMPLES_IN_A_ROW && processor_seconds() < limit) {
    samples = others_rest() ? samples + 1 : 0;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
}

// Handlers run in reverse order: the driver's, registered earlier, run after this one;
// that of delay.c, registered at the first kernel, runs before it.
static void register_wait(void) {
  atexit(wait_for_threads);
}

static void made_queue(cl_context context) {
  static pthread_once_t registered = PTHREAD_ONCE_INIT;
  if (is_gpu_context(context)) pthread_once(&registered, register_wait);
}

static cl_command_queue create_queue(cl_context context, cl_device_id device,
                                     cl_command_queue_properties properties,
                                     cl_int* error) {
  made_queue(context);
  return next.clCreateCommandQueue(context, device, properties, error);
}

static cl_command_queue create_queue_with_properties(
    cl_context context, cl_device_id device, const cl_queue_properties* properties,
    cl_int* error) {
  made_queue(context);
  return next.clCreateCommandQueueWithProperties(context, device, properties, error);
}

void hook_exit(cl_icd_dispatch* table) {
  table->clCreateCommandQueue = create_queue;
  table->clCreateCommandQueueWithProperties = create_queue_with_properties;
}
