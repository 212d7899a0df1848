#include "memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shadow.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Allocation* live;  // sorted by address
static size_t live_count;
static size_t live_room;
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

// The number of allocations that start at or below `address`.
static size_t count_up_to(const char* address) {
  size_t low = 0, high = live_count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (live[middle].address <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool insert(Allocation allocation) {
  if (live_count == live_room) {
    const size_t room = live_room == 0 ? 64 : 2 * live_room;
    Allocation* const grown = realloc(live, room * sizeof *live);
    if (grown == NULL) return false;
    live = grown;
    live_room = room;
  }
  const size_t index = count_up_to(allocation.address);
  memmove(live + index + 1, live + index, (live_count - index) * sizeof *live);
  live[index] = allocation;
  live_count++;
  return true;
}

static void remove_at(size_t index) {
  if (live[index].address != live[index].real) release_shadow(live[index].address);
  if (live[index].kind != HOST_MEMORY) taken_bytes -= live[index].size;
  live_count--;
  memmove(live + index, live + index + 1, (live_count - index) * sizeof *live);
}

void* remember(cl_context context, MemoryKind kind, void* real, size_t size,
               size_t alignment) {
  const bool shadowed = settings.strict && kind == DEVICE_MEMORY;
  pthread_mutex_lock(&lock);
  char* address = shadowed ? reserve_shadow(size, alignment) : real;
  if (address != NULL && !insert((Allocation){address, real, size, kind, context})) {
    if (shadowed) release_shadow(address);
    address = NULL;
  }
  pthread_mutex_unlock(&lock);
  return address;
}

bool forget(cl_context context, const void* address, Allocation* found) {
  pthread_mutex_lock(&lock);
  const size_t count = count_up_to(address);
  const bool known = count > 0 && live[count - 1].address == address &&
                     live[count - 1].context == context;
  if (known) {
    *found = live[count - 1];
    remove_at(count - 1);
  }
  pthread_mutex_unlock(&lock);
  return known;
}

void forget_context(cl_context context) {
  pthread_mutex_lock(&lock);
  for (size_t i = live_count; i-- > 0;)
    if (live[i].context == context) remove_at(i);
  pthread_mutex_unlock(&lock);
}

static bool find_locked(const char* address, Allocation* found) {
  const size_t count = count_up_to(address);
  if (count == 0 || address > live[count - 1].address + live[count - 1].size)
    return false;
  *found = live[count - 1];
  return true;
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
    if (!shadow) return CL_SUCCESS;
    return refuse(CL_INVALID_MEM_OBJECT, call,
                  "another device cannot reach the virtual GPU's device memory; copy "
                  "it through the host");
  }
  if (known && in.context == context) {
    const size_t offset = (size_t)((const char*)address - in.address);
    if (size > in.size - offset)
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
