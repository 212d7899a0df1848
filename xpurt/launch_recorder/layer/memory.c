// Allocations of unified shared memory, and whether anything was written to them.

#include <stdlib.h>
#include <string.h>

#include "layer.h"

static AddressRanges live;

Allocation* allocation_around(const void* address) {
  return (Allocation*)range_around(&live, address);
}

static void* keep(void* address, size_t size) {
  if (address == NULL) return NULL;
  Allocation* const made = malloc(sizeof *made);
  if (made == NULL) abort();
  *made = (Allocation){.range = {address, size}};
  lock_records();
  if (!add_range(&live, &made->range)) abort();
  unlock_records();
  return address;
}

static void forget(const void* address) {
  lock_records();
  AddressRange* const found = range_at(&live, address);
  if (found != NULL) remove_range(&live, found);
  unlock_records();
  free(found);
}

static void mark_written(const void* address) {
  lock_records();
  Allocation* const found = allocation_around(address);
  if (found != NULL) found->is_written = true;
  unlock_records();
}

// Memory that the host can write without a call.
static void* host_alloc(cl_context context, const cl_mem_properties_intel* properties,
                        size_t size, cl_uint alignment, cl_int* error) {
  const clHostMemAllocINTEL_fn call =
      (clHostMemAllocINTEL_fn)below(context, "clHostMemAllocINTEL");
  void* const made = keep(call(context, properties, size, alignment, error), size);
  mark_written(made);
  return made;
}

static void* shared_alloc(cl_context context, cl_device_id device,
                          const cl_mem_properties_intel* properties, size_t size,
                          cl_uint alignment, cl_int* error) {
  const clSharedMemAllocINTEL_fn call =
      (clSharedMemAllocINTEL_fn)below(context, "clSharedMemAllocINTEL");
  void* const made =
      keep(call(context, device, properties, size, alignment, error), size);
  mark_written(made);
  return made;
}

static void* device_alloc(cl_context context, cl_device_id device,
                          const cl_mem_properties_intel* properties, size_t size,
                          cl_uint alignment, cl_int* error) {
  const clDeviceMemAllocINTEL_fn call =
      (clDeviceMemAllocINTEL_fn)below(context, "clDeviceMemAllocINTEL");
  return keep(call(context, device, properties, size, alignment, error), size);
}

static cl_int free_memory(cl_context context, void* address) {
  const clMemFreeINTEL_fn call = (clMemFreeINTEL_fn)below(context, "clMemFreeINTEL");
  forget(address);
  return call(context, address);
}

static cl_int blocking_free(cl_context context, void* address) {
  const clMemBlockingFreeINTEL_fn call =
      (clMemBlockingFreeINTEL_fn)below(context, "clMemBlockingFreeINTEL");
  forget(address);
  return call(context, address);
}

static cl_int copy(cl_command_queue queue, cl_bool blocking, void* to, const void* from,
                   size_t size, cl_uint wait_count, const cl_event* waits,
                   cl_event* event) {
  const clEnqueueMemcpyINTEL_fn call =
      (clEnqueueMemcpyINTEL_fn)below(context_of_queue(queue), "clEnqueueMemcpyINTEL");
  mark_written(to);
  return call(queue, blocking, to, from, size, wait_count, waits, event);
}

static cl_int fill(cl_command_queue queue, void* to, const void* pattern,
                   size_t pattern_size, size_t size, cl_uint wait_count,
                   const cl_event* waits, cl_event* event) {
  const clEnqueueMemFillINTEL_fn call =
      (clEnqueueMemFillINTEL_fn)below(context_of_queue(queue), "clEnqueueMemFillINTEL");
  mark_written(to);
  return call(queue, to, pattern, pattern_size, size, wait_count, waits, event);
}

void* memory_entry_point(const char* name) {
  static const struct {
    const char* name;
    void* function;
  } ENTRY_POINTS[] = {
      {"clHostMemAllocINTEL", (void*)host_alloc},
      {"clDeviceMemAllocINTEL", (void*)device_alloc},
      {"clSharedMemAllocINTEL", (void*)shared_alloc},
      {"clMemFreeINTEL", (void*)free_memory},
      {"clMemBlockingFreeINTEL", (void*)blocking_free},
      {"clEnqueueMemcpyINTEL", (void*)copy},
      {"clEnqueueMemFillINTEL", (void*)fill},
  };
  for (size_t i = 0; i < sizeof ENTRY_POINTS / sizeof *ENTRY_POINTS; i++)
    if (strcmp(name, ENTRY_POINTS[i].name) == 0) return ENTRY_POINTS[i].function;
  return NULL;
}
