// Kernels: the programs that they are of, and the arguments that they have got. A
// record is never dropped: the next kernel at its address begins anew.

#include <stdlib.h>
#include <string.h>

#include "layer.h"

typedef struct Record {
  cl_kernel kernel;
  KernelFacts facts;
  struct Record* next;
} Record;

enum { BUCKETS = 1024 };

static Record* buckets[BUCKETS];

static KernelFacts* found(cl_kernel kernel) {
  Record* each = buckets[((uintptr_t)kernel >> 4) % BUCKETS];
  while (each != NULL && each->kernel != kernel) each = each->next;
  return each != NULL ? &each->facts : NULL;
}

const KernelFacts* facts_of(cl_kernel kernel) {
  return found(kernel);
}

static KernelFacts* made_for(cl_kernel kernel) {
  KernelFacts* const old = found(kernel);
  if (old != NULL) return old;
  Record* const made = calloc(1, sizeof *made);
  if (made == NULL) abort();
  Record** const bucket = &buckets[((uintptr_t)kernel >> 4) % BUCKETS];
  *made = (Record){.kernel = kernel, .next = *bucket};
  *bucket = made;
  return &made->facts;
}

static void set(Argument* argument, Argument given) {
  if (argument->kind == VALUE) free(argument->value);
  *argument = given;
}

static Argument value_of(size_t size, const void* bytes) {
  void* const copy = malloc(size);
  if (copy == NULL) abort();
  memcpy(copy, bytes, size);
  return (Argument){.kind = VALUE, .size = size, .value = copy};
}

// The program is asked now: Intel's driver for CPUs no longer knows it after its owner
// has released it.
static cl_kernel create_kernel(cl_program program, const char* name, cl_int* error) {
  const cl_kernel kernel = next.clCreateKernel(program, name, error);
  if (kernel == NULL) return NULL;
  char* const source = source_of(program);
  char* const options = options_of(program);
  lock_records();
  KernelFacts* const facts = made_for(kernel);
  for (size_t i = 0; i < MAX_ARGUMENTS; i++) set(&facts->arguments[i], (Argument){0});
  facts->program[0] = '\0';
  if (source != NULL && options != NULL)
    write_program(getenv("RECORDED_LAUNCHES"), source, options, facts->program);
  unlock_records();
  free(source);
  free(options);
  return kernel;
}

static cl_kernel clone_kernel(cl_kernel kernel, cl_int* error) {
  const cl_kernel clone = next.clCloneKernel(kernel, error);
  if (clone == NULL) return NULL;
  lock_records();
  KernelFacts* const to = made_for(clone);
  const KernelFacts* const from = found(kernel);
  for (size_t i = 0; from != NULL && i < MAX_ARGUMENTS; i++) {
    const Argument* const given = &from->arguments[i];
    set(&to->arguments[i],
        given->kind == VALUE ? value_of(given->size, given->value) : *given);
  }
  if (from != NULL) memcpy(to->program, from->program, sizeof to->program);
  unlock_records();
  return clone;
}

static void keep(cl_kernel kernel, cl_uint index, Argument given) {
  if (index >= MAX_ARGUMENTS) return;
  lock_records();
  set(&made_for(kernel)->arguments[index], given);
  unlock_records();
}

static cl_int set_argument(cl_kernel kernel, cl_uint index, size_t size,
                           const void* value) {
  keep(kernel, index,
       value != NULL ? value_of(size, value) : (Argument){.kind = LOCAL, .size = size});
  return next.clSetKernelArg(kernel, index, size, value);
}

static cl_int set_pointer(cl_kernel kernel, cl_uint index, const void* address) {
  const clSetKernelArgMemPointerINTEL_fn call = (clSetKernelArgMemPointerINTEL_fn)below(
      context_of_kernel(kernel), "clSetKernelArgMemPointerINTEL");
  keep(kernel, index, (Argument){.kind = POINTER, .value = (void*)address});
  return call(kernel, index, address);
}

void* kernel_entry_point(const char* name) {
  const bool is_pointer = strcmp(name, "clSetKernelArgMemPointerINTEL") == 0;
  return is_pointer ? (void*)set_pointer : NULL;
}

void hook_kernels(cl_icd_dispatch* table) {
  table->clCreateKernel = create_kernel;
  table->clCloneKernel = clone_kernel;
  table->clSetKernelArg = set_argument;
}
