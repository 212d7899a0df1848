#include "kernel_pointers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static KernelPointers* buckets[BUCKETS];

static KernelPointers** place_of(cl_kernel kernel) {
  KernelPointers** place = &buckets[((uintptr_t)kernel >> 4) % BUCKETS];
  while (*place != NULL && (*place)->kernel != kernel) place = &(*place)->next;
  return place;
}

static void drop(KernelPointers** place) {
  KernelPointers* const record = *place;
  *place = record->next;
  free(record->arguments);
  free(record->listed);
  free(record);
}

static KernelPointers* add(cl_kernel kernel) {
  KernelPointers* const record = calloc(1, sizeof *record);
  pthread_mutex_lock(&lock);
  KernelPointers** const place = place_of(kernel);
  if (*place != NULL) drop(place);
  if (record != NULL) {
    *record = (KernelPointers){.kernel = kernel, .references = 1, .next = *place};
    *place = record;
  }
  pthread_mutex_unlock(&lock);
  return record;
}

KernelPointers* pointers_of(cl_kernel kernel) {
  pthread_mutex_lock(&lock);
  KernelPointers* const found = *place_of(kernel);
  pthread_mutex_unlock(&lock);
  return found;
}

bool keep_argument(KernelPointers* of, cl_uint index, const void* address) {
  size_t i = 0;
  while (i < of->argument_count && of->arguments[i].index != index) i++;
  if (i == of->argument_count) {
    if (address == NULL) return true;
    PointerArgument* const grown =
        realloc(of->arguments, (i + 1) * sizeof *of->arguments);
    if (grown == NULL) return false;
    of->arguments = grown;
    of->argument_count++;
  }
  of->arguments[i] = (PointerArgument){index, address};
  if (address == NULL) of->arguments[i] = of->arguments[--of->argument_count];
  return true;
}

bool keep_listed(KernelPointers* of, const void* const* listed, size_t count) {
  const void** const copy = malloc(count * sizeof *copy + 1);
  if (copy == NULL) return false;
  if (count > 0) memcpy(copy, listed, count * sizeof *copy);
  free(of->listed);
  of->listed = copy;
  of->listed_count = count;
  return true;
}

static cl_kernel create_kernel(cl_program program, const char* name, cl_int* error) {
  const cl_kernel kernel = next.clCreateKernel(program, name, error);
  if (kernel != NULL) add(kernel);
  return kernel;
}

static cl_int create_kernels(cl_program program, cl_uint room, cl_kernel* kernels,
                             cl_uint* count) {
  cl_uint made = 0;
  const cl_int error = next.clCreateKernelsInProgram(program, room, kernels, &made);
  for (cl_uint i = 0; error == CL_SUCCESS && kernels != NULL && i < made; i++)
    add(kernels[i]);
  if (count != NULL) *count = made;
  return error;
}

static cl_kernel clone_kernel(cl_kernel kernel, cl_int* error) {
  const cl_kernel clone = next.clCloneKernel(kernel, error);
  if (clone == NULL) return NULL;
  const KernelPointers* const from = pointers_of(kernel);
  KernelPointers* const to = add(clone);
  if (from == NULL || to == NULL) return clone;
  for (size_t i = 0; i < from->argument_count; i++)
    keep_argument(to, from->arguments[i].index, from->arguments[i].address);
  keep_listed(to, from->listed, from->listed_count);
  to->indirect = from->indirect;
  return clone;
}

static cl_int retain_kernel(cl_kernel kernel) {
  pthread_mutex_lock(&lock);
  KernelPointers* const record = *place_of(kernel);
  if (record != NULL) record->references++;
  pthread_mutex_unlock(&lock);
  return next.clRetainKernel(kernel);
}

static cl_int release_kernel(cl_kernel kernel) {
  pthread_mutex_lock(&lock);
  KernelPointers** const place = place_of(kernel);
  if (*place != NULL && --(*place)->references == 0) drop(place);
  pthread_mutex_unlock(&lock);
  return next.clReleaseKernel(kernel);
}

void hook_kernel_pointers(cl_icd_dispatch* table) {
  table->clCreateKernel = create_kernel;
  table->clCreateKernelsInProgram = create_kernels;
  table->clCloneKernel = clone_kernel;
  table->clRetainKernel = retain_kernel;
  table->clReleaseKernel = release_kernel;
}
