// The pages of the mode svm: see Note [Open pages] in coarse.h.

#define _GNU_SOURCE
#include "coarse.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "address_ranges.h"
#include "memory.h"

typedef struct {
  AddressRange range;
  size_t pages_bytes;
  cl_context context;
  size_t opened;  // by commands in flight and by maps
  size_t mapped;
  bool freed;
} Coarse;

struct Use {
  cl_context context;
  const char* call;
  Coarse** of;
  size_t count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static AddressRanges live;

enum { PAGE_BYTES = 4096, LARGEST_ALIGNMENT = sizeof(cl_long16) };

static void open_pages(Coarse* of) {
  if (of->opened++ == 0)
    mprotect(of->range.address, of->pages_bytes, PROT_READ | PROT_WRITE);
}

static void close_pages(Coarse* of) {
  if (--of->opened > 0) return;
  if (of->freed)
    free(of);
  else
    mprotect(of->range.address, of->pages_bytes, PROT_NONE);
}

static void drop(Coarse* of) {
  remove_range(&live, &of->range);
  munmap(of->range.address, of->pages_bytes);
  give_back_device_memory(of->range.size);
  of->freed = true;
  if (of->opened == 0) free(of);
}

void* coarse_alloc(cl_context context, cl_svm_mem_flags flags, size_t size,
                   cl_uint alignment) {
  if ((flags & (CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS)) != 0) {
    refuse(0, "clSVMAlloc", "the device's shared virtual memory is coarse-grained");
    return NULL;
  }
  if (size == 0 || size > SIZE_MAX / 2 || alignment > LARGEST_ALIGNMENT ||
      !take_device_memory(size))
    return NULL;
  Coarse* const made = calloc(1, sizeof *made);
  const size_t bytes = (size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
  void* const pages =
      mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  bool kept = made != NULL && pages != MAP_FAILED;
  if (kept) {
    madvise(pages, bytes, MADV_HUGEPAGE);
    *made = (Coarse){{pages, size}, bytes, context, 0, 0, false};
    pthread_mutex_lock(&lock);
    kept = add_range(&live, &made->range);
    pthread_mutex_unlock(&lock);
  }
  if (kept) return pages;
  free(made);
  if (pages != MAP_FAILED) munmap(pages, bytes);
  give_back_device_memory(size);
  return NULL;
}

void coarse_free(cl_context context, void* address) {
  if (address == NULL) return;
  pthread_mutex_lock(&lock);
  Coarse* const at = (Coarse*)range_at(&live, address);
  const bool ours = at != NULL && at->context == context;
  if (ours) drop(at);
  pthread_mutex_unlock(&lock);
  if (!ours) refuse(0, "clSVMFree", "no live allocation of this context starts here");
}

void forget_coarse(cl_context context) {
  pthread_mutex_lock(&lock);
  for (size_t i = live.count; i-- > 0;) {
    Coarse* const each = (Coarse*)live.live[i];
    if (each->context == context) drop(each);
  }
  pthread_mutex_unlock(&lock);
}

bool is_coarse(const void* address) {
  pthread_mutex_lock(&lock);
  const bool found = range_around(&live, address) != NULL;
  pthread_mutex_unlock(&lock);
  return found;
}

Use* begin_use(cl_context context, const char* call) {
  Use* const use = calloc(1, sizeof *use);
  if (use != NULL) *use = (Use){.context = context, .call = call};
  return use;
}

// Null if the range may be used, otherwise the reason.
static const char* reason_against(const Use* use, const Coarse* of, const void* address,
                                  size_t size, Wanted wanted) {
  if (of == NULL)
    return wanted == MAY_BE_OF_HOST ? NULL : "a kernel or fill reaches only SVM";
  if (of->context != use->context) return "this is memory of another context";
  if (of->mapped > 0) return "the memory is mapped for the host; unmap it first";
  const size_t offset = (size_t)((const char*)address - of->range.address);
  return size > of->range.size - offset ? "it goes beyond the allocation's end" : NULL;
}

cl_int use_range(Use* use, const void* address, size_t size, Wanted wanted) {
  if (address == NULL) return CL_SUCCESS;
  pthread_mutex_lock(&lock);
  Coarse* const of = (Coarse*)range_around(&live, address);
  const char* const reason = reason_against(use, of, address, size, wanted);
  bool kept = true;
  if (reason == NULL && of != NULL) {
    Coarse** const grown = realloc(use->of, (use->count + 1) * sizeof *grown);
    kept = grown != NULL;
    if (kept) {
      use->of = grown;
      use->of[use->count++] = of;
      open_pages(of);
    }
  }
  pthread_mutex_unlock(&lock);
  if (reason != NULL) return refuse(CL_INVALID_MEM_OBJECT, use->call, reason);
  return kept ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
}

static void CL_CALLBACK close_use(cl_event event, cl_int status, void* data) {
  (void)event;
  (void)status;
  Use* const use = data;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < use->count; i++) close_pages(use->of[i]);
  pthread_mutex_unlock(&lock);
  free(use->of);
  free(use);
}

cl_int end_use(Use* use, cl_int error, cl_event event, bool releases_event) {
  if (error != CL_SUCCESS ||
      next.clSetEventCallback(event, CL_COMPLETE, close_use, use) != CL_SUCCESS)
    close_use(NULL, 0, use);
  if (error == CL_SUCCESS && releases_event) next.clReleaseEvent(event);
  return error;
}

cl_int coarse_copy(cl_command_queue queue, cl_bool blocking, void* to, const void* from,
                   size_t size, cl_uint wait_count, const cl_event* waits,
                   cl_event* event) {
  if (takes_no_work(queue)) return CL_OUT_OF_RESOURCES;
  Use* const use = begin_use(context_of_queue(queue), "clEnqueueSVMMemcpy");
  if (use == NULL) return CL_OUT_OF_HOST_MEMORY;
  cl_event done = NULL;
  cl_int error = use_range(use, to, size, MAY_BE_OF_HOST);
  if (error == CL_SUCCESS) error = use_range(use, from, size, MAY_BE_OF_HOST);
  cl_event turn = NULL;
  if (error == CL_SUCCESS)
    error = take_link(queue, to, from, size, wait_count, waits, &turn);
  if (error == CL_SUCCESS)
    error = next.clEnqueueSVMMemcpy(queue, blocking, to, from, size,
                                    turn == NULL ? wait_count : 1,
                                    turn == NULL ? waits : &turn, &done);
  if (turn != NULL) next.clReleaseEvent(turn);
  if (event != NULL) *event = done;
  return end_use(use, error, done, event == NULL);
}

cl_int coarse_fill(cl_command_queue queue, void* to, const void* pattern,
                   size_t pattern_size, size_t size, cl_uint wait_count,
                   const cl_event* waits, cl_event* event) {
  if (takes_no_work(queue)) return CL_OUT_OF_RESOURCES;
  Use* const use = begin_use(context_of_queue(queue), "clEnqueueSVMMemFill");
  if (use == NULL) return CL_OUT_OF_HOST_MEMORY;
  cl_event done = NULL;
  cl_int error = use_range(use, to, size, MUST_BE_SVM);
  if (error == CL_SUCCESS)
    error = next.clEnqueueSVMMemFill(queue, to, pattern, pattern_size, size, wait_count,
                                     waits, &done);
  if (event != NULL) *event = done;
  return end_use(use, error, done, event == NULL);
}

// The memory is the host's, so a map or unmap is a marker in the queue.
static cl_int change_map(cl_command_queue queue, const void* address, bool maps,
                         cl_uint wait_count, const cl_event* waits, cl_event* event) {
  const char* const call = maps ? "clEnqueueSVMMap" : "clEnqueueSVMUnmap";
  pthread_mutex_lock(&lock);
  Coarse* const of = (Coarse*)range_around(&live, address);
  const bool known = of != NULL && (maps || of->mapped > 0);
  if (known && maps) {
    of->mapped++;
    open_pages(of);
  } else if (known) {
    of->mapped--;
    close_pages(of);
  }
  pthread_mutex_unlock(&lock);
  if (!known)
    return refuse(CL_INVALID_VALUE, call,
                  "no allocation, or no map, is at the address");
  return next.clEnqueueMarkerWithWaitList(queue, wait_count, waits, event);
}

cl_int coarse_map(cl_command_queue queue, cl_bool blocking, void* address, size_t size,
                  cl_uint wait_count, const cl_event* waits, cl_event* event) {
  (void)size;
  cl_event done = NULL;
  cl_int error = change_map(queue, address, true, wait_count, waits, &done);
  if (error == CL_SUCCESS && blocking) error = next.clWaitForEvents(1, &done);
  if (event != NULL)
    *event = done;
  else if (done != NULL)
    next.clReleaseEvent(done);
  return error;
}

cl_int coarse_unmap(cl_command_queue queue, void* address, cl_uint wait_count,
                    const cl_event* waits, cl_event* event) {
  return change_map(queue, address, false, wait_count, waits, event);
}
