#include "memory.h"

#include <pthread.h>
#include <stdlib.h>

// clSVMAlloc takes alignments up to the size of the largest type; 0 is that size.
enum { LARGEST_TYPE = sizeof(cl_long16) };

static pthread_mutex_t memory_lock;
static pthread_once_t lock_made = PTHREAD_ONCE_INIT;
static AddressRanges live;
static uint64_t changes = 1;
static const void** listed;
static size_t listed_room;

static void make_lock(void) {
  pthread_mutexattr_t recursive;
  pthread_mutexattr_init(&recursive);
  pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&memory_lock, &recursive);
  pthread_mutexattr_destroy(&recursive);
}

void lock_memory(void) {
  pthread_once(&lock_made, make_lock);
  pthread_mutex_lock(&memory_lock);
}

void unlock_memory(void) {
  pthread_mutex_unlock(&memory_lock);
}

Allocation* allocation_around(cl_context context, const void* address) {
  Allocation* const around = (Allocation*)range_around(&live, address);
  return around != NULL && around->context == context ? around : NULL;
}

uint64_t memory_change(void) {
  return changes;
}

const void* const* all_svm(cl_context context, size_t* count) {
  if (listed_room < 2 * live.count + 1) {
    const void** const grown = realloc(listed, (2 * live.count + 1) * sizeof *grown);
    if (grown == NULL) return NULL;
    listed = grown;
    listed_room = 2 * live.count + 1;
  }
  *count = 0;
  for (size_t i = 0; i < live.count; i++) {
    const Allocation* const each = (const Allocation*)live.live[i];
    if (each->context == context && each->is_svm) listed[(*count)++] = each->base;
  }
  return listed;
}

bool make_mirror(Allocation* of) {
  if (of->mirror == NULL)
    of->mirror = next.clSVMAlloc(of->context, CL_MEM_READ_WRITE, of->range.size, 0);
  return of->mirror != NULL;
}

// Frees what the driver or malloc gave.
static void give_back(const Allocation* of) {
  if (of->last_use != NULL) next.clReleaseEvent(of->last_use);
  if (of->mirror != NULL) next.clSVMFree(of->context, of->mirror);
  if (of->is_svm)
    next.clSVMFree(of->context, of->base);
  else
    free(of->base);
}

static void drop(Allocation* of) {
  remove_range(&live, &of->range);
  changes++;
  give_back(of);
  free(of);
}

void forget_memory_of(cl_context context) {
  lock_memory();
  for (size_t i = live.count; i-- > 0;) {
    Allocation* const each = (Allocation*)live.live[i];
    if (each->context != context) continue;
    // The driver frees the SVM of a context that it destroys.
    remove_range(&live, &each->range);
    if (!each->is_svm) free(each->base);
    free(each);
  }
  changes++;
  unlock_memory();
}

static void* fail(cl_int code, cl_int* error) {
  if (error != NULL) *error = code;
  return NULL;
}

static bool read_properties(const cl_mem_properties_intel* properties,
                            cl_mem_alloc_flags_intel* flags) {
  *flags = 0;
  for (; properties != NULL && *properties != 0; properties += 2) {
    if (properties[0] != CL_MEM_ALLOC_FLAGS_INTEL) return false;
    *flags = (cl_mem_alloc_flags_intel)properties[1];
  }
  return true;
}

static cl_ulong largest_allocation(cl_context context) {
  cl_ulong bytes = 0;
  cl_device_id devices[1];
  size_t size = 0;
  if (next.clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, NULL, &size)) return 0;
  if (size == sizeof *devices &&
      !next.clGetContextInfo(context, CL_CONTEXT_DEVICES, size, devices, NULL))
    next.clGetDeviceInfo(devices[0], CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof bytes, &bytes,
                         NULL);
  return bytes;
}

static void* allocate(Allocation wanted, bool is_svm, cl_svm_mem_flags svm,
                      const cl_mem_properties_intel* properties, size_t size,
                      cl_uint alignment, cl_int* error) {
  if (!read_properties(properties, &wanted.flags))
    return fail(CL_INVALID_PROPERTY, error);
  if ((alignment & (alignment - 1)) != 0) return fail(CL_INVALID_VALUE, error);
  const size_t slack = alignment > LARGEST_TYPE ? alignment : 0;
  if (size == 0 || size > SIZE_MAX / 4 ||
      (wanted.device != NULL && size > largest_allocation(wanted.context)))
    return fail(CL_INVALID_BUFFER_SIZE, error);
  Allocation* const made = malloc(sizeof *made);
  if (made == NULL) return fail(CL_OUT_OF_HOST_MEMORY, error);
  wanted.is_svm = is_svm;
  if (is_svm)
    wanted.base =
        next.clSVMAlloc(wanted.context, svm, size + slack, slack > 0 ? 0 : alignment);
  else if (posix_memalign(&wanted.base, LARGEST_TYPE, size + slack) != 0)
    wanted.base = NULL;
  if (wanted.base == NULL) {
    free(made);
    return fail(is_svm ? CL_OUT_OF_RESOURCES : CL_OUT_OF_HOST_MEMORY, error);
  }
  uintptr_t address = (uintptr_t)wanted.base;
  if (slack > 0) address = (address + slack - 1) / slack * slack;
  wanted.range = (AddressRange){(char*)address, size};
  *made = wanted;
  lock_memory();
  const bool kept = add_range(&live, &made->range);
  changes++;
  unlock_memory();
  if (kept) {
    if (error != NULL) *error = CL_SUCCESS;
    return made->range.address;
  }
  give_back(made);
  free(made);
  return fail(CL_OUT_OF_HOST_MEMORY, error);
}

static const cl_svm_mem_flags COARSE = CL_MEM_READ_WRITE;
static const cl_svm_mem_flags FINE = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER;

static cl_svm_mem_flags fine_flags(const ContextFacts* facts) {
  return facts->has_atomics ? FINE | CL_MEM_SVM_ATOMICS : FINE;
}

void* empty_place(cl_context context) {
  for (size_t i = 0; i < live.count; i++) {
    const Allocation* const each = (const Allocation*)live.live[i];
    if (each->context == context && each->kind == CL_MEM_TYPE_UNKNOWN_INTEL)
      return each->range.address;
  }
  const Allocation wanted = {.context = context, .kind = CL_MEM_TYPE_UNKNOWN_INTEL};
  return allocate(wanted, true, COARSE, NULL, LARGEST_TYPE, 0, NULL);
}

void* usm_host_alloc(cl_context context, const cl_mem_properties_intel* properties,
                     size_t size, cl_uint alignment, cl_int* error) {
  const ContextFacts facts = facts_of(context);
  if (!facts.served) return fail(CL_INVALID_CONTEXT, error);
  const Allocation wanted = {.context = context, .kind = CL_MEM_TYPE_HOST_INTEL};
  return allocate(wanted, facts.has_fine_grain, fine_flags(&facts), properties, size,
                  alignment, error);
}

void* usm_device_alloc(cl_context context, cl_device_id device,
                       const cl_mem_properties_intel* properties, size_t size,
                       cl_uint alignment, cl_int* error) {
  const ContextFacts facts = facts_of(context);
  if (!facts.served) return fail(CL_INVALID_CONTEXT, error);
  if (served_svm(device) == 0) return fail(CL_INVALID_DEVICE, error);
  const Allocation wanted = {
      .context = context, .device = device, .kind = CL_MEM_TYPE_DEVICE_INTEL};
  const bool fine = facts.is_cpu && facts.has_fine_grain;
  return allocate(wanted, true, fine ? fine_flags(&facts) : COARSE, properties, size,
                  alignment, error);
}

void* usm_shared_alloc(cl_context context, cl_device_id device,
                       const cl_mem_properties_intel* properties, size_t size,
                       cl_uint alignment, cl_int* error) {
  const ContextFacts facts = facts_of(context);
  if (!facts.served) return fail(CL_INVALID_CONTEXT, error);
  if (!facts.has_fine_grain)
    return fail(refuse(CL_INVALID_OPERATION, "clSharedMemAllocINTEL",
                       "the device's SVM is coarse-grained, so host and device cannot "
                       "share an address; use device memory and copies"),
                error);
  const Allocation wanted = {
      .context = context, .device = device, .kind = CL_MEM_TYPE_SHARED_INTEL};
  return allocate(wanted, true, fine_flags(&facts), properties, size, alignment, error);
}

cl_int usm_free(cl_context context, void* address) {
  if (address == NULL) return CL_SUCCESS;
  lock_memory();
  Allocation* const of = allocation_around(context, address);
  const bool starts = of != NULL && of->range.address == address;
  if (starts) drop(of);
  unlock_memory();
  return starts ? CL_SUCCESS
                : refuse(CL_INVALID_VALUE, "clMemFreeINTEL",
                         "no live allocation of this context starts here");
}

cl_int usm_blocking_free(cl_context context, void* address) {
  const cl_int error = finish_queues(context);
  return error == CL_SUCCESS ? usm_free(context, address) : error;
}

cl_int usm_info(cl_context context, const void* address, cl_mem_info_intel param,
                size_t room, void* out, size_t* size_ret) {
  lock_memory();
  const Allocation* const of = allocation_around(context, address);
  const bool inside =
      of != NULL && (const char*)address < of->range.address + of->range.size;
  const Allocation found =
      inside ? *of : (Allocation){.kind = CL_MEM_TYPE_UNKNOWN_INTEL};
  unlock_memory();
  switch (param) {
    case CL_MEM_ALLOC_TYPE_INTEL:
      return answer(&found.kind, sizeof found.kind, room, out, size_ret);
    case CL_MEM_ALLOC_BASE_PTR_INTEL:
      return answer(&found.range.address, sizeof found.range.address, room, out,
                    size_ret);
    case CL_MEM_ALLOC_SIZE_INTEL:
      return answer(&found.range.size, sizeof found.range.size, room, out, size_ret);
    case CL_MEM_ALLOC_DEVICE_INTEL:
      return answer(&found.device, sizeof found.device, room, out, size_ret);
    case CL_MEM_ALLOC_FLAGS_INTEL:
      return answer(&found.flags, sizeof found.flags, room, out, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}
