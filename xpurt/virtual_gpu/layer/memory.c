#include "memory.h"

#include <pthread.h>
#include <stdlib.h>

#include "coarse.h"
#include "shadow.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static AddressRanges live;
static uint64_t taken_bytes;

bool take_device_memory(size_t bytes) {
  pthread_mutex_lock(&lock);
  const bool fits =
      settings.memory_bytes == 0 ||
      (bytes <= settings.memory_bytes && taken_bytes <= settings.memory_bytes - bytes);
  if (fits) taken_bytes += bytes;
  pthread_mutex_unlock(&lock);
  return fits;
}

void give_back_device_memory(size_t bytes) {
  pthread_mutex_lock(&lock);
  taken_bytes -= bytes;
  pthread_mutex_unlock(&lock);
}

// Also frees the entry.
static void drop(Allocation* of) {
  if (of->range.address != of->real) release_shadow(of->range.address);
  if (of->kind != HOST_MEMORY) taken_bytes -= of->range.size;
  remove_range(&live, &of->range);
  free(of);
}

void* remember(cl_context context, MemoryKind kind, void* real, size_t size,
               size_t alignment) {
  const bool shadowed = settings.strict && kind == DEVICE_MEMORY;
  Allocation* const made = malloc(sizeof *made);
  if (made == NULL) return NULL;
  pthread_mutex_lock(&lock);
  char* address = shadowed ? reserve_shadow(size, alignment) : real;
  *made = (Allocation){{address, size}, real, kind, context};
  if (address != NULL && !add_range(&live, &made->range)) {
    if (shadowed) release_shadow(address);
    address = NULL;
  }
  pthread_mutex_unlock(&lock);
  if (address == NULL) free(made);
  return address;
}

bool forget(cl_context context, const void* address, Allocation* found) {
  pthread_mutex_lock(&lock);
  Allocation* const at = (Allocation*)range_at(&live, address);
  const bool known = at != NULL && at->context == context;
  if (known) {
    *found = *at;
    drop(at);
  }
  pthread_mutex_unlock(&lock);
  return known;
}

void forget_context(cl_context context) {
  pthread_mutex_lock(&lock);
  for (size_t i = live.count; i-- > 0;) {
    Allocation* const each = (Allocation*)live.live[i];
    if (each->context == context) drop(each);
  }
  pthread_mutex_unlock(&lock);
}

static bool find_locked(const void* address, Allocation* found) {
  const Allocation* const around = (const Allocation*)range_around(&live, address);
  if (around != NULL) *found = *around;
  return around != NULL;
}

bool find_allocation(const void* address, Allocation* found) {
  pthread_mutex_lock(&lock);
  const bool known = find_locked(address, found);
  pthread_mutex_unlock(&lock);
  return known;
}

cl_int translate(cl_context context, Access access, const void* address, size_t size,
                 const char* call, void** real) {
  *real = (void*)address;
  if (!settings.strict || address == NULL) return CL_SUCCESS;
  const bool ours = is_gpu_context(context);
  Allocation in;
  pthread_mutex_lock(&lock);
  const bool known = find_locked(address, &in);
  const bool shadow = is_shadow(address);
  pthread_mutex_unlock(&lock);

  if (!ours) {
    // Another device can access the same memory as the host.
    if (!shadow && !(settings.svm && is_coarse(address))) return CL_SUCCESS;
    return refuse(CL_INVALID_MEM_OBJECT, call,
                  "another device cannot reach the virtual GPU's device memory; copy "
                  "it through the host");
  }
  if (known && in.context == context) {
    const size_t offset = (size_t)((const char*)address - in.range.address);
    if (size > in.range.size - offset)
      return refuse(CL_INVALID_MEM_OBJECT, call, "it goes beyond the allocation's end");
    *real = in.real + offset;
    return CL_SUCCESS;
  }
  if (shadow)
    return refuse(CL_INVALID_MEM_OBJECT, call,
                  known ? "this is device memory of another context"
                        : "this device memory was freed, or lies between allocations");
  if (access == BY_COPY) return CL_SUCCESS;
  return refuse(CL_INVALID_MEM_OBJECT, call,
                "a kernel or fill reaches only USM of its own context, no memory of "
                "malloc or of another context or device; copy it to the device first");
}
