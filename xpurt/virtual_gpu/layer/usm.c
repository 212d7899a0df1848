// The entry points of cl_intel_unified_shared_memory. They are not in the loader's
// table: clGetExtensionFunctionAddressForPlatform finds them by name.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "memory.h"

static struct {
  clHostMemAllocINTEL_fn host_alloc;
  clDeviceMemAllocINTEL_fn device_alloc;
  clSharedMemAllocINTEL_fn shared_alloc;
  clMemFreeINTEL_fn free_memory;
  clMemBlockingFreeINTEL_fn blocking_free;
  clGetMemAllocInfoINTEL_fn info;
  clSetKernelArgMemPointerINTEL_fn set_arg;
  clEnqueueMemFillINTEL_fn fill;
  clEnqueueMemcpyINTEL_fn copy;
  clEnqueueMigrateMemINTEL_fn migrate;
  clEnqueueMemAdviseINTEL_fn advise;
} below;

static void* fail(cl_int code, cl_int* error) {
  if (error != NULL) *error = code;
  return NULL;
}

// A GPU's memory is there once it is allocated. This memory is the system's, which
// commits and translates it page by page: with huge pages, a first write takes a third
// of the time, and a pass over large tensors two thirds. A hint, so its failure is not
// an error.
static void prefer_huge_pages(void* real, size_t size) {
  const uintptr_t page = 4096;
  const uintptr_t begin = ((uintptr_t)real + page - 1) / page * page;
  const uintptr_t end = ((uintptr_t)real + size) / page * page;
  if (real != NULL && end > begin) madvise((void*)begin, end - begin, MADV_HUGEPAGE);
}

// Adds an allocation of the driver to the table; frees it if that fails.
static void* keep(cl_context context, MemoryKind kind, void* real, size_t size,
                  size_t alignment, cl_int* error) {
  const bool counted = kind != HOST_MEMORY;
  void* address = NULL;
  if (real != NULL) {
    address = remember(context, kind, real, size, alignment);
    if (address == NULL) {
      below.free_memory(context, real);
      fail(CL_OUT_OF_HOST_MEMORY, error);
    }
  }
  if (address == NULL && counted) give_back_device_memory(size);
  return address;
}

static void* host_alloc(cl_context context, const cl_mem_properties_intel* properties,
                        size_t size, cl_uint alignment, cl_int* error) {
  void* const real = below.host_alloc(context, properties, size, alignment, error);
  if (!is_gpu_context(context)) return real;
  return keep(context, HOST_MEMORY, real, size, alignment, error);
}

// The memory of a device begins with what was left there. These bytes are NaN as floats
// and -1 as integers, so a kernel that reads beyond its operands computes something
// else. A large allocation stays untouched: its pages may be more than the machine has.
static void fill_with_nan(void* real, size_t size) {
  const size_t most = (size_t)64 << 20;
  if (real != NULL && settings.strict && size <= most) memset(real, 0xff, size);
}

// Behind a strict device's allocation are bytes that nothing may write. They are looked
// at when it is freed.
enum { TAIL = 64 };

static bool is_overrun(const Allocation* of) {
  if (!settings.strict || of->kind != DEVICE_MEMORY) return false;
  const unsigned char* const tail = (unsigned char*)of->real + of->range.size;
  for (int i = 0; i < TAIL; i++)
    if (tail[i] != 0xff) return true;
  return false;
}

static void* device_alloc(cl_context context, cl_device_id device,
                          const cl_mem_properties_intel* properties, size_t size,
                          cl_uint alignment, cl_int* error) {
  if (!is_gpu_context(context))
    return below.device_alloc(context, device, properties, size, alignment, error);
  if (!take_device_memory(size)) return fail(CL_MEM_OBJECT_ALLOCATION_FAILURE, error);
  const size_t tail = settings.strict ? TAIL : 0;
  void* const real =
      below.device_alloc(context, device, properties, size + tail, alignment, error);
  prefer_huge_pages(real, size);
  fill_with_nan(real, size);
  if (real != NULL) memset((char*)real + size, 0xff, tail);
  return keep(context, DEVICE_MEMORY, real, size, alignment, error);
}

static void* shared_alloc(cl_context context, cl_device_id device,
                          const cl_mem_properties_intel* properties, size_t size,
                          cl_uint alignment, cl_int* error) {
  if (!is_gpu_context(context))
    return below.shared_alloc(context, device, properties, size, alignment, error);
  if (!take_device_memory(size)) return fail(CL_MEM_OBJECT_ALLOCATION_FAILURE, error);
  void* const real =
      below.shared_alloc(context, device, properties, size, alignment, error);
  return keep(context, SHARED_MEMORY, real, size, alignment, error);
}

static cl_int free_with(clMemFreeINTEL_fn free_below, const char* call,
                        cl_context context, void* address) {
  Allocation freed;
  if (address != NULL && forget(context, address, &freed)) {
    const bool overrun = is_overrun(&freed);
    const cl_int error = free_below(context, freed.real);
    return overrun ? refuse(CL_INVALID_MEM_OBJECT, call,
                            "a kernel wrote beyond the end of this allocation")
                   : error;
  }
  if (address != NULL && settings.strict) {
    if (is_gpu_context(context))
      return refuse(CL_INVALID_MEM_OBJECT, call,
                    "no live allocation of this context starts here");
    void* real = NULL;
    const cl_int error = translate(context, BY_COPY, address, 0, call, &real);
    if (error != CL_SUCCESS) return error;
  }
  return free_below(context, address);
}

static cl_int free_memory(cl_context context, void* address) {
  return free_with(below.free_memory, "clMemFreeINTEL", context, address);
}

static cl_int blocking_free(cl_context context, void* address) {
  return free_with(below.blocking_free, "clMemBlockingFreeINTEL", context, address);
}

static cl_int info(cl_context context, const void* address, cl_mem_info_intel param,
                   size_t room, void* out, size_t* size_ret) {
  Allocation in;
  if (!settings.strict || !find_allocation(address, &in) || in.context != context ||
      in.range.address == in.real)
    return below.info(context, address, param, room, out, size_ret);
  if (param == CL_MEM_ALLOC_BASE_PTR_INTEL)
    return answer(&in.range.address, sizeof in.range.address, room, out, size_ret);
  if (param == CL_MEM_ALLOC_SIZE_INTEL)  // without the tail
    return answer(&in.range.size, sizeof in.range.size, room, out, size_ret);
  const size_t offset = (size_t)((const char*)address - in.range.address);
  return below.info(context, in.real + offset, param, room, out, size_ret);
}

static cl_int set_arg(cl_kernel kernel, cl_uint index, const void* address) {
  void* real = (void*)address;
  if (settings.strict) {
    const cl_int error = translate(context_of_kernel(kernel), BY_KERNEL, address, 0,
                                   "clSetKernelArgMemPointerINTEL", &real);
    if (error != CL_SUCCESS) return error;
  }
  return below.set_arg(kernel, index, real);
}

// translate() for the context of a queue, which lenient mode does not have to query.
static cl_int translate_on(cl_command_queue queue, Access access, const void* address,
                           size_t size, const char* call, void** real) {
  *real = (void*)address;
  if (!settings.strict) return CL_SUCCESS;
  return translate(context_of_queue(queue), access, address, size, call, real);
}

static cl_int fill(cl_command_queue queue, void* to, const void* pattern,
                   size_t pattern_size, size_t size, cl_uint wait_count,
                   const cl_event* waits, cl_event* event) {
  if (takes_no_work(queue)) return CL_OUT_OF_RESOURCES;
  void* real = NULL;
  const cl_int error =
      translate_on(queue, BY_KERNEL, to, size, "clEnqueueMemFillINTEL", &real);
  if (error != CL_SUCCESS) return error;
  return below.fill(queue, real, pattern, pattern_size, size, wait_count, waits, event);
}

static cl_int copy(cl_command_queue queue, cl_bool blocking, void* to, const void* from,
                   size_t size, cl_uint wait_count, const cl_event* waits,
                   cl_event* event) {
  static const char call[] = "clEnqueueMemcpyINTEL";
  if (takes_no_work(queue)) return CL_OUT_OF_RESOURCES;
  void *real_to = NULL, *real_from = NULL;
  cl_int error = translate_on(queue, BY_COPY, to, size, call, &real_to);
  if (error == CL_SUCCESS)
    error = translate_on(queue, BY_COPY, from, size, call, &real_from);
  cl_event turn = NULL;
  if (error == CL_SUCCESS)
    error = take_link(queue, to, from, size, wait_count, waits, &turn);
  if (error != CL_SUCCESS) return error;
  if (turn == NULL)
    return below.copy(queue, blocking, real_to, real_from, size, wait_count, waits,
                      event);
  error = below.copy(queue, blocking, real_to, real_from, size, 1, &turn, event);
  next.clReleaseEvent(turn);
  return error;
}

static cl_int migrate(cl_command_queue queue, const void* address, size_t size,
                      cl_mem_migration_flags flags, cl_uint wait_count,
                      const cl_event* waits, cl_event* event) {
  void* real = NULL;
  const cl_int error =
      translate_on(queue, BY_KERNEL, address, size, "clEnqueueMigrateMemINTEL", &real);
  if (error != CL_SUCCESS) return error;
  return below.migrate(queue, real, size, flags, wait_count, waits, event);
}

static cl_int advise(cl_command_queue queue, const void* address, size_t size,
                     cl_mem_advice_intel advice, cl_uint wait_count,
                     const cl_event* waits, cl_event* event) {
  void* real = NULL;
  const cl_int error =
      translate_on(queue, BY_KERNEL, address, size, "clEnqueueMemAdviseINTEL", &real);
  if (error != CL_SUCCESS) return error;
  return below.advise(queue, real, size, advice, wait_count, waits, event);
}

static const struct {
  const char* name;
  void* ours;
  void** below;
} ENTRY_POINTS[] = {
    {"clHostMemAllocINTEL", (void*)host_alloc, (void**)&below.host_alloc},
    {"clDeviceMemAllocINTEL", (void*)device_alloc, (void**)&below.device_alloc},
    {"clSharedMemAllocINTEL", (void*)shared_alloc, (void**)&below.shared_alloc},
    {"clMemFreeINTEL", (void*)free_memory, (void**)&below.free_memory},
    {"clMemBlockingFreeINTEL", (void*)blocking_free, (void**)&below.blocking_free},
    {"clGetMemAllocInfoINTEL", (void*)info, (void**)&below.info},
    {"clSetKernelArgMemPointerINTEL", (void*)set_arg, (void**)&below.set_arg},
    {"clEnqueueMemFillINTEL", (void*)fill, (void**)&below.fill},
    {"clEnqueueMemcpyINTEL", (void*)copy, (void**)&below.copy},
    {"clEnqueueMigrateMemINTEL", (void*)migrate, (void**)&below.migrate},
    {"clEnqueueMemAdviseINTEL", (void*)advise, (void**)&below.advise},
};
enum { ENTRY_POINT_COUNT = sizeof ENTRY_POINTS / sizeof ENTRY_POINTS[0] };

static void find_entry_points(void) {
  for (size_t i = 0; i < ENTRY_POINT_COUNT; i++)
    *ENTRY_POINTS[i].below = next.clGetExtensionFunctionAddressForPlatform(
        virtual_gpu()->cpu_platform, ENTRY_POINTS[i].name);
}

void* usm_entry_point(const char* name) {
  static pthread_once_t found = PTHREAD_ONCE_INIT;
  pthread_once(&found, find_entry_points);
  for (size_t i = 0; i < ENTRY_POINT_COUNT; i++)
    if (strcmp(name, ENTRY_POINTS[i].name) == 0 && *ENTRY_POINTS[i].below != NULL)
      return ENTRY_POINTS[i].ours;
  return NULL;
}
