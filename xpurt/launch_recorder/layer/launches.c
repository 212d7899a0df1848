// Launches of kernels: see Note [A recorded launch].

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layer.h"

// What one launch reads and writes; larger ones are named, without their bytes.
static const size_t MOST_BYTES = (size_t)64 << 20;

typedef struct {
  Allocation* used[MAX_ARGUMENTS];
  size_t count;
  size_t bytes;
} Memory;

static size_t place_of(Memory* memory, Allocation* allocation) {
  size_t i = 0;
  while (i < memory->count && memory->used[i] != allocation) i++;
  if (i == memory->count) {
    memory->used[memory->count++] = allocation;
    memory->bytes += allocation->range.size;
  }
  return i;
}

static void write_argument(FILE* out, const Argument* given, Memory* memory) {
  if (given->kind == VALUE) {
    fprintf(out, "value %zu\n", given->size);
  } else if (given->kind == LOCAL) {
    fprintf(out, "local %zu\n", given->size);
  } else if (given->value == NULL) {
    fprintf(out, "null\n");
  } else {
    Allocation* const around = allocation_around(given->value);
    if (around == NULL)
      fprintf(out, "outside\n");
    else
      fprintf(out, "memory %zu %zu\n", place_of(memory, around),
              (size_t)((char*)given->value - around->range.address));
  }
}

static void write_sizes(FILE* out, cl_uint dims, const size_t* offset,
                        const size_t* global, const size_t* local) {
  fprintf(out, "sizes %u", dims);
  for (cl_uint i = 0; i < 3; i++)
    fprintf(out, " %zu", offset != NULL && i < dims ? offset[i] : 0);
  for (cl_uint i = 0; i < 3; i++) fprintf(out, " %zu", i < dims ? global[i] : 1);
  for (cl_uint i = 0; i < 3; i++)
    fprintf(out, " %zu", local == NULL ? 0 : i < dims ? local[i] : 1);
  fprintf(out, "\n");
}

// The bytes as they are now, copied by the queue: the host may not reach them.
static void write_bytes(FILE* out, cl_command_queue queue, const Memory* memory) {
  const clEnqueueMemcpyINTEL_fn copy =
      (clEnqueueMemcpyINTEL_fn)below(context_of_queue(queue), "clEnqueueMemcpyINTEL");
  for (size_t i = 0; i < memory->count; i++) {
    const AddressRange* const range = &memory->used[i]->range;
    void* const bytes = calloc(range->size, 1);
    if (bytes == NULL) abort();
    copy(queue, CL_TRUE, bytes, range->address, range->size, 0, NULL, NULL);
    fwrite(bytes, 1, range->size, out);
    free(bytes);
  }
}

static void write_names(FILE* out, cl_kernel kernel, const char* program) {
  char name[256] = "";
  next.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
  fprintf(out, "program %s\nkernel %s\n", program, name);
}

static FILE* opened(const char* folder, char path[4096]) {
  static unsigned long number;
  snprintf(path, 4096, "%s/%d-%08lu.unfinished", folder, (int)getpid(), number++);
  FILE* const out = fopen(path, "wb");
  if (out == NULL) perror(path);
  return out;
}

// What is known before the launch.
static void write_before(FILE* out, cl_command_queue queue, cl_kernel kernel,
                         const Argument* given, Memory* memory) {
  cl_uint count = 0;
  next.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL);
  for (cl_uint i = 0; i < count && i < MAX_ARGUMENTS; i++)
    write_argument(out, &given[i], memory);
  for (size_t i = 0; i < memory->count; i++)
    fprintf(out, "allocation %zu %d\n", memory->used[i]->range.size,
            memory->used[i]->is_written);
  fprintf(out, "end\n");
  for (cl_uint i = 0; i < count && i < MAX_ARGUMENTS; i++)
    if (given[i].kind == VALUE) fwrite(given[i].value, 1, given[i].size, out);
  if (memory->bytes <= MOST_BYTES) write_bytes(out, queue, memory);
}

static cl_int launch(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                     const size_t* offset, const size_t* global, const size_t* local,
                     cl_uint wait_count, const cl_event* waits, cl_event* event) {
  static const KernelFacts NONE;
  const char* const folder = getenv("RECORDED_LAUNCHES");
  if (wait_count > 0) next.clWaitForEvents(wait_count, waits);
  next.clFinish(queue);
  lock_records();
  char path[4096], finished[4112];
  FILE* const out = opened(folder, path);
  const KernelFacts* const known = facts_of(kernel);
  const KernelFacts* const facts = known != NULL ? known : &NONE;
  Memory memory = {.count = 0};
  if (out != NULL) {
    write_names(out, kernel, facts->program);
    write_sizes(out, dims, offset, global, local);
    write_before(out, queue, kernel, facts->arguments, &memory);
  }
  const cl_int error = next.clEnqueueNDRangeKernel(queue, kernel, dims, offset, global,
                                                   local, wait_count, waits, event);
  next.clFinish(queue);
  for (size_t i = 0; i < memory.count; i++) memory.used[i]->is_written = true;
  if (out != NULL) {
    if (memory.bytes <= MOST_BYTES) write_bytes(out, queue, &memory);
    snprintf(finished, sizeof finished, "%.*s.launch",
             (int)(strlen(path) - strlen(".unfinished")), path);
    if (fclose(out) != 0 || rename(path, finished) != 0) perror(path);
  }
  unlock_records();
  return error;
}

void hook_launches(cl_icd_dispatch* table) {
  table->clEnqueueNDRangeKernel = launch;
}
